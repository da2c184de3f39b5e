"""The compiled part of location subscriptions; its slow twin is tests/oracles/location.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def subscription_changes(
    time: NDArray[np.float64],
    user: NDArray[np.int32],
    cell: NDArray[np.int32],
    current: NDArray[np.int32],
    friends: NDArray[np.int32],
    indptr: NDArray[Any],
    followers: NDArray[Any],
    time_out: NDArray[np.float64],
    user_out: NDArray[np.int32],
    topic_out: NDArray[np.int32],
    action_out: NDArray[np.int8],
) -> int:
    """Fill the outputs with all changes of interest and return their number.

    `time`, `user`, `cell`: per visit, in order; `current`: cell of each user, updated; `friends`: (users, k); `indptr`,
    `followers`: CSR of friends turned round, ascending. A change is at its visit's time. The outputs must be large enough.
    """
    n = 0
    for visit in range(user.size):
        mover, new = user[visit], cell[visit]
        old = current[mover]
        if new == old:
            continue
        current[mover] = new
        follower, stop = indptr[mover], indptr[mover + 1]
        mover_done = False
        while follower < stop or not mover_done:
            if not mover_done and (follower == stop or followers[follower] > mover):
                affected = np.int64(mover)
                mover_done = True
            else:
                affected = np.int64(followers[follower])
                follower += 1
            # whom else the affected user watches decides whether the mover's step is a change at all
            gains = affected == mover or current[affected] != new
            loses = affected == mover or current[affected] != old
            for k in range(friends.shape[1]):
                friend = friends[affected, k]
                if friend != mover:
                    gains = gains and current[friend] != new
                    loses = loses and current[friend] != old
            for topic, action, happens in ((new, 1, gains), (old, -1, loses)):
                if happens:
                    time_out[n] = time[visit]
                    user_out[n] = affected
                    topic_out[n] = topic
                    action_out[n] = action
                    n += 1
    return n
