"""Compiled statistics of publications: counts are integers and sums are exact, so that the order does not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.statistics.exact_sums import add_exactly
from sim.brokers.statistics.ledger import CLIMBING, DELIVERED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED
from sim.brokers.statistics.records import Channel, Folds, Offloads, ResentCopies, Statistics, Way, Ways
from sim.brokers.statistics.tallies import count_key
from sim.brokers.statistics.topic_delays import TO_BROKERS, TO_USERS, count_topic_delay
from sim.brokers.statistics.traffic import (
    BYTES_IN,
    BYTES_OUT,
    COPIED_BYTES,
    COPIES,
    DELIVERED_HERE,
    RECEIVED,
    RELAYED,
    SENT,
)
from sim.overlay.pair_times import time_between

# columns of the counters per window
(
    TREE_HOPS,
    UPLINK_HOPS,
    INTERNAL,
    EXTERNAL,
    INTERNAL_BYTES,
    EXTERNAL_BYTES,
    UPLINKS,
    UPLINK_BYTES,
    STRETCHED,
    BEST_EFFORT,
    BEST_EFFORT_USERS,
    REACHED,
    SESSION_DELIVERIES,
    RETAINED_DELIVERIES,
    RESUMED,
) = range(15)
COUNTERS = 15
# rows of the exact sums per window
(
    NOTIFICATION_DELAY,
    TREE_DELAY,
    USER_NOTIFICATION_DELAY,
    USER_TREE_DELAY,
    STRETCH,
    LAST_SERVICE,
    CLIENT_WAIT,
    LAST_DELIVERY,
    SESSION_DELAY,
    RETAINED_DELAY,
    CATCH_UP,
) = range(11)
SUMS = 11
# rows of the ledger
OFFLOADED = LOST["offloaded"]

FIRST_BIN = 2.0**-20  # s: delays below it share bin 0
BINS = 1 << 13  # delays up to 2^44 s have their own bins
_SHIFT = 45  # keeps a float's exponent and 7 more bits: 128 bins of equal width between powers of two
_FIRST = int(np.float64(FIRST_BIN).view(np.int64)) >> _SHIFT


@inlined
def delay_bin(delay: float) -> int:
    """The bin of a delay in a log-linear histogram: 0 below FIRST_BIN, from there on 128 to each power of two."""
    if delay < FIRST_BIN:
        return 0
    return min(1 + int(np.float64(delay).view(np.int64) >> _SHIFT) - _FIRST, BINS - 1)


def lower_edges(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """The shortest delays (s) of bins."""
    edges: NDArray[np.float64] = ((bins - 1 + _FIRST) << _SHIFT).view(np.float64)
    return np.where(bins > 0, edges, 0.0)


@kernel
def count_message(here: int, there: int, size: int, relays: bool, first: int, statistics: Statistics) -> int:
    """Count a message from broker to broker, in a window whose rows begin at `first`; returns 1 where the link is new."""
    sender, receiver = first + here, first + there
    statistics.traffic[sender, SENT] += 1
    statistics.traffic[sender, BYTES_OUT] += size
    statistics.traffic[receiver, RECEIVED] += 1
    statistics.traffic[receiver, BYTES_IN] += size
    statistics.traffic[receiver, RELAYED] += int(relays)
    key = here * statistics.brokers + there
    return count_key(statistics.links, key, 1, size)


@inlined
def count_copies(here: int, users: int, size: int, first: int, statistics: Statistics) -> None:
    """Count the copies that a broker sends to its users, in a window whose rows begin at `first`."""
    statistics.traffic[first + here, COPIES] += users
    statistics.traffic[first + here, COPIED_BYTES] += users * size


@kernel
def is_full(delivered: int, sent: int, window: int, statistics: Statistics) -> bool:
    """Whether the hash tables would be more than half full with the new delays and links, or the window lacks rows."""
    used = statistics.used
    if statistics.measured[window] and statistics.first_row[window] < 0:
        return True
    return bool(2 * (used[0] + delivered) > len(statistics.delays) or 2 * (used[1] + sent) > len(statistics.links))


@kernel
def count_messages(way: Way, statistics: Statistics) -> None:
    """Count the messages below the root, from broker to broker: down the tree by all who have served it, or by flooding.

    One call counts all messages of a publication: passing the arrays for each message would take as long as the rest.
    """
    new = 0
    count, measured, flooded = statistics.counters[way.window], statistics.measured[way.window], way.copies.size > 0
    first = statistics.first_row[way.window]
    for i in range(len(way.copies) if flooded else way.brokers.size):
        above, below = (way.copies[i, 0], way.copies[i, 1]) if flooded else (way.parents[i], i)
        if not flooded and (above < 0 or np.isnan(way.served[above])):
            continue
        here, there, users = way.brokers[above], way.brokers[below], way.due_users[below]
        count[INTERNAL if users > 0 else EXTERNAL] += 1
        count[INTERNAL_BYTES if users > 0 else EXTERNAL_BYTES] += way.size
        if measured:
            new += count_message(here, there, way.size, users == 0, first, statistics)
    statistics.used[1] += new


@kernel
def count_uplink(way: Way, statistics: Statistics) -> None:
    """Count the hops that a publication took on its way to the root."""
    count, root, new, first = statistics.counters[way.window], way.uplink[-1], 0, statistics.first_row[way.window]
    for i in range(way.uplinks_sent):
        here, there = way.uplink[i], way.uplink[i + 1]
        count[UPLINKS] += 1
        count[UPLINK_BYTES] += way.size
        if statistics.measured[way.window]:
            new += count_message(here, there, way.size, there != root, first, statistics)
    statistics.used[1] += new
    if not np.isnan(way.rooted):
        count[UPLINK_HOPS] += way.uplink.size - 1


@kernel
def record(way: Way, statistics: Statistics) -> None:
    """Count one publication; the hash tables have room."""
    window, brokers, new, last = way.window, way.brokers, 0, -1.0
    count, total = statistics.counters[window], statistics.sums[window]
    delivered, counted = statistics.pairs[window, DELIVERED], statistics.measured[window]
    by_topic = counted and statistics.topics.size > 0
    count_uplink(way, statistics)
    count_messages(way, statistics)
    for i in range(brokers.size):
        here = brokers[i]
        users, served, arrival = way.new_users[i], way.served[i], way.arrival[i]
        if users == 0 or np.isnan(served):
            continue
        delay = served - way.published
        tree_delay = served - way.rooted
        first = way.duplicate_at_broker.size == 0 or not way.duplicate_at_broker[i]
        if counted:
            count_copies(here, users, way.size, statistics.first_row[window], statistics)
        if not statistics.counts_users:
            users = 0
        delivered[1] += users
        add_exactly(total[USER_NOTIFICATION_DELAY], delay * users)
        add_exactly(total[USER_TREE_DELAY], tree_delay * users)
        if by_topic:
            count_topic_delay(statistics.topics[way.topic], TO_USERS, users, delay)
            count_topic_delay(statistics.topics[way.topic], TO_BROKERS, int(first), delay)
        if first or users > 0:
            new += count_key(statistics.delays, window * BINS + delay_bin(delay), int(first), users)
        if not first:
            continue
        delivered[0] += 1
        last = max(last, delay)
        count[TREE_HOPS] += way.depth[i]
        add_exactly(total[NOTIFICATION_DELAY], delay)
        add_exactly(total[TREE_DELAY], tree_delay)
        if served > arrival:
            add_exactly(total[LAST_SERVICE], served - arrival)
        direct = time_between(statistics.hops, way.uplink[0], here)
        if direct > 0.0:
            count[STRETCHED] += 1
            add_exactly(total[STRETCH], (arrival - way.published) / direct)
        if counted:
            statistics.traffic[statistics.first_row[window] + here, DELIVERED_HERE] += 1
            statistics.maxima[0] = max(statistics.maxima[0], delay)
    if last >= 0.0:
        count[REACHED] += 1
        add_exactly(total[LAST_DELIVERY], last)
    statistics.used[0] += new


@kernel
def record_all(ways: Ways, first: int, statistics: Statistics) -> int:
    """Count the publications from `first` on; returns where it stopped because there is no room for it (see is_full)."""
    for f in range(first, ways.published.size):
        a, b = ways.tree_from[f], ways.tree_from[f + 1]
        sent = ways.uplinks_sent[f] + b - a + ways.copies_from[f + 1] - ways.copies_from[f]
        if is_full(b - a, sent, ways.window[f], statistics):
            return f
        way = Way(
            ways.uplinks[ways.uplink_from[f] : ways.uplink_from[f + 1]],
            ways.uplinks_sent[f],
            ways.brokers[a:b],
            ways.parents[a:b],
            ways.depth[a:b],
            ways.due_users[a:b],
            ways.arrival[a:b],
            ways.served[a:b],
            ways.published[f],
            ways.rooted[f],
            ways.size[f],
            ways.window[f],
            ways.copies[ways.copies_from[f] : ways.copies_from[f + 1]],
            ways.new_users[a:b],
            ways.duplicate_at_broker[a:b],
            ways.topic[f],
        )
        record(way, statistics)
    return int(ways.published.size)


@kernel
def count_resent(resent: ResentCopies, first: int, statistics: Statistics) -> int:
    """Count copies from the `first` on; stops and returns as `record_all` does."""
    for i in range(first, resent.window.size):
        window, size, here, there = resent.window[i], resent.size[i], resent.source[i], resent.destination[i]
        if is_full(0, 1, window, statistics):
            return i
        if not statistics.measured[window]:
            continue
        row = statistics.first_row[window]
        if there < 0:
            count_copies(here, resent.relays[i], size, row, statistics)
        else:
            statistics.used[1] += count_message(here, there, size, resent.relays[i] > 0, row, statistics)
    return int(resent.window.size)


@kernel
def fold_all(
    folds: Folds,
    horizon: float,
    reached: NDArray[np.int64],
    latest: NDArray[np.float64],
    first: int,
    statistics: Statistics,
) -> int:
    """Carry the publications from `first` on down their trees, and count them; stops and returns as `record_all` does.

    Arrivals at the `horizon` or later are in transit at the end. `reached` counts the arrivals at each position of the trees, and
    `latest` (1) is raised to the last arrival.
    """
    hop_times = statistics.hops
    arrival = np.empty(statistics.brokers)
    nothing_flooded, no_duplicates = np.empty((0, 2), np.int32), np.empty(0, np.bool_)
    last = latest[0]
    for f in range(first, folds.published.size):
        up = folds.uplinks[folds.uplink_from[f] : folds.uplink_from[f + 1]]
        window, tree, root_time, hops = folds.window[f], folds.tree[f], folds.rooted[f], up.size - 1
        pairs, publications = statistics.pairs[window], statistics.publications[window]
        a, b = folds.tree_from[tree], folds.tree_from[tree + 1]
        if root_time >= horizon:  # still on its way up at the end
            root_time, b, hops, time = np.nan, a, 0, folds.departed[f]
            while time < horizon:
                time += time_between(hop_times, up[hops], up[hops + 1])
                hops += 1
        if is_full(b - a, hops + b - a, window, statistics):
            latest[0] = last
            return f
        brokers, parents, due_users = folds.brokers[a:b], folds.parents[a:b], folds.due_users[a:b]
        publications[PUBLISHED] += 1
        publications[CLIMBING if np.isnan(root_time) else ROOTED] += 1
        missing = pairs[IN_FLIGHT if np.isnan(root_time) else statistics.off_tree]
        for whom in range(2):
            pairs[DUE, whom] += folds.due[tree, whom]
            missing[whom] += folds.due[tree, whom]
        last = max(last, root_time) if not np.isnan(root_time) else last
        for i in range(b - a):
            users = due_users[i]
            if users > 0:  # on the tree
                missing[0] -= 1
                missing[1] -= users
            if i == 0:
                arrival[0] = root_time
                reached[a] += 1
                continue
            above = parents[i]
            time = arrival[above] + time_between(hop_times, brokers[above], brokers[i])
            arrival[i] = time if time < horizon else np.nan
            last = max(last, time)
            if time < horizon:
                reached[a + i] += 1
            elif users > 0:
                pairs[IN_FLIGHT, 0] += 1
                pairs[IN_FLIGHT, 1] += users
        if folds.arrivals.size and b > a:
            for i in range(b - a):
                folds.arrivals[folds.arrival_from[f] + i] = arrival[i]
        way = Way(
            up,
            hops,
            brokers,
            parents,
            folds.depth[a:b],
            due_users,
            arrival,
            arrival,
            folds.published[f],
            root_time,
            folds.size[f],
            window,
            nothing_flooded,
            due_users,
            no_duplicates,
            folds.topic[f],
        )
        record(way, statistics)
    latest[0] = last
    return int(folds.published.size)


@kernel
def offload_all(
    offloads: Offloads,
    channel: Channel,
    horizon: float,
    reached: NDArray[np.int64],
    first: int,
    statistics: Statistics,
) -> int:
    """Send the publications from `first` on to brokers that the back end does not serve; stops and returns like `record_all`.

    A publication reaches each broker with the given probability, by a draw keyed by the publication's number and the broker,
    `extra_delay` later than a direct hop. `reached` counts how often it arrived, by position in `brokers`.
    """
    for f in range(first, offloads.number.size):
        a, b = offloads.entry_from[offloads.entry[f]], offloads.entry_from[offloads.entry[f] + 1]
        if is_full(b - a, 0, offloads.window[f], statistics):
            return f
        rooted, w = offloads.rooted[f], offloads.window[f]
        if not rooted < horizon:
            continue
        count, total, pairs = statistics.counters[w], statistics.sums[w], statistics.pairs[w]
        for i in range(a, b):
            here, n = offloads.brokers[i], offloads.users[i]
            pairs[DUE, 0] += 1
            pairs[DUE, 1] += n
            arrival = rooted + time_between(statistics.hops, offloads.root[f], here) + channel.extra_delay
            fails = keyed_uniform(channel.key, offloads.number[f], here) >= channel.probability
            outcome = pairs[OFFLOADED if fails else DELIVERED if arrival < horizon else IN_FLIGHT]
            delivered = not fails and arrival < horizon
            if delivered and statistics.measured[w]:
                count_copies(here, n, offloads.size[f], statistics.first_row[w], statistics)
            if delivered and not statistics.counts_users:
                n = 0
            outcome[0] += 1
            outcome[1] += n
            if not delivered:
                continue
            reached[i] += 1
            if offloads.arrivals.size:
                offloads.arrivals[offloads.arrival_from[f] + i - a] = arrival
            delay = arrival - offloads.published[f]
            count[BEST_EFFORT] += 1
            count[BEST_EFFORT_USERS] += n
            add_exactly(total[NOTIFICATION_DELAY], delay)
            add_exactly(total[USER_NOTIFICATION_DELAY], delay * n)
            key = w * BINS + delay_bin(delay)
            statistics.used[0] += count_key(statistics.delays, key, 1, n)
            if statistics.measured[w]:
                statistics.traffic[statistics.first_row[w] + here, DELIVERED_HERE] += 1
                statistics.maxima[0] = max(statistics.maxima[0], delay)
                if statistics.topics.size > 0:
                    count_topic_delay(statistics.topics[offloads.topic[f]], TO_BROKERS, 1, delay)
                    count_topic_delay(statistics.topics[offloads.topic[f]], TO_USERS, n, delay)
    return int(offloads.number.size)
