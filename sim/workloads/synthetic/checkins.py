"""Write check-in files in the tab-separated layout of SNAP (user, time, latitude, longitude, place), with invalid rows."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.files.atomic import whole_file

_ROWS_AT_ONCE = 100_000
_REASONS = ("unparsable", "bad_time", "bad_position", "null_island", "outside_box", "outside_window", "duplicate")


@dataclass(frozen=True)
class SyntheticCheckins:
    """Check-ins sorted by (user, time): seconds from `origin`, ids, degrees; a place belongs to one user.

    They are inside `box` (south, west, north, east) and before `horizon` (s).
    """

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    place: NDArray[np.int64]
    origin: str
    horizon: float
    box: tuple[float, float, float, float]

    def __len__(self) -> int:
        return len(self.time)


class _Row(NamedTuple):
    user: str
    time: str
    latitude: str
    longitude: str
    place: str


def write_checkins(
    path: Path, checkins: SyntheticCheckins, dirt: float, generator: np.random.Generator
) -> dict[str, int]:
    """Write a file as in SNAP: users ascending, time descending in each; gzip where the name ends in `.gz`.

    A share `dirt` (0 to below 0.5) of the file's rows is unusable, in equal parts for every reason that a pipeline may have, at
    least one row each unless `dirt` is 0; they are beside the good rows that they were derived from. Rows outside the box or after
    the horizon are only recognised with these given. Returns the number of rows by reason, and of `good` rows. The bytes depend
    only on the arguments. Raises WorkloadError where the file cannot be written.
    """
    order = np.lexsort((-checkins.time, checkins.user))
    wanted = max(len(_REASONS), round(len(order) * dirt / (1 - dirt))) if dirt else 0
    spoilt = generator.choice(len(order), wanted, replace=wanted > len(order))
    lines: dict[int, list[int]] = {}
    for n, row in enumerate(spoilt.tolist()):
        lines.setdefault(row, []).append(n)
    spoiler = _Spoiler(checkins)
    with _open(path) as file:
        for start in range(0, len(order), _ROWS_AT_ONCE):
            for number, row in enumerate(_rows(checkins, order[start : start + _ROWS_AT_ONCE]), start):
                file.write("\t".join(row) + "\n")
                for n in lines.get(number, ()):
                    file.write(spoiler.line(row, _REASONS[n % len(_REASONS)], n // len(_REASONS)) + "\n")
    counts = {reason: len(range(n, wanted, len(_REASONS))) for n, reason in enumerate(_REASONS)}
    return {"good": len(order), **counts}


def _rows(checkins: SyntheticCheckins, which: NDArray[np.int64]) -> Iterator[_Row]:
    origin = np.datetime64(checkins.origin.removesuffix("Z"), "s")
    times = origin + checkins.time[which].astype("timedelta64[s]")
    return map(
        _Row,
        map(str, checkins.user[which].tolist()),
        (f"{time}Z" for time in np.datetime_as_string(times).tolist()),
        map(repr, checkins.latitude[which].tolist()),
        map(repr, checkins.longitude[which].tolist()),
        map(str, checkins.place[which].tolist()),
    )


class _Spoiler:
    """Makes a row unusable for a given reason and no earlier one."""

    def __init__(self, checkins: SyntheticCheckins) -> None:
        north = checkins.box[2]
        self.outside = min(north + 0.5, (north + 90) / 2)
        origin = np.datetime64(checkins.origin.removesuffix("Z"), "s")
        self.after = origin + np.timedelta64(int(checkins.horizon), "s") + np.timedelta64(1, "D")

    def line(self, row: _Row, reason: str, variant: int) -> str:
        """The line of this row, made unusable in a randomly chosen way."""
        match reason:
            case "unparsable":
                return ("\t".join(row[:3]), "no check-in at all", "\t".join((*row, "one field more")))[variant % 3]
            case "bad_time":
                row = row._replace(time=("2010-02-30T12:00:00Z", "yesterday", "")[variant % 3])
            case "bad_position":
                row = row._replace(latitude=("91.5", "NaN", "north")[variant % 3])
            case "null_island":
                row = row._replace(latitude="0.0", longitude="0.0")
            case "outside_box":
                row = row._replace(latitude=repr(self.outside))
            case "outside_window":
                row = row._replace(time=f"{self.after + np.timedelta64(variant, 's')}Z")
        return "\t".join(row)  # a duplicate is the row itself


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    """A text file that appears under its name only once it is complete."""
    with whole_file(path, WorkloadError) as unfinished, ExitStack() as stack:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        raw = stack.enter_context(unfinished.open("wb"))
        packed = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0)) if path.suffix == ".gz" else raw
        yield stack.enter_context(io.TextIOWrapper(packed, encoding="utf-8", newline="\n"))
