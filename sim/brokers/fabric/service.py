"""Service times: the cost of a message to a broker, and its variation between messages."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness_kernels import keyed_exponential, keyed_gamma, keyed_normal, keyed_uniform
from sim.brokers.fabric.stations import StationSetting


class Effort(NamedTuple):
    """The work of a broker for a message: counter increments of matching, copies to brokers and to users, and bytes received."""

    increments: int = 0
    copies: int = 0
    users: int = 0
    size: int = 0


NO_EFFORT = Effort()
"""No cost beyond receiving the message."""

ANSWER_STAGE = 3
"""In keyed draws, the stage of an acknowledgement is this plus the broker that it comes from."""

_Seconds = Callable[[int, int, int, Effort], float]


@dataclass(frozen=True, eq=False)
class ServiceTimes:
    """Service times by `setting`, divided by the brokers' `capacity` (brokers); draws are keyed by `key`.

    Each takes `slowed` (brokers) times as long, as that is when the message arrives; None where brokers are never slower.
    """

    setting: StationSetting
    capacity: NDArray[np.float64]
    key: int
    slowed: NDArray[np.float64] | None = None

    @cached_property
    def seconds(self) -> _Seconds:
        """The service time (s) of a message, by (number of the message, broker, stage of its way, effort)."""
        seconds, slowed = _service_times(self.setting, self.capacity, self.key), self.slowed
        if slowed is None:
            return seconds
        return lambda number, broker, stage, effort: seconds(number, broker, stage, effort) * slowed.item(broker)

    @cached_property
    def acknowledgement(self) -> Callable[[int, int, int], float] | None:
        """The service time (s) of an acknowledgement by (number of the copy, broker, where it comes from); None if it has none."""
        if not self.setting.acknowledgement:
            return None
        cost: list[float] = (self.setting.acknowledgement / self.capacity).tolist()
        factor, slowed = _factor(self.setting), self.slowed

        def seconds(number: int, broker: int, source: int) -> float:
            drawn = 1.0 if factor is None else factor(self.key, number, broker << 16 | ANSWER_STAGE + source)
            return cost[broker] * drawn * (1.0 if slowed is None else slowed.item(broker))

        return seconds


def _service_times(setting: StationSetting, capacity: NDArray[np.float64], key: int) -> _Seconds:
    costs = setting.time, setting.matching, setting.send, setting.send_client, setting.per_byte
    each: list[list[float]] = [(cost / capacity).tolist() for cost in costs]
    received, matched, sent, sent_to_user, per_byte = each

    def plain(number: int, broker: int, stage: int, effort: Effort) -> float:
        return received[broker] + effort.increments * matched[broker]

    # the order of additions is part of the results
    def weighed(number: int, broker: int, stage: int, effort: Effort) -> float:
        seconds = received[broker] + effort.increments * matched[broker] + effort.copies * sent[broker]
        return seconds + effort.users * sent_to_user[broker] + effort.size * per_byte[broker]

    mean = weighed if setting.weighs else plain
    factor = _factor(setting)
    if factor is None:
        return mean

    def drawn(number: int, broker: int, stage: int, effort: Effort) -> float:
        return mean(number, broker, stage, effort) * factor(key, number, broker << 16 | stage)

    return drawn


def _factor(setting: StationSetting) -> Callable[[int, int, int], float] | None:
    """The factor of a service time by (key, number of the message, broker and stage), with mean 1; None where it is 1."""
    match setting.service:
        case "exponential":
            return keyed_exponential
        case "gamma":
            shape, *_ = spread_of(setting.variation)
            return lambda key, number, place: keyed_gamma(key, number, place, shape) / shape
        case "lognormal":
            _, sigma, variance = spread_of(setting.variation)
            return lambda key, number, place: math.exp(sigma * keyed_normal(key, number, place) - variance / 2)
        case "histogram":
            values, shares = relative_to_mean(*setting.histogram)
            return lambda key, number, place: values[bisect_right(shares, keyed_uniform(key, number, place))]
    return None


def spread_of(variation: float) -> tuple[float, float, float]:
    """The shape of the gamma distribution with this coefficient of variation; σ and σ² of the lognormal one."""
    square = variation * variation
    variance = math.log1p(square)
    return 1.0 / square if square else math.inf, math.sqrt(variance), variance


def relative_to_mean(seconds: Sequence[float], counts: Sequence[float]) -> tuple[list[float], list[float]]:
    """Measured values relative to their mean, and the share of measurements up to and including each but the last."""
    values, weights = np.array(seconds), np.array(counts)
    shares = np.cumsum(weights) / weights.sum()
    return (values / ((values * weights).sum() / weights.sum())).tolist(), shares[:-1].tolist()
