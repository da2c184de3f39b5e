"""Compiled greedy picks for B3M and F-B3M, on whole numbers and a heap of upper bounds. Slow twin: tests/oracles/offloading.py."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel

Events: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_CHILDREN = 4
_SLACK = 5  # a bound that is passed is set 1/32 above
_UNBOUNDED = np.iinfo(np.int64).max


class Instance(NamedTuple):
    """n subscribers, l topics, and how far subscribers are from what they need.

    Subscriber v wants `topics[first_topic[v]:first_topic[v + 1]]`, in any order; for B3M, those behind the first `short_topics[v]` (n)
    are such that each satisfies v alone. The subscribers of topic t are `subscribers[first_subscriber[t]:first_subscriber[t + 1]]`.
    `event_rate` (l) and `missing` (n), the events that a subscriber still needs, are of one type; `missing` never rises. `weight` (n):
    what an event is worth to a subscriber (F-B3M); `one`: what a subscriber that becomes satisfied is worth (B3M), `of_shares` tells
    which of the two counts. `score` (l): what topics are worth.
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


class Heap(NamedTuple):
    """Topics by key, the highest first and the lowest topic on ties, in the first `size[0]` places of `keys` and `topics` (l).

    `place` (l): where a topic stands. `bound` (l): the score that a topic's key was made of, never below its own; unbounded for those
    that are in no place. `divisor` (l): what scores are divided by for keys.
    """

    keys: NDArray[np.float64]
    topics: NDArray[np.int32]
    size: NDArray[np.int64]
    place: NDArray[np.int32]
    bound: NDArray[np.int64]
    divisor: NDArray[np.float64]


@kernel
def worth_of_events(need: NDArray[np.int64], one: int) -> NDArray[np.int64]:
    """What an event is worth to each subscriber (n), so that one that has what it needs has about `one`, never more.

    In whole numbers that are exact to one another where a common multiple of all needs is that small, and rounded down where not.
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
def _sink(heap: Heap, place: int, key: float, topic: int) -> None:
    """Put a topic where it belongs, from a place without an entry downwards."""
    size = heap.size[0]
    while True:
        child = _CHILDREN * place + 1
        if child >= size:
            break
        best, best_key = child, heap.keys[child]
        for other in range(child + 1, min(child + _CHILDREN, size)):
            other_key = heap.keys[other]
            if other_key > best_key or (other_key == best_key and heap.topics[other] < heap.topics[best]):
                best, best_key = other, other_key
        best_topic = heap.topics[best]
        if key > best_key or (key == best_key and topic < best_topic):
            break
        heap.keys[place], heap.topics[place] = best_key, best_topic
        heap.place[best_topic] = place
        place = best
    heap.keys[place], heap.topics[place] = key, topic
    heap.place[topic] = place


@kernel
def _raise(heap: Heap, topic: int, score: int) -> None:
    """Set the bound of a topic that stands in the heap above a score that passed it, and put the topic where it belongs."""
    heap.bound[topic] = score + (score >> _SLACK)
    key = heap.bound[topic] / heap.divisor[topic]
    place = heap.place[topic]
    while place > 0:
        above = (place - 1) // _CHILDREN
        above_key, above_topic = heap.keys[above], heap.topics[above]
        if above_key > key or (above_key == key and above_topic < topic):
            break
        heap.keys[place], heap.topics[place] = above_key, above_topic
        heap.place[above_topic] = place
        place = above
    heap.keys[place], heap.topics[place] = key, topic
    heap.place[topic] = place


@kernel
def _pop(heap: Heap) -> None:
    heap.bound[heap.topics[0]] = _UNBOUNDED
    heap.size[0] -= 1
    last = heap.size[0]
    if last > 0:
        _sink(heap, 0, heap.keys[last], heap.topics[last])


@kernel
def _fill(heap: Heap, score: NDArray[np.int64], candidate: NDArray[np.bool_]) -> None:
    """Make a heap of the candidates (l) that are worth something."""
    size = 0
    for topic in range(score.size):
        if candidate[topic] and score[topic] > 0:
            heap.keys[size], heap.topics[size] = score[topic] / heap.divisor[topic], topic
            heap.bound[topic], heap.place[topic] = score[topic], size
            size += 1
        else:
            heap.bound[topic] = _UNBOUNDED
    heap.size[0] = size
    for place in range(size - 1, -1, -1):
        _sink(heap, place, heap.keys[place], heap.topics[place])


@kernel
def score_of(instance: Instance, topic: int) -> int:
    """What a topic is worth, computed anew (algorithms 1 and 4)."""
    rate = instance.event_rate[topic]
    score = 0
    for i in range(instance.first_subscriber[topic], instance.first_subscriber[topic + 1]):
        subscriber = instance.subscribers[i]
        missing = instance.missing[subscriber]
        if missing > 0:
            if instance.of_shares:
                score += min(missing, rate) * instance.weight[subscriber]
            else:
                score += instance.one if rate >= missing else rate * (instance.one // missing)
    return score


@kernel
def score_all(instance: Instance) -> None:
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
def receive(instance: Instance, topic: int) -> None:
    """The subscribers of the topic get its events; scores are left as they are."""
    rate = instance.event_rate[topic]
    for i in range(instance.first_subscriber[topic], instance.first_subscriber[topic + 1]):
        subscriber = instance.subscribers[i]
        instance.missing[subscriber] = max(0, instance.missing[subscriber] - rate)


@kernel
def receive_all(instance: Instance, topics: NDArray[np.int32]) -> None:
    """The subscribers of all these topics get their events."""
    for topic in topics:
        receive(instance, topic)


@kernel
def _receive_shares(instance: Instance, picked: int) -> None:
    """The same with all scores by deltas (F-B3M). They never rise."""
    picked_rate = instance.event_rate[picked]
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = instance.subscribers[i]
        before = instance.missing[subscriber]
        if before == 0:
            continue
        after = max(0, before - picked_rate)
        instance.missing[subscriber] = after
        weight = instance.weight[subscriber]
        for j in range(instance.first_topic[subscriber], instance.first_topic[subscriber + 1]):
            topic = instance.topics[j]
            rate = instance.event_rate[topic]
            if rate > after:
                instance.score[topic] -= (min(before, rate) - after) * weight


@kernel
def _receive_whole(instance: Instance, heap: Heap, picked: int) -> None:
    """The same for B3M, where the score of a topic rises as subscribers miss less, and falls where they miss nothing any more."""
    picked_rate = instance.event_rate[picked]
    one = instance.one
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = instance.subscribers[i]
        before = instance.missing[subscriber]
        if before == 0:
            continue
        after = max(0, before - picked_rate)
        instance.missing[subscriber] = after
        weight = one // before
        start, stop = instance.first_topic[subscriber], instance.first_topic[subscriber + 1]
        if after == 0:
            for j in range(start, stop):
                topic = instance.topics[j]
                rate = instance.event_rate[topic]
                instance.score[topic] -= one if rate >= before else rate * weight
            continue
        new_weight = one // after
        stop = start + instance.short_topics[subscriber]
        j = start
        while j < stop:
            topic = instance.topics[j]
            rate = instance.event_rate[topic]
            if rate < after:
                j += 1
                score = instance.score[topic] + rate * (new_weight - weight)
            else:
                stop -= 1
                instance.topics[j], instance.topics[stop] = instance.topics[stop], topic
                if rate >= before:
                    continue  # it would have satisfied the subscriber before
                score = instance.score[topic] + one - rate * weight
            instance.score[topic] = score
            if score > heap.bound[topic]:
                _raise(heap, topic, score)
        instance.short_topics[subscriber] = stop - start


@kernel
def _receive_slowly(instance: Instance, heap: Heap, picked: int, stamp: NDArray[np.int32], picks: int) -> None:
    """The same with the scores of all topics anew that share a subscriber with the one that is picked (algorithm 2, line 9)."""
    receive(instance, picked)
    for i in range(instance.first_subscriber[picked], instance.first_subscriber[picked + 1]):
        subscriber = instance.subscribers[i]
        for j in range(instance.first_topic[subscriber], instance.first_topic[subscriber + 1]):
            topic = instance.topics[j]
            if stamp[topic] != picks:
                stamp[topic] = picks
                instance.score[topic] = score_of(instance, topic)
                if instance.score[topic] > heap.bound[topic]:
                    _raise(heap, topic, instance.score[topic])


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
    """Greedy picks among the candidates (l), in their order, where `spent` of the capacity is spent.

    A topic at the top whose key is not above its own score's is the highest of all; else it goes down to where it belongs. LAZY
    computes scores anew as topics come to the top, which is right where scores never rise: for shares alone.
    """
    score_all(instance)
    _fill(heap, instance.score, candidate)
    picks = np.empty(instance.score.size, np.int32)
    count = 0
    stamp = np.zeros(0 if engine == DELTA else instance.score.size, np.int32)
    while heap.size[0] > 0:
        topic = heap.topics[0]
        if spent + cost[topic] > capacity:
            _pop(heap)
            continue
        if engine == LAZY and stamp[topic] != count:
            stamp[topic] = count
            instance.score[topic] = score_of(instance, topic)
        score = instance.score[topic]
        key = score / heap.divisor[topic]
        if key < heap.keys[0]:
            heap.bound[topic] = score
            _sink(heap, 0, key, topic)
            continue
        if score == 0:
            break
        _pop(heap)
        spent += cost[topic]
        picks[count] = topic
        count += 1
        if engine == LAZY:
            receive(instance, topic)
        elif engine == SLOW:
            _receive_slowly(instance, heap, topic, stamp, count)
        elif instance.of_shares:
            _receive_shares(instance, topic)
        else:
            _receive_whole(instance, heap, topic)
    return picks[:count].copy()
