"""A paper's claims as data: what the paper says, the ways to read it, the values that agree, and the paper's misprints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def or_more(value: float, unit: str = "") -> Target:
    """A gain printed as a number; larger ones agree as well."""
    return Target(f"{value:,g}{unit}", value, math.inf)


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
class ClaimBound:
    """What nothing of the kind can exceed, or fall below: `text` says why, `quantity` computes it from the same runs."""

    text: str
    quantity: ClaimedQuantity
    at_most: bool = True


@dataclass(frozen=True)
class ClaimReading:
    """A way to read a claim, and the number that tests it when it is read so.

    `sentence` is what allows it, as "IV-A: The sentence.", or "" where the claim's own does. It is about the runs of `section`, by
    default the claim's; `runs` is the value in their column `reading` that counts, "" for all.
    """

    quantity: ClaimedQuantity
    name: str = ""
    sentence: str = ""
    runs: str = ""
    section: str = ""
    bound: ClaimBound | None = None


@dataclass(frozen=True)
class Reason:
    """Why a claim holds, and why it fails: a sentence for each outcome. Which of them is shown follows from the verdict."""

    holds: str
    fails: str


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and the ways to read it, the most literal first.

    `section` names the runs, `place` the figure or table, and `sentence` is what the paper says, as "IV-A: The sentence.". Texts for
    `sentence` and `reason` may be names of such texts in the paper's `page.toml`. `evidence` are further numbers of the same runs that
    show the reason. A row that is `ours` is no claim of the paper, and is not counted.
    """

    section: str
    place: str
    statement: str
    sentence: str
    readings: tuple[ClaimReading, ...]
    target: Target
    reason: str | Reason
    evidence: tuple[ClaimedQuantity, ...] = ()
    ours: bool = False

    def runs_of(self, reading: ClaimReading, runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """The runs that count in this reading, from the tables of runs by section."""
        table = runs.get(reading.section or self.section, pd.DataFrame())
        return table[table["reading"] == reading.runs] if reading.runs and len(table) else table


def in_readings(quantity: ClaimedQuantity, sentences: Mapping[str, str]) -> tuple[ClaimReading, ...]:
    """A number in every reading of the paper; each has its name in the column `reading` of runs, and the sentence that allows it."""
    return tuple(ClaimReading(quantity, name, sentence, name) for name, sentence in sentences.items())


@dataclass(frozen=True)
class Lesson:
    """A sentence of a page's summary about the runs of a section; `text` has the numbers in braces, in order."""

    section: str
    text: str
    numbers: tuple[ClaimedQuantity, ...]


@dataclass(frozen=True)
class Misprint:
    """An error in the paper, and the test (file::name) that shows it."""

    place: str
    printed: str
    found: str
    test: str
