"""Files and folders in stores that are named by URLs, such as s3://bucket/key: reached by Arrow's file systems, from any process."""

from __future__ import annotations

import io
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath

# Any: PyArrow has no types for its file systems.
from typing import Any, BinaryIO, Literal
from urllib.parse import urlsplit

from sim.base.errors import WorkloadError
from sim.files.directories import Directory
from sim.files.readable import ReadableFile

STORES = ("s3", "s3a", "gs", "hdfs")
_BUFFER = 1 << 20  # bytes that are requested at once, at least
_GS_SECONDS = 20  # for which a request is repeated


@dataclass(frozen=True)
class StoreFile(os.PathLike[str]):
    """A file in a store, by its `url`: at a `path` of one of Arrow's file systems; its size (bytes) and when it last changed (ns)."""

    url: str
    system: Any
    path: str
    size: int
    changed: int

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFile) and (self.url, self.size, self.changed) == (
            other.url,
            other.size,
            other.changed,
        )

    def __hash__(self) -> int:
        return hash((self.url, self.size, self.changed))

    @property
    def name(self) -> str:
        """Its last part."""
        return PurePosixPath(self.path).name

    @property
    def suffixes(self) -> Sequence[str]:
        """The endings of its name."""
        return PurePosixPath(self.path).suffixes

    def open(self, mode: Literal["rb"] = "rb") -> BinaryIO:
        """Its bytes. Raises OSError where the store does not give them."""
        return io.BufferedReader(self.system.open_input_file(self.path), _BUFFER)


def files_in_store(url: str) -> list[StoreFile]:
    """The file that a URL names, those in a folder and below, or those that match a pattern, by name.

    What begins with "_" or "." in a folder is no data. Raises WorkloadError where there are none, or the store cannot be reached.
    """
    from pyarrow import fs

    system, path = _located(url)
    base = re.split(r"[*?[]", path, maxsplit=1)[0]
    folder = path if base == path else base.rpartition("/")[0]
    try:
        found = [system.get_file_info(path)] if base == path else []
        if not found or found[0].type == fs.FileType.Directory:
            found = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    except OSError as error:
        raise _unreached(url, error) from None
    inside = {info.path: PurePosixPath(info.path).relative_to(folder).parts for info in found if info.path != path}
    for table, sign in (("Delta", "_delta_log"), ("Iceberg", "metadata"), ("Hudi", ".hoodie")):
        if any(parts[0] == sign for parts in inside.values()):
            raise WorkloadError(
                f"{url}: a table in {table} format, whose folder may hold files that it no longer uses; export it as Parquet"
            )
    files = [
        StoreFile(f"{url.partition('://')[0]}://{info.path}", system, info.path, info.size, info.mtime_ns or 0)
        for info in sorted(found, key=lambda info: info.path)
        if info.type == fs.FileType.File
        and not any(part[0] in "._" for part in inside.get(info.path, ()))
        and (base == path or re.fullmatch(_pattern(path), info.path))
    ]
    if not files:
        raise WorkloadError(f"{url}: no file {'there' if base == path else 'matches this pattern'}")
    return files


@contextmanager
def temporary_in(url: str) -> Iterator[Directory]:
    """A new folder in a folder of a store while the body runs. Raises WorkloadError where none can be made."""
    system, path = _located(url)
    folder = Directory(system, f"{path.rstrip('/')}/brokersim-{uuid.uuid4()}")
    try:
        system.create_dir(folder.path)
    except OSError as error:
        raise _unreached(url, error) from None
    try:
        yield folder
    finally:
        with suppress(OSError):  # the store may have become unreachable
            system.delete_dir(folder.path)


def is_store(text: str) -> bool:
    """Whether a text is the URL of something in a store."""
    return text.partition("://")[0].lower() in STORES and "://" in text


def _located(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises WorkloadError where there is none."""
    from pyarrow import fs

    found = urlsplit(url)
    scheme, path = found.scheme.lower(), f"{found.netloc}{found.path}" + (f"?{found.query}" if found.query else "")
    if scheme in ("s3", "s3a"):
        return _s3(fs), path
    if scheme == "gs":
        return _gs(fs), path
    try:
        return fs.HadoopFileSystem(found.hostname or "default", found.port or 0), found.path
    except OSError as error:
        raise WorkloadError(
            f"{url}: HDFS needs Hadoop's libhdfs.so, in the folder that ARROW_LIBHDFS_DIR or HADOOP_HOME names, and "
            f"CLASSPATH as `hadoop classpath --glob` prints it ({str(error).splitlines()[0]})"
        ) from None


def _s3(fs: Any) -> Any:
    """A store of S3, by the environment variables of AWS; keys that stand in them are good for other machines too."""
    named = {
        "access_key": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
    }
    more = {key: value for key, name in named.items() if (value := os.environ.get(name))}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if region or endpoint:
        more["region"] = region or "us-east-1"
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        more |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    return fs.S3FileSystem(**more)


def _gs(fs: Any) -> Any:
    """Google's store, or what stands in for it at STORAGE_EMULATOR_HOST; by default it is tried for a quarter of an hour."""
    more: dict[str, Any] = {"retry_time_limit": timedelta(seconds=_GS_SECONDS)}
    if host := os.environ.get("STORAGE_EMULATOR_HOST"):
        scheme, _, endpoint = host.rpartition("://")
        more |= {"anonymous": True, "endpoint_override": endpoint.rstrip("/"), "scheme": scheme or "http"}
    return fs.GcsFileSystem(**more)


def _unreached(url: str, error: OSError) -> WorkloadError:
    said = re.sub(r"\s+", " ", str(error))[:300]
    hints = {
        "s3": "AWS_ENDPOINT_URL names a store other than Amazon's",
        "gs": "GOOGLE_APPLICATION_CREDENTIALS names a key file",
    }
    hint = next((f"; {hint}" for scheme, hint in hints.items() if url.lower().startswith(scheme)), "")
    return WorkloadError(f"{url}: the store cannot be reached, or refuses the request ({said}){hint}")


def _pattern(path: str) -> str:
    """A regular expression for a pattern of paths, in which `**` spans folders."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", path)
    return "".join(signs.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)


def opened(file: ReadableFile) -> Any:
    """What PyArrow reads a file from."""
    return file if isinstance(file, Path) else file.open("rb")
