"""A paper as data: what it claims, what a number must be for a claim to hold, the verdict on it, and what is misprinted."""

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
    """What the paper has, as `text`, and the values that agree with it: from `low` to `high`, both included."""

    text: str
    low: float
    high: float

    @property
    def signed(self) -> bool:
        """Whether it is a change of which the paper gives the direction alone."""
        return self in (RISES, FALLS)


def near(value: float, tolerance: float, unit: str = "") -> Target:
    """A number that the paper prints; what differs from it by the tolerance at most agrees."""
    return Target(f"{value:,g}{unit}", value - tolerance, value + tolerance)


def at_most(value: float, tolerance: float, unit: str = "") -> Target:
    """A bound that the paper prints."""
    return Target(f"at most {value:,g}{unit}", -math.inf, value + tolerance)


def between(low: float, high: float, unit: str = "") -> Target:
    """What the paper gives no number for, but a range of it in words."""
    return Target(f"{low:,g} to {high:,g}{unit}", low, high)


def at_least(value: float, unit: str = "") -> Target:
    """What the paper calls "over" so much."""
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
        """Its mean over the replications with the 95 % confidence interval; no value at all where there are no runs."""
        return mean_interval(self.of(runs) if len(runs) else [])


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, the number that tests it, and the reason for how it came out.

    `section` names the runs, `where` (column → value) those of them that count; `reading` says in which reading of the paper, ""
    where there is only one. `place` is where the paper says it.
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
    """Something that is wrong in the paper, and the test (file::name) that shows it."""

    place: str
    printed: str
    found: str
    test: str


def judge(number: Interval, target: Target) -> ClaimVerdict:
    """The verdict on a claim, by one rule, from the number with its 95 % confidence interval and the values that agree with the paper.

    It reproduces where the whole interval agrees, does not where none of it does, and reproduces in part where some of it does. A
    number without an interval (one replication, or all the same) is its own. Without any number the claim was not run.
    """
    if number.n == 0:
        return "not run"
    low, high = number.ends
    if target.low <= low and high <= target.high:
        return "reproduces"
    return "in part" if low <= target.high and target.low <= high else "does not"
