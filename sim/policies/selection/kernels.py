"""Compiled kernels of the brokers' utility for a user. Slow twin: tests/oracles/selection.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_uniform

OVERLAP, JACCARD, MEAN_USER = 0, 1, 2


class Utility(NamedTuple):
    """A similarity as a quotient of whole numbers, and a load."""

    numerator: int
    denominator: int
    load: int


class ViewArrays(NamedTuple):
    """The data for decisions about several users, as in `sim.policies.views.SelectionViews`."""

    user: NDArray[np.int32]
    current: NDArray[np.int32]
    indptr: NDArray[np.int64]
    topics: NDArray[np.int32]
    own_wanted: NDArray[np.int32]
    own_topics: NDArray[np.int64]
    own_load: NDArray[np.int64]
    own_users: NDArray[np.int64]
    total_load: NDArray[np.int64]


@kernel
def advantage(one: Utility, other: Utility, total_load: int, load_weight: float) -> float:
    """How much better one utility, similarity - weight · load / total, is than another, times both denominators and the total.

    Over one denominator, so that equal utilities compare as equal: exact, in whole numbers, for a whole weight.
    """
    similarity = (one.numerator * other.denominator - other.numerator * one.denominator) * float(total_load)
    return similarity - load_weight * ((one.load - other.load) * float(one.denominator * other.denominator))


@kernel
def best_broker(
    candidates: NDArray[np.int32],
    topics: NDArray[np.int32],
    wanted: NDArray[np.int32],
    sizes: NDArray[np.int64],
    own: tuple[int, int, int, int],
    own_wanted: NDArray[np.int32],
    total_load: int,
    rule: tuple[int, float, float],
) -> int:
    """The candidate with the highest utility (algorithm 1) for a user who wants `topics`; ties: current, lower load, lower id.

    `wanted` (topics, brokers) and `sizes` (3, brokers: topics, load, users) are what brokers reported; `own` is the user's own broker
    (-1 for a user that joins), and its topics, load and users without the user, `own_wanted` (`topics`) likewise. `rule`: the
    formula, the load's weight, and the hysteresis. No records: passing them would take longer than everything else.
    """
    own_broker, own_topics, own_load, own_users = own
    formula, load_weight, hysteresis = rule
    best, highest = -1, Utility(0, 1, 0)
    present = Utility(0, 0, 0)  # denominator 0: the current broker is not a candidate
    size = topics.size
    for broker in candidates:
        is_own = broker == own_broker
        common, summed = 0, 0
        for i in range(size):
            n = own_wanted[i] if is_own else wanted[topics[i], broker]
            summed += n
            if n > 0:
                common += 1
        if formula == OVERLAP:
            numerator, denominator = common, size
        elif formula == JACCARD:
            numerator, denominator = common, (own_topics if is_own else sizes[0, broker]) + size - common
        else:
            numerator, denominator = summed, size * (own_users if is_own else sizes[2, broker])
        # No users, or no topics: similarity 0
        here = Utility(numerator, max(denominator, 1), own_load if is_own else sizes[1, broker])
        if is_own:
            present = here
        better = best < 0
        if not better:
            gain = advantage(here, highest, total_load, load_weight)
            better = gain > 0
            if gain == 0 and best != own_broker:
                better = is_own or here.load < highest.load or (here.load == highest.load and broker < best)
        if better:
            best, highest = broker, here
    if present.denominator > 0:
        gain = advantage(highest, present, total_load, load_weight)
        if gain <= hysteresis * (float(highest.denominator * present.denominator) * total_load):
            return own_broker
    return best


@kernel
def best_brokers(
    clusters: NDArray[np.int32],
    members_from: NDArray[np.int64],
    members: NDArray[np.int32],
    views: ViewArrays,
    wanted: NDArray[np.int32],
    sizes: NDArray[np.int64],
    key: int,
    rule: tuple[int, float, float],
) -> NDArray[np.int32]:
    """`best_broker` for each of several views, among the members of its cluster; a cluster of -1 is replaced by one drawn by user."""
    found, many = np.empty(clusters.size, np.int32), members_from.size - 1
    for i in range(clusters.size):
        first, end, broker = views.indptr[i], views.indptr[i + 1], views.current[i]
        if broker >= 0 and first == end:
            found[i] = broker
            continue
        cluster = clusters[i] if clusters[i] >= 0 else int(keyed_uniform(key, views.user[i], 0) * many)
        found[i] = best_broker(
            members[members_from[cluster] : members_from[cluster + 1]],
            views.topics[first:end],
            wanted,
            sizes,
            (broker, views.own_topics[i], views.own_load[i], views.own_users[i]),
            views.own_wanted[first:end],
            max(views.total_load[i], 1),
            rule,
        )
    return found


@kernel
def drawn_brokers(users: NDArray[np.int32], key: int, brokers: int) -> NDArray[np.int32]:
    """A uniformly random broker for each user, always the same one."""
    found = np.empty(users.size, np.int32)
    for i in range(users.size):
        found[i] = int(keyed_uniform(key, users[i], 0) * brokers)
    return found
