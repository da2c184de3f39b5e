"""The compiled part of location subscriptions. Slow twin: tests/oracles/location.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


class ChangesOut(NamedTuple):
    """Changes of interest in order, with room for the most possible."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    action: NDArray[np.int8]


@kernel
def subscription_changes(
    visits: tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]],
    current: NDArray[np.int32],
    friends: NDArray[np.int32],
    followers_of: tuple[NDArray[np.int64], NDArray[np.int64]],
    out: ChangesOut,
) -> int:
    """Fill `out` with all changes of interest and return their number.

    `visits`: time, user and cell of each, in order; `current`: cell of each user, updated; `friends`: (users, k); `followers_of`:
    CSR of the transposed friends, ascending. A change is at its visit's time.
    """
    time, user, cell = visits
    indptr, followers = followers_of
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
            # the mover's step is a change only if the affected user has no other friend in the cell
            gains = affected == mover or current[affected] != new
            loses = affected == mover or current[affected] != old
            for k in range(friends.shape[1]):
                friend = friends[affected, k]
                if friend != mover:
                    gains = gains and current[friend] != new
                    loses = loses and current[friend] != old
            for topic, action, happens in ((new, 1, gains), (old, -1, loses)):
                if happens:
                    out.time[n], out.user[n], out.topic[n], out.action[n] = time[visit], affected, topic, action
                    n += 1
    return n
