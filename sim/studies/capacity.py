"""Capacity: the smallest (or largest) value of a parameter at which a metric meets its limit, with confidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from sim.base.errors import InputError
from sim.base.units import parse_duration, parse_fraction
from sim.experiments.outcomes import clock
from sim.experiments.statistics import Interval, mean_interval
from sim.scenario.expressions import Limit, Value
from sim.scenario.keys import text_of
from sim.studies.search import SATURATED, Bench, LimitVerdict, Measure, looks, verdict

DOUBLINGS = 10
"""Without an end, the range ends at its first value doubled this many times."""


@dataclass(frozen=True)
class SearchRange:
    """The values first, first + step, … up to `last`, in the key's unit. Raises InputError where it is empty."""

    first: Fraction
    last: Fraction
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise InputError(f"--step {_show(self.step)}: expected more than 0")
        if self.last < self.first:
            raise InputError(f"--to {_show(self.last)}: expected --from ({_show(self.first)}) or more")

    def __len__(self) -> int:
        return int((self.last - self.first) // self.step) + 1

    def __getitem__(self, index: int) -> Value:
        return _number(self.first + index * self.step)

    def doubled(self, index: int) -> int:
        """The index of the first later value that is at least twice as large."""
        value = self.first + index * self.step
        return max(index + 1, -((self.first - 2 * value) // self.step))


@dataclass(frozen=True)
class CapacityQuestion:
    """The question: the smallest (or largest) value of `key` in `range` at which `limit` holds; `unit` is the key's.

    Each decision has the given `confidence` and takes at most `max_replications`. Raises InputError where the confidence is invalid.
    """

    key: str
    limit: Limit
    range: SearchRange
    largest: bool = False
    confidence: float = 0.95
    max_replications: int = 30
    unit: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InputError(f"--confidence {self.confidence:g}: expected a number between 0 and 1")

    def text(self, value: Value) -> str:
        """A value of the key as text, with its unit."""
        return text_of(value, self.unit)

    @property
    def confidence_of_look(self) -> float:
        """The confidence of each interim analysis at a value, such that all together have that of the decision (Bonferroni)."""
        return 1 - (1 - self.confidence) / len(list(looks(self.max_replications)))


@dataclass(frozen=True)
class Tried:
    """The result at one value: the metric's mean with its confidence interval, and the verdict on the limit.

    "missed" and "met" are statistically certain; "undecided" and "failed" (see `reason`) count as missed, and so does "saturated":
    the metric then covers only what was delivered.
    """

    value: Value
    interval: Interval
    verdict: LimitVerdict | Literal["failed", "saturated"]
    reason: str = ""

    @property
    def met(self) -> bool:
        """Whether the limit certainly holds."""
        return self.verdict == "met"


@dataclass(frozen=True)
class CapacityAnswer:
    """The answer (None where no value of the range meets the limit), and all tried values, ascending."""

    answer: Tried | None
    tried: tuple[Tried, ...]

    @property
    def turns(self) -> list[tuple[Tried, Tried]]:
        """Neighbouring values between which the metric significantly moves against its overall direction, so it is not monotone."""
        seen = [one for one in self.tried if one.interval.n and one.verdict != "saturated"]
        rises = len(seen) > 1 and seen[-1].interval.mean > seen[0].interval.mean
        pairs = [(a, b, *((b, a) if rises else (a, b))) for a, b in combinations(seen, 2)]
        return [(a, b) for a, b, less, more in pairs if less.interval.ends[1] < more.interval.ends[0]]


_Tell = Callable[[Tried], None]


def capacity_of(bench: Bench, question: CapacityQuestion, tell: _Tell = lambda tried: None) -> CapacityAnswer:
    """The answer for a variant; its results have a point per tried value. Raises InputError where the key cannot be searched."""
    bench.check({question.key: [question.range[0]]})
    with clock() as timing:
        found = capacity(question, bench.measure, tell)
    tried = [{question.key: one.value} for one in found.tried]
    bench.finish(tried, question.max_replications, [question.limit.metric], timing)
    return found


def capacity(question: CapacityQuestion, measure: Measure, tell: _Tell = lambda tried: None) -> CapacityAnswer:
    """Find the answer by doubling from the range's first value, then bisection; `tell` is called with each tried value.

    It assumes that the metric is monotone in the value, apart from randomness. The answer's neighbour on the side where the limit
    does not hold has then been tried too, and has missed.
    """
    tried: dict[int, Tried] = {}

    def beyond(index: int) -> bool:
        """Whether the value is beyond the threshold at which the limit begins, or ceases, to hold."""
        if index not in tried:
            tried[index] = _judge(question, question.range[index], measure)
            tell(tried[index])
        return tried[index].met is not question.largest

    turn = first_beyond(beyond, len(question.range), question.range.doubled)
    if question.largest:
        turn = (len(question.range) if turn is None else turn) - 1
    answer = tried[turn] if turn is not None and turn >= 0 else None
    return CapacityAnswer(answer, tuple(tried[index] for index in sorted(tried)))


def first_beyond(beyond: Callable[[int], bool], size: int, doubled: Callable[[int], int]) -> int | None:
    """The first index below `size` at which `beyond` is true, None where it is false even at the last.

    Exponential search (Bentley & Yao 1976): the threshold is bracketed by growing steps, then bisected. `doubled` returns a larger
    index. `beyond` has been called for the index found and the one before.
    """
    low, high = -1, 0
    while not beyond(high):
        if high == size - 1:
            return None
        low, high = high, min(doubled(high), size - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


def _judge(question: CapacityQuestion, value: Value, measure: Measure) -> Tried:
    """Add replications at one value until the confidence interval of the metric's mean is entirely on one side of the limit."""
    limit = question.limit
    for n in looks(question.max_replications):
        measured = measure({question.key: value}, n)
        interval = mean_interval(measured.values(limit.metric), question.confidence_of_look)
        if measured.failure is not None:
            return Tried(value, interval, "failed", measured.failure)
        if limit.asks_for_service and not measured.keeps_up:
            return Tried(value, interval, "saturated")
        if not interval.n:
            return Tried(value, interval, "failed", f"{limit.metric} is undefined")
        if interval.n > 1 and (said := verdict(limit, interval)) != "undecided":
            return Tried(value, interval, said)
    return Tried(value, interval, "undecided")


def values(
    first: str, last: str | None = None, step: str | None = None, *, integer: bool = True, unit: str = ""
) -> SearchRange:
    """The range as typed; `last` is 1,024 times the first by default. Raises InputError where a value is not a number.

    The step is 1 by default. Unless only integers are allowed, it is 0.1, 0.01, … for short ranges: at most a hundredth of the
    range, or of the first value if the last is not given. Where `unit` is that of a duration, values may have one, such as "10ms".
    """
    read = {
        name: _read(name, text, unit)
        for name, text in (("from", first), ("to", last), ("step", step))
        if text is not None
    }
    if integer and (wrong := next((name for name, value in read.items() if value.denominator > 1), None)):
        raise InputError(f"--{wrong} {_show(read[wrong])}: expected an integer, as the key is one")
    start, width = read["from"], Fraction(1)
    length = (read["to"] - start) / 100 if "to" in read else start
    while not integer and 0 < length < width:
        width /= 10
    width = read.get("step", width)
    return SearchRange(start, read.get("to", max(start, width) * 2**DOUBLINGS), width)


def capacity_sentences(question: CapacityQuestion, found: CapacityAnswer) -> list[str]:
    """The result in sentences, with its assumptions."""
    key, limit, between, text = question.key, question.limit, question.range, question.text
    every = f"from {text(between[0])} to {text(between[len(between) - 1])}"
    wanted = "largest" if question.largest else "smallest"
    said = []
    if found.answer is None:
        said.append(f"{limit} holds at no value of {key} that was tried, {every}.")
    else:
        said.append(f"{key} = {text(found.answer.value)} is the {wanted} value {every} at which {limit}.")
        if found.answer.value == between[len(between) - 1 if question.largest else 0]:
            said.append(
                f"It is the {'last' if question.largest else 'first'} value of the range: values beyond were not tried."
            )
    said.append(
        f"Each decision has a confidence of {100 * question.confidence:g} %, "
        f"provided that {question.limit.metric} is monotone in {key}."
    )
    if open_ := [text(one.value) for one in found.tried if one.verdict == "undecided"]:
        more = f"undecided after {question.max_replications} replications, which counts as missed"
        said.append(f"At {', '.join(open_)} it is {more}; more (--max-replications) may decide.")
    if failed := [text(one.value) for one in found.tried if one.verdict == "failed"]:
        said.append(f"At {', '.join(failed)} there is no result, which counts as missed.")
    if saturated := [text(one.value) for one in found.tried if one.verdict == "saturated"]:
        said.append(f"At {', '.join(saturated)} brokers are saturated: {SATURATED}.")
    if turns := found.turns:
        a, b = turns[0]
        said.append(
            f"But {question.limit.metric} is not monotone between {text(a.value)} and {text(b.value)}: "
            f"the answer may not be the {wanted}."
        )
    return said


def _read(name: str, text: str, unit: str) -> Fraction:
    try:
        if unit == "s" and text.strip()[-1:].isalpha():
            return Fraction(str(parse_duration(text)))
        return parse_fraction(text)
    except ValueError as error:
        raise InputError(f"--{name}: {error}") from None


def _number(value: Fraction) -> Value:
    """A number as written in scenario files: an integer where it is whole."""
    return int(value) if value.denominator == 1 else float(value)


def _show(value: Fraction) -> str:
    """A number as text."""
    return f"{_number(value):g}"
