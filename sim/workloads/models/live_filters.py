"""Subscriptions to filters in a workload: a topic that appears is subscribed to by whoever has a filter for it then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.csr import row_starts
from sim.base.errors import WorkloadError
from sim.content.name_kernels import children_of
from sim.content.topic_filters import MQTT_FILTERS, NATS_SUBJECTS, built_trie, name_bytes
from sim.content.topic_kernels import ABSENT
from sim.workloads.format.workload import Interests, Shares, SubscriptionEvents, Workload, first_filter
from sim.workloads.models.live_kernels import APPEARS, BEGINS, CEASES, NameTrie, Steps, follow_filters

_GRAMMARS = {"mqtt-filter": MQTT_FILTERS, "nats-filter": NATS_SUBJECTS}


def with_topics_of_filters(workload: Workload) -> Workload:
    """The workload whose subscriptions to filters are subscriptions to topics, as these appear; one without filters as it is.

    A topic appears when it is first published on; one that is not published on is there from the beginning. A user subscribes to a
    topic as long as it has a filter that matches it, and the topic has appeared. Raises WorkloadError where a user gets to a topic
    both by itself and in a group, or in two groups.
    """
    first = first_filter(workload.topics)
    if first == len(workload.topics):
        return workload
    topics, filters = workload.topics.rows(slice(0, first)), workload.topics.rows(slice(first, None))
    grammar = _GRAMMARS[filters.kinds[0].as_py()]
    user, wanted, time, steps = _steps(workload, first)
    asked, there = name_bytes(filters.names.to_pylist()), name_bytes(topics.names.to_pylist())
    names = NameTrie(there, built_trie(there, grammar._replace(one=ABSENT, rest=ABSENT)))
    children = children_of(names.trie, there.data, grammar)
    found = follow_filters(steps, wanted, NameTrie(asked, built_trie(asked, grammar)), names, children, grammar)
    step, subscription, topic = found.T
    order = np.lexsort((topic, user[subscription], step))
    step, subscription, topic = step[order], subscription[order], topic[order]
    who = user[subscription]
    action = np.where(steps.kind[step] == CEASES, -1, 1).astype(np.int8)
    real = begins_or_ends(who, topic, action)
    now, later = real & (time[step] < 0), real & (time[step] >= 0)
    held = np.unique(who[now].astype(np.int64) << 32 | topic[now])
    return replace(
        workload,
        topics=topics,
        interests=Interests(
            row_starts(np.bincount(held >> 32, minlength=len(workload.users))), (held & 0xFFFFFFFF).astype(np.int32)
        ),
        subscription_events=SubscriptionEvents(time[step[later]], who[later], topic[later], action[later]),
        shares=_shares(workload, who, topic, wanted[subscription]),
    )


def begins_or_ends(user: Integers, topic: Integers, action: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which changes are those of a user's subscription to a topic: the first filter that matches it comes, or the last one goes.

    Changes of one user and topic are in order of time.
    """
    pairs = user.astype(np.int64) << 32 | topic
    order = np.argsort(pairs, kind="stable")
    # the number of a user's filters that match a topic: a running sum per pair
    after = np.cumsum(action[order], dtype=np.int64)
    first = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    after -= np.repeat(after[first] - action[order][first], np.diff(first, append=len(pairs)))
    counts = np.empty_like(after)
    counts[order] = after
    real: NDArray[np.bool_] = counts == (action > 0)
    return real


def _steps(workload: Workload, first: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], Steps]:
    """The user of each subscription, and what it is to; the time of each step (s), negative before the beginning; and the steps."""
    interests, events, published = workload.interests, workload.subscription_events, workload.publications
    holders = np.repeat(np.arange(len(workload.users), dtype=np.int32), np.diff(interests.indptr))
    pairs = np.concatenate([holders, events.user]).astype(np.int64) << 32 | np.concatenate(
        [interests.indices, events.topic]
    )
    known, subscription = np.unique(pairs, return_inverse=True)
    appears = np.full(first, -1.0)
    on, row = np.unique(published.topic, return_index=True)  # rows are in order of time
    appears[on] = published.time[row]
    changes = np.concatenate([np.ones(len(holders), np.int8), events.action])
    kind = np.concatenate([np.where(changes > 0, BEGINS, CEASES), np.full(first, APPEARS)]).astype(np.int8)
    item = np.concatenate([subscription, np.arange(first)]).astype(np.int32)
    time = np.concatenate([np.full(len(holders), -1.0), events.time, appears])
    order = np.lexsort((kind == APPEARS, time))
    user, wanted = (known >> 32).astype(np.int32), (known & 0xFFFFFFFF).astype(np.int32)
    return user, wanted, time[order], Steps(kind[order], item[order])


def _shares(workload: Workload, user: Integers, topic: Integers, wanted: NDArray[np.int32]) -> Shares:
    """What users share of the topics to which they subscribe, by what they `wanted`."""
    shared = workload.shares
    if not len(shared):
        return shared
    known = shared.topic.astype(np.int64) << 32 | shared.user
    asked = wanted.astype(np.int64) << 32 | user
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    group = np.where(known[place] == asked, shared.group[place], -1).astype(np.int32)
    ways = np.unique(np.stack([topic, user, group]).astype(np.int64), axis=1)
    twice = np.flatnonzero((np.diff(ways[0]) == 0) & (np.diff(ways[1]) == 0))
    if len(twice):
        at, who, _ = ways[:, twice[0]].tolist()
        raise WorkloadError(
            f"shares.parquet: user {who} subscribes to topic {at} ({workload.topics.names[at].as_py()!r}) both in a group and in "
            "another way, by filters that match it (allowed: one of them; another user can have the other)"
        )
    found = ways[:, ways[2] >= 0].astype(np.int32)
    return Shares(found[0], found[1], found[2])
