"""The files of a trace: found by name or pattern, identified by their SHA-256, and linked for Spark."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from sim.base.errors import WorkloadError, nearest
from sim.files.compression import COMPRESSIONS, Damaged, archive, codec_of, first_bytes, pieces
from sim.files.hashing import sha256
from sim.files.readable import ReadableFile
from sim.files.stores import STORES, StoreFile, files_in_store, is_store

Inputs = Sequence[str | os.PathLike[str]]
"""Files, folders and patterns."""

_PARQUET = b"PAR1"
_UNPACKED = "-unpacked"


@dataclass(frozen=True)
class Source:
    """One input file; `name` is its name in manifest and quarantine, the same on every machine."""

    path: ReadableFile
    name: str
    sha256: str
    bytes: int

    def damage(self) -> str | None:
        """The damage of a compressed file, found by unpacking it completely; None where it unpacks or is not compressed."""
        if codec_of(self.path):
            try:
                with self.path.open("rb") as file:
                    for _ in pieces(file):
                        pass
            except Damaged as error:
                return str(error)
        return None


def find_sources(inputs: Inputs) -> list[Source]:
    """The files matching names and patterns (`*`, `?`, `[…]`, `**`) or in folders: inputs in the given order, those of each sorted.

    A name may be a URL of a file. A file named twice counts once. Raises WorkloadError where one is missing or empty, or of another
    place, or a pattern matches none.
    """
    [sources] = find_groups([inputs])
    return sources


def find_groups(groups: Sequence[Inputs]) -> list[list[Source]]:
    """`find_sources` of several groups of inputs, whose files are read once and named so that all names differ."""
    found = [list(dict.fromkeys(path for text in inputs for path in _expand(os.fspath(text)))) for inputs in groups]
    paths = list(dict.fromkeys(path for group in found for path in group))
    if not paths:
        raise WorkloadError("no input file is named")
    sources = {path: _source(path) for path in paths}
    return named_apart([[sources[path] for path in group] for group in found])


def named_apart(groups: Sequence[Sequence[Source]]) -> list[list[Source]]:
    """The same files with names that all differ: their own or, if they do not, those below a folder that has all of them."""
    paths = {source.path: PurePosixPath("/", str(source.path)) for group in groups for source in group}
    names = {path: path.name for path in paths}
    if len(set(names.values())) < len(names):
        root = os.path.commonpath([place.parent for place in paths.values()])
        names = {path: PurePosixPath(os.path.relpath(place, root)).as_posix() for path, place in paths.items()}
    return [[replace(source, name=names[source.path]) for source in group] for group in groups]


def _expand(text: str) -> Sequence[ReadableFile]:
    if is_store(text):
        return files_in_store(text)
    return [path.resolve() for path in _local_files(text)]


def _local_files(text: str) -> list[Path]:
    path = Path(text)
    if (url := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?", text)) and not path.exists():
        path = _local(text, url[1].lower(), bool(url[2]))
        text = str(path)
    if path.is_file():
        return [path]
    if path.is_dir():
        return _parts(path)
    if glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - pathlib refuses patterns of whole paths
        matches = [match for match in map(Path, found) if match.is_file()]
        if not matches:
            raise WorkloadError(f"{text}: no file matches this pattern")
        return matches
    if path.exists():
        raise WorkloadError(f"{text}: a pipe or a device; name a file, {COMPRESSIONS}")
    near = nearest(path.name, (entry.name for entry in path.parent.iterdir())) if path.parent.is_dir() else None
    hint = f", did you mean '{path.with_name(near)}'?" if near else ""
    raise WorkloadError(f"{text}: no such file{hint}")


def _local(url: str, scheme: str, slashes: bool) -> Path:
    """The path that a URL names. Raises WorkloadError where it is of another place than the file system."""
    if scheme == "file":
        found = urlsplit(url)
        if found.netloc in ("", "localhost"):
            return Path(unquote(found.path))
    if slashes or scheme in ("jdbc", "file"):
        raise WorkloadError(
            f"{url}: only files are read, by paths or URLs of {', '.join(STORES)} or file that all machines see; "
            "export or copy it there first"
        )
    return Path(url)


def _parts(folder: Path) -> list[Path]:
    """The files in a folder and those below, by name; what Spark and others begin with "_" or "." is no data."""
    for table, sign in (("Delta", "_delta_log"), ("Iceberg", "metadata/*.metadata.json"), ("Hudi", ".hoodie")):
        if next(folder.glob(sign), None) is not None:
            raise WorkloadError(
                f"{folder}: a table in {table} format, whose folder may hold files that it no longer uses; export it as Parquet"
            )
    below = ((path, path.relative_to(folder).parts) for path in sorted(folder.rglob("*")))
    found = [path for path, parts in below if path.is_file() and not any(part[0] in "._" for part in parts)]
    if not found:
        raise WorkloadError(f"{folder}: a folder without files of data")
    return found


def _source(path: ReadableFile) -> Source:
    try:
        size, changed = (path.size, path.changed) if isinstance(path, StoreFile) else _size(path)
        digest = _sum(path, size, changed)
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read ({error.strerror or error})") from error
    if size == 0:
        raise WorkloadError(f"{path}: the file is empty")
    try:
        kind = archive(path)
    except Damaged as error:
        raise WorkloadError(f"{path}: {error}") from None
    if kind is not None:
        raise WorkloadError(f"{path}: a {kind} archive; unpack it and name the files in it, {COMPRESSIONS}")
    return Source(path, path.name, digest, size)


def _size(path: ReadableFile) -> tuple[int, int]:
    found = Path(str(path)).stat()
    return found.st_size, found.st_mtime_ns


@lru_cache
def _sum(path: ReadableFile, size: int, changed: int) -> str:
    """The SHA-256 of a file of this size, changed at that time: a command looks at its files before it starts Spark, and after."""
    return sha256(path)


def is_parquet(path: ReadableFile) -> bool:
    """Whether a file, unpacked where it is compressed, begins as Parquet does; a damaged one does not."""
    try:
        return first_bytes(path, len(_PARQUET)) == _PARQUET
    except Damaged:
        return False


def link_sources(sources: Sequence[Source], folder: Path, first: int = 0) -> None:
    """Fill `folder` with links that Spark reads whatever the files' names hold: the number of the source, `.gz` by content.

    Sources are numbered from `first` on. What Spark does not unpack is unpacked by `readable`. Raises WorkloadError for one in a store.
    """
    folder.mkdir()
    for number, source in enumerate(sources, first):
        if not isinstance(source.path, Path):
            raise WorkloadError(
                f"{source.path}: what Arrow kernels do not read must be in a folder, not in a store; copy it to one"
            )
        ending = "gz" if codec_of(source.path) == "gzip" else "txt"
        (folder / f"{number:06d}.{ending}").symlink_to(source.path)


def readable(link: Path) -> Path:
    """A file that Spark reads instead of this link of `link_sources`: itself or, beside its folder, its content unpacked.

    Raises WorkloadError where it cannot be unpacked.
    """
    codec = codec_of(link)
    if codec is None or (codec == "gzip" and not is_parquet(link)):
        return link
    content = link.parent.with_name(f"{link.parent.name}{_UNPACKED}") / f"{link.stem}.txt"
    content.parent.mkdir(exist_ok=True)
    try:
        with link.open("rb") as packed, content.open("wb") as plain:
            for piece in pieces(packed):
                plain.write(piece)
    except Damaged as error:
        raise WorkloadError(f"{link.resolve()}: {error}") from None
    return content


def original(path: Path) -> Path:
    """The input file that Spark read from `path`: a link, or what `readable` has unpacked."""
    name = path.parent.name
    if name.endswith(_UNPACKED):
        [path] = path.parent.with_name(name.removesuffix(_UNPACKED)).glob(f"{path.stem}.*")
    return path.resolve()
