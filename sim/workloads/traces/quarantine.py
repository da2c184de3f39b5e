"""Rows that a pipeline cannot use: the reason, number and place."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.files.columns import int64_values
from sim.files.directories import Directory
from sim.files.parquet import ROW_GROUP, arrow, repeated, strings, write_tables
from sim.workloads.format.parts import part_name
from sim.workloads.traces.layouts import Layout, name_keys
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.sources import Source
from sim.workloads.traces.spark_tasks import TaskResult

# A row's reason is the first of these that applies. The last three are of users of whom no row is used.
REASONS = (
    *("unparsable", "bad_time", "bad_position", "null_island", "outside_box", "outside_window"),
    *("retained", "no_effect", "duplicate"),
    *("not_sampled", "not_every_month", "few_visits"),
)
# Reasons that indicate a wrong layout; the others are about the content.
FORM = REASONS[:3]

_SCHEMA = pa.schema({"source": pa.string(), "line": pa.int64(), "raw": pa.string(), "reason": pa.string()})
_COLUMNS = ("row", "raw", "reason")
_LINE_BITS = 40
PART_LINES = 1 << 23
"""Lines whose quarantined rows are in one file, where there are several."""
Drops = Callable[[int, int], Mapping[str, NDArray[np.int64]]]
"""The numbers of the rows in a range, and perhaps others, that were given a reason later, by reason."""
_BATCH = 1 << 16  # rows


def row_number(source: int, line: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each row, ascending as (source, line) do."""
    return line + (source << _LINE_BITS)


def check_form(
    shelf: Shelf,
    layout: Layout,
    sources: Sequence[Source],
    expected: Mapping[str, str],
    first: int,
    example: Callable[[], str],
) -> None:
    """Raise where a source is empty or not in this layout.

    `expected` describes what a field should contain, unless it is a time, of which there is an `example`. `sources` are numbered from
    `first` on. WorkloadError where a
    source has no rows, or where more than half of all rows have a reason of `FORM`.
    """
    counted = Counter[int]()
    for piece in shelf.pieces:
        counted[piece.source - first] += piece.faults.total()
    for number, source in enumerate(sources):
        if not counted[number]:
            raise WorkloadError(f"{source.path}: the file is empty{' but for its header' * layout.header}")
    faults = shelf.faults
    wrong = {fault: rows for fault, rows in faults.items() if fault[0] in FORM}
    if 2 * sum(wrong.values()) <= faults.total():
        return
    blamed = max(sorted(wrong, key=str), key=wrong.__getitem__)
    number, line, raw, found = shelf.first(blamed)
    share = f"({sum(wrong.values()):,} of {faults.total():,} rows cannot be read as --format {layout.name})"
    place = f"{sources[number - first].path}: {'row' if layout.kind == 'parquet' else 'line'} {line}"
    column = blamed[1]
    if column is None:
        raise WorkloadError(f"{place}: expected {_line(layout)}, found {_shown(raw)} {share}")
    times = layout.time_fields
    parts = f"the parts of a time ({', '.join(times)})" if column == times[0] and len(times) > 1 else ""
    wanted = parts or expected.get(column) or f"a time such as {example()}"
    said = "nothing" if found is None else repr(found[:80])
    raise WorkloadError(f"{place}: {_column(layout, column)} looks wrong: expected {wanted}, found {said} {share}")


def _line(layout: Layout) -> str:
    if layout.kind == "log":
        return f"a line of {layout.text}"
    if layout.kind == "jsonl":
        return f"an object of JSON in UTF-8, with a text or a number as {' and '.join(name_keys(layout))}"
    if isinstance(layout.columns, Mapping):
        return f"as many fields as line 1 names, separated by {layout.delimiter!r}, in UTF-8"
    return f"{len(layout.columns)} fields ({', '.join(layout.columns)}) separated by {layout.delimiter!r} in UTF-8"


def _shown(raw: str) -> str:
    short = textwrap.shorten(raw.replace("\t", " "), 80, placeholder=" …")
    return repr(short) if short else "an empty line"


def _column(layout: Layout, field: str) -> str:
    if layout.kind == "log":
        return f"the {field}"
    if isinstance(layout.columns, Mapping):
        name = layout.columns[field]
        return f"{'key' if layout.kind == 'jsonl' else 'column'} '{name}'" + f" ({field})" * (name != field)
    return f"column {layout.columns.index(field) + 1} ({field})"


def quarantined(shelves: Sequence[Shelf], drops: Drops, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows that have a fault or are dropped, a million at a time.

    Columns are source (one of `names`), line, raw and reason.
    """
    found = (
        (piece, rows)
        for shelf in shelves
        for piece, shift in zip(shelf.pieces, shelf.shifts(), strict=True)
        for rows in _bad_rows(shelf, piece, shift, drops)
    )
    return _tables(found, names)


def _tables(found: Iterable[tuple[Piece, pa.Table]], names: Sequence[str]) -> Iterator[pa.Table]:
    rows = (
        part.add_column(0, "source", repeated(names[piece.source], len(part))).cast(_SCHEMA) for piece, part in found
    )
    # the bytes written depend on the lengths of arrays, which must not depend on how files were cut
    return _tables_of(_tables_of(rows, _BATCH, combined=True), ROW_GROUP)


def _tables_of(tables: Iterable[pa.Table], rows: int, *, combined: bool = False) -> Iterator[pa.Table]:
    """The same rows in tables of equal length except for the last, which always exists; `combined` is without chunks."""
    waiting = _SCHEMA.empty_table()
    for table in tables:
        waiting = pa.concat_tables([waiting, table])
        while len(waiting) >= rows:
            yield waiting.slice(0, rows).combine_chunks() if combined else waiting.slice(0, rows)
            waiting = waiting.slice(rows)
    yield waiting.combine_chunks() if combined else waiting


@dataclass(frozen=True)
class QuarantinePart:
    """Writes the quarantined rows among `PART_LINES` lines that the pieces of shelves have, one after the other, to a file."""

    shelves: Sequence[Shelf]
    drops: Drops
    names: Sequence[str]
    tables: Directory

    def __call__(self, number: int) -> tuple[int, TaskResult]:
        """The file's SHA-256."""
        first, stop = number * PART_LINES, (number + 1) * PART_LINES
        name = part_name("quarantine", number)
        with self.tables.output(name) as file:
            write_tables(file, _tables(self._rows(first, stop), self.names))
        return PART_LINES, {name: self.tables.sha256(name)}

    def _rows(self, first: int, stop: int) -> Iterator[tuple[Piece, pa.Table]]:
        end = 0
        for shelf in self.shelves:
            for piece, shift in zip(shelf.pieces, shelf.shifts(), strict=True):
                begin, end = end, end + piece.lines
                if begin < stop and first < end:
                    for rows in _bad_rows(shelf, piece, shift, self.drops):
                        line = int64_values(rows["line"].combine_chunks()) - shift + begin
                        yield piece, rows.slice(*_within(line, first, stop))


def _within(ascending: NDArray[np.int64], first: int, stop: int) -> tuple[int, int]:
    """Where values in [first, stop) begin, and how many there are."""
    start, end = np.searchsorted(ascending, (first, stop)).tolist()
    return start, end - start


class _Dropped:
    """Rows that were given a reason later, by number."""

    def __init__(self, dropped: Mapping[str, NDArray[np.int64]]) -> None:
        number = np.concatenate([*dropped.values(), np.zeros(0, np.int64)])
        code = np.repeat(np.arange(len(dropped), dtype=np.int8), [len(numbers) for numbers in dropped.values()])
        order = np.argsort(number)
        self.number, self.code, self.reasons = number[order], code[order], strings(dropped)

    def among(self, source: int, lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], pa.StringArray]:
        """Which of these ascending lines of a source are there, and the reasons."""
        numbers = row_number(source, lines)
        # several of a line, which brokers' logs may have, are all in one batch
        mine = slice(np.searchsorted(self.number, numbers[0]), np.searchsorted(self.number, numbers[-1], side="right"))
        at = np.searchsorted(numbers, self.number[mine])
        here = np.flatnonzero(numbers[np.minimum(at, len(numbers) - 1)] == self.number[mine])
        return at[here], self.reasons.take(arrow(self.code[mine][here]))


def dropped_before(dropped: Mapping[str, NDArray[np.int64]]) -> Drops:
    """All of these rows, wherever they are."""
    return lambda first, stop: dropped


def _bad_rows(shelf: Shelf, piece: Piece, shift: int, drops: Drops) -> Iterator[pa.Table]:
    """The rows of a piece for quarantine by line, raw and reason; as many as there are rows in a batch at a time."""
    tables = [pa.table({name: batch[name] for name in _COLUMNS}) for batch in shelf.batches(piece, "bad")]
    whole = row_number(piece.source, np.array([shift, piece.lines + shift]))
    late = _Dropped(drops(*whole.tolist()))
    if len(late.number):
        for batch in shelf.batches(piece, "usable"):
            at, reason = late.among(piece.source, int64_values(batch["row"]) + shift)
            if len(at):
                found = {name: batch[name].take(arrow(at)) for name in _COLUMNS[:2]}
                tables.append(pa.table({**found, "reason": reason}))
    if tables:
        rows = pa.concat_tables(tables).combine_chunks()
        row = int64_values(rows["row"].combine_chunks())
        order = np.argsort(row, kind="stable")
        rows = rows.take(arrow(order))
        yield rows.drop_columns("row").add_column(0, "line", arrow(row[order] + shift))


def account(reasons: Counter[str | None], left_out: Mapping[str, int]) -> Raw:
    """The manifest's `rows`: read = kept + all quarantined + all left out; reasons in their order, those that never applied not.

    Only logs with readers of their own have lines that are `left_out`.
    """
    quarantined = {reason: reasons[reason] for reason in REASONS if reasons[reason]}
    left = {"left_out": dict(sorted(left_out.items()))} if left_out else {}
    return {"read": reasons.total() + sum(left_out.values()), "kept": reasons[None], "quarantined": quarantined, **left}


def describe_reasons(reasons: Mapping[str, int]) -> str:
    """Counts by reason in words: `duplicate 8`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
