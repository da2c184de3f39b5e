"""The rules for validating rows of a broker's log, on whole columns; the same as `events.judge_events` for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.files.columns import masked, valid
from sim.files.parquet import arrow
from sim.workloads.models.event_kernels import CONNECT, DISCONNECT, SUBSCRIBE, UNSUBSCRIBE
from sim.workloads.models.log_tables import NO_EXPIRY
from sim.workloads.traces.events import DELIVER, FLAGS, PUBLISH
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.judging import Judged, beyond
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.shelves import RowFault
from sim.workloads.traces.text_kernels import SPACE, nonempty, words
from sim.workloads.traces.time_kernels import parse_times, time_texts
from sim.workloads.traces.times import Window

_SIZE = re.compile(rf"{SPACE}([0-9]+)(?:\.0*)?{SPACE}[\x85\u2028\u2029]?")
_MOST = 2**31 - 1
_WRONG = -2  # a value that cannot be


@dataclass(frozen=True)
class EventRules:
    """How rows of a log in a layout are validated, see `judge_events`."""

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
        size = _wholes(texts.get("size", absent), self.size, _MOST).astype(np.int32)
        flags: dict[str, NDArray[np.int8] | NDArray[np.int64]] = {
            name: _flags(texts[name], FLAGS[name]) for name in FLAGS if name in texts
        }
        if "expiry" in texts:
            flags["expiry"] = _wholes(texts["expiry"], -1, NO_EXPIRY)
        micros, timely = parse_times(time_texts(texts, self.layout), self.layout)
        connects = (action == CONNECT) | (action == DISCONNECT)
        faults: dict[RowFault, NDArray[np.bool_]] = {
            ("unparsable", None): ~fields.parsed,
            ("unparsable", "action"): action < 0,
            ("unparsable", "client"): (action != PUBLISH) & ~valid(client),
            ("unparsable", "topic"): ~connects & ~valid(topic),
            ("unparsable", "size"): (action == PUBLISH) & (size == _WRONG),
            **{("unparsable", name): values == _WRONG for name, values in flags.items()},
            ("bad_time", self.layout.time_fields[0]): ~timely,
            ("outside_window", None): beyond(micros, self.window),
        }
        changes = (action == SUBSCRIBE) | (action == UNSUBSCRIBE)
        shared = masked(nonempty(texts.get("group", absent)), changes)
        topic = pc.coalesce(pc.binary_join_element_wise("$share", shared, topic, "/"), topic)
        typed = {
            "micros": micros,
            "action": action,
            "client": client.dictionary_encode(),
            "topic": masked(topic, ~connects).dictionary_encode(),
            "size": masked(arrow(size), size >= 0),
            "publisher": publisher.dictionary_encode(),
            **{name: arrow(values) for name, values in flags.items()},
        }
        needed = ~np.isin(action, (PUBLISH, DELIVER))
        if "retain" in flags:
            needed |= (action == DELIVER) & (flags["retain"] == 1)
        return Judged(typed, faults, needed)


def _codes(column: pa.StringArray, known: Mapping[str, int]) -> NDArray[np.int8]:
    """The actions that words stand for; -1 for unknown words."""
    number, texts = words(column)
    return np.array([*(known.get(text.strip(" ").lower(), -1) for text in texts), -1], np.int8)[number]


def _flags(column: pa.StringArray, known: Mapping[str, int]) -> NDArray[np.int8]:
    """The values of a field of few words; -1 where it is empty."""
    number, texts = words(nonempty(column))
    found = (known.get(re.sub(r"\.0*$", "", text.strip(" ").lower()), _WRONG) for text in texts)
    return np.array([*found, -1], np.int8)[number]


def _wholes(column: pa.StringArray, otherwise: int, most: int) -> NDArray[np.int64]:
    """Whole numbers up to `most`, and `otherwise` where the field is empty."""
    number, texts = words(nonempty(column))
    matches = (_SIZE.fullmatch(text) for text in texts)
    found = (int(match[1][-10:]) if match and not match[1][:-10].strip("0") else _WRONG for match in matches)
    return np.array([*(value if value <= most else _WRONG for value in found), otherwise], np.int64)[number]
