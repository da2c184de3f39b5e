"""Content-based subscriptions, matched as they are said: all predicates of one must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Subscription = tuple[int, Mapping[int, int]]  # owner, field → value


def holding(wanted: Mapping[int, int], published: Sequence[int]) -> int:
    """How many predicates hold."""
    return sum(published[field] == value for field, value in wanted.items())


def matching(subscriptions: Sequence[Subscription], published: Sequence[int]) -> list[int]:
    """Which subscriptions a publication matches."""
    return [s for s, (_, wanted) in enumerate(subscriptions) if holding(wanted, published) == len(wanted)]
