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
