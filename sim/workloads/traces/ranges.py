"""Byte ranges of a trace's files, and the lines in them, found without a Python object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.files.columns import places
from sim.files.compression import codec_of, pieces
from sim.files.readable import ReadableFile
from sim.files.stores import opened
from sim.workloads.traces.sources import Source

RANGE_BYTES = 64 << 20
"""The bytes of a file that one task reads."""
CHUNK_BYTES = 4 << 20
"""The bytes that are processed at once, which determine a task's memory."""

_BOM, _CR, _LF, _NOT_ASCII = b"\xef\xbb\xbf", 13, 10, 128


@dataclass(frozen=True)
class Range:
    """The lines that begin in [start, stop) of a file; all lines of a compressed file, which has no `stop`.

    `names` are those of the fields of its lines. In Parquet: the row groups `groups`, whose rows are numbered from `start` on.
    """

    source: int
    path: ReadableFile
    start: int
    stop: int | None
    names: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()

    def chunks(self) -> Iterator[bytes]:
        """Yield its content in whole lines. Raises Damaged where the file cannot be unpacked."""
        with self.path.open("rb") as file:
            left = list[bytes]()
            for piece in pieces(file, CHUNK_BYTES) if self.stop is None else _between(file, self.start, self.stop):
                end = piece.rfind(b"\n") + 1
                if end:
                    yield b"".join([*left, piece[:end]])
                    left = []
                left.append(piece[end:])
            if rest := b"".join(left):
                yield rest


def _between(file: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    if start:
        file.seek(start - 1)
        file.readline()  # the line before, which another range has; its end alone where a line begins at `start`
    while (missing := stop - file.tell()) > 0 and (piece := file.read(min(missing, CHUNK_BYTES))):
        last = file.tell() == stop and not piece.endswith(b"\n")
        yield piece + file.readline() if last else piece


def cut_files(
    sources: Sequence[Source], names: Sequence[tuple[str, ...]], first: int, partitions: int | None, cores: int
) -> list[Range]:
    """Ranges of these files, which are numbered from `first` on: at least `partitions` of them, or a few for each core.

    `names` are those of the fields in the lines of each file.
    """
    total = sum(source.bytes for source in sources)
    size = (
        min(RANGE_BYTES, max(CHUNK_BYTES, -(-total // (2 * cores))))
        if partitions is None
        else max(1, -(-total // partitions))
    )
    ranges = list[Range]()
    for number, source, fields in zip(count(first), sources, names, strict=False):
        if codec_of(source.path) is not None:
            ranges.append(Range(number, source.path, 0, None, fields))
            continue
        for start in range(0, source.bytes, size):
            ranges.append(Range(number, source.path, start, min(start + size, source.bytes), fields))
    return ranges


def recoded(data: bytes, encoding: str) -> bytes:
    """Whole lines in UTF-8; those that are not in this encoding become lines that are not in UTF-8 either."""
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError:
        return b"\n".join(_recoded_line(line, encoding) for line in data.split(b"\n"))


def _recoded_line(line: bytes, encoding: str) -> bytes:
    try:
        return line.decode(encoding).encode()
    except UnicodeDecodeError:
        return b"\xff" + line


def cut_parquet(sources: Sequence[Source], first: int) -> list[Range]:
    """Ranges of files of Parquet, which are numbered from `first` on: row groups up to `RANGE_BYTES`."""
    ranges = list[Range]()
    for number, source in enumerate(sources, first):
        metadata = pq.read_metadata(opened(source.path))
        groups, size, row, start = list[int](), 0, 0, 0
        for group in range(metadata.num_row_groups):
            found = metadata.row_group(group)
            if groups and size + found.total_byte_size > RANGE_BYTES:
                ranges.append(Range(number, source.path, start, row, groups=tuple(groups)))
                groups, size, start = [], 0, row
            groups.append(group)
            size += found.total_byte_size
            row += found.num_rows
        ranges.append(Range(number, source.path, start, row, groups=tuple(groups)))
    return ranges


@dataclass
class Lines:
    """The lines of a chunk, as positions in its bytes.

    `start` and `end` are those of a line without what ends it and without a mark of the byte order; `raw` is where the mark
    would begin. `valid` says which lines are UTF-8.
    """

    data: bytes
    bytes: NDArray[np.uint8]
    raw: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.end)

    def texts(self, wanted: NDArray[np.bool_]) -> pa.StringArray:
        """The lines that are wanted, which are valid, without what ends them; null for the others."""
        at = np.column_stack([self.raw, self.end]).ravel().astype(np.int32)
        all_texts = pa.StringArray.from_buffers(len(at) - 1, pa.py_buffer(at), pa.py_buffer(self.data))
        return all_texts.take(places(2 * np.arange(len(self)), wanted))

    def text(self, line: int) -> str:
        """A line for display; bytes that are not UTF-8 become U+FFFD."""
        return self.data[self.raw[line] : self.end[line]].decode(errors="replace")


def lines_of(data: bytes, *, beginning: bool) -> Lines:
    """The lines of a chunk of a file, its first one if `beginning` (then without a byte-order mark)."""
    array = np.frombuffer(data, np.uint8)
    end = np.flatnonzero(array == _LF)
    if not data.endswith(b"\n"):
        end = np.append(end, len(data))
    raw = np.zeros(len(end), np.int64)
    raw[1:] = end[:-1] + 1
    if beginning and data.startswith(_BOM):
        raw[0] = len(_BOM)
    if b"\r" in data:
        end = end - ((end > raw) & (array[end - 1] == _CR))
    start = raw
    if _BOM in data:
        some = np.flatnonzero(end - raw >= len(_BOM))
        some = some[array[raw[some]] == _BOM[0]]
        marked = [line for line in some if data.startswith(_BOM, int(raw[line]))]
        start = raw.copy()
        start[marked] += len(_BOM)
    return Lines(data, array, raw, start, end, _valid(data, array, raw, end))


def _valid(
    data: bytes, array: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    valid = np.ones(len(end), np.bool_)
    if _is_text(data):
        return valid
    others = np.unique(np.searchsorted(end, np.flatnonzero(array >= _NOT_ASCII), side="right"))
    for line in others[others < len(end)]:
        valid[line] = _is_text(data[start[line] : end[line]])
    return valid


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
