"""What became of a paper's claims: the verdict on each reading of each, and the sentence beside it, which follows from the numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.formatting import describe, number
from sim.experiments.statistics import Interval
from sim.papers.claims import (
    VERDICTS,
    Claim,
    ClaimBound,
    ClaimedQuantity,
    ClaimReading,
    ClaimVerdict,
    Lesson,
    Reason,
    Target,
)

_NOTHING = 1e-9


@dataclass(frozen=True)
class JudgedReading:
    """The number of one reading of a claim, its verdict, the bound, and why it came out so."""

    reading: ClaimReading
    number: Interval
    verdict: ClaimVerdict
    bound: str
    why: str


@dataclass(frozen=True)
class JudgedClaim:
    """The outcome of a claim in each of its readings, the most literal first."""

    claim: Claim
    readings: tuple[JudgedReading, ...]

    @property
    def literal(self) -> JudgedReading:
        """The most literal reading."""
        return self.readings[0]

    @property
    def best(self) -> JudgedReading:
        """The reading with the best verdict, the more literal one of equals."""
        return self.shown[0]

    @property
    def shown(self) -> list[JudgedReading]:
        """The readings as they are shown: the best verdict first, the more literal one of equals first."""
        return sorted(self.readings, key=lambda judged: VERDICTS.index(judged.verdict))


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


def judge_claims(claims: Iterable[Claim], tables: Mapping[str, pd.DataFrame]) -> list[JudgedClaim]:
    """The outcomes of all claims, from the tables of runs by section."""
    return [
        JudgedClaim(claim, tuple(_judged(claim, reading, tables) for reading in claim.readings)) for claim in claims
    ]


def _judged(claim: Claim, reading: ClaimReading, tables: Mapping[str, pd.DataFrame]) -> JudgedReading:
    runs = claim.runs_of(reading, tables)
    found = reading.quantity.interval(runs)
    verdict, bound = judge(found, claim.target), _bound(reading.bound, claim.target, runs)
    evidence = [said for quantity in claim.evidence if (said := _measured(quantity, runs))]
    why = [*_from_numbers(found, claim.target, verdict, reading.quantity.unit), bound, *_mechanism(claim, verdict)]
    if verdict in ("does not", "in part") and evidence:
        why.append(f"Measured: {'; '.join(evidence)}.")
    return JudgedReading(reading, found, verdict, bound, " ".join(part for part in why if part))


def _from_numbers(found: Interval, target: Target, verdict: ClaimVerdict, unit: str) -> Iterator[str]:
    """What the numbers alone say of a verdict other than that it reproduces."""
    if verdict == "not run":
        yield "It needs runs that this scale leaves out, or that have not been made."
    if verdict == "in part":
        low, high = found.ends
        edge = target.high if low <= target.high < high else target.low
        yield f"The interval includes {number(_whole(edge))}{unit}, the limit of agreement: more replications are needed to tell."
    if verdict == "does not":
        low, high = found.ends
        missing, where = (target.low - high, "below") if high < target.low else (low - target.high, "above")
        if missing > _NOTHING:
            points = " percentage points" if unit == " %" else unit
            by = number(missing, max(0, 2 - math.floor(math.log10(missing))))
            yield f"The interval is {by}{points} {where} the limit of agreement."
        else:
            yield "It does not change."


def _whole(edge: float) -> float:
    """The end of what agrees, where the next number after 0 counts as 0."""
    return 0.0 if abs(edge) < math.ulp(1) else edge


def _mechanism(claim: Claim, verdict: ClaimVerdict) -> Iterator[str]:
    assert isinstance(claim.reason, Reason)
    if verdict == "reproduces":
        yield claim.reason.holds
    if verdict == "does not":
        yield claim.reason.fails


def _bound(bound: ClaimBound | None, target: Target, runs: pd.DataFrame) -> str:
    """The bound in words, and whether it rules out that the claim holds; "" where there is none."""
    if bound is None or not (found := bound.quantity.interval(runs)).n:
        return ""
    low, high = found.ends
    impossible = high < target.low if bound.at_most else low > target.high
    limit = "at most" if bound.at_most else "at least"
    said = f"{bound.text}: {limit} {_text(found, bound.quantity.unit)}"
    return f"Impossible here. {said}." if impossible else f"{said}."


def _measured(quantity: ClaimedQuantity, runs: pd.DataFrame) -> str:
    found = quantity.interval(runs)
    return f"{quantity.name} {_text(found, quantity.unit)}" if found.n else ""


def _text(found: Interval, unit: str) -> str:
    mean, interval = describe(found)
    return f"{mean}{unit} {interval}".rstrip()


def lessons_learnt(lessons: Iterable[Lesson], tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """The sentences of lessons whose numbers are known."""
    for lesson in lessons:
        runs = tables.get(lesson.section, pd.DataFrame())
        found = [quantity.interval(runs) for quantity in lesson.numbers]
        if all(number.n for number in found):
            units = (quantity.unit for quantity in lesson.numbers)
            yield lesson.text.format(*(_text(number, unit) for number, unit in zip(found, units, strict=True)))


def claims_summary(judged: Sequence[JudgedClaim]) -> list[str]:
    """The numbers of verdicts in sentences: by the most literal reading of each claim, by the best, and of what is ours."""
    claims = [one for one in judged if not one.claim.ours]
    if not claims:
        return []
    several = sum(len(one.readings) > 1 for one in claims)
    literal, best = (_counts([getattr(one, which).verdict for one in claims]) for which in ("literal", "best"))
    if not several:
        sentences = [f"Of {len(claims)} claims {literal}."]
    else:
        sentences = [
            f"By the most literal reading: of {len(claims)} claims {literal}.",
            f"By the best reading: of {len(claims)} claims {best}; {several} have more than one reading.",
        ]
    if ours := [one.best.verdict for one in judged if one.claim.ours]:
        sentences.append(f"Ours, not counted: {_counts(ours)}.")
    return sentences


def _counts(verdicts: Sequence[ClaimVerdict]) -> str:
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {_many(verdict, counts[verdict])}" for verdict in VERDICTS if counts[verdict])


def _many(verdict: str, count: int) -> str:
    plural = {"reproduces": "reproduce", "in part": "in part", "does not": "do not", "not run": "were not run"}
    return verdict.replace("not run", "was not run") if count == 1 else plural[verdict]
