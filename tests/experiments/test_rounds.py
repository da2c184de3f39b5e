"""Rounds of runs on synthetic outcomes: no replication is left out, and all stop where they should."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.experiments.plan import RunSpec
from sim.experiments.precision import FEWEST_REPLICATIONS, precise
from sim.experiments.rounds import PILOTS, Conclusion, Precise, WindowSeries, rounds
from sim.experiments.warm_up import warm_up_of
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario

FILE: dict[str, Any] = {
    "horizon": "100h",
    "workload": {"kind": "poisson", "users": 12, "topics": 9},
    "variant": [{"name": "a"}, {"name": "b", "selection": {"kind": "similarity"}}],
    "sweep": {"network.brokers": [2, 4, 6]},
}


class Outcomes:
    """Gives the outcome of each run by a function of point, variant and replication."""

    def __init__(
        self, value: Callable[[RunSpec], float], series: Callable[[RunSpec], WindowSeries | None] | None = None
    ):
        self.value, self.series = value, series
        self.specs: dict[str, RunSpec] = {}
        self.rounds: list[list[RunSpec]] = []

    def metric(self, run: str, name: str) -> float:
        assert name == "notification_delay"
        return self.value(self.specs[run])

    def windows(self, run: str, name: str) -> WindowSeries | None:
        assert self.series is not None
        return self.series(self.specs[run])

    def run(self, experiment: Experiment) -> Conclusion:
        walk = rounds(experiment, {}, self)
        while True:
            try:
                specs = next(walk)
            except StopIteration as end:
                conclusion: Conclusion = end.value
                return conclusion
            self.rounds.append(specs)
            self.specs |= {spec.hash: spec for spec in specs}


def experiment(**keys: Any) -> Experiment:
    return load_scenario({**FILE, **keys})


def test_without_precision_there_is_one_round() -> None:
    outcomes = Outcomes(lambda spec: math.nan)
    ended = outcomes.run(experiment(replications=3))
    assert outcomes.rounds == [ended.specs]
    assert len(ended.specs) == 3 * 3 * 2
    assert [*ended.warm_up, *ended.precision, *ended.notes] == []


@settings(max_examples=40)
@given(
    st.lists(st.floats(0, 2), min_size=6, max_size=6),
    st.integers(1, 14),
    st.integers(2, 40),
    st.sets(st.integers(0, 30), max_size=5),
)
def test_replications_are_added_until_intervals_are_narrow(
    spreads: list[float], replications: int, most: int, failed: set[int]
) -> None:
    base = experiment(replications=replications, precision={"relative": 0.1, "max_replications": most})

    def value(spec: RunSpec) -> float:
        if spec.replication in failed and spec.variant == "b":
            return math.nan
        draw = np.random.default_rng([spec.point, spec.replication]).normal()
        return 1 + spreads[2 * spec.point + (spec.variant == "b")] * draw

    outcomes = Outcomes(value)
    ended = outcomes.run(base)
    assert [spec for specs in outcomes.rounds for spec in specs] == list(ended.specs)
    assert len({spec.hash for spec in ended.specs}) == len(ended.specs)
    for point, told in enumerate(ended.precision):
        own = [spec for spec in ended.specs if spec.point == point]
        assert min(FEWEST_REPLICATIONS, max(most, replications)) <= told.replications <= max(most, replications)
        for variant in "ab":  # all share the number, and none is left out
            assert [spec.replication for spec in own if spec.variant == variant] == list(range(told.replications))
        values = [[value(spec) for spec in own if spec.variant == variant] for variant in "ab"]
        assert told.reached == all(precise(one, 0.1) for one in values)
        assert told.reached or told.replications == max(most, replications)


def settling(length: int, horizon: float = 360_000.0) -> WindowSeries:
    """A series that is in steady state after so many of 100 windows of an hour; with 100, it grows until the end."""
    values = np.arange(100.0) if length == 100 else np.where(np.arange(100) < length, 50.0, 1.0)
    return WindowSeries(np.array(range(100), np.float64) * 3600, np.array(values, np.float64), horizon)


def test_all_variants_of_a_point_share_the_longest_warm_up() -> None:
    lengths = {(0, "a"): 10, (0, "b"): 20, (1, "a"): 5, (1, "b"): 100, (2, "a"): 0, (2, "b"): 15}
    outcomes = Outcomes(lambda spec: math.nan, lambda spec: settling(lengths[spec.point, spec.variant]))
    ended = outcomes.run(experiment(warm_up="detect", replications=7))
    pilots, runs = outcomes.rounds
    assert {spec.scenario.warm_up for spec in pilots} == {0.0}
    assert [(spec.point, spec.variant, spec.replication) for spec in pilots] == [
        (p, v, r) for r in range(PILOTS) for p in range(3) for v in "ab"
    ]
    assert [(one.seconds / 3600, one.detected) for one in ended.warm_up] == [(20, True), (50, False), (15, True)]
    assert {(spec.point, spec.scenario.warm_up / 3600) for spec in runs} == {(0, 20), (1, 50), (2, 15)}
    assert ended.specs == runs
    (note,) = ended.notes
    assert note == (
        "no end of the warm-up was found at network.brokers = 4: the run is too short, or never reaches a steady state; "
        "its first half (2.08 d) is left out"
    )


def test_the_warm_up_is_that_of_the_pilots_average() -> None:
    def noisy(spec: RunSpec) -> WindowSeries:
        calm = settling(20)
        noise = np.random.default_rng([7, spec.replication]).normal(0, 60, 100)
        return WindowSeries(calm.starts, calm.values + noise, calm.horizon)

    outcomes = Outcomes(lambda spec: math.nan, noisy)
    ended = outcomes.run(experiment(warm_up="detect", replications=9))
    pilots = [noisy(spec) for spec in outcomes.rounds[0] if (spec.point, spec.variant) == (0, "a")]
    alone = {warm_up_of(one.values[np.newaxis], one.starts) for one in pilots}
    assert len(pilots) == PILOTS
    assert len(alone) > 1
    assert ended.warm_up[0].seconds == warm_up_of(np.mean([[one.values] for one in pilots], axis=0), pilots[0].starts)


def test_too_few_windows_are_told_with_what_helps() -> None:
    outcomes = Outcomes(
        lambda spec: math.nan, lambda spec: WindowSeries(np.arange(50) * 7200.0, np.ones(50), 360_000.0)
    )
    ended = outcomes.run(experiment(warm_up="detect", sweep={"network.brokers": [2]}))
    assert ended.notes == [
        "no end of the warm-up was found at network.brokers = 2: it needs 100 windows, but there are 50: make `window` shorter; "
        "its first half (2.08 d) is left out"
    ]


def test_where_pilots_fail_half_the_horizon_is_left_out() -> None:
    outcomes = Outcomes(lambda spec: math.nan, lambda spec: None)
    ended = outcomes.run(experiment(warm_up="detect"))
    assert [(one.seconds, one.detected) for one in ended.warm_up] == [(180_000.0, False)] * 3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A scenario whose warm-up and precision are both to be determined, and its results."""
    source = {
        **FILE,
        "window": "1h",
        "warm_up": "detect",
        "horizon": "60h",
        "sweep": {"network.brokers": [2, 4]},
        "variant": [{"name": "a"}],
        "precision": {"relative": 0.2, "max_replications": 12},
    }
    folder = tmp_path_factory.mktemp("found")
    sim.run(source, folder)
    return source, folder


def test_results_tell_what_was_found(found: tuple[dict[str, Any], Path]) -> None:
    results = sim.load_results(found[1])
    counts = [point["replications"] for point in results.manifest["precision"]["points"]]
    assert results.runs.groupby("point").size().tolist() == counts
    assert all(10 <= count <= 12 for count in counts)
    assert [results.at(point).manifest["replications"] for point in (0, 1)] == counts
    for point, warm_up in enumerate(results.manifest["warm_up"]):
        own = results.at(point)
        assert own.manifest["variants"]["a"]["warm_up"] == warm_up["seconds"] <= 30 * 3600
        series = own.table(own.runs["run"][0], "timeseries")
        assert series.loc[series["warm_up"], "end"].max() == warm_up["seconds"] or warm_up["seconds"] == 0


def test_the_same_command_again_runs_nothing(found: tuple[dict[str, Any], Path], spy: Any) -> None:
    before = sim.load_results(found[1])
    again = sim.run(found[0], found[1])
    assert spy.runs == []
    assert again.manifest == before.manifest
    pd.testing.assert_frame_equal(again.runs, before.runs)
    assert Precise(**again.manifest["precision"]["points"][0]).replications >= 10
