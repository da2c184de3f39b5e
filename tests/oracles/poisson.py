"""Changes of topics with plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def another(weights: Sequence[Fraction], held: set[int], share: Fraction) -> int:
    """Going through the topics not held, the first at which more than the share of their weight has been passed."""
    free = [topic for topic in range(len(weights)) if topic not in held]
    passed = Fraction(0)
    for topic in free:
        passed += weights[topic]
        if passed > share * sum(weights[other] for other in free):
            return topic
    raise ValueError(f"a share of {share}")


def replacements(
    held: list[set[int]], weights: Sequence[Fraction], changes: Sequence[tuple[int, int, Fraction]]
) -> list[tuple[int, int]]:
    """Per change (user, slot, share): another topic is gained, the slot-th held topic is given up."""
    out = []
    for user, slot, share in changes:
        given_up = sorted(held[user])[slot]
        gained = another(weights, held[user], share)
        held[user] = held[user] - {given_up} | {gained}
        out.append((gained, given_up))
    return out


def differences(held: list[set[int]], changes: Sequence[tuple[int, set[int]]]) -> list[tuple[int, int, int]]:
    """Events (change, topic, ±1) of changes (user, what it wants from then on)."""
    out = []
    for number, (user, wanted) in enumerate(changes):
        out += [(number, topic, 1) for topic in sorted(wanted - held[user])]
        out += [(number, topic, -1) for topic in sorted(held[user] - wanted)]
        held[user] = wanted
    return out
