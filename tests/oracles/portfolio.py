"""The topics that the portfolio's improvement drops, and subscribers out of reach, by trying (on `tests/oracles/offloading.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from oracles.offloading import Case


def satisfied(case: Case, topics: Sequence[int]) -> set[int]:
    """The subscribers with a need that these topics satisfy."""
    return {v for v in range(len(case.interests)) if case.need(v) > 0 and case.remaining(v, topics) <= 0}


def without_idle(case: Case, topics: Sequence[int]) -> list[int]:
    """The topics left after dropping, dearest first, each one without which the same subscribers are satisfied."""
    left = list(topics)
    for topic in sorted(topics, key=lambda topic: -case.cost[topic]):
        fewer = [other for other in left if other != topic]
        if satisfied(case, fewer) == satisfied(case, left):
            left = fewer
    return left


def within_reach(case: Case, v: int) -> bool:
    """Whether a subscriber has a need that some set of topics within the capacity satisfies."""
    if case.need(v) == 0:
        return False
    wanted = case.interests[v]
    sets = (chosen for size in range(len(wanted) + 1) for chosen in combinations(wanted, size))
    return any(
        case.remaining(v, chosen) <= 0 and sum(case.cost[topic] for topic in chosen) <= case.capacity for chosen in sets
    )
