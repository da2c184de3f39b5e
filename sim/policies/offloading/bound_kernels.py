"""Compiled kernels for the upper bounds, each with one pass over interests. Slow twin: tests/oracles/offloading_optimum.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

NEVER = np.iinfo(np.int64).max
MOST_SUMS = 1 << 15
"""The largest need for which sums of event rates are enumerated exactly, one bit each: 512 words."""
_ONE, _ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def least_rate(indptr: NDArray[np.int64], indices: NDArray[np.int32], rate: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest rate above 0 of each subscriber's topics (n), `NEVER` where there is none."""
    least = np.full(indptr.size - 1, NEVER, np.int64)
    for subscriber in range(least.size):
        for i in range(indptr[subscriber], indptr[subscriber + 1]):
            if rate[indices[i]] > 0:
                least[subscriber] = min(least[subscriber], rate[indices[i]])
    return least


@kernel
def _least_sum(sums: NDArray[np.uint64], least: int) -> int:
    """The smallest number in the set that is at least `least`; -1 where there is none."""
    word = least // 64
    bits = sums[word] & (_ALL << np.uint64(least % 64))
    while bits == 0:
        word += 1
        if word == sums.size:
            return -1
        bits = sums[word]
    number = word * 64
    while bits & _ONE == 0:
        bits >>= _ONE
        number += 1
    return number


@kernel
def _largest_sum(sums: NDArray[np.uint64]) -> int:
    """The largest number in a non-empty set."""
    word = sums.size - 1
    while sums[word] == 0:
        word -= 1
    bits, number = sums[word], word * 64 - 1
    while bits != 0:
        bits >>= _ONE
        number += 1
    return number


@kernel
def _add(sums: NDArray[np.uint64], events: int) -> None:
    """Extend the set by each of its numbers plus `events`."""
    words, part = events // 64, np.uint64(events % 64)
    for to in range(sums.size - 1, words - 1, -1):
        bits = sums[to - words] << part
        if part > 0 and to > words:
            bits |= sums[to - words - 1] >> (np.uint64(64) - part)
        sums[to] |= bits


@kernel
def sums_about(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], rate: NDArray[np.int64], need: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each subscriber, the largest sum of its topics' rates below its need, and the smallest that is enough: two arrays (n).

    The latter is `NEVER` where even all topics are not enough. The former is 0 (unused) where the latter equals the need. Sums of
    rates below the need are a bit set; for needs above `MOST_SUMS`, the need itself, a lower bound, replaces the latter unless that
    is obvious.
    """
    below, enough = np.zeros(need.size, np.int64), np.full(need.size, NEVER, np.int64)
    room = np.empty(MOST_SUMS // 64, np.uint64)
    for subscriber in range(need.size):
        goal = need[subscriber]
        begin, end = indptr[subscriber], indptr[subscriber + 1]
        least, together = NEVER, 0
        for i in range(begin, end):
            events = rate[indices[i]]
            if events >= goal:
                least = min(least, events)
            else:
                together += events
        if together == goal or (together > goal > MOST_SUMS):
            least = goal
        if together < goal < least:
            below[subscriber] = together
        elif goal < least:
            sums = room[: (goal + 63) // 64]
            sums[:] = 0
            sums[0] = 1
            for i in range(begin, end):
                events = rate[indices[i]]
                if 0 < events < goal < least:
                    beside = _least_sum(sums, goal - events)
                    if beside >= 0:
                        least = min(least, beside + events)
                    _add(sums, events)
                    sums[-1] &= _ALL >> np.uint64(sums.size * 64 - goal)  # only sums below the need
            if goal < least:
                below[subscriber] = _largest_sum(sums)
        enough[subscriber] = least
    return below, enough


@kernel
def satisfiable(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    rate: NDArray[np.int64],
    cost: NDArray[np.float64],
    need: NDArray[np.int64],
    capacity: float,
) -> NDArray[np.bool_]:
    """Whether topics of a subscriber, or fractions of them (which may cost less), bring what it needs within the capacity (n).

    False where nothing is needed. Topics with rate 0 do not count.
    """
    can = np.zeros(need.size, np.bool_)
    for subscriber in range(need.size):
        goal = need[subscriber]
        if goal == 0:
            continue
        begin, end = indptr[subscriber], indptr[subscriber + 1]
        brought, spent = 0, 0.0
        for i in range(begin, end):
            events = rate[indices[i]]
            if events > 0:
                brought += events
                spent += cost[indices[i]]
        if brought < goal:
            continue
        if spent > capacity:
            left, spent = float(goal), 0.0
            price = np.full(end - begin, np.inf)
            for i in range(begin, end):
                events = rate[indices[i]]
                if events > 0:
                    price[i - begin] = cost[indices[i]] / min(events, goal)
            while left > 0 and spent <= capacity:
                cheapest = np.argmin(price)
                events = min(float(min(rate[indices[begin + cheapest]], goal)), left)
                spent += price[cheapest] * events
                left -= events
                price[cheapest] = np.inf
        can[subscriber] = spent <= capacity
    return can


@kernel
def profits(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    rate: NDArray[np.float64],
    most: NDArray[np.float64],
    worth: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The sum of min(rate, most) · worth over each topic's subscribers (l), with the most events that count for one and their worth."""
    profit = np.zeros(rate.size)
    for subscriber in range(most.size):
        value, limit = worth[subscriber], most[subscriber]
        if value > 0:
            for i in range(indptr[subscriber], indptr[subscriber + 1]):
                topic = indices[i]
                profit[topic] += min(rate[topic], limit) * value
    return profit


class Cover(NamedTuple):
    """The interests (CSR) of subscribers (n), their `need`, and what of it is `missing` besides the topics `given` (l)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    need: NDArray[np.int64]
    missing: NDArray[np.int64]
    given: NDArray[np.bool_]


@kernel
def descend(
    cover: Cover, parted: int, part: float, length: float, price: NDArray[np.float64], topics: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Take one subgradient step: change subscribers' prices (n), within 0 and 1, by -`length` times what they receive beyond 1.

    A subscriber receives min(rate, missing) / missing from each kept topic, `part` of that from the topic `parted`, and nothing
    from the topics `given` (l) where less is missing than its need. `topics` (l, 2): each topic's rate, below 0 where it is not
    kept, and (updated) its worth to all subscribers by the new prices. Returns three sums: of 1 - price, of what subscribers
    receive up to 1, and of the squares of what they receive beyond 1 where the price can still change.
    """
    indptr, indices, need, missing, given = cover
    topics[:, 1] = 0
    free, reached, steepness = 0.0, 0.0, 0.0
    for subscriber in range(need.size):
        if need[subscriber] == 0:
            continue
        goal, short = float(missing[subscriber]), missing[subscriber] < need[subscriber]
        begin, end = indptr[subscriber], indptr[subscriber + 1]
        received = 0.0
        for i in range(begin, end):
            topic = indices[i]
            if not (short and given[topic]):
                events = min(max(topics[topic, 0], 0.0), goal)
                received += events * part if topic == parted else events
        reached += min(received / goal, 1.0)
        slope = received / goal - 1
        old = price[subscriber]
        if (slope > 0 and old > 0) or (slope < 0 and old < 1):
            steepness += slope * slope
            price[subscriber] = min(max(old - length * slope, 0.0), 1.0)
        free += 1 - price[subscriber]
        if price[subscriber] > 0:
            worth = price[subscriber] / goal
            for i in range(begin, end):
                topic = indices[i]
                if not (short and given[topic]):
                    topics[topic, 1] += min(abs(topics[topic, 0]), goal) * worth
    return free, reached, steepness
