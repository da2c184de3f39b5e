"""B3M and F-B3M (ODS) word for word: everything recomputed for each pick, in whole numbers or in exact fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Literal


@dataclass(frozen=True)
class Case:
    """`interests`: the topics of each subscriber; `tau`: of each subscriber, before the minimum with what its topics have in all."""

    interests: Sequence[Sequence[int]]
    event_rate: Sequence[int]
    cost: Sequence[float]
    capacity: float
    tau: Sequence[int]
    active: Sequence[bool] | None = None
    kept: Sequence[int] = ()

    def subscribers(self, topic: int) -> list[int]:
        return [v for v, wanted in enumerate(self.interests) if topic in wanted]

    def need(self, v: int) -> int:
        """tau_v = min(tau, Σ ev), and 0 where tau is below."""
        return max(0, min(self.tau[v], sum(self.event_rate[t] for t in self.interests[v])))

    def remaining(self, v: int, chosen: Sequence[int]) -> int:
        """rem_v of algorithms 1 and 4; 0 for subscribers that do not count."""
        if self.active is not None and not self.active[v]:
            return 0
        return self.need(v) - sum(self.event_rate[t] for t in chosen if t in self.interests[v])

    def satisfied(self, chosen: Sequence[int]) -> int:
        """Eq. 1, 2, over those that need something."""
        return sum(self.need(v) > 0 and self.remaining(v, chosen) <= 0 for v in range(len(self.interests)))

    def satisfaction(self, chosen: Sequence[int]) -> Fraction:
        """Eq. 3, 4, over those that need something."""
        return sum(
            (1 - Fraction(max(0, self.remaining(v, chosen)), self.need(v)))
            for v in range(len(self.interests))
            if self.need(v) > 0
        ) + Fraction(0)

    def bits(self) -> int:
        """K: no sum over a topic's subscribers of numbers up to 2^K passes 2^62."""
        return 62 - max([1, *(len(self.subscribers(t)) for t in range(len(self.event_rate)))]).bit_length()

    def bits_b3m(self) -> int:
        """The fewest bits that hold what an event is worth to the neediest subscriber, so that float64 holds sums exactly."""
        needs = [self.need(v) for v in range(len(self.interests))]
        return min(self.bits(), max(40, max([0, *needs]).bit_length() + 30))


def whole_b3m(case: Case, topic: int, chosen: Sequence[int]) -> int:
    """Algorithm 1 in whole numbers, before the division by the cost."""
    one, score = 1 << case.bits_b3m(), 0
    for v in case.subscribers(topic):
        rem = case.remaining(v, chosen)
        if rem > 0:
            score += one if case.event_rate[topic] >= rem else case.event_rate[topic] * (one // rem)
    return score


def whole_fb3m(case: Case, topic: int, chosen: Sequence[int]) -> int:
    """Algorithm 4 in whole numbers."""
    needs = [case.need(v) for v in range(len(case.interests)) if case.need(v) > 0]
    worth = min(lcm(*needs), 1 << case.bits())
    return sum(
        min(case.remaining(v, chosen), case.event_rate[topic]) * (worth // case.need(v))
        for v in case.subscribers(topic)
        if case.remaining(v, chosen) > 0
    )


def exact_b3m(case: Case, topic: int, chosen: Sequence[int]) -> Fraction:
    """Algorithm 1 in fractions, before the division by the cost."""
    left = (case.remaining(v, chosen) for v in case.subscribers(topic))
    return sum((min(Fraction(1), Fraction(case.event_rate[topic], rem)) for rem in left if rem > 0), Fraction(0))


def exact_fb3m(case: Case, topic: int, chosen: Sequence[int]) -> Fraction:
    """Algorithm 4 in fractions."""
    return sum(
        (
            Fraction(min(case.remaining(v, chosen), case.event_rate[topic]), case.need(v))
            for v in case.subscribers(topic)
            if case.remaining(v, chosen) > 0
        ),
        Fraction(0),
    )


Gain = Callable[[Case, int, Sequence[int]], "int | Fraction"]
By = Literal["ratio", "gain"]


def scores(case: Case, gain: Gain, by: By, chosen: Sequence[int]) -> dict[int, float | Fraction]:
    """The scores of all topics that may be chosen next: they fit, cost something and are worth something.

    Whole numbers become float64 with one division at the end, fractions stay exact.
    """
    spent = 0.0
    for topic in chosen:
        spent += case.cost[topic]
    found: dict[int, float | Fraction] = {}
    for topic, cost in enumerate(case.cost):
        if topic not in chosen and cost > 0 and spent + cost <= case.capacity:
            score = gain(case, topic, chosen)
            exact = Fraction(cost) if isinstance(score, Fraction) else float(cost)
            if score > 0:
                found[topic] = (score if isinstance(score, Fraction) else float(score)) / (
                    exact if by == "ratio" else 1
                )
    return found


def picks(case: Case, gain: Gain, by: By) -> list[int]:
    """Algorithm 2, or 5 without its slips: the highest score again and again, the lowest topic on ties, all computed anew for each.

    A topic that does not fit is passed over, and as what is spent never falls, for good.
    """
    chosen = list(case.kept)
    while found := scores(case, gain, by, chosen):
        chosen.append(max(found, key=lambda topic: (found[topic], -topic)))
    return chosen


def best(case: Case, value: Callable[[Sequence[int]], int | Fraction]) -> int | Fraction:
    """The optimum over all sets of topics that the capacity allows."""
    topics = range(len(case.event_rate))
    return max(
        value(chosen)
        for size in range(len(topics) + 1)
        for chosen in combinations(topics, size)
        if sum(case.cost[t] for t in chosen) <= case.capacity
    )


class Endless(Exception):
    """An algorithm as printed has returned to an earlier state, and so never ends."""


def printed_upper_bound(case: Case) -> int:
    """Algorithm 3 as printed. Raises Endless where a pass of its loop changes nothing."""
    cost = {
        v: max(case.need(v), min(case.event_rate[t] for t in case.interests[v])) for v in range(len(case.interests))
    }
    csubs: list[int] = []
    left = set(cost)
    while left:
        v = min(left, key=lambda other: (cost[other], other))
        if cost[v] + sum(cost[other] for other in csubs) <= case.capacity:
            csubs.append(v)
            left.remove(v)
        else:
            raise Endless  # neither csubs nor V has changed: the next pass is this one
    return len(csubs)


def printed_greedy_fb3m(case: Case, by: Literal["ratio", "gain"]) -> list[int]:
    """Algorithm 5 as printed, in fractions. Raises ValueError at its argmax over no topics, Endless where it would go on for ever."""

    def heuristic(topic: int) -> Fraction:
        gain = exact_fb3m(case, topic, chosen)
        return gain / Fraction(case.cost[topic]) if by == "ratio" else gain

    chosen: list[int] = []
    left = set(range(len(case.event_rate)))
    array = {t: heuristic(t) for t in left}

    def argmax() -> int:
        return max(left, key=lambda t: (array[t], -t))

    while left:
        topic = argmax()
        left.remove(topic)
        if case.cost[topic] + sum(case.cost[t] for t in chosen) <= case.capacity:
            chosen.append(topic)
            while True:
                before = topic
                topic = argmax()
                array[topic] = heuristic(topic)
                if array[before] == array[topic]:
                    break
    return chosen
