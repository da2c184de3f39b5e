"""The exchange of a message between a client and its broker by quality of service, over a way that may lose parts of it.

MQTT 5.0, section 4.3: a message of quality 1 is acknowledged (PUBACK); one of quality 2 is received (PUBREC), released (PUBREL) and
completed (PUBCOMP). Whoever waits for an answer longer than a timeout sends again what it sent last.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_normal, keyed_uniform

_ATTEMPT = 1 << 40  # between the identities of a message that is sent for the k-th time, in keyed draws
_PUBLISH, _RECEIVED, _RELEASE, _COMPLETE = range(4)


class Path(NamedTuple):
    """A way there and back: latency (s) with a lognormal factor (σ `jitter`) there, the probability of `loss`, and `timeout` (s)."""

    latency: float
    jitter: float
    jitter_key: int
    loss: float
    loss_key: int
    timeout: float


class Exchanged(NamedTuple):
    """What has happened: when the sender had the last answer, and the receiver the message first (s; inf: not).

    How often the message and its release were sent, and got there, and whether the sender knows that it has been received.
    """

    acknowledged: float
    arrived: float
    sent: int
    received: int
    releases: int
    completions: int
    released: bool


@kernel
def lost(path: Path, number: int, user: int, attempt: int, part: int) -> bool:
    """Whether a part of the exchange (0: the message itself) is lost when it is sent for the k-th time, from 0."""
    return bool(
        path.loss > 0.0 and keyed_uniform(path.loss_key, number + _ATTEMPT * attempt, user * 4 + part) < path.loss
    )


@kernel
def late(path: Path, number: int, user: int, attempt: int) -> float:
    """The latency of a message that is sent for the k-th time, from 0 (s)."""
    if path.jitter == 0.0:
        return path.latency
    normal = keyed_normal(path.jitter_key, number + _ATTEMPT * attempt, user)
    return path.latency * math.exp(path.jitter * normal - path.jitter * path.jitter / 2)


@kernel
def exchange(
    path: Path,
    message: tuple[int, int, int, int, bool],
    start: float,
    first: float,
    seconds: float,
    sends: float,
    arrivals: float,
) -> Exchanged:
    """Go through the exchange of a `message`: number, user, quality, attempts that it had before, and whether it has been received.

    It is sent at `start` (s) and arrives at `first` if it is not lost; later copies arrive their latency and `seconds` of sending
    later. Nothing is sent, and no answer comes, from the time `sends` on (s), and nothing arrives from `arrivals` on. A message of
    quality 0 is sent once, and known to have been.
    """
    number, user, quality, before, released = message
    arrived, acknowledged, sent, received, releases, completions = np.inf, np.inf, 0, 0, 0, 0
    at, answered = start, start if released else np.inf
    while not released and at < sends and at < answered:
        there = first if sent == 0 else at + seconds + late(path, number, user, before + sent)
        if there < arrivals and not lost(path, number, user, before + sent, _PUBLISH):
            arrived = min(arrived, there)
            received += 1
            if there + path.latency < sends and not lost(path, number, user, before + sent, _RECEIVED):
                answered = min(answered, there + path.latency)
        sent += 1
        if quality == 0:
            return Exchanged(start, arrived, sent, received, 0, 0, False)
        at += path.timeout
    if quality == 1:
        return Exchanged(answered, arrived, sent, received, 0, 0, False)
    at = answered
    while at < sends and at < acknowledged:
        attempt, there = before + sent + releases, at + path.latency
        releases += 1
        if there < arrivals and not lost(path, number, user, attempt, _RELEASE):
            completions += 1
            if there + path.latency < sends and not lost(path, number, user, attempt, _COMPLETE):
                acknowledged = min(acknowledged, there + path.latency)
        at += path.timeout
    return Exchanged(acknowledged, arrived, sent, received, releases, completions, answered < np.inf)
