"""Compiled replay of an earlier decision's picks. Slow twin: tests/oracles/offloading_restart.py."""

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
def outdated(
    instance: Instance,
    picks: NDArray[np.int32],
    doubtful: NDArray[np.bool_],
    reference: int,
    divisor: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which of these picks are worth nothing any more, or would come after the topic `reference`, of those that are doubtful.

    The others are made. Where nothing has changed, the greedy chose each of them over the reference, so that none is outdated.
    """
    found = np.zeros(picks.size, np.bool_)
    for i, topic in enumerate(picks):
        if doubtful[i]:
            key = score_of(instance, topic) / divisor[topic]
            found[i] = key == 0 or score_of(instance, reference) / divisor[reference] > key
        if not found[i]:
            receive(instance, topic)
    return found
