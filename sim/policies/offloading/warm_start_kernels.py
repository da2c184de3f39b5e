"""Compiled replay of an earlier decision: what its picks are worth, and which are out of date."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel
from sim.policies.offloading.greedy_kernels import Instance, receive, score_of


@kernel
def replay(instance: Instance, picks: NDArray[np.int32]) -> NDArray[np.float64]:
    """What each pick is worth, as scores are but for rounding, when those before it are made; all are."""
    scores = np.zeros(picks.size)
    for i, topic in enumerate(picks):
        rate = instance.event_rate[topic]
        score = 0.0
        for j in range(instance.first_subscriber[topic], instance.first_subscriber[topic + 1]):
            subscriber = instance.subscribers[j]
            missing = instance.missing[subscriber]
            instance.missing[subscriber] = max(0, missing - rate)
            # without branches, which nobody could predict
            if instance.of_shares:
                score += float(min(missing, rate)) * instance.weight[subscriber]
            else:
                score += instance.one * min(float(missing), min(1.0, rate / max(missing, 1)))
        scores[i] = score
    return scores


@kernel
def median_after(keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each place, that of the median of the five keys after it; itself where there are no five."""
    places = np.arange(keys.size)
    for i in range(keys.size - 5):
        for j in range(i + 1, i + 6):
            lower = 0
            for k in range(i + 1, i + 6):
                lower += keys[k] < keys[j] or (keys[k] == keys[j] and k < j)
            if lower == 2:
                places[i] = j
    return places


@kernel
def outdated(
    instance: Instance,
    picks: NDArray[np.int32],
    doubtful: NDArray[np.bool_],
    later: NDArray[np.int32],
    divisor: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which of these picks are worth nothing any more, or less than a later one (each its own), of those that are doubtful.

    The others are made. Where nothing has changed, the greedy chose each of them over all later ones, so that none is outdated.
    """
    found = np.zeros(picks.size, np.bool_)
    for i, topic in enumerate(picks):
        if doubtful[i]:
            key = score_of(instance, topic) / divisor[topic]
            found[i] = key == 0 or score_of(instance, later[i]) / divisor[later[i]] > key
        if not found[i]:
            receive(instance, topic)
    return found


@kernel
def preferred(
    instance: Instance,
    picks: NDArray[np.int32],
    topics: NDArray[np.int64],
    place: NDArray[np.int64],
    divisor: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which of these topics the greedy chooses over the pick at a place of their own, when those before it are made.

    Topics come in the order of their places. Where nothing has changed it chose none of them that had room.
    """
    found = np.zeros(topics.size, np.bool_)
    made = 0
    for k in range(topics.size):
        while made < place[k]:
            receive(instance, picks[made])
            made += 1
        pick = picks[made]
        found[k] = score_of(instance, topics[k]) / divisor[topics[k]] > score_of(instance, pick) / divisor[pick]
    return found


@kernel
def withdraw(instance: Instance, need: NDArray[np.int64], chosen: NDArray[np.bool_], topics: NDArray[np.int64]) -> None:
    """The subscribers of topics that are no longer among the chosen (l) miss what they need (n) without them."""
    for topic in topics:
        for j in range(instance.first_subscriber[topic], instance.first_subscriber[topic + 1]):
            subscriber = instance.subscribers[j]
            missing = need[subscriber]
            for i in range(instance.first_topic[subscriber], instance.first_topic[subscriber + 1]):
                if chosen[instance.topics[i]]:
                    missing -= instance.event_rate[instance.topics[i]]
            instance.missing[subscriber] = max(0, missing)
