"""Records of arrays: the arguments of the compiled statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.overlay.pair_times import TimesRecord


class Statistics(NamedTuple):
    """The counts: `pairs` and `publications` are the ledger's, `counters` (windows, COUNTERS), exact `sums` (windows, SUMS, 3).

    Windows that are `measured` (windows) count in `traffic` (rows, TRAFFIC_COLUMNS), where their brokers begin at `first_row`
    (windows; see Traffic), in `maxima` (1, the largest delay in s), and in the hash table `links` (messages, bytes), by source ·
    brokers + destination. The one of `delays` (brokers, users) is by window · BINS + bin; `used` (2) are the numbers of keys in
    that and in the one of links (see Tallies). `hops` are the times (s) of hops without jitter between the `brokers` brokers.
    `counts_users`: whether users count as delivered with their broker; otherwise deliveries are passed on (see DeliveryBuffer), and
    counted when they reach the users. `topics` (topics, TOPIC_DELAYS) are the delays by topic, if requested. `off_tree` is the
    ledger's row of what is due at brokers that are not on the tree.
    """

    pairs: NDArray[np.int64]
    publications: NDArray[np.int64]
    counters: NDArray[np.int64]
    sums: NDArray[np.int64]
    maxima: NDArray[np.float64]
    links: NDArray[np.int64]
    traffic: NDArray[np.int64]
    first_row: NDArray[np.int64]
    delays: NDArray[np.int64]
    used: NDArray[np.int64]
    topics: NDArray[np.int64]
    measured: NDArray[np.bool_]
    hops: TimesRecord
    brokers: int
    counts_users: bool
    off_tree: int


class Way(NamedTuple):
    """The way of one publication: over the brokers `uplink`, of which it took the first `uplinks_sent` hops, and down a tree.

    The tree's arrays (as in TopicTree and Flight), `brokers` to `served`, are empty where no broker wants the topic or the root was
    not reached (then `rooted` is NaN); `parents` is -1 also where copies came only on detours. `copies` (m, 2) are the positions
    from and to of the messages by which it was flooded, if it was. `new_users` are the users, by position, to whom its arrival is
    the delivery: those due there, except for content, whose copies may arrive one after the other; `duplicate_at_broker` is true
    where another copy was the broker's delivery, and empty otherwise.
    """

    uplink: NDArray[np.int32]
    uplinks_sent: int
    brokers: NDArray[np.int32]
    parents: NDArray[np.int32]
    depth: NDArray[np.int32]
    due_users: NDArray[np.int32]
    arrival: NDArray[np.float64]
    served: NDArray[np.float64]
    published: float
    rooted: float
    size: int
    window: int
    copies: NDArray[np.int32]
    new_users: NDArray[np.int32]
    duplicate_at_broker: NDArray[np.bool_]
    topic: int


class Ways(NamedTuple):
    """The ways of several publications; see Way.

    Publication f has the parts `uplink_from[f]:uplink_from[f + 1]` of `uplinks`, `tree_from[f]:tree_from[f + 1]` of the six arrays
    of trees, of `new_users` and of `duplicate_at_broker`, and `copies_from[f]:copies_from[f + 1]` of `copies`.
    """

    uplinks: NDArray[np.int32]
    uplink_from: NDArray[np.int64]
    uplinks_sent: NDArray[np.int64]
    brokers: NDArray[np.int32]
    parents: NDArray[np.int32]
    depth: NDArray[np.int32]
    due_users: NDArray[np.int32]
    arrival: NDArray[np.float64]
    served: NDArray[np.float64]
    tree_from: NDArray[np.int64]
    published: NDArray[np.float64]
    rooted: NDArray[np.float64]
    size: NDArray[np.int64]
    window: NDArray[np.int64]
    copies: NDArray[np.int32]
    copies_from: NDArray[np.int64]
    new_users: NDArray[np.int32]
    duplicate_at_broker: NDArray[np.bool_]
    topic: NDArray[np.int32]


class Folds(NamedTuple):
    """Publications to be carried down trees, which many of them share: f goes down the tree number `tree[f]`.

    That has the part `tree_from[t]:tree_from[t + 1]` of the four arrays of trees; `due` (trees, 2) are the brokers and users to which a
    publication was due, on the tree or not yet. The arrival times of f at each position (s, NaN: none) are written to `arrivals`,
    from `arrival_from[f]` on, unless that is empty.
    """

    uplinks: NDArray[np.int32]
    uplink_from: NDArray[np.int64]
    brokers: NDArray[np.int32]
    parents: NDArray[np.int32]
    depth: NDArray[np.int32]
    due_users: NDArray[np.int32]
    tree_from: NDArray[np.int64]
    due: NDArray[np.int64]
    tree: NDArray[np.int64]
    published: NDArray[np.float64]
    departed: NDArray[np.float64]
    rooted: NDArray[np.float64]
    size: NDArray[np.int64]
    window: NDArray[np.int64]
    topic: NDArray[np.int32]
    arrivals: NDArray[np.float64]
    arrival_from: NDArray[np.int64]


class ResentCopies(NamedTuple):
    """Copies: the window of each one's publication, its bytes, its sender and receiver, and whether that only passes it on.

    If the receiver is -1, they are for as many users of the sender as the last column says.
    """

    window: NDArray[np.int64]
    size: NDArray[np.int64]
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    relays: NDArray[np.int64]


class Channel(NamedTuple):
    """The best-effort channel for what the back end does not serve: probability of delivery, additional delay (s), key for draws."""

    probability: float
    extra_delay: float
    key: int


class Offloads(NamedTuple):
    """Publications for brokers that the back end does not serve: f leaves the broker `root[f]` at `rooted[f]`.

    It is for the part `entry_from[e]:entry_from[e + 1]` of `brokers`, each with due `users`, where e is `entry[f]`. `arrivals`
    are those of `Folds`.
    """

    number: NDArray[np.int64]
    entry: NDArray[np.int64]
    published: NDArray[np.float64]
    rooted: NDArray[np.float64]
    window: NDArray[np.int64]
    root: NDArray[np.int32]
    size: NDArray[np.int64]
    topic: NDArray[np.int32]
    brokers: NDArray[np.int32]
    users: NDArray[np.int32]
    entry_from: NDArray[np.int64]
    arrivals: NDArray[np.float64]
    arrival_from: NDArray[np.int64]


class Offloaded(NamedTuple):
    """The brokers that want a topic which the back end does not keep for them, and the number of their users who do."""

    brokers: NDArray[np.int32]
    users: NDArray[np.int32]


NOBODY = Offloaded(np.empty(0, np.int32), np.empty(0, np.int32))


def starts(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Where each part begins in the concatenation, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])])
