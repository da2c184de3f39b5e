"""Effects of sessions: subscriptions while users are online, and times at which they are online.

Sessions are sorted by user and start, and those of one user do not overlap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.csr import row_starts
from sim.workloads.format.workload import Interests, Sessions, SubscriptionEvents
from sim.workloads.synthetic.spotify_kernels import after_online


def subscriptions(
    follows: Interests, sessions: Sessions, users: int, horizon: float
) -> tuple[Interests, SubscriptionEvents]:
    """Subscriptions of sessions: to all that the user follows, until the session's end; at time 0, the interests of those online."""
    count = np.diff(follows.indptr)
    online = np.zeros(users, np.bool_)
    online[sessions.user[sessions.start == 0]] = True
    begun, ended = sessions.start > 0, sessions.end < horizon
    time = np.concatenate([sessions.start[begun], sessions.end[ended]])
    user = np.concatenate([sessions.user[begun], sessions.user[ended]])
    action = np.repeat(np.array([1, -1], np.int8), [begun.sum(), ended.sum()])
    order = np.lexsort((user, time))
    time, user, action = time[order], user[order], action[order]
    each = count[user]
    row = np.repeat(follows.indptr[user] - (np.cumsum(each) - each), each) + np.arange(each.sum())
    changes = SubscriptionEvents(
        np.repeat(time, each), np.repeat(user, each), follows.indices[row], np.repeat(action, each)
    )
    return Interests(row_starts(count * online), follows.indices[np.repeat(online, count)]), changes


def times_during(sessions: Sessions, count: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Draw `count` uniform times in each session."""
    start, length = np.repeat(sessions.start, count), np.repeat(sessions.end - sessions.start, count)
    return np.minimum(start + generator.random(len(start)) * length, np.repeat(sessions.end, count))


def times_online(
    sessions: Sessions, user: NDArray[np.int32], since: NDArray[np.float64], online: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The time at which each user has been online for a duration (s) since a time; NaN where its sessions do not last that long."""
    firsts = np.searchsorted(sessions.user, np.arange(user.max(initial=-1) + 2))
    return after_online(firsts, sessions.start, sessions.end, user, since, online)
