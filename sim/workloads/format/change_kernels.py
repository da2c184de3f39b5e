"""The compiled part of the checks of subscription changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def first_void_change(
    changes: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]],
    interests: tuple[NDArray[np.int64], NDArray[np.int32]],
    topics: int,
) -> int:
    """The first change that changes nothing, since it subscribes who is subscribed or unsubscribes who is not; -1 for none.

    `changes`: user, topic and action (1 or -1), in order; `interests`: CSR of those that hold before.
    """
    user, topic, action = changes
    indptr, indices = interests
    users = indptr.size - 1
    end = np.zeros(users + 1, np.int64)
    for row in range(user.size):
        end[user[row] + 1] += 1
    for one in range(users):
        end[one + 1] += end[one]
    rows = np.empty(user.size, np.uint32)  # user by user, each in order
    for row in range(user.size):
        rows[end[user[row]]] = row
        end[user[row]] += 1
    wanted_by = np.zeros(topics, np.int64)  # 1 + the last user that was subscribed, if that is still so
    worst, start = user.size, 0
    for one in range(users):
        for place in range(indptr[one], indptr[one + 1]):
            wanted_by[indices[place]] = one + 1
        for place in range(start, end[one]):
            row = int(rows[place])
            wanted = wanted_by[topic[row]] == one + 1
            if wanted == (action[row] > 0) and row < worst:
                worst = row
            wanted_by[topic[row]] = one + 1 if action[row] > 0 else 0
        start = end[one]
    return worst if worst < user.size else -1
