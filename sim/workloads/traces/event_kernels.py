"""The rules for validating rows of a broker's log, on whole columns; the same as `events.judge_events` for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import masked, valid
from sim.files.parquet import arrow
from sim.workloads.models.event_kernels import CONNECT, DISCONNECT
from sim.workloads.traces.events import DELIVER, PUBLISH
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.judging import Judged, beyond
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.shelves import RowFault
from sim.workloads.traces.text_kernels import SPACE, nonempty, words
from sim.workloads.traces.time_kernels import parse_times, time_texts
from sim.workloads.traces.times import Window

_SIZE = re.compile(rf"{SPACE}([0-9]+)(?:\.0*)?{SPACE}[\x85\u2028\u2029]?")
_MOST = 2**31 - 1


@dataclass(frozen=True)
class EventRules:
    """How rows of a log in a layout are judged, see `judge_events`."""

    layout: Layout
    words: Mapping[str, int]
    window: Window
    size: int

    def __call__(self, fields: Fields) -> Judged:
        """Validate and type the fields of rows."""
        texts, count = fields.columns, len(fields.parsed)
        absent = pa.nulls(count, pa.string())
        action = _codes(texts["action"], self.words)
        client, topic, publisher = (nonempty(texts.get(name, absent)) for name in ("client", "topic", "publisher"))
        size = _sizes(nonempty(texts["size"]), self.size) if "size" in texts else np.full(count, self.size, np.int32)
        micros, timely = parse_times(time_texts(texts, self.layout), self.layout)
        connects = (action == CONNECT) | (action == DISCONNECT)
        faults: dict[RowFault, NDArray[np.bool_]] = {
            ("unparsable", None): ~fields.parsed,
            ("unparsable", "action"): action < 0,
            ("unparsable", "client"): (action != PUBLISH) & ~valid(client),
            ("unparsable", "topic"): ~connects & ~valid(topic),
            ("unparsable", "size"): (action == PUBLISH) & (size < 0),
            ("bad_time", self.layout.time_fields[0]): ~timely,
            ("outside_window", None): beyond(micros, self.window),
        }
        typed = {
            "micros": micros,
            "action": action,
            "client": client.dictionary_encode(),
            "topic": masked(topic, ~connects).dictionary_encode(),
            "size": masked(arrow(size), size >= 0),
            "publisher": publisher.dictionary_encode(),
        }
        return Judged(typed, faults, ~np.isin(action, (PUBLISH, DELIVER)))


def _codes(column: pa.StringArray, known: Mapping[str, int]) -> NDArray[np.int8]:
    """The actions that words stand for; -1 for unknown words."""
    number, texts = words(column)
    return np.array([*(known.get(text.strip(" ").lower(), -1) for text in texts), -1], np.int8)[number]


def _sizes(column: pa.StringArray, otherwise: int) -> NDArray[np.int32]:
    """Whole numbers of bytes; -1 where there is something else, and `otherwise` where the field is empty."""
    number, texts = words(column)
    matches = (_SIZE.fullmatch(text) for text in texts)
    found = (int(match[1][-10:]) if match and not match[1][:-10].strip("0") else -1 for match in matches)
    return np.array([*(size if size <= _MOST else -1 for size in found), otherwise], np.int32)[number]
