"""Location subscriptions the slow, obvious way: every user's interests are recounted before and after every visit."""

from __future__ import annotations

from collections.abc import Sequence


def wants(user: int, cell_of: dict[int, int], friends: Sequence[Sequence[int]]) -> set[int]:
    """The cells where the user and its friends are."""
    return {cell_of[watched] for watched in (user, *friends[user]) if watched in cell_of}


def location_subscriptions(
    visits: Sequence[tuple[float, int, int]], friends: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[tuple[float, int, int, int]]]:
    """Interests at time 0 (per user, ascending) and changes (time, user, topic, action) of visits (time, user, cell)."""
    cell_of: dict[int, int] = {}
    for _, user, cell in visits:
        cell_of.setdefault(user, cell)
    initial = [sorted(wants(user, cell_of, friends)) for user in range(len(friends))]
    changes = []
    for time, mover, cell in visits:
        before = [wants(user, cell_of, friends) for user in range(len(friends))]
        cell_of[mover] = cell
        for user in range(len(friends)):
            after = wants(user, cell_of, friends)
            changes += [(time, user, topic, 1) for topic in after - before[user]]
            changes += [(time, user, topic, -1) for topic in before[user] - after]
    return initial, changes
