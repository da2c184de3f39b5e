"""Replacements of topics with plain lists."""

from __future__ import annotations

from collections.abc import Sequence


def replacements(held: list[set[int]], topics: int, changes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Per change (user, slot, other): the other-th topic not held is gained, the slot-th held topic is given up."""
    out = []
    for user, slot, other in changes:
        given_up = sorted(held[user])[slot]
        gained = [topic for topic in range(topics) if topic not in held[user]][other]
        held[user] = held[user] - {given_up} | {gained}
        out.append((gained, given_up))
    return out
