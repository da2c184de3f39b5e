"""Compiled bookkeeping of publications: every count is a whole number and every sum is exact, so that order does not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel
from sim.randomness_kernels import keyed_uniform

# columns of the counters per window
(
    DELIVERED,
    DELIVERED_USERS,
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
) = range(13)
COUNTERS = 13
# rows of the exact sums per window
NOTIFICATION_DELAY, TREE_DELAY, USER_NOTIFICATION_DELAY, USER_TREE_DELAY, STRETCH, LAST_SERVICE = range(6)
SUMS = 6
# columns of the counters per broker
RECEIVED, SENT, BROKER_DELIVERED, RELAYED = range(4)
# columns of what the folded plane tallies per window
PUBLISHED, ROOTED, CLIMBING, DUE, DUE_USERS, JOINING, JOINING_USERS, IN_FLIGHT, IN_FLIGHT_USERS = range(9)
TALLIES = 9
# columns of what is tallied per window of publications that are offloaded
OFFLOADED, OFFLOADED_USERS, MISSED, MISSED_USERS, UNDER_WAY, UNDER_WAY_USERS = range(6)
OFFLOAD_TALLIES = 6

FIRST_BIN = 1e-6  # s: delays below it share bin 0
BIN_WIDTH = 0.01  # relative width of all others
BINS = 1 << 12  # room for delays up to 4e11 s


@kernel
def add_exactly(sums: NDArray[np.int64], value: float) -> None:
    """Add a float to an exact sum held as two integers, in units of 2^-20 and 2^-72 (the latter below 2^52)."""
    scaled = value * 1048576.0
    whole = np.floor(scaled)
    sums[0] += np.int64(whole)
    sums[1] += np.int64((scaled - whole) * 4503599627370496.0)
    sums[0] += sums[1] >> 52
    sums[1] &= 4503599627370495


@kernel
def delay_bin(delay: float) -> int:
    """The histogram bin of a delay: 0 below FIRST_BIN, from there on bins that are 1 % wide."""
    if delay < 1e-6:
        return 0
    return min(1 + int(np.log(delay / 1e-6) / np.log(1.01)), BINS - 1)


@kernel
def count_delay(keys: NDArray[np.int64], counts: NDArray[np.int64], key: int, brokers: int, users: int) -> int:
    """Count deliveries to brokers and users in a hash table of histogram keys (-1: free; linear probing); 1 where the key is new."""
    mask = keys.size - 1
    slot = (key * 0x9E3779B1 >> 12) & mask
    while keys[slot] != key:
        if keys[slot] < 0:
            keys[slot] = key
            counts[slot, 0] = brokers
            counts[slot, 1] = users
            return 1
        slot = (slot + 1) & mask
    counts[slot, 0] += brokers
    counts[slot, 1] += users
    return 0


@kernel
def count_message(
    here: int,
    there: int,
    users: int,
    size: int,
    counted: bool,
    count: NDArray[np.int64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
) -> None:
    """Count a message below the root, from broker to broker; `users` are those due at the latter."""
    count[INTERNAL if users > 0 else EXTERNAL] += 1
    count[INTERNAL_BYTES if users > 0 else EXTERNAL_BYTES] += size
    if counted:
        links[here, there, 0] += 1
        links[here, there, 1] += size
        per_broker[here, SENT] += 1
        per_broker[there, RECEIVED] += 1
        if users == 0:
            per_broker[there, RELAYED] += 1


@kernel
def enter(
    uplink: NDArray[np.int32],
    uplinks_sent: int,
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    depth: NDArray[np.int32],
    due_users: NDArray[np.int32],
    arrival: NDArray[np.float64],
    served: NDArray[np.float64],
    sent: NDArray[np.uint8],
    published: float,
    rooted: float,
    size: int,
    window: int,
    copies: NDArray[np.int32],
    fresh: NDArray[np.int32],
    further: NDArray[np.bool_],
    measured: NDArray[np.bool_],
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Enter one publication into the books; returns how many keys came new into the hash table of delays.

    It went up over the brokers `uplink`, of which it took the first `uplinks_sent` hops, and down the tree whose arrays (as in
    TopicTree and Flight) are the next seven; empty where nobody wants the topic or the root was not reached (then `rooted` is NaN).
    `copies` (m, 2) are the positions from and to of the messages by which it was flooded, if it was. `fresh` are the users, by
    position, to whom its arrival is the delivery: those due there, but of content, whose copies may arrive one after the other;
    `further` tells where another copy was the broker's delivery, and is empty else.
    `counters` and `sums` have a row per window; links and brokers are counted in windows that are `measured`. A delay's key is
    window · BINS + bin.
    """
    new = 0
    count, total, counted = counters[window], sums[window], measured[window]
    publisher, root = uplink[0], uplink[-1]
    for i in range(uplinks_sent):
        here, there = uplink[i], uplink[i + 1]
        count[UPLINKS] += 1
        count[UPLINK_BYTES] += size
        if counted:
            links[here, there, 0] += 1
            links[here, there, 1] += size
            per_broker[here, SENT] += 1
            per_broker[there, RECEIVED] += 1
            if there != root:
                per_broker[there, RELAYED] += 1
    if not np.isnan(rooted):
        count[UPLINK_HOPS] += uplink.size - 1
    for i in range(brokers.size):
        here, users = brokers[i], due_users[i]
        if sent[i]:
            count_message(brokers[parents[i]], here, users, size, counted, count, links, per_broker)
        users = fresh[i]
        if users == 0 or np.isnan(served[i]):
            continue
        delay = served[i] - published
        tree_delay = served[i] - rooted
        first = further.size == 0 or not further[i]
        count[DELIVERED_USERS] += users
        add_exactly(total[USER_NOTIFICATION_DELAY], delay * users)
        add_exactly(total[USER_TREE_DELAY], tree_delay * users)
        new += count_delay(keys, counts, window * BINS + delay_bin(delay), int(first), users)
        if not first:
            continue
        count[DELIVERED] += 1
        count[TREE_HOPS] += depth[i]
        add_exactly(total[NOTIFICATION_DELAY], delay)
        add_exactly(total[TREE_DELAY], tree_delay)
        if served[i] > arrival[i]:
            add_exactly(total[LAST_SERVICE], served[i] - arrival[i])
        direct = hop_delay[publisher, here]
        if direct > 0.0:
            count[STRETCHED] += 1
            add_exactly(total[STRETCH], (arrival[i] - published) / direct)
        if counted:
            per_broker[here, BROKER_DELIVERED] += 1
            maxima[0] = max(maxima[0], delay)
    for c in range(len(copies)):
        here, there = copies[c]
        count_message(brokers[here], brokers[there], due_users[there], size, counted, count, links, per_broker)
    return new


@kernel
def record_flights(
    uplinks: NDArray[np.int32],
    uplink_from: NDArray[np.int64],
    uplinks_sent: NDArray[np.int64],
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    depth: NDArray[np.int32],
    due_users: NDArray[np.int32],
    arrival: NDArray[np.float64],
    served: NDArray[np.float64],
    sent: NDArray[np.uint8],
    tree_from: NDArray[np.int64],
    published: NDArray[np.float64],
    rooted: NDArray[np.float64],
    size: NDArray[np.int64],
    window: NDArray[np.int64],
    copies: NDArray[np.int32],
    copies_from: NDArray[np.int64],
    fresh: NDArray[np.int32],
    further: NDArray[np.bool_],
    first: int,
    used: int,
    measured: NDArray[np.bool_],
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Enter the publications from `first` on; returns where it stopped because the hash table, of which `used` keys are taken,
    would become more than half full (or the end), and how many keys are taken now.

    Publication f has the parts `uplink_from[f]:uplink_from[f + 1]` of `uplinks`, `tree_from[f]:tree_from[f + 1]` of the seven
    arrays of trees, of `fresh` and of `further`, and `copies_from[f]:copies_from[f + 1]` of `copies`; see `enter`.
    """
    for f in range(first, published.size):
        a, b = tree_from[f], tree_from[f + 1]
        if 2 * (used + b - a) > keys.size:
            return f, used
        used += enter(
            uplinks[uplink_from[f] : uplink_from[f + 1]],
            uplinks_sent[f],
            brokers[a:b],
            parents[a:b],
            depth[a:b],
            due_users[a:b],
            arrival[a:b],
            served[a:b],
            sent[a:b],
            published[f],
            rooted[f],
            size[f],
            window[f],
            copies[copies_from[f] : copies_from[f + 1]],
            fresh[a:b],
            further[a:b],
            measured,
            hop_delay,
            counters,
            sums,
            maxima,
            links,
            per_broker,
            keys,
            counts,
        )
    return published.size, used


@kernel
def fold_publications(
    uplinks: NDArray[np.int32],
    uplink_from: NDArray[np.int64],
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    depth: NDArray[np.int32],
    due_users: NDArray[np.int32],
    tree_from: NDArray[np.int64],
    due: NDArray[np.int64],
    tree: NDArray[np.int64],
    published: NDArray[np.float64],
    departed: NDArray[np.float64],
    rooted: NDArray[np.float64],
    size: NDArray[np.int64],
    window: NDArray[np.int64],
    horizon: float,
    tally: NDArray[np.int64],
    reached: NDArray[np.int64],
    latest: NDArray[np.float64],
    first: int,
    used: int,
    measured: NDArray[np.bool_],
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Carry the publications from `first` on down their trees, and enter them; stops and returns as `record_flights` does.

    Publication f goes down the tree number `tree[f]`, which has the part `tree_from[t]:tree_from[t + 1]` of the four arrays of trees;
    `due` (trees, 2) are the brokers and users to which a publication was due, on the tree or not yet. What would arrive at the
    `horizon` or later is on its way at the end. `tally` (windows, TALLIES) counts what became of the publications, `reached` how
    many arrived at each position of the trees, and `latest` (1) grows to when the last one arrives.
    """
    arrival, sent = np.empty(hop_delay.shape[0]), np.empty(hop_delay.shape[0], np.uint8)
    nothing_flooded, nothing_further = np.empty((0, 2), np.int32), np.empty(0, np.bool_)
    last = latest[0]
    for f in range(first, published.size):
        up = uplinks[uplink_from[f] : uplink_from[f + 1]]
        count, hops = tally[window[f]], up.size - 1
        a, b = tree_from[tree[f]], tree_from[tree[f] + 1]
        root_time = rooted[f]
        if root_time >= horizon:  # still climbing at the end
            root_time, b, hops, time = np.nan, a, 0, departed[f]
            while time < horizon:
                time += hop_delay[up[hops], up[hops + 1]]
                hops += 1
        if 2 * (used + b - a) > keys.size:
            latest[0] = last
            return f, used
        count[PUBLISHED] += 1
        count[DUE] += due[tree[f], 0]
        count[DUE_USERS] += due[tree[f], 1]
        if np.isnan(root_time):
            count[CLIMBING] += 1
            count[IN_FLIGHT] += due[tree[f], 0]
            count[IN_FLIGHT_USERS] += due[tree[f], 1]
        else:
            last = max(last, root_time)
            count[ROOTED] += 1
            count[JOINING] += due[tree[f], 0]
            count[JOINING_USERS] += due[tree[f], 1]
        for i in range(b - a):
            users = due_users[a + i]
            if users > 0:
                count[JOINING] -= 1
                count[JOINING_USERS] -= users
            if i == 0:
                arrival[0], sent[0] = root_time, 0
                reached[a] += 1
                continue
            above = parents[a + i]
            time = arrival[above] + hop_delay[brokers[a + above], brokers[a + i]]
            sent[i] = not np.isnan(arrival[above])
            arrival[i] = time if time < horizon else np.nan
            if time > last:
                last = time
            if time < horizon:
                reached[a + i] += 1
            elif users > 0:
                count[IN_FLIGHT] += 1
                count[IN_FLIGHT_USERS] += users
        used += enter(
            up,
            hops,
            brokers[a:b],
            parents[a:b],
            depth[a:b],
            due_users[a:b],
            arrival,
            arrival,
            sent,
            published[f],
            root_time,
            size[f],
            window[f],
            nothing_flooded,
            due_users[a:b],
            nothing_further,
            measured,
            hop_delay,
            counters,
            sums,
            maxima,
            links,
            per_broker,
            keys,
            counts,
        )
    latest[0] = last
    return published.size, used


@kernel
def offload_publications(
    number: NDArray[np.int64],
    entry: NDArray[np.int64],
    published: NDArray[np.float64],
    rooted: NDArray[np.float64],
    window: NDArray[np.int64],
    root: NDArray[np.int32],
    brokers: NDArray[np.int32],
    users: NDArray[np.int32],
    entry_from: NDArray[np.int64],
    key: int,
    probability: float,
    extra_delay: float,
    horizon: float,
    tally: NDArray[np.int64],
    reached: NDArray[np.int64],
    first: int,
    used: int,
    measured: NDArray[np.bool_],
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Send the publications from `first` on to brokers that the back end does not serve; stops and returns as `record_flights` does.

    Publication f leaves the broker `root[f]` at `rooted[f]` for the part `entry_from[e]:entry_from[e + 1]` of `brokers`, where so many
    `users` are due, e being `entry[f]`. It gets to each with the given probability, by a draw keyed by the publication's number and the
    broker, directly and `extra_delay` (s) later than a hop. `tally` (windows, OFFLOAD_TALLIES) counts what became of it, `reached` how
    often it arrived, by position in `brokers`.
    """
    for f in range(first, number.size):
        a, b = entry_from[entry[f]], entry_from[entry[f] + 1]
        if 2 * (used + b - a) > keys.size:
            return f, used
        if not rooted[f] < horizon:
            continue
        w = window[f]
        count, total = counters[w], sums[w]
        for i in range(a, b):
            here, n = brokers[i], users[i]
            tally[w, OFFLOADED] += 1
            tally[w, OFFLOADED_USERS] += n
            if keyed_uniform(key, number[f], here) >= probability:
                tally[w, MISSED] += 1
                tally[w, MISSED_USERS] += n
                continue
            arrival = rooted[f] + hop_delay[root[f], here] + extra_delay
            if arrival >= horizon:
                tally[w, UNDER_WAY] += 1
                tally[w, UNDER_WAY_USERS] += n
                continue
            reached[i] += 1
            delay = arrival - published[f]
            count[DELIVERED] += 1
            count[DELIVERED_USERS] += n
            count[BEST_EFFORT] += 1
            count[BEST_EFFORT_USERS] += n
            add_exactly(total[NOTIFICATION_DELAY], delay)
            add_exactly(total[USER_NOTIFICATION_DELAY], delay * n)
            used += count_delay(keys, counts, w * BINS + delay_bin(delay), 1, n)
            if measured[w]:
                per_broker[here, BROKER_DELIVERED] += 1
                maxima[0] = max(maxima[0], delay)
    return number.size, used


@kernel
def fold_tree(
    rooted: float,
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    hop_delay: NDArray[np.float64],
    horizon: float,
) -> tuple[NDArray[np.float64], NDArray[np.uint8], float]:
    """Arrivals at the positions of a tree (NaN from the horizon on), whether messages there were sent, and when the last one arrives.

    What is carried leaves the root at `rooted`; `brokers` and `parents` are by position, there is a root at least.
    """
    times, sent = np.full(brokers.size, rooted), np.zeros(brokers.size, np.uint8)
    for i in range(1, brokers.size):
        above = parents[i]
        times[i] = times[above] + hop_delay[brokers[above], brokers[i]]
        sent[i] = times[above] < horizon
    return np.where(times < horizon, times, np.nan), sent, times.max()
