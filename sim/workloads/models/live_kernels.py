"""The compiled part of live filters: subscriptions to topics, as filters come into force and topics appear."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.content.name_kernels import Children, find_names
from sim.content.topic_kernels import (
    ABSENT,
    Grammar,
    NameBytes,
    Trie,
    has_empty_level,
    match_name,
    put_in_force,
    put_out_of_force,
)

BEGINS, CEASES, APPEARS = range(3)
"""What a step is: a subscription comes into force or ceases, or a topic appears."""


class Steps(NamedTuple):
    """What happens, in order of time: `item` is the number of the subscription, or of the topic."""

    kind: NDArray[np.int8]
    item: NDArray[np.int32]


class NameTrie(NamedTuple):
    """Names, and the trie of them."""

    names: NameBytes
    trie: Trie


@kernel
def follow_filters(
    steps: Steps, wanted: NDArray[np.int32], filters: NameTrie, topics: NameTrie, children: Children, grammar: Grammar
) -> NDArray[np.int32]:
    """The changes of subscriptions to topics, as rows of (step, subscription, topic); the kind of the step says which way.

    `wanted` is the topic of each subscription, or behind those the filter. All filters and topics are out of force at first.
    """
    many = topics.names.start.size - 1
    out, count = np.empty((1024, 3), np.int32), 0
    found = np.empty(1024, np.int32)
    walk = np.empty((2, max(filters.trie.nodes.shape[0], topics.trie.nodes.shape[0])), np.int32)
    # the subscriptions in force of each filter, in lists
    head = np.empty(filters.names.start.size - 1, np.int32)
    head[:] = ABSENT
    following, previous = np.empty_like(wanted), np.empty_like(wanted)
    for step in range(steps.kind.size):
        kind, item = steps.kind[step], steps.item[step]
        matched = 0
        if kind == APPEARS:
            first, stop = topics.names.start[item], topics.names.start[item + 1]
            if grammar.strict and has_empty_level(topics.names.data, first, stop, grammar.separator):
                continue
            put_in_force(topics.trie, item)
            while True:
                matched = match_name(
                    topics.names.data, (first, stop), filters.names.data, grammar, filters.trie, walk, found, 0
                )
                if matched <= found.size:
                    break
                found = np.empty(2 * matched, np.int32)
            for i in range(matched):
                subscription = head[found[i]]
                while subscription != ABSENT:
                    out = _written(out, count, step, subscription, item)
                    count += 1
                    subscription = following[subscription]
            continue
        if wanted[item] < many:
            out = _written(out, count, step, item, wanted[item])
            count += 1
            continue
        filter_ = wanted[item] - many
        _hold(filters.trie, filter_, item, kind == BEGINS, head, following, previous)
        pattern = filters.names.data[filters.names.start[filter_] : filters.names.start[filter_ + 1]]
        while True:
            matched = find_names(pattern, topics.names.data, grammar, topics.trie, children, walk, found)
            if matched <= found.size:
                break
            found = np.empty(2 * matched, np.int32)
        for i in range(matched):
            out = _written(out, count, step, item, found[i])
            count += 1
    return out[:count].copy()


@kernel
def _written(out: NDArray[np.int32], count: int, step: int, subscription: int, topic: int) -> NDArray[np.int32]:
    """The rows with another one, perhaps in a larger array."""
    if count == out.shape[0]:
        larger = np.empty((2 * count, 3), np.int32)
        for row in range(count):
            for column in range(3):
                larger[row, column] = out[row, column]
        out = larger
    out[count, 0], out[count, 1], out[count, 2] = step, subscription, topic
    return out


@kernel
def _hold(
    trie: Trie,
    filter_: int,
    subscription: int,
    begins: bool,
    head: NDArray[np.int32],
    following: NDArray[np.int32],
    previous: NDArray[np.int32],
) -> None:
    """Put a subscription on its filter's list, or take it off; the filter is in force while the list is not empty."""
    if begins:
        first = head[filter_]
        following[subscription], previous[subscription], head[filter_] = first, ABSENT, subscription
        if first == ABSENT:
            put_in_force(trie, filter_)
        else:
            previous[first] = subscription
        return
    after, before = following[subscription], previous[subscription]
    if after != ABSENT:
        previous[after] = before
    if before != ABSENT:
        following[before] = after
    else:
        head[filter_] = after
        if after == ABSENT:
            put_out_of_force(trie, filter_)
