"""The rules for validating check-ins, on whole columns; the same as `checkins.judge_checkins` for Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import valid
from sim.files.parquet import arrow, strings
from sim.workloads.traces.checkins import Box
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.judging import Judged, beyond
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.shelves import RowFault
from sim.workloads.traces.text_kernels import SPACE, nonempty, parse_numbers, words
from sim.workloads.traces.time_kernels import parse_times, time_texts
from sim.workloads.traces.times import Window

_BREAK, _PART = r"[ \t\n\x0b\f\r,;]", r"[^ \t\n\x0b\f\r,;]"
_PAIR = re.compile(rf"{SPACE}({_PART}+){_BREAK}+({_PART}+){SPACE}[\x85\u2028\u2029]?")


class PlaceLookup(Protocol):
    """Finds the latitudes and longitudes of places, or the texts with both."""

    def __call__(self, places: pa.StringArray) -> dict[str, pa.StringArray]:
        """The columns `latitude` and `longitude`, or `space`, with null where a place is not known."""


@dataclass(frozen=True)
class CheckinRules:
    """How check-ins in a layout are validated; `places` finds where they are, if rows only name a place."""

    layout: Layout
    box: Box | None
    window: Window
    places: PlaceLookup | None = None

    def __call__(self, fields: Fields) -> Judged:
        """Validate and type the fields of rows."""
        texts = dict(fields.columns)
        if self.places is not None:
            texts |= self.places(texts["place"])
        said = next((field for field in ("place", "space") if field in texts), None)
        degrees = _pairs(texts["space"]) if "space" in texts else (texts["latitude"], texts["longitude"])
        user = nonempty(texts["user"])
        micros, timely = parse_times(time_texts(texts, self.layout), self.layout)
        latitude, longitude = map(parse_numbers, degrees)
        faults: dict[RowFault, NDArray[np.bool_]] = {
            ("unparsable", None): ~fields.parsed,
            ("unparsable", "user"): ~valid(user),
            ("bad_time", self.layout.time_fields[0]): ~timely,
            ("bad_position", said or "latitude"): ~(np.abs(latitude) <= 90),
            ("bad_position", said or "longitude"): ~(np.abs(longitude) <= 180),
            ("null_island", None): (latitude == 0) & (longitude == 0),
            ("outside_box", None): _outside(self.box, latitude, longitude),
            ("outside_window", None): beyond(micros, self.window),
        }
        if said:
            faults["bad_position", said] = ~((np.abs(latitude) <= 90) & (np.abs(longitude) <= 180))
        typed = {"user": user.dictionary_encode(), "micros": micros, "latitude": latitude, "longitude": longitude}
        return Judged(typed, faults)


def _pairs(column: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """The two parts of each text; empty where there are not two."""
    number, texts = words(column)
    found = [match.groups() if (match := _PAIR.fullmatch(text)) else ("", "") for text in texts]
    one, two = (strings(part).take(arrow(number % (len(texts) + 1))) for part in zip(*found, ("", ""), strict=True))
    return one, two


def _outside(box: Box | None, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.bool_]:
    if box is None:
        return np.zeros(len(latitude), np.bool_)
    east, west = longitude >= box.west, longitude < box.east
    across = east | west if box.west > box.east else east & west
    return ~((latitude >= box.south) & (latitude < box.north) & across)
