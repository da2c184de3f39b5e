"""Similarity-based broker selection (DYNATOPS, algorithm 1) word for word, over sets of topics and exact fractions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Hosted = Mapping[int, Mapping[int, set[int]]]  # broker → user → topics the user wants


def overlap(members: list[set[int]], wants: set[int]) -> Fraction:
    """|S_b ∩ s| / |s|"""
    return Fraction(len(set().union(*members) & wants), len(wants)) if wants else Fraction(0)


def jaccard(members: list[set[int]], wants: set[int]) -> Fraction:
    """|S_b ∩ s| / |S_b ∪ s|"""
    topics = set().union(*members)
    return Fraction(len(topics & wants), len(topics | wants)) if topics | wants else Fraction(0)


def mean_user(members: list[set[int]], wants: set[int]) -> Fraction:
    """The mean of |s_u ∩ s| / |s| over the users u of the broker"""
    if not members or not wants:
        return Fraction(0)
    return sum((Fraction(len(member & wants), len(wants)) for member in members), Fraction(0)) / len(members)


SIMILARITY = {"overlap": overlap, "jaccard": jaccard, "mean-user": mean_user}


def select(
    user: int,
    wants: set[int],
    current: int,
    candidates: Iterable[int],
    then: Hosted,
    now: Hosted,
    load_weight: Fraction,
    load: str = "share",
    similarity: str = "overlap",
    hysteresis: Fraction = Fraction(0),
) -> int:
    """The broker for a user that is at `current` (-1: joins) and wants `wants` from now on.

    `then` is what brokers told at the last exchange, `now` what is; the own broker is seen as it is now, without the user.
    """
    if current >= 0 and not wants:
        return current
    total = sum(len(topics) for hosted in now.values() for topics in hosted.values())

    def members(broker: int) -> list[set[int]]:
        if broker != current:
            return list(then[broker].values())
        return [topics for other, topics in now[broker].items() if other != user]

    def subscriptions(broker: int) -> int:
        return sum(len(topics) for topics in members(broker))

    def utility(broker: int) -> Fraction:
        share = Fraction(subscriptions(broker), max(total, 1))
        level = share * len(now) if load == "relative" else share
        return SIMILARITY[similarity](members(broker), wants) - load_weight * level

    candidates = list(candidates)
    best = max(candidates, key=lambda b: (utility(b), b == current, -subscriptions(b), -b))
    if current in candidates and utility(best) - utility(current) <= hysteresis:
        return current
    return best
