"""Load steps: numbers of subscribers, sizes and rates up to saturation, and what a broker did in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

# Any: parameters that are passed on.
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sim.calibration.load import LoadGenerator, LoadPlan, LoadRecord
from sim.calibration.samples import busy_shares, clean, clean_rate, seconds_on_core, time_per_publication

FAN_OUTS = (1, 2, 5, 10, 20)
"""Subscribers per publication."""
SIZES = (100, 1_000, 10_000)
"""Bytes of a publication."""
RATE = 150.0
"""Publications per second at an idle broker."""
WINDOWS = (16, 32)
"""Publications under way at a saturated broker."""
LOADS = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7)
"""Loads between idle and saturated, of the measured throughput at saturation."""
LOADED_STEPS = (5, 100)
"""Subscribers and bytes at these loads."""
_FASTEST = 200_000.0  # publications per second that no broker here completes

StepKind = Literal["idle", "saturated", "loaded"]


@dataclass(frozen=True, eq=False)
class LoadStep:
    """What was measured in one step.

    `busy` is the broker's time per publication (s), by the kernel's accounts or, where there are none, by the slope of delays. `delays`
    (s) are those to the last copy, of samples that count; `clean` is their share, and `idle` is for how long the broker had had nothing
    to do before each of them (s). `rate` is publications per second, `per_copy` the median time (s) from one copy to the next. The
    share of time that the broker ran is None where it is not known; `client` is that in which the client had something to do.
    """

    kind: StepKind
    fan_out: int
    size: int
    rate: float
    busy: float
    delays: NDArray[np.float64] = field(repr=False)
    clean: float
    samples: int
    broker: float | None
    client: float
    idle: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    per_copy: float = np.nan

    def quantile(self, share: float) -> float:
        """A quantile of the delays, s; NaN without samples."""
        return float(np.quantile(self.delays, share)) if len(self.delays) else np.nan

    @property
    def name(self) -> str:
        """The step in words."""
        return f"{self.kind}, {self.fan_out} subscribers, {self.size:,} B"


_WEIGHTS: dict[StepKind, float] = {"idle": 2.0, "saturated": 1.0, "loaded": 2.0}
"""How long a step of each kind takes, relative to others."""
_TOTAL = len(FAN_OUTS) * len(SIZES) * (_WEIGHTS["idle"] + _WEIGHTS["saturated"]) + len(LOADS) * _WEIGHTS["loaded"]
STEPS = 2 * len(FAN_OUTS) * len(SIZES) + len(LOADS)
"""How many steps there are."""


@dataclass(frozen=True)
class StepLimits:
    """How long all steps may take (s), and how many messages they may have, received or sent by the broker."""

    seconds: float
    messages: int

    def of_step(self, kind: StepKind, fan_out: int) -> tuple[float, int]:
        """The seconds of a step, and its publications at most."""
        share = _WEIGHTS[kind] / _TOTAL
        return self.seconds * share, max(int(self.messages * share / (1 + fan_out)), 1)


def subscribers_topics() -> list[list[int]]:
    """The topics of each subscriber: topic k has the k-th fan-out."""
    return [[topic for topic, fan_out in enumerate(FAN_OUTS) if fan_out > one] for one in range(max(FAN_OUTS))]


def take_steps(load: LoadGenerator, limits: StepLimits, seed: int = 1) -> Iterator[LoadStep]:
    """Take all steps; the times of publications follow from the seed."""
    random = np.random.default_rng(seed)
    saturation = 0.0
    for size in SIZES:
        for topic, fan_out in enumerate(FAN_OUTS):
            taken = _Taken(load, topic, size)
            yield taken.at_rate("idle", RATE, limits, random)
            step = taken.saturated(limits)
            if (fan_out, size) == LOADED_STEPS:
                saturation = step.rate
            yield step
    taken = _Taken(load, FAN_OUTS.index(LOADED_STEPS[0]), LOADED_STEPS[1])
    for share in LOADS:
        yield taken.at_rate("loaded", share * saturation, limits, random)


@dataclass(frozen=True)
class _Taken:
    """Steps with one number of subscribers and one size."""

    load: LoadGenerator
    topic: int
    size: int

    def at_rate(self, kind: StepKind, rate: float, limits: StepLimits, random: np.random.Generator) -> LoadStep:
        """A Poisson process of publications."""
        seconds, most = limits.of_step(kind, FAN_OUTS[self.topic])
        count = max(min(int(rate * seconds), most), 1)
        record = self._run(count, time=np.cumsum(random.exponential(1 / max(rate, 1e-3), count)))
        kept = clean(record)
        return self._step(kind, rate, record, seconds_on_core(record), kept, float(kept.mean()))

    def saturated(self, limits: StepLimits) -> LoadStep:
        """As fast as the broker can, first with few publications under way, then with many."""
        seconds, most = limits.of_step("saturated", FAN_OUTS[self.topic])
        count = min(most, int(_FASTEST * seconds)) // 2 + 1
        few, many = (self._run(count, window=window, seconds=seconds / 2) for window in WINDOWS)
        rate, share = clean_rate(many)
        busy = seconds_on_core(many) if self.load.broker else time_per_publication([few, many])
        return self._step("saturated", rate or 1 / max(busy, 1e-7), many, busy, many.last > 0, share)

    def _run(self, count: int, **more: Any) -> LoadRecord:
        ones, fan_out = np.ones(count, np.int64), FAN_OUTS[self.topic]
        plan = LoadPlan(ones * self.topic, ones * self.size, ones * fan_out, ones * 0, **more)
        record = self.load.run(plan)
        due, came = fan_out * len(record.sent), int(record.copies.sum())
        if came < due:
            raise self.load.publishers[0].wrong(
                f"{due - came:,} of {due:,} deliveries are missing {plan.patience:g} s after the last one: the broker drops messages "
                "or is too slow"
            )
        return record

    def _step(
        self, kind: StepKind, rate: float, record: LoadRecord, busy: float, kept: NDArray[np.bool_], share: float
    ) -> LoadStep:
        broker, client = busy_shares(record)
        known, fan_out = broker if self.load.broker else None, FAN_OUTS[self.topic]
        per_copy = float(np.median(record.per_copy[kept])) if kept.any() else np.nan
        found = (record.delay[kept], share, len(record.sent), known, client, record.idle[kept], per_copy)
        return LoadStep(kind, fan_out, self.size, rate, busy, *found)
