"""Costs are found again in what they cause, and only samples count during which nobody waited for a core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from depth import tried
from numpy.typing import NDArray

from sim.calibration.fit import fit_costs
from sim.calibration.load import LoadRecord
from sim.calibration.samples import clean, clean_rate, time_per_publication
from sim.calibration.steps import FAN_OUTS, SIZES, LoadStep, StepKind

COSTS = {
    "time": 3e-6,
    "send_client": 9e-6,
    "per_byte": 1.4e-9,
    "wake_up": 85e-6,
    "wake_up_half": 1e-3,
    "wake_up_least": 12e-6,
    "wake_up_slowdown": 0.5,
}
IDLE = np.logspace(-4.4, -1.4, 13)
"""Idle times (s), one for each point of the fit."""


def step(kind: StepKind, fan_out: int, size: int, noise: float, random: np.random.Generator) -> LoadStep:
    """Publications that found the broker idle for each of these times, 11 times each, and as many that did not."""
    busy = COSTS["time"] + fan_out * COSTS["send_client"] + size * COSTS["per_byte"]
    idle = np.concatenate([np.repeat(IDLE, 11), np.full(143, -1e-6)])
    delays = np.where(idle > 0, woken(busy, np.abs(idle)), 1.0) * random.lognormal(0, noise, len(idle))
    measured = busy * random.lognormal(0, noise)
    return LoadStep(kind, fan_out, size, 150.0, measured, delays, 1.0, len(idle), 0.9, 0.4, idle)


def woken(busy: float, idle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Delays after idle times."""
    least, more = COSTS["wake_up_least"], COSTS["wake_up_slowdown"] * busy
    return busy + least + (COSTS["wake_up"] - least + more) * idle / (idle + COSTS["wake_up_half"])


def steps(noise: float, seed: int = 1) -> list[LoadStep]:
    random = np.random.default_rng(seed)
    kinds: tuple[StepKind, ...] = ("saturated", "idle")
    found = [step(kind, f, s, noise, random) for f in FAN_OUTS for s in SIZES for kind in kinds]
    return [*found, step("loaded", 5, 100, noise, random)]


def test_exact_measurements_give_the_costs_and_no_residuals() -> None:
    fit = fit_costs(steps(0.0))
    assert list(fit.costs) == list(COSTS)
    for key, one in fit.costs.items():
        assert one.value == pytest.approx(COSTS[key], rel=1e-6)
        assert one.high - one.low < 1e-6 * COSTS[key]
    assert len(fit.residuals) == 31
    assert max(abs(one.relative) for one in fit.residuals) < 1e-6
    assert fit.woken(15, 400, IDLE) == pytest.approx(woken(3e-6 + 15 * 9e-6 + 400 * 1.4e-9, IDLE))


@pytest.mark.parametrize(("least", "wake_up"), [(0.0, 85e-6), (30e-6, 30e-6), (0.0, 0.0)])
def test_a_wake_up_that_has_but_one_part(monkeypatch: pytest.MonkeyPatch, least: float, wake_up: float) -> None:
    monkeypatch.setitem(COSTS, "wake_up_least", least)
    monkeypatch.setitem(COSTS, "wake_up", wake_up)
    monkeypatch.setitem(COSTS, "wake_up_slowdown", 0.0)
    fit = fit_costs(steps(0.0))
    assert fit.costs["wake_up_least"].value == pytest.approx(least, abs=1e-9)
    assert fit.costs["wake_up"].value == pytest.approx(wake_up, abs=1e-9)


def test_without_accounts_the_slope_of_delays_is_the_time_per_publication() -> None:
    """20 µs each, sent in batches of half of what is under way, as the client sends them; the way takes 50 µs."""
    records = []
    for window in (16, 32):
        sent, last = [], []
        for batch in range(100):
            now = 0 if batch < 2 else last[(batch - 1) * window // 2 - 1] + 1
            for _ in range(window // 2):
                sent.append(now)
                last.append(max(now, last[-1] if last else 0) + 20)
        records.append(record(sent, [at + 50 for at in last], [(0, 0, 0, 0, 0)]))
    assert time_per_publication(records) == pytest.approx(20e-6, rel=0.05)


def test_confidence_intervals_contain_the_costs_about_as_often_as_they_say() -> None:
    hits = [
        one.low <= COSTS[key] <= one.high
        for seed in range(tried(40))
        for key, one in fit_costs(steps(0.05, seed)).costs.items()
        if not key.startswith("wake_up")
    ]
    assert 0.9 <= np.mean(hits) < 1.0


def test_no_cost_is_negative() -> None:
    """A broker whose large publications were faster."""
    random = np.random.default_rng(1)
    faster = [replace(step("saturated", f, s, 0, random), busy=1e-5 * f - 1e-10 * s) for f in FAN_OUTS for s in SIZES]
    fit = fit_costs(faster + steps(0)[1:30:2])
    assert fit.costs["per_byte"].value == 0.0
    assert min(one.value for one in fit.costs.values()) >= 0.0


def record(sent: list[int], last: list[int], rows: list[tuple[int, int, int, int, int]]) -> LoadRecord:
    """Times in µs."""
    none = np.zeros(0, np.int64)
    times = (np.array(each, np.int64) * 1000 for each in (sent, last, rows))
    one, other, accounts = times
    return LoadRecord(one, other, np.ones(len(sent), np.int64), 0 * one, none, none, none, 0, accounts, 0)


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


def test_what_is_sent_late_does_not_count_nor_what_waits_behind_it() -> None:
    """The second is sent 1 ms late, the third is due but waits behind it; the fourth finds the broker idle again."""
    sent, last = [1_000, 3_000, 3_050, 20_000], [1_100, 3_100, 3_200, 20_100]
    found = record(sent, last, [(0, 0, 0, 0, 0), (40_000, 300, 0, 100, 0)])
    late = np.array([0, 1_000_000, 0, 100_000])
    assert clean(found._replace(late=late)).tolist() == [True, False, False, True]


def test_the_rate_at_saturation_leaves_out_when_somebody_waited() -> None:
    """One publication each ms, none while the broker waits from 40 to 60 ms, over 100 ms."""
    last = [1000 * t for t in range(100) if not 40 <= t < 60]
    rows = [(2000 * n, 0, 2000 * min(max(n - 20, 0), 10), 0, 0) for n in range(51)]
    rate, share = clean_rate(record([0] * len(last), last, rows))
    assert rate == pytest.approx(1000, rel=0.03)
    assert share == pytest.approx(0.75, abs=0.02)
