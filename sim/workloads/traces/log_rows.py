"""Brokers' own logs as rows: a reader turns the lines into events, which are validated like the rows of any layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.files.directories import Directory
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.judging import Rules, write_judged
from sim.workloads.traces.ranges import Range, lines_of, recoded
from sim.workloads.traces.readers.broker_lines import FOREIGN, LineEvents, LogEvent, LogReader
from sim.workloads.traces.shelves import Piece, PieceWriter
from sim.workloads.traces.sources import Source

_BATCH = 1 << 16  # events
PIECE_ROWS = 1 << 20
"""Rows of a piece, from which on another one begins."""


@dataclass(frozen=True)
class _Rows:
    """The lines of events; `several` says which of them are not the only one of their line."""

    raw: Sequence[str]
    several: NDArray[np.bool_]

    def texts(self, wanted: NDArray[np.bool_]) -> pa.StringArray:
        """The lines of events that are wanted, and all of which several events are; null for the others."""
        return pa.array(self.raw, pa.string(), mask=~(wanted | self.several))

    def text(self, line: int) -> str:
        """The line of an event."""
        return self.raw[line]


def read_log(
    sources: Sequence[Source],
    first: int,
    encoding: str,
    reader: LogReader,
    rules: Rules,
    folder: Directory,
    report: Callable[[str], None],
) -> tuple[list[Piece], Counter[str]]:
    """The validated events of a log's files, numbered from `first` on, and how many lines are none, by reason.

    Raises WorkloadError where a file has no line with an event.
    """
    pieces, left_out = list[Piece](), Counter[str]()
    for number, source in zip(count(first), sources, strict=False):
        own, without, line = list[Piece](), Counter[str](), -1
        writer = PieceWriter(folder, Piece(number, 0))
        batch = list[tuple[int, str, LogEvent | None, bool]]()
        for line, raw, made in _lines(reader, Range(number, source.path, 0, None), encoding):
            if isinstance(made, str) and made != FOREIGN:
                without[made] += 1
                continue
            events: Sequence[LogEvent | None] = [None] if isinstance(made, str) else made
            batch += [(line, raw, event, len(events) > 1) for event in events]
            if len(batch) >= _BATCH:
                _write(batch, rules, writer)
                report(f"{source.name}, line {line + 1:,}")
                batch = []
                if writer.piece.faults.total() >= PIECE_ROWS:
                    own.append(_closed(writer, line))
                    writer = PieceWriter(folder, Piece(number, line + 1))
        _write(batch, rules, writer)
        own.append(_closed(writer, line))
        if without and not any(piece.faults.total() for piece in own):
            said = ", ".join(f"{reason} {lines:,}" for reason, lines in sorted(without.items()))
            raise WorkloadError(f"{source.path}: no line says what a client does ({said})")
        pieces += own
        left_out += without
    return pieces, left_out


def _closed(writer: PieceWriter, last: int) -> Piece:
    """The piece that ends with a line."""
    writer.close()
    writer.piece.lines = last + 1 - writer.piece.start
    return writer.piece


def _lines(reader: LogReader, whole: Range, encoding: str) -> Iterator[tuple[int, str, LineEvents]]:
    """The lines of a file, numbered from 0, with what they say. Raises Damaged where the file cannot be unpacked."""
    line, raw = -1, ""
    damaged = list[tuple[int, str]]()

    def texts() -> Iterator[str]:
        nonlocal line, raw
        for chunk in whole.chunks():
            lines = lines_of(recoded(chunk, encoding), beginning=line < 0)
            for n in range(len(lines)):
                line, raw = line + 1, lines.text(n)
                if lines.valid[n]:
                    yield raw
                else:
                    damaged.append((line, raw))

    for made in reader.read(texts()):
        for before in damaged:
            yield *before, FOREIGN
        damaged.clear()
        yield line, raw, made
    for before in damaged:
        yield *before, FOREIGN


def _write(batch: Sequence[tuple[int, str, LogEvent | None, bool]], rules: Rules, writer: PieceWriter) -> None:
    if not batch:
        return
    rows, raw, events, several = zip(*batch, strict=True)
    parsed = np.array([event is not None for event in events])
    nothing = LogEvent(None, "")
    texts = zip(*(event or nothing for event in events), strict=True)
    columns = {name: pa.array(text, pa.string()) for name, text in zip(LogEvent._fields, texts, strict=True)}
    fields = Fields(_Rows(raw, np.array(several)), parsed, columns)
    write_judged(rules(fields), fields, np.array(rows, np.int64) - writer.piece.start, writer)
