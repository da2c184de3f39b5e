"""Compiled greedy picks for B3M and F-B3M, on whole numbers and a heap of upper bounds. Slow twin: tests/oracles/offloading.py."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

Events: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_CHILDREN = 4
_SLACK = 5  # a bound that is exceeded is reset to 1/32 above
_UNBOUNDED = np.iinfo(np.int64).max


class Instance(NamedTuple):
    """n subscribers, l topics, and what each subscriber still misses.

    Subscriber v wants `topics[first_topic[v]:first_topic[v + 1]]`, in any order; for B3M, each topic after the first
    `short_topics[v]` (n) satisfies v alone. The subscribers of topic t are `subscribers[first_subscriber[t]:first_subscriber[t +
    1]]`. `event_rate` (l) and `missing` (n), the events that a subscriber still needs, are of one type; `missing` never rises.
    `weight` (n): the worth of an event to a subscriber (F-B3M); `one`: the worth of a subscriber that becomes satisfied (B3M);
    `of_shares`: whether the former counts. `score` (l): the worth of topics.
    """

    first_topic: NDArray[np.int64]
    topics: NDArray[np.int32]
    short_topics: NDArray[np.int32]
    first_subscriber: NDArray[np.int64]
    subscribers: NDArray[np.int32]
    event_rate: Events
    missing: Events
    weight: NDArray[np.int64]
    one: int
    of_shares: bool
    score: NDArray[np.int64]


# Side by side, so that one cache line has both
ENTRY = np.dtype([("key", np.float64), ("topic", np.int32)], align=True)


class Heap(NamedTuple):
    """Topics by key, the highest first and the lowest topic on ties, in `entries` (l, of ENTRY).

    `divisor` (l): a key is the score divided by it. Where scores can rise, `place` (l) is a topic's position, and `bound` (l) the
    score behind its key, never below its own, unbounded for topics that are not in the heap; otherwise both are empty.
    """

    entries: NDArray[np.void]
    divisor: NDArray[np.float64]
    place: NDArray[np.int32]
    bound: NDArray[np.int64]


# Functions called for each topic or pair get the arrays that they need: passing the whole tuple would double their time.


@kernel
def worth_of_events(need: NDArray[np.int64], one: int) -> NDArray[np.int64]:
    """The worth of an event to each subscriber (n), such that a satisfied subscriber is worth about `one`, never more.

    In whole numbers: in exact proportion where a common multiple of all needs is small enough, otherwise rounded down.
    """
    common = 1
    for value in need:
        if value > 0 and common % value != 0:
            divisor, rest = value, common % value
            while rest > 0:
                divisor, rest = rest, divisor % rest
            if common > one // (value // divisor):
                common = one
                break
            common *= value // divisor
    worth = np.zeros(need.size, np.int64)
    for subscriber in range(need.size):
        if need[subscriber] > 0:
            worth[subscriber] = common // need[subscriber]
    return worth


@kernel
def _put(entries: NDArray[np.void], place: NDArray[np.int32], at: int, key: float, topic: int) -> None:
    entries[at].key, entries[at].topic = key, topic
    if place.size:
        place[topic] = at


@kernel
def _sink(entries: NDArray[np.void], place: NDArray[np.int32], size: int, at: int, key: float, topic: int) -> None:
    """Place a topic among the first `size` entries, sifting down from a free one."""
    while True:
        child = _CHILDREN * at + 1
        if child >= size:
            break
        best, best_key, best_topic = child, entries[child].key, entries[child].topic
        for other in range(child + 1, min(child + _CHILDREN, size)):
            other_key, other_topic = entries[other].key, entries[other].topic
            if other_key > best_key or (other_key == best_key and other_topic < best_topic):
                best, best_key, best_topic = other, other_key, other_topic
        if key > best_key or (key == best_key and topic < best_topic):
            break
        _put(entries, place, at, best_key, best_topic)
        at = best
    _put(entries, place, at, key, topic)


@kernel
def _raise(entries: NDArray[np.void], place: NDArray[np.int32], key: float, topic: int) -> None:
    """Sift up a topic whose key has risen."""
    at = place[topic]
    while at > 0:
        above = (at - 1) // _CHILDREN
        above_key, above_topic = entries[above].key, entries[above].topic
        if above_key > key or (above_key == key and above_topic < topic):
            break
        _put(entries, place, at, above_key, above_topic)
        at = above
    _put(entries, place, at, key, topic)


@kernel
def _fill(heap: Heap, score: NDArray[np.int64], candidate: NDArray[np.bool_]) -> int:
    """Make a heap of the candidates (l) with a positive score; returns their number."""
    entries, place, size = heap.entries, heap.place, 0
    heap.bound[:] = _UNBOUNDED
    for topic in range(score.size):
        if candidate[topic] and score[topic] > 0:
            _put(entries, place, size, score[topic] / heap.divisor[topic], topic)
            if place.size:
                heap.bound[topic] = score[topic]
            size += 1
    for at in range(size - 1, -1, -1):
        _sink(entries, place, size, at, entries[at].key, entries[at].topic)
    return size


@kernel
def _score(
    subscribers: NDArray[np.int32],
    start: int,
    stop: int,
    rate: int,
    missing: Events,
    weight: NDArray[np.int64],
    one: int,
    of_shares: bool,
) -> int:
    """The worth of a topic of this rate to `subscribers[start:stop]`."""
    score = 0
    for i in range(start, stop):
        subscriber = subscribers[i]
        needed = missing[subscriber]
        if needed > 0:
            if of_shares:
                score += min(needed, rate) * weight[subscriber]
            else:
                score += one if rate >= needed else rate * (one // needed)
    return score


@kernel
def score_of(instance: Instance, topic: int) -> int:
    """The worth of a topic, computed from scratch (algorithms 1 and 4)."""
    start, stop = instance.first_subscriber[topic], instance.first_subscriber[topic + 1]
    rate, missing, weight = instance.event_rate[topic], instance.missing, instance.weight
    return _score(instance.subscribers, start, stop, rate, missing, weight, instance.one, instance.of_shares)


@kernel
def scores_of(instance: Instance, topics: NDArray[np.int32]) -> NDArray[np.float64]:
    """The worth of each of these topics alone, computed from scratch."""
    scores = np.empty(topics.size)
    for i, topic in enumerate(topics):
        scores[i] = score_of(instance, topic)
    return scores


@kernel
def score_all(instance: Instance) -> None:
    """Compute the scores of all topics from what each subscriber still misses."""
    instance.score[:] = 0
    for subscriber in range(instance.missing.size):
        missing = instance.missing[subscriber]
        if missing > 0:
            weight = instance.weight[subscriber] if instance.of_shares else instance.one // missing
            most = missing * weight if instance.of_shares else instance.one
            for i in range(instance.first_topic[subscriber], instance.first_topic[subscriber + 1]):
                topic = instance.topics[i]
                rate = instance.event_rate[topic]
                instance.score[topic] += most if rate >= missing else rate * weight


@kernel
def _receive(subscribers: NDArray[np.int32], start: int, stop: int, rate: int, missing: Events) -> None:
    for i in range(start, stop):
        subscriber = subscribers[i]
        missing[subscriber] = max(0, missing[subscriber] - rate)


@kernel
def receive(instance: Instance, topic: int) -> None:
    """Give the topic's events to its subscribers, without updating scores."""
    start, stop = instance.first_subscriber[topic], instance.first_subscriber[topic + 1]
    _receive(instance.subscribers, start, stop, instance.event_rate[topic], instance.missing)


@kernel
def receive_all(instance: Instance, topics: NDArray[np.int32]) -> None:
    """Give the events of all these topics to their subscribers."""
    for topic in topics:
        receive(instance, topic)


@kernel
def _receive_shares(instance: Instance, picked: int) -> None:
    """As `receive`, and update all scores by deltas (F-B3M), which never rise."""
    first_topic, topics, event_rate, score = instance.first_topic, instance.topics, instance.event_rate, instance.score
    subscribers, missing, worth = instance.subscribers, instance.missing, instance.weight
    picked_rate = event_rate[picked]
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = subscribers[i]
        before = missing[subscriber]
        if before == 0:
            continue
        after = max(0, before - picked_rate)
        missing[subscriber] = after
        weight = worth[subscriber]
        for j in range(first_topic[subscriber], first_topic[subscriber + 1]):
            topic = topics[j]
            rate = event_rate[topic]
            if rate > after:
                score[topic] -= (min(before, rate) - after) * weight


@kernel
def _receive_whole(instance: Instance, heap: Heap, picked: int) -> None:
    """As `_receive_shares` for B3M, where a topic's score rises as subscribers miss less, and falls once they miss nothing."""
    first_topic, topics, short_topics = instance.first_topic, instance.topics, instance.short_topics
    subscribers, missing, one = instance.subscribers, instance.missing, instance.one
    event_rate, scores = instance.event_rate, instance.score
    entries, place, bound, divisor = heap.entries, heap.place, heap.bound, heap.divisor
    picked_rate = event_rate[picked]
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = subscribers[i]
        before = missing[subscriber]
        if before == 0:
            continue
        after = max(0, before - picked_rate)
        missing[subscriber] = after
        weight = one // before
        start, stop = first_topic[subscriber], first_topic[subscriber + 1]
        if after == 0:
            for j in range(start, stop):
                topic = topics[j]
                rate = event_rate[topic]
                scores[topic] -= one if rate >= before else rate * weight
            continue
        new_weight = one // after
        stop = start + short_topics[subscriber]
        j = start
        while j < stop:
            topic = topics[j]
            rate = event_rate[topic]
            if rate < after:
                j += 1
                score = scores[topic] + rate * (new_weight - weight)
            else:
                stop -= 1
                topics[j], topics[stop] = topics[stop], topic
                if rate >= before:
                    continue  # it would have satisfied the subscriber already
                score = scores[topic] + one - rate * weight
            scores[topic] = score
            if score > bound[topic]:
                bound[topic] = score + (score >> _SLACK)
                _raise(entries, place, bound[topic] / divisor[topic], topic)
        short_topics[subscriber] = stop - start


@kernel
def _receive_slowly(instance: Instance, heap: Heap, picked: int, stamp: NDArray[np.int32], picks: int) -> None:
    """As `receive`, and recompute the scores of all topics that share a subscriber with this one (algorithm 2, line 9)."""
    receive(instance, picked)
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = instance.subscribers[i]
        for j in range(instance.first_topic[subscriber], instance.first_topic[subscriber + 1]):
            topic = instance.topics[j]
            if stamp[topic] == picks:
                continue
            stamp[topic] = picks
            score = score_of(instance, topic)
            instance.score[topic] = score
            if not instance.of_shares and score > heap.bound[topic]:
                heap.bound[topic] = score
                _raise(heap.entries, heap.place, score / heap.divisor[topic], topic)


DELTA, LAZY, SLOW = 0, 1, 2


@kernel
def pick(
    instance: Instance,
    heap: Heap,
    candidate: NDArray[np.bool_],
    cost: NDArray[np.float64],
    spent: float,
    capacity: float,
    engine: int,
) -> NDArray[np.int32]:
    """Greedy picks among the candidates (l), in order, with `spent` of the capacity used and scores up to date.

    The topic at the top is the highest of all if its key is up to date; otherwise it is sifted down. LAZY recomputes scores as
    topics come to the top, which is correct where scores never rise: for F-B3M only.
    """
    size = _fill(heap, instance.score, candidate)
    entries, place, bound, divisor, score = heap.entries, heap.place, heap.bound, heap.divisor, instance.score
    first_subscriber, subscribers, event_rate = instance.first_subscriber, instance.subscribers, instance.event_rate
    missing, weight, one, of_shares = instance.missing, instance.weight, instance.one, instance.of_shares
    picks = np.empty(score.size, np.int32)
    count = 0
    stamp = np.zeros(0 if engine == DELTA else score.size, np.int32)
    while size > 0:
        topic = entries[0].topic
        fits = spent + cost[topic] <= capacity
        if fits:
            start, stop, rate = first_subscriber[topic], first_subscriber[topic + 1], event_rate[topic]
            if engine == LAZY and stamp[topic] != count:
                stamp[topic] = count
                score[topic] = _score(subscribers, start, stop, rate, missing, weight, one, of_shares)
            key = score[topic] / divisor[topic]
            if key < entries[0].key:
                if place.size:
                    bound[topic] = score[topic]
                _sink(entries, place, size, 0, key, topic)
                continue
            if score[topic] == 0:
                break
        if place.size:
            bound[topic] = _UNBOUNDED
        size -= 1
        if size > 0:
            _sink(entries, place, size, 0, entries[size].key, entries[size].topic)
        if not fits:
            continue
        spent += cost[topic]
        picks[count] = topic
        count += 1
        if engine == LAZY:
            _receive(subscribers, start, stop, rate, missing)
        elif engine == SLOW:
            _receive_slowly(instance, heap, topic, stamp, count)
        elif of_shares:
            _receive_shares(instance, topic)
        else:
            _receive_whole(instance, heap, topic)
    return picks[:count].copy()
