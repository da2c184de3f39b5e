"""The number of targets, and of pairwise disjoint ones: alpha and beta of section 5.1, by formula.

h subscriptions of m predicates over n fields, in subsets of t = n - m + 1 members, each sharing v with the previous one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def subset_size(fields: int, size: int) -> int:
    """The most members that a perfectly compatible subset of subscriptions of one size has (theorem 12)."""
    return fields - size + 1


def full_subsets(subscriptions: int, members: int, overlap: int = 0) -> int:
    """The number of full subsets of this many subscriptions."""
    return (subscriptions - members) // (members - overlap) + 1 if subscriptions >= members else 0


def alpha(subsets: int, members: int, match: int, overlap: int = 0) -> int:
    """The number of targets of `match` subscriptions: r C(t, z) - (r - 1) C(v, z)."""
    return subsets * math.comb(members, match) - max(subsets - 1, 0) * math.comb(overlap, match)


def beta(subsets: int, members: int, match: int, overlap: int = 0) -> int:
    """The largest number of disjoint targets: r floor(t / z) without overlap, with overlap the best along the chain."""
    return sum(count // match for count in dealt([members] * subsets, [0] + [overlap] * (subsets - 1), match))


def dealt(members: Sequence[int], carried: Sequence[int], match: int) -> list[int]:
    """The number of members that each subset of a chain gets to itself, for as many disjoint targets as possible.

    Each has `carried` members in common with the one before, and no member is in three. The common ones are optimally divided
    between the two, by dynamic programming along the chain.
    """
    best = {0: 0}  # the number of shared members that are left to the next subset → targets so far
    steps: list[
        dict[int, tuple[int, int]]
    ] = []  # for each number left: the number left to this subset, and what it has then
    for own, here, after in zip(members, carried, [*carried[1:], 0], strict=True):
        reached: dict[int, int] = {}
        step: dict[int, tuple[int, int]] = {}
        for given, targets in best.items():
            for left in range(after + 1):
                has = own - here + given - left
                if targets + has // match > reached.get(left, -1):
                    reached[left] = targets + has // match
                    step[left] = given, has
        best = reached
        steps.append(step)
    counts, left = [], 0
    for step in reversed(steps):
        left, has = step[left]
        counts.append(has)
    return counts[::-1]


def transversals(rows: Sequence[int], match: int) -> list[list[int]]:
    """`[place][k]`: the number of ways to take one item each from k of the rows from `place` on (elementary symmetric polynomials)."""
    ways = [[1] + [0] * match]
    for row in reversed(rows):
        after = ways[-1]
        ways.append([after[k] + (row * after[k - 1] if k else 0) for k in range(match + 1)])
    return ways[::-1]
