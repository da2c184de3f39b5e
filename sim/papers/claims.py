"""A paper's claims as data: the number that tests each, the values that agree, the verdict, and the paper's misprints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import pandas as pd

from sim.experiments.statistics import Interval, mean_interval

ClaimVerdict = Literal["reproduces", "in part", "does not", "not run"]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)


@dataclass(frozen=True)
class Target:
    """The paper's value as `text`, and the values that agree with it: from `low` to `high`, both included."""

    text: str
    low: float
    high: float

    @property
    def signed(self) -> bool:
        """Whether it is a change for which the paper gives only the direction."""
        return self in (RISES, FALLS)


def near(value: float, tolerance: float, unit: str = "") -> Target:
    """A number printed in the paper; values within the tolerance agree."""
    return Target(f"{value:,g}{unit}", value - tolerance, value + tolerance)


def at_most(value: float, tolerance: float, unit: str = "") -> Target:
    """An upper bound printed in the paper."""
    return Target(f"at most {value:,g}{unit}", -math.inf, value + tolerance)


def between(low: float, high: float, unit: str = "") -> Target:
    """A range that the paper gives in words, not numbers."""
    return Target(f"{low:,g} to {high:,g}{unit}", low, high)


def at_least(value: float, unit: str = "") -> Target:
    """A lower bound, "over" a number in the paper."""
    return Target(f"over {value:,g}{unit}", value, math.inf)


_ABOVE, _BELOW = math.nextafter(0, math.inf), math.nextafter(0, -math.inf)
MORE = Target("above 0", _ABOVE, math.inf)
"""A number above 0."""
LESS = Target("below 0", -math.inf, _BELOW)
"""A number below 0."""
RISES = Target("rises", _ABOVE, math.inf)
"""A change above 0."""
FALLS = Target("falls", -math.inf, _BELOW)
"""A change below 0."""


@dataclass(frozen=True)
class ClaimedQuantity:
    """A named number over the table of a section's runs: `of` gives one value per replication, in `unit`."""

    name: str
    unit: str
    of: Callable[[pd.DataFrame], pd.Series]

    def interval(self, runs: pd.DataFrame) -> Interval:
        """Its mean over the replications with the 95 % confidence interval; without a value where there are no runs."""
        return mean_interval(self.of(runs) if len(runs) else [])


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, the number that tests it, and the reason for the outcome.

    `section` names the runs, `where` (column → value) selects those that count; `reading` is the reading of the paper, "" if there
    is only one. `place` is the place in the paper.
    """

    section: str
    place: str
    statement: str
    quantity: ClaimedQuantity
    target: Target
    reason: str
    reading: str = ""

    def number(self, runs: Mapping[str, pd.DataFrame]) -> Interval:
        """The number, from the tables of runs by section."""
        table = runs.get(self.section, pd.DataFrame())
        return self.quantity.interval(table[table["reading"] == self.reading] if self.reading and len(table) else table)


def in_readings(claims: Iterable[Claim], readings: Sequence[str]) -> Iterator[Claim]:
    """Each claim in every reading of the paper."""
    return (replace(claim, reading=reading) for claim in claims for reading in readings)


@dataclass(frozen=True)
class Misprint:
    """An error in the paper, and the test (file::name) that shows it."""

    place: str
    printed: str
    found: str
    test: str


def judge(number: Interval, target: Target) -> ClaimVerdict:
    """The verdict on a claim, from the number with its 95 % confidence interval and the values that agree with the paper.

    It reproduces where the whole interval agrees, does not where none of it does, and reproduces in part where some of it does. A
    number without an interval (one replication, or equal values) is taken as the interval. Without a number the claim was not run.
    """
    if number.n == 0:
        return "not run"
    low, high = number.ends
    if target.low <= low and high <= target.high:
        return "reproduces"
    return "in part" if low <= target.high and target.low <= high else "does not"
