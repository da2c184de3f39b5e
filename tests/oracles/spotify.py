"""Draws of a user's topics by going through all topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction


def weighted(weights: Sequence[int], share: Fraction) -> int:
    """The first topic at which more than the share of all weight has been passed."""
    passed = 0
    for topic, weight in enumerate(weights):
        passed += weight
        if passed > share * sum(weights):
            return topic
    raise ValueError(f"a share of {share}")


def interests(sizes: Sequence[int], weights: Sequence[int], draw: Callable[[int, int], float]) -> list[list[int]]:
    """Each user's different topics, ascending, where `draw(user, k)` is the share of the user's k-th draw."""
    return [
        sorted({weighted(weights, Fraction(draw(user, k))) for k in range(size)}) for user, size in enumerate(sizes)
    ]


def one_at_a_time(sessions: Sequence[tuple[int, float, float]]) -> list[bool]:
    """Which sessions (user, start, end), in order, begin after those before of the same user that take place."""
    taken: list[tuple[int, float]] = []
    kept = []
    for user, start, end in sessions:
        kept.append(all(start > until for who, until in taken if who == user))
        if kept[-1]:
            taken.append((user, end))
    return kept


def time_online(sessions: Sequence[tuple[float, float]], since: float, online: float) -> float | None:
    """The time at which a user with these sessions (start, end) has been online for a duration since a time, if ever."""
    for start, end in sessions:
        begin = max(start, since)
        if end > since:
            if begin + online < end:
                return begin + online
            online -= end - begin
    return None
