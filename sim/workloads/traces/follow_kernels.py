"""The rules for validating follows and events, on whole columns; the same as `follows.judge_follows` for Spark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Any: PyArrow has no types for its arrays.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import valid
from sim.workloads.models.follow_log import EVER, UNENDING
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.follow_tables import FollowTable, Labels, Span
from sim.workloads.traces.judging import Judged, beyond
from sim.workloads.traces.layouts import zone_of
from sim.workloads.traces.shelves import RowFault
from sim.workloads.traces.text_kernels import first_named
from sim.workloads.traces.time_kernels import parse_times, time_texts
from sim.workloads.traces.times import Window

_DIGITS = 12  # hexadecimal digits of a share, which a float holds exactly
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class FollowRules:
    """The rules for a table's rows, see `judge_follows`; `key` is for the draws of moments."""

    table: FollowTable
    window: Window
    key: int

    def __call__(self, fields: Fields) -> Judged:
        """Validate and type the fields of rows."""
        table, texts = self.table, fields.columns
        typed: dict[str, Any] = {"user": _first(fields, (table.user,))}
        typed |= {f"topic_{n}": _first(fields, topics.fields) for n, topics in enumerate(table.topics)}
        names = {"user": table.user} if table.follows else {}
        names |= {f"topic_{n}": topics.fields[0] for n, topics in enumerate(table.topics)}
        faults: dict[RowFault, NDArray[np.bool_]] = {("unparsable", None): ~fields.parsed}
        for name, field in names.items():
            _add(faults, ("unparsable", field), ~valid(typed[name]))
        if table.events:
            typed["micros"], timely = self._micros(fields)
            _add(faults, ("bad_time", table.time[0]), ~timely)
            _add(faults, ("outside_window", None), beyond(typed["micros"], self.window))
        else:
            typed["kind"] = _first(fields, (table.kind,))
            for bound in table.bounds:
                typed[bound], timely = _bound(texts[bound], table, bound)
                _add(faults, ("bad_time", bound), ~timely)
            if len(table.bounds) == 2:
                _add(faults, ("bad_time", "until"), typed["until"] <= typed["since"])
        coded = {name: column.dictionary_encode() for name, column in typed.items() if isinstance(column, pa.Array)}
        return Judged(typed | coded, faults, not table.events)

    def _micros(self, fields: Fields) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """When something was published, and the mask of known times."""
        table, texts = self.table, fields.columns
        micros, timely = parse_times(time_texts(texts, table.layout), table.layout)
        timely &= micros >= table.first_micros
        if table.spread:
            rows = np.flatnonzero(timely & fields.parsed)
            micros = micros.copy()
            micros[rows] = _moments(micros[rows], fields, rows, table.spread, table.layout.time_zone, self.key)
        return micros, timely


@dataclass(frozen=True)
class LabelRules:
    """The rules for rows with the names of topics."""

    labels: Labels

    def __call__(self, fields: Fields) -> Judged:
        """The texts that name topics, and their names."""
        labels = self.labels
        return Judged({"topic": _first(fields, labels.fields), "name": fields.columns[labels.name]}, {}, False)


def _add(faults: dict[RowFault, NDArray[np.bool_]], fault: RowFault, rows: NDArray[np.bool_]) -> None:
    faults[fault] = faults[fault] | rows if fault in faults else rows


def _first(fields: Fields, names: tuple[str, ...]) -> pa.StringArray:
    """In each row the first of these fields that is not empty; null where all are, or the layout has none of them."""
    found = [fields.columns[name] for name in names if name in fields.columns]
    return first_named(*found) if found else pa.nulls(len(fields.parsed), pa.string())


def _bound(column: pa.StringArray, table: FollowTable, bound: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The start or end of a follow, and the mask of valid ones, including unlimited ones."""
    missing = ~valid(first_named(column))
    micros, timely = parse_times(column, table.layout, bound=True)
    return np.where(missing, {"since": EVER, "until": UNENDING}[bound], micros), timely | missing


def _moments(
    micros: NDArray[np.int64], fields: Fields, rows: NDArray[np.int64], span: Span, zone: str, key: int
) -> NDArray[np.int64]:
    """A moment in the day or month of each time: a share of it determined by the seed and the row's text.

    The share is the first twelve hexadecimal digits of the SHA-256 of the key, a colon and the text, as a fraction.
    """
    times, which = np.unique(micros, return_inverse=True)
    begin, end = np.array([_limits(time, span, zone) for time in times.tolist()], np.int64).reshape(-1, 2).T
    seed = hashlib.sha256(f"{key}:".encode())
    share = np.empty(len(rows))
    for place, row in enumerate(rows.tolist()):
        digest = seed.copy()
        digest.update(fields.lines.text(row).encode())
        share[place] = int(digest.hexdigest()[:_DIGITS], 16) / float(16**_DIGITS)
    return begin[which] + np.floor(share * (end - begin)[which]).astype(np.int64)


def _limits(micros: int, span: Span, zone: str) -> tuple[int, int]:
    """The beginning and end of a time's day or month, by the zone's calendar."""
    local = (_EPOCH + micros * _MICROSECOND).astimezone(zone_of(zone))
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if span == "month":
        start = day.replace(day=1)
        stop = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    else:
        start = _alike(day, local)
        stop = day + timedelta(days=1)
    stop = _alike(stop, start)
    return (start - _EPOCH) // _MICROSECOND, (stop - _EPOCH) // _MICROSECOND


def _alike(time: datetime, other: datetime) -> datetime:
    """Choose, of two times that clocks show alike, the one with the same offset from UTC as another, else the first."""
    second = time.replace(fold=1)
    ahead, behind = time.utcoffset() or timedelta(), second.utcoffset() or timedelta()
    return second if behind < ahead and behind == other.utcoffset() else time
