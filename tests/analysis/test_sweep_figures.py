"""Summaries of a sweep, recomputed from its runs, and its charts, read from their data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_results import grid, write_sweep
from hypothesis import given
from hypothesis import strategies as st
from oracles import pareto as oracle

from analysis.charts import Figure, svg_of
from analysis.comparison import compare_table
from analysis.sweeps import series
from analysis.sweeps.axes import axes, axes_of
from analysis.sweeps.figures import heat_maps, sweep_figures
from analysis.sweeps.pareto import pareto, trade_off
from analysis.sweeps.summary import interval_rows, over_points, summarise
from analysis.tables import over_time
from sim.base.errors import ResultsError
from sim.experiments.results import Results, load_results
from sim.experiments.statistics import mean_interval
from sim.scenario.experiment import unit_of

DELAY, OVERHEAD = "notification_delay", "notification_overhead"
ONE = {"report": {"metrics": [DELAY, OVERHEAD]}, "replications": 3, "brokers": 4, "windows": 6, "warm_up": 1}
DELAY_ONLY = {"report": {"metrics": [DELAY]}}
BROKERS = [10, 32, 100, 316, 1000]
NONE: dict[str, Any] = {"scenario": {}, "variants": {}}


def swept(folder: Path, points: list[dict[str, Any]], **case: Any) -> Results:
    return load_results(write_sweep(folder, points, **{"detailed": (), **ONE, **case}))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Results:
    points = grid(network__brokers=BROKERS, horizon=[86400.0, 2 * 86400.0, 3 * 86400.0])
    return swept(tmp_path_factory.mktemp("two"), points)


@pytest.fixture(scope="module")
def charts_of_two(two: Results) -> list[Figure]:
    return sweep_figures(two)


def rows(chart: Figure) -> list[dict[str, Any]]:
    return [row for rows in chart.spec["datasets"].values() for row in rows]


def named(charts: list[Figure], name: str) -> Figure:
    (found,) = [chart for chart in charts if chart.name == name]
    return found


def test_the_summary_of_points_is_that_of_each_point_alone(two: Results) -> None:
    found = over_points(two, [DELAY, OVERHEAD]).set_index(["metric", "point", "variant"]).sort_index()
    expected = compare_table(two, [DELAY, OVERHEAD]).set_index(["metric", "point", "variant"]).sort_index()
    columns = ["mean", "low", "high", "difference", "difference_low", "difference_high", "network.brokers", "horizon"]
    pd.testing.assert_frame_equal(found[columns], expected[columns], check_dtype=False)
    assert (found["n"] == 3).all()


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 2.5, -7.0, math.nan]), min_size=4, max_size=4), min_size=1
    )
)
def test_intervals_of_rows_are_those_of_each_row(values: list[list[float]]) -> None:
    for row, (n, *found) in zip(values, zip(*interval_rows(np.array(values)), strict=True), strict=True):
        alone = mean_interval(row)
        assert n == alone.n
        bounds = [math.nan if bound is None else bound for bound in (alone.low, alone.high)]
        assert found == pytest.approx([alone.mean, *bounds], nan_ok=True)


def test_along_one_axis_a_replication_counts_with_its_mean_over_the_others(two: Results) -> None:
    found = summarise(two.runs, ["network.brokers"], [DELAY], "static").set_index(["network.brokers", "variant"])
    runs = two.runs[two.runs["network.brokers"] == 32]
    wide = runs.groupby(["variant", "replication"])[DELAY].mean().unstack("variant")
    expected = mean_interval(wide["location"])
    assert found.loc[(32, "location"), ["mean", "low", "high"]].tolist() == pytest.approx(
        [expected.mean, expected.low, expected.high]
    )
    difference = mean_interval(100 * (wide["location"] / wide["static"] - 1)).mean
    assert found.loc[(32, "location"), "difference"] == pytest.approx(difference)


def test_where_a_baseline_is_zero_other_pairs_do_not_stand_for_all(two: Results) -> None:
    runs = two.runs.assign(lost=[0.0 if r == 1 else 5.0 for r in two.runs["replication"]])
    runs.loc[runs["variant"] == "location", "lost"] += 5
    assert summarise(runs, ["point"], ["lost"], "static").query("variant == 'location'")["difference"].isna().all()


def test_means_over_other_axes_compare_variants_at_the_same_points(two: Results) -> None:
    """A variant that has no run at the worst point does not look better for it; a lost run costs its replication."""
    runs = two.runs
    lost = (runs["point"] == 2) & (runs["variant"] == "static")
    alone = (runs["point"] == 4) & (runs["variant"] == "location") & (runs["replication"] == 1)
    found = summarise(runs[~lost & ~alone], ["network.brokers"], [DELAY]).set_index(["network.brokers", "variant"])
    fair = runs[(runs["network.brokers"] == 10) & (runs["point"] != 2)]
    means = fair.groupby(["variant", "replication"])[DELAY].mean().groupby("variant").mean()
    assert found.loc[10, "mean"].to_dict() == pytest.approx(means.to_dict())
    assert found.loc[32, "n"].to_dict() == {"static": 3, "location": 2, "similarity": 3}


def test_axes_know_their_order_scale_unit_and_who_advances_with_them() -> None:
    users = [300, 100, 200] * 2
    points = pd.DataFrame(
        {
            "workload.users": users,
            "workload.horizon": [3 * value for value in users],
            "network.brokers": [5, 20, 2] * 2,
            "selection": ["similarity", "static", "location"] * 2,
            "horizon": [86400.0] * 3 + [172800.0] * 3,
            "window": [60.0] * 6,
        }
    )
    found = {axis.key: axis for axis in axes(points, NONE)}
    assert found.keys() == {"workload.users", "network.brokers", "horizon"}  # brokers neither rise nor fall with users
    users_axis, _, horizon = found.values()
    assert users_axis.together == ("workload.horizon", "selection")
    assert (users_axis.values, users_axis.kind) == ((100, 200, 300), "linear")
    assert (horizon.unit, horizon.text(86400.0), horizon.title) == ("s", "1 d", "horizon (h)")
    drawn = {axis.key: axis for axis in axes(points, NONE, zipped=[["workload.users", "workload.horizon"]])}
    assert drawn["workload.users"].together == ("workload.horizon",)
    assert (drawn["network.brokers"].values, drawn["network.brokers"].kind) == ((2, 5, 20), "log")
    assert (drawn["selection"].values, drawn["selection"].kind) == (("similarity", "static", "location"), "category")


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("warm_up", "s"),
        ("brokers.service.time", "s"),
        ("workload.city_radius", "km"),
        ("variant.x.workload.gap", "s"),
        ("network.brokers", ""),
        ("selection", ""),
        ("nothing.of.the.kind", ""),
    ],
)
def test_units_of_keys(key: str, unit: str) -> None:
    scenario = {"workload": {"kind": "mobility"}}
    assert unit_of(key, scenario, {"x": scenario}) == unit


def test_one_axis_has_lines_with_intervals(tmp_path: Path) -> None:
    results = swept(tmp_path, grid(network__brokers=BROKERS), **DELAY_ONLY)
    charts = sweep_figures(results)
    assert {chart.section for chart in charts} == {"explore", "lines", "pareto"}
    chart = named(charts, f"line-{DELAY}-network-brokers")
    assert '"type": "log"' in json.dumps(chart.spec["layer"][0]["encoding"]["x"])
    runs = results.runs.query("variant == 'static' and point == 3")[DELAY] * 1e3
    expected = mean_interval(runs)
    (row,) = [row for row in rows(chart) if row["variant"] == "static" and row["x"] == 316]
    assert [row["mean"], row["low"], row["high"]] == pytest.approx(
        [expected.mean, expected.low, expected.high], rel=1e-4
    )
    assert "static: " in chart.description


def test_two_axes_have_a_chart_for_each_value_of_the_smaller_and_maps(
    two: Results, charts_of_two: list[Figure]
) -> None:
    charts = charts_of_two
    lines = [chart for chart in charts if chart.section == "lines"]
    assert [chart.title for chart in lines[:3]] == [f"notification delay, horizon = {n} d" for n in (1, 2, 3)]
    assert len({json.dumps(chart.spec["layer"][0]["encoding"]["y"]["scale"]) for chart in lines[:3]}) == 1
    means = two.runs.query("variant == 'location'").groupby(["network.brokers", "horizon"])[DELAY].mean() * 1e3
    chart = named(charts, f"heat-{DELAY}-1-location")
    found = {(row["x"], row["y"]): row for row in rows(chart)}
    assert found["1,000", "3 d"]["value"] == pytest.approx(means[1000, 3 * 86400.0], rel=1e-4)
    assert [place for place, row in found.items() if row["best"]] == [("10", "1 d")]
    assert "Lowest at network.brokers = 10, horizon = 1 d: " in chart.caption
    difference = named(charts, f"heat-{DELAY}-1-location-difference")
    wide = two.runs.query("point == 0").pivot(index="replication", columns="variant", values=DELAY)
    expected = (100 * (wide["location"] / wide["static"] - 1)).mean()
    (row,) = [row for row in rows(difference) if (row["x"], row["y"]) == ("10", "1 d")]
    assert row["value"] == pytest.approx(expected, rel=1e-4)
    assert not any("static-difference" in chart.name for chart in charts)


def test_of_a_single_variant_lines_stand_for_the_second_axis(tmp_path: Path) -> None:
    points = grid(network__brokers=BROKERS, selection__cluster_size=[2, 5])
    charts = sweep_figures(swept(tmp_path, points, variants=("base",), **DELAY_ONLY))
    chart = named(charts, f"line-{DELAY}-network-brokers")
    assert {row["variant"] for row in rows(chart)} == {"cluster_size = 2", "cluster_size = 5"}


def test_of_three_axes_each_is_drawn_over_the_means_of_the_others(tmp_path: Path) -> None:
    points = grid(network__brokers=[10, 20], selection=["static", "location"], horizon=[60.0, 90.0])
    charts = sweep_figures(swept(tmp_path, points, **DELAY_ONLY))
    captions = {chart.name: chart.caption for chart in charts if chart.section == "lines"}
    assert captions[f"line-{DELAY}-selection"] == "Means over all values of network.brokers, horizon that were run."
    assert len(captions) == 3
    assert not [chart for chart in charts if chart.section == "heat"]
    names = [row["said"] for row in rows(named(charts, f"line-{DELAY}-selection"))]
    assert set(names) == {"static", "location"}


@pytest.mark.parametrize("case", ["three axes", "sample", "steep"])
def test_charts_of_one_metric_have_the_same_range_along_all_axes(tmp_path: Path, case: str) -> None:
    """Values depend much on one axis and little on another; categories are on the horizontal axis."""
    points = grid(network__brokers=[10, 1000], selection=["static", "location"], horizon=[60.0, 9000.0])
    sweep = None
    if case == "sample":
        draws = np.random.default_rng(3).random((40, 2))
        kinds = ("static", "location")
        points = [
            {"network.brokers": int(10 + 90 * x), "workload.size": y, "selection": kinds[y > x]}
            for x, y in draws.tolist()
        ]
        sweep = {"sample": "latin-hypercube", "samples": 40}

    def effect(values: Mapping[str, Any], variant: str) -> dict[str, float]:
        return {DELAY: values["network.brokers"] ** (2 if case == "steep" else 0.2) * (1 + (variant == "static"))}

    charts = sweep_figures(swept(tmp_path, points, effect=effect, sweep=sweep, **DELAY_ONLY))
    ranges = set()
    for chart in charts:
        if chart.section == "lines":
            encodings = [layer["encoding"] for layer in chart.spec["layer"]]
            axis = "x" if "y" in encodings[-1] and encodings[-1]["y"]["type"] == "nominal" else "y"
            ranges |= {json.dumps([one[axis]["scale"], one[axis]["title"]]) for one in encodings}
    assert len([chart for chart in charts if chart.section == "lines"]) == 3
    assert len(ranges) == 1
    assert ("log" in ranges.pop()) == (case == "steep")


def test_samples_are_clouds(tmp_path: Path) -> None:
    draws = np.random.default_rng(3).random((40, 2))
    points = [{"network.brokers": int(10 + 90 * x), "workload.size": float(y)} for x, y in draws]
    charts = sweep_figures(swept(tmp_path, points, sweep={"sample": "latin-hypercube", "samples": 40}, **DELAY_ONLY))
    assert [chart.section for chart in charts] == ["explore", *["lines"] * 2, "pareto"]
    assert len(rows(charts[1])) == 40 * 3 + 8 * 3


def test_points_of_a_search_are_a_cloud_too(tmp_path: Path) -> None:
    """They have no table that says how they came about."""
    points = [{"network.brokers": 3 * n % 31, "workload.size": n / 7 % 1} for n in range(1, 30)]
    charts = sweep_figures(swept(tmp_path, points, **DELAY_ONLY))
    assert [chart.section for chart in charts] == ["explore", *["lines"] * 2, "pareto"]
    assert "Marks are the points" in charts[1].caption


def test_any_two_axes_can_be_picked_with_panels_for_a_third(tmp_path: Path) -> None:
    points = grid(network__brokers=BROKERS, selection=["static", "location"], horizon=[60.0, 90.0])
    chart = named(sweep_figures(swept(tmp_path, points)), "explore")
    lists = {param["bind"]["name"]: param["bind"]["options"] for param in chart.spec["params"] if "bind" in param}
    axes_ = ["network.brokers", "selection", "horizon", "variant"]
    assert lists["across"] == lists["up"] == axes_
    assert lists["facet"] == ["none", *axes_]
    assert lists["metric"] == lists["against"] == ["notification delay (ms)", "notification overhead (messages)"]
    assert lists["network.brokers"] == ["all", "10", "32", "100", "316", "1,000"]
    assert len(rows(chart)) == 20 * 3
    means = swept(tmp_path, points).runs.query("point == 7 and variant == 'location'")[DELAY].mean()
    (row,) = [row for row in rows(chart) if (row["point"], row["variant"]) == (7, "location")]
    assert row["notification delay (ms)"] == pytest.approx(1e3 * means, rel=1e-4)
    assert (row["network.brokers"], row["selection"], row["horizon"]) == ("32", "location", "1.5 min")


def test_a_failed_run_is_not_drawn(two: Results) -> None:
    runs = two.runs[two.runs["point"] != 7]
    (chart,) = heat_maps(runs, axes_of(two), [DELAY], ["static"], None)
    assert len(rows(chart)) == 14


COSTS = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan])


@given(st.lists(st.tuples(COSTS, COSTS, COSTS), max_size=25))
def test_the_front_is_what_nobody_beats(costs: list[tuple[float, float, float]]) -> None:
    metrics = [DELAY, OVERHEAD, "delivery_ratio"]  # more of the last is better
    table = pd.DataFrame(costs, columns=metrics).assign(delivery_ratio=lambda table: -table["delivery_ratio"])
    assert pareto(table, metrics).tolist() == oracle.front(costs)


def test_the_plot_joins_the_front_and_fades_the_rest(charts_of_two: list[Figure]) -> None:
    chart = named(charts_of_two, f"pareto-{DELAY}-{OVERHEAD}")
    marks = [row for row in rows(chart) if "at" in row]
    assert len(marks) == 45
    front = oracle.front([(row["x_mean"], row["y_mean"]) for row in marks])
    assert [row["front"] for row in marks] == front
    assert 0 < sum(front) < 45
    best = min(marks, key=lambda row: (row["x_mean"], row["y_mean"]))
    assert f"{best['variant']} at {best['at']} (" in chart.caption


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("notification_dealy,lost", "unknown metric 'notification_dealy', did you mean 'notification_delay'"),
        ("lost", "expected two metrics"),
        ("lost,lost", "expected two metrics"),
        ("lost,due", "due: is neither better when higher nor when lower"),
    ],
)
def test_a_trade_off_is_between_two_metrics(text: str, said: str) -> None:
    with pytest.raises(ResultsError, match=said):
        trade_off(text)


def test_time_series_of_any_point_can_be_picked(tmp_path: Path) -> None:
    results = swept(tmp_path, grid(network__brokers=[10, 20, 40]), variants=("static", "location"), detailed=(0, 2))
    chart = named(sweep_figures(results), "series")
    lists = {param["name"]: param["bind"]["options"] for param in chart.spec["params"] if param["name"] != "zoom"}
    assert lists["point"] == ["0: network.brokers = 10", "2: network.brokers = 40"]
    assert lists["beside"] == ["none", *lists["point"]]
    assert lists["metric"] == ["notification delay (ms)", "notification overhead (messages/h)"]
    for point, text in ((0, lists["point"][0]), (2, lists["point"][1])):
        table = over_time(results.at(point), [DELAY]).sort_values(["variant", "start"])
        own = sorted(
            (row for row in chart.spec["datasets"]["windows"] if row["point"] == text),
            key=lambda row: (row["variant"], row["time"]),
        )
        for column, name in (("mean", ""), ("low", " low"), ("high", " high")):
            drawn = [row[f"notification delay (ms){name}"] for row in own]
            assert drawn == pytest.approx(1e3 * table[column].clip(lower=0), rel=1e-5)
        assert [row["warm_up"] for row in own] == table["warm_up"].tolist()
    svg_of(chart)


def test_time_series_of_many_points_are_merged_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = grid(network__brokers=[10, 20, 40])
    results = swept(tmp_path, points, variants=("static",), windows=50, detailed=(0, 1, 2))
    monkeypatch.setattr(series, "_SERIES", 2)
    monkeypatch.setattr(series, "_ROWS", 40)
    (chart,) = series.series_of_points(results, axes_of(results), [DELAY])
    assert len(chart.spec["datasets"]["windows"]) <= 2 * 20
    assert "bands are then from the 10 % to the 90 % quantile" in chart.caption
    assert chart.caption.endswith("Points that are not shown: 1.")
