"""The best point: ranks, limits, and ties."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import grid, write_results, write_sweep
from scipy import stats

from analysis.best import arguments, best, best_for_each
from analysis.collection import collect
from sim.experiments.results import Results, load_results
from sim.scenario.expressions import Limit

DELAY = "notification_delay"
POINTS = grid(network__brokers=[10, 20, 50], selection__cluster_size=[2, 5])


def sweep(
    folder: Path, values: dict[tuple[int, str], list[float]], points: list = POINTS, **other: list[float]
) -> Results:
    """Results of a sweep with these delays by point and variant; other metrics by replication, everywhere."""
    variants, replications = list(dict.fromkeys(name for _, name in values)), len(next(iter(values.values())))
    write_sweep(folder, points, variants=variants, replications=replications, detailed=())
    runs = pd.read_parquet(folder / "runs.parquet")
    runs = runs[[place in values for place in zip(runs["point"], runs["variant"], strict=True)]]
    runs[DELAY] = [values[p, v][r] for p, v, r in runs[["point", "variant", "replication"]].itertuples(index=False)]
    for metric, numbers in other.items():
        runs[metric] = [numbers[r] for r in runs["replication"]]
    runs.to_parquet(folder / "runs.parquet")
    return load_results(folder)


def test_points_and_variants_are_ranked_by_the_mean_and_then_by_number(tmp_path: Path) -> None:
    values = {
        (0, "a"): [3.0, 5.0],
        (0, "b"): [1.0, 2.0],
        (1, "a"): [2.0, 1.0],
        (1, "b"): [9.0, 9.0],
        (4, "a"): [0.5, 2.5],
    }
    results = sweep(tmp_path, values)
    least, largest = (best(results, DELAY, maximise) for maximise in (False, True))
    assert [(c.point, c.variant, c.value.mean) for c in least.candidates] == [
        (0, "b", 1.5), (1, "a", 1.5), (4, "a", 1.5), (0, "a", 4.0), (1, "b", 9.0)
    ]  # fmt: skip
    assert [(c.point, c.variant) for c in largest.candidates][:2] == [(1, "b"), (0, "a")]
    assert least.candidates[0].difference is None
    assert least.count == 5


def test_what_cannot_be_told_apart_is_told_by_the_paired_interval(tmp_path: Path) -> None:
    """The third is far above the best in one pair only; the second is a little above it in each."""
    first = [10.0, 20.0, 30.0, 40.0]
    values = {
        (0, "a"): first,
        (1, "a"): [x + 1 + 0.01 * (-1) ** i for i, x in enumerate(first)],
        (2, "a"): [10.0, 20.0, 30.0, 60.0],
        (3, "a"): first,
        (4, "a"): [x + 7 for x in first],
    }
    ranking = best(sweep(tmp_path, values), DELAY)
    assert [(c.point, c.tied) for c in ranking.candidates] == [(0, False), (3, True), (1, False), (2, True), (4, False)]
    second = ranking.candidates[2].difference
    expected = stats.ttest_1samp(np.array(values[1, "a"]) - first, 0).confidence_interval()
    assert (second.low, second.high) == pytest.approx(tuple(expected))


def test_one_replication_tells_nothing_apart(tmp_path: Path) -> None:
    ranking = best(sweep(tmp_path, {(0, "a"): [1.0], (1, "a"): [2.0]}), DELAY, limits=[Limit.parse("load_stddev < 9")])
    assert [c.tied for c in ranking.candidates] == [False, True]
    assert not any(c.bounds[0].surely for c in ranking.candidates)


def test_limits_hold_on_average_or_surely_or_not(tmp_path: Path) -> None:
    results = sweep(tmp_path, {(0, "a"): [1.0, 2.0, 3.0], (1, "a"): [2.0, 3.0, 4.0]}, load_stddev=[0.4, 0.45, 0.5])

    def held(text: str) -> tuple[int, list[bool]]:
        ranking = best(results, DELAY, limits=[Limit.parse(text)])
        return len(ranking.candidates), [c.bounds[0].surely for c in ranking.candidates]

    assert held("load_stddev < 0.6") == (2, [True, True])
    assert held("load_stddev < 0.5") == (2, [False, False])  # the interval is [0.326, 0.574]
    assert held("load_stddev >= 0.3") == (2, [True, True])
    assert held("load_stddev < 0.45") == (0, [])
    assert held("notification_delay <= 2") == (1, [False])
    assert held("queue_wait < 1") == (0, [])  # is undefined
    (missed,) = best(results, DELAY, limits=[Limit.parse("notification_delay <= 2")]).missed.values()
    assert missed == (1, 2.0)


def test_a_variant_without_the_swept_key_counts_once(tmp_path: Path) -> None:
    values = {(point, name): [1.0 + point, 2.0 + point] for point in range(3) for name in ("a", "b")}
    results = sweep(tmp_path, values | {(point, "b"): [3.0, 4.0] for point in range(3)})
    runs = results.runs
    same = runs["variant"] == "b"
    runs.loc[same, "run"] = "b" + runs.loc[same, "replication"].astype(str)
    ranking = best(results, DELAY)
    assert [(c.point, c.variant) for c in ranking.candidates] == [(0, "a"), (1, "a"), (0, "b"), (2, "a")]


def test_a_variant_without_the_swept_key_counts_once_for_each_value_that_is_held_fixed(tmp_path: Path) -> None:
    values = {(point, name): [1.0 + point, 2.0 + point] for point in range(6) for name in ("a", "b")}
    results = sweep(tmp_path, values | {(point, "b"): [3.0, 4.0] for point in range(6)})
    runs = results.runs
    same = runs["variant"] == "b"
    runs.loc[same, "run"] = "b" + runs.loc[same, "replication"].astype(str)
    two, five = best_for_each(results, ["selection.cluster_size"], DELAY)
    assert (two.fixed, five.fixed) == ({"selection.cluster_size": 2}, {"selection.cluster_size": 5})
    assert [(c.point, c.variant) for c in two.candidates] == [(0, "a"), (0, "b"), (2, "a"), (4, "a")]
    assert [(c.point, c.variant) for c in five.candidates] == [(1, "a"), (1, "b"), (3, "a"), (5, "a")]


def test_folders_compete_with_one_another(tmp_path: Path) -> None:
    for name, changes in {"slow": {"slower": 2}, "fast": {}, "other": {"seed": 8, "slower": 1.1}}.items():
        write_results(tmp_path / name, variants=("a",), **changes)
    results = collect([tmp_path / name for name in ("slow", "fast", "other")], [DELAY])
    first, second, third = best(results, DELAY).candidates
    assert [c.variant for c in (first, second, third)] == ["fast", "other", "slow"]
    x, b, slow = (results.runs.query("variant == @name")[DELAY].to_numpy() for name in ("other", "fast", "slow"))
    welch = stats.ttest_ind(x, b, equal_var=False).confidence_interval()
    assert (second.difference.low, second.difference.high) == pytest.approx(tuple(welch))
    paired = stats.ttest_rel(slow, b).confidence_interval()
    assert (third.difference.low, third.difference.high) == pytest.approx(tuple(paired))


def test_a_point_becomes_arguments_that_say_the_same(tmp_path: Path) -> None:
    points = [{"network.brokers": 10, "selection": "static", "horizon": 3600.0, "network.join": "true"}]
    tables = {"selection": [{"kind": "similarity"}, {"kind": "static"}]}
    write_sweep(tmp_path, points, variants=("a",), replications=1, sweep=tables)
    assert arguments(load_results(tmp_path), 0) == [
        "--set", "network.brokers=10", "--set", 'selection={ kind = "static" }',
        "--set", "horizon=1h", "--set", 'network.join="true"',
    ]  # fmt: skip


def test_a_point_where_a_broker_is_saturated_is_not_the_best_in_delay(tmp_path: Path) -> None:
    delays = {(0, "a"): [1.0, 1.0, 1.1], (0, "b"): [2.0, 2.0, 2.2]}
    quick = sweep(tmp_path / "quick", delays, [{}])
    assert [place.variant for place in best(quick, DELAY).candidates] == ["a", "b"]
    runs = pd.read_parquet(tmp_path / "quick" / "runs.parquet")
    runs["saturated_brokers"] = np.where(runs["variant"] == "a", 2, 0)
    runs.to_parquet(tmp_path / "quick" / "runs.parquet")
    found = best(load_results(tmp_path / "quick"), DELAY)
    assert [place.variant for place in found.candidates] == ["b"]
    assert {str(limit): number for limit, (number, _) in found.missed.items()} == {"saturated_brokers < 0.5": 1}
    assert len(best(load_results(tmp_path / "quick"), "load_jain").candidates) == 2
    for text in ("notification_delay < 1h", "lost < 9"):
        (kept,) = best(load_results(tmp_path / "quick"), "load_jain", limits=[Limit.parse(text)]).candidates
        assert kept.variant == "b", "a limit on what gets through is met by nobody who cannot keep up"
