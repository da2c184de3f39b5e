"""The rows of a workload's files, kept in its folder so that rows of more files can join them (`--append`)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.files.hashing import sha256
from sim.workloads.format.folder import KEPT_ROWS
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.sources import Source, named_apart

_STATE = "state.json"
_KINDS = ("usable", "bad")


@dataclass(frozen=True)
class KeptRows:
    """What is kept in a `folder`, by group of files: the `sources` whose rows have been read, and the `pieces` with the rows.

    Pieces number the sources of their group from 0.
    """

    folder: Path
    sources: Sequence[Sequence[Source]]
    pieces: Sequence[Sequence[Piece]] = field(default=())

    def shelve(self, group: int, first: int, folder: Path) -> list[Piece]:
        """Put the rows of a group, whose sources are numbered from `first` on, into a folder."""
        pieces = list[Piece]()
        for piece in self.pieces[group]:
            moved = Piece(**{**vars(piece), "source": first + piece.source})
            for kind in _KINDS:
                if (kept := self.folder / _name(group, piece, kind)).exists():
                    _link(kept, folder / f"{moved.name}.{kind}")
            pieces.append(moved)
        return pieces


@dataclass(frozen=True)
class Appending:
    """Rows are kept, as they are `made` (`made_with`) and, if there are any, behind those `kept`; only some groups are `growing`."""

    made: Raw
    growing: Sequence[bool]
    kept: KeptRows | None = None

    def old(self, group: int) -> int:
        """How many files of a group have been read before."""
        return len(self.kept.sources[group]) if self.kept and self.growing[group] else 0


def made_with(kind: str, layouts: Raw, options: Raw) -> Raw:
    """What determines how rows are read, and what becomes of them: only rows of which it is true can join others."""
    from importlib.metadata import version

    said: Raw = json.loads(json.dumps({"version": version("brokersim"), "kind": kind, **layouts, **options}))
    for option in ("append", "work"):  # which determine nothing of it
        said.pop(option, None)
    return said


def read_kept(out: Path, made: Raw) -> KeptRows | None:
    """The rows that are kept in a workload's folder; None where there is no workload.

    Raises WorkloadError where a workload has no rows, was made with anything else than `made`, or has changed.
    """
    folder = out / KEPT_ROWS
    if not (out / "manifest.json").exists():
        return None
    try:
        state = json.loads((folder / _STATE).read_bytes())
        found, files, groups = state["made_with"], state["files"], state["groups"]
    except FileNotFoundError:
        raise WorkloadError(
            f"{out}: a workload that was prepared without --append, so nothing can join it; prepare all files with --append"
        ) from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise WorkloadError(f"{folder / _STATE}: damaged ({error}); prepare all files again") from None
    if found != made:
        key, before, now = _difference(found, made)
        raise WorkloadError(
            f"{out}: was prepared with {key} {json.dumps(before)}, now it is {json.dumps(now)}; "
            "--append takes the same layout and options, and the same version of brokersim"
        )
    for name, digest in files.items():
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            raise WorkloadError(f"{folder / name}: missing, or changed since it was written; prepare all files again")
    sources = [[Source(Path(path), "", digest, size) for path, digest, size in group["sources"]] for group in groups]
    return KeptRows(folder, sources, [[_piece(**piece) for piece in group["pieces"]] for group in groups])


def _difference(one: Raw, other: Raw) -> tuple[str, object, object]:
    """The first key in which two mappings differ, looking into mappings in both, and what each has there."""
    key = next(key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key))
    before, now = one.get(key), other.get(key)
    if isinstance(before, dict) and isinstance(now, dict):
        inner, before, now = _difference(before, now)
        return f"{key}.{inner}", before, now
    return key, before, now


def _piece(faults: Sequence[Raw], **more: Raw) -> Piece:
    piece = Piece(**more)  # type: ignore[arg-type]
    for fault in faults:
        piece.count((fault["reason"], fault["column"]), fault["rows"], fault["first"] and tuple(fault["first"]))
    return piece


def join_groups(appending: Appending, groups: Sequence[Sequence[Source]]) -> list[list[Source]]:
    """The files of each group that are kept, and then those of `groups` that are new; only growing groups may have new ones.

    Raises WorkloadError where none is new, or a file has been read with other content.
    """
    if appending.kept is None:
        return [list(group) for group in groups]
    joined, news = list[list[Source]](), 0
    for old, group, grows in zip(appending.kept.sources, groups, appending.growing, strict=True):
        known, digests = {source.path for source in old}, [source.sha256 for source in old]
        if not grows and digests != [source.sha256 for source in group]:
            raise WorkloadError(
                f"{group[0].path}: not the places that the workload was prepared with; --append changes none"
            )
        new = [source for source in group if source.sha256 not in digests]
        for source in new:
            if source.path in known:
                raise WorkloadError(
                    f"{source.path}: has changed since its rows joined the workload; --append takes new rows as files of their own"
                )
        news += len(new)
        joined.append([*old, *new] if grows else list(group))
    if not news:
        raise WorkloadError(f"{groups[0][0].path}: is in the workload already, as all files named are")
    return named_apart(joined)


def write_kept(folder: Path, made: Raw, groups: Sequence[tuple[Sequence[Source], Shelf | None, int]]) -> None:
    """Write, for each group, its sources and the pieces of its shelf, from 0 on as far as it is old, which are kept as they are.

    A group without a shelf has no rows of its own to keep. The third in each group is the number of its first source.
    """
    folder.mkdir(exist_ok=True)
    files, said = dict[str, str](), []
    for group, (sources, shelf, first) in enumerate(groups):
        pieces = []
        for piece in shelf.pieces if shelf else ():
            own = Piece(**{**vars(piece), "source": piece.source - first})
            for kind in _KINDS:
                if shelf and (there := Path(shelf.folder.path) / f"{piece.name}.{kind}").exists():
                    name = _name(group, own, kind)
                    _compress(there, folder / name)
                    files[name] = sha256(folder / name)
            faults = [
                {"reason": reason, "column": column, "rows": rows, "first": own.firsts.get((reason, column))}
                for (reason, column), rows in own.faults.items()
            ]
            pieces.append({**vars(own), "faults": faults})
            del pieces[-1]["firsts"]
        said.append({"sources": [[str(one.path), one.sha256, one.bytes] for one in sources], "pieces": pieces})
    text = json.dumps({"made_with": made, "files": files, "groups": said}, ensure_ascii=False)
    (folder / _STATE).write_text(text, encoding="utf-8")


def _name(group: int, piece: Piece, kind: str) -> str:
    return f"{group}-{piece.name}.{kind}"


def _link(kept: Path, path: Path) -> None:
    try:
        os.link(kept, path)
    except OSError:  # a file system without links
        shutil.copyfile(kept, path)


def _compress(path: Path, to: Path) -> None:
    """Write rows compressed; rows that are compressed already, which have another name than their own, stay one file."""
    if path.stat().st_nlink > 1:
        _link(path, to)
        return
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.memory_map(str(path)) as file,
        pa.ipc.open_stream(file) as rows,
        pa.ipc.new_stream(str(to), rows.schema, options=options) as writer,
    ):
        for batch in rows:
            writer.write_batch(batch)
