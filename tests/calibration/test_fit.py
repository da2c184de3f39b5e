"""Costs are found again in what they cause, and only samples count during which nobody waited for a core."""

from __future__ import annotations

import numpy as np
import pytest

from sim.calibration.fit import fit_costs
from sim.calibration.load import LoadRecord
from sim.calibration.samples import clean, clean_rate
from sim.calibration.steps import FAN_OUTS, SIZES, LoadStep, StepKind

COSTS = {"time": 3e-6, "send_client": 9e-6, "per_byte": 1.4e-9, "wake_up": 85e-6, "wake_up_half": 1e-3}


def step(kind: StepKind, fan_out: int, size: int, seconds: float, rate: float = 150.0) -> LoadStep:
    delays = np.full(50, seconds)
    return LoadStep(kind, fan_out, size, rate, seconds, delays, 1.0, 50, 0.9, 0.4)


def woken(busy: float, rate: float) -> float:
    """The delay after the median idle time."""
    idle = np.log(2) / rate - busy
    return busy + COSTS["wake_up"] * idle / (idle + COSTS["wake_up_half"])


def steps(noise: float, seed: int = 1) -> list[LoadStep]:
    random = np.random.default_rng(seed)
    found = []
    for fan_out in FAN_OUTS:
        for size in SIZES:
            busy = COSTS["time"] + fan_out * COSTS["send_client"] + size * COSTS["per_byte"]
            found.append(step("saturated", fan_out, size, busy * random.lognormal(0, noise)))
            found.append(step("idle", fan_out, size, woken(busy, 150.0) * random.lognormal(0, noise)))
    rates = (400.0, 1000.0, 2500.0)
    return found + [step("loaded", 5, 100, woken(48.14e-6, rate) * random.lognormal(0, noise), rate) for rate in rates]


def test_exact_measurements_give_the_costs_and_no_residuals() -> None:
    fit = fit_costs(steps(0.0))
    for key, one in fit.costs.items():
        assert one.value == pytest.approx(COSTS[key], rel=1e-6)
        assert one.high - one.low < 1e-6 * COSTS[key]
    assert len(fit.residuals) == 33
    assert max(abs(one.relative) for one in fit.residuals) < 1e-6
    assert fit.idle(15, 400, 150.0) == pytest.approx(woken(3e-6 + 15 * 9e-6 + 400 * 1.4e-9, 150.0))


def test_confidence_intervals_contain_the_costs_about_as_often_as_they_say() -> None:
    hits = [
        one.low <= COSTS[key] <= one.high
        for seed in range(40)
        for key, one in fit_costs(steps(0.05, seed)).costs.items()
        if not key.startswith("wake_up")
    ]
    assert 0.9 <= np.mean(hits) < 1.0


def test_no_cost_is_negative() -> None:
    """A broker whose large publications were faster."""
    fit = fit_costs([step("saturated", f, s, 1e-5 * f - 1e-10 * s) for f in FAN_OUTS for s in SIZES] + steps(0)[1:30:2])
    assert fit.costs["per_byte"].value == 0.0
    assert min(one.value for one in fit.costs.values()) >= 0.0


def record(sent: list[int], last: list[int], rows: list[tuple[int, int, int, int, int]]) -> LoadRecord:
    """Times in µs."""
    none = np.zeros(0, np.int64)
    times = (np.array(each, np.int64) * 1000 for each in (sent, last, rows))
    one, other, accounts = times
    return LoadRecord(one, other, np.ones(len(sent), np.int64), none, none, none, 0, accounts)


def test_a_publication_counts_if_nobody_waited_since_the_broker_was_idle() -> None:
    """The broker waits 5 ms for a core while the second is under way, and the third waits behind it; the fifth is lost."""
    sent, last = [1_000, 3_000, 4_000, 20_000, 30_000], [1_100, 9_000, 9_100, 20_100, 0]
    rows = [
        (0, 0, 0, 0, 0),
        (2_500, 90, 10, 50, 0),
        (10_000, 200, 5_010, 90, 10),
        (25_000, 300, 5_020, 99, 20),
        (40_000, 310, 5_020, 99, 20),
    ]
    assert clean(record(sent, last, rows)).tolist() == [True, False, False, True, False]
    waiting_client = [(time, ran, 0, mine, waited) for time, ran, waited, mine, _ in rows]
    assert clean(record(sent, last, waiting_client)).tolist() == [True, False, False, True, False]


def test_the_rate_at_saturation_leaves_out_when_somebody_waited() -> None:
    """One publication each ms, none while the broker waits from 40 to 60 ms, over 100 ms."""
    last = [1000 * t for t in range(100) if not 40 <= t < 60]
    rows = [(2000 * n, 0, 2000 * min(max(n - 20, 0), 10), 0, 0) for n in range(51)]
    rate, share = clean_rate(record([0] * len(last), last, rows))
    assert rate == pytest.approx(1000, rel=0.03)
    assert share == pytest.approx(0.75, abs=0.02)
