"""What charts show, recomputed from the tables; and that they stay small and can be drawn without a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from fake_results import write_results
from scipy import stats

from analysis import trees
from analysis.charts import Figure, log_ticks, save_figures, spec_of, whole_axis
from analysis.comparison import by_replication
from analysis.convergence import running_means
from analysis.figures import figures, metrics_over_time
from analysis.tables import busiest_tree, delay_distribution, load_by_rank, over_time, runs_of
from sim.experiments.results import Results, load_results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return load_results(write_results(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def charts(results: Results) -> list[Figure]:
    return figures(results)


def data_rows(spec: dict[str, Any]) -> int:
    return sum(len(rows) for rows in spec["datasets"].values())


def series_of(results: Results, variant: str) -> pd.DataFrame:
    return pd.concat(results.table(run, "timeseries").assign(run=run) for run in runs_of(results, variant))


def test_a_window_shows_mean_and_interval_over_the_replications(results: Results) -> None:
    table = over_time(results, ["subscription_overhead", "notification_delay"])
    values = series_of(results, "similarity").query("window == 7")
    shown = table.query("variant == 'similarity' and start == 7 * 3600").set_index("metric")
    expected = {
        "subscription_overhead": values["subscription_overhead"],  # windows are an hour wide
        "notification_delay": values["notification_delay_sum"] / values["delivered"],
    }
    for metric, x in expected.items():
        low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
        assert shown.loc[metric, ["mean", "low", "high"]].tolist() == pytest.approx([x.mean(), low, high])


def test_merged_windows_keep_sums_and_never_cross_the_warm_up(results: Results) -> None:
    whole, merged = (over_time(results, ["handovers"], points).query("variant == 'static'") for points in (300, 5))
    assert len(merged) == 6  # blocks of five windows, the first of which is cut at the end of the warm-up
    hours = (merged["end"] - merged["start"]) / 3600
    assert (merged["mean"] * hours).sum() == pytest.approx(whole["mean"].sum())
    assert merged.query("warm_up")["end"].max() == merged.query("not warm_up")["start"].min() == 4 * 3600


def test_the_delay_distribution_counts_what_came_after_the_warm_up(results: Results) -> None:
    found = delay_distribution(results).query("variant == 'location'").set_index("delay")["share"]
    counts = pd.concat(results.table(run, "delays") for run in runs_of(results, "location")).query("window >= 4")
    for delay in (0.0, *found.index[1::3]):
        below = counts[counts["upper"] <= max(delay, 1e-6) * (1 + 1e-12)]["brokers"].sum()
        assert found[delay] == pytest.approx(below / counts["brokers"].sum())
    assert found.is_monotonic_increasing
    assert found.iloc[-1] == 1


def test_the_tail_of_delays_is_drawn_down_to_its_last_bins(results: Results, charts: list[Figure]) -> None:
    """Its shares are what the distribution leaves, on axes with labels at round numbers."""
    cdf, ccdf = (chart for chart in charts if chart.section == "delay")
    below = {(row["variant"], row["delay"]): row["share"] for row in rows_of_data(cdf)}
    for row in rows_of_data(ccdf):
        assert row["share"] == pytest.approx(1 - below[row["variant"], row["delay"]], abs=1e-6)
    counts = pd.concat(results.table(run, "delays") for run in runs_of(results, "static")).query("window >= 4")
    top = counts[counts["brokers"] > 0].groupby("upper")["brokers"].sum().iloc[-1] / counts["brokers"].sum()
    least = min(row["share"] for row in rows_of_data(ccdf) if row["variant"] == "static")
    assert least == pytest.approx(top, rel=1e-3)
    values = ccdf.spec["encoding"]["x"]["axis"]["values"]
    assert {float(f"{value:e}"[0]) for value in values} <= set(range(1, 10))


def rows_of_data(chart: Figure) -> list[dict[str, Any]]:
    return [row for rows in chart.spec["datasets"].values() for row in rows]


def test_labels_of_logarithmic_axes() -> None:
    assert log_ticks(3, 800) == [5, 10, 20, 50, 100, 200, 500]
    assert log_ticks(22, 45) == [30, 40]
    assert log_ticks(0.5, 2e6) == [1, 10, 100, 1000, 1e4, 1e5, 1e6]


def test_merged_windows_have_the_quantiles_of_single_ones(results: Results) -> None:
    table = over_time(results, ["load_stddev"], points=5).query("variant == 'static' and start == 5 * 3600")
    values = series_of(results, "static").query("5 <= window < 10")["load_stddev"]
    assert table[["low", "high"]].to_numpy()[0] == pytest.approx(np.quantile(values, [0.1, 0.9]))
    chart = next(chart for chart in metrics_over_time(results, ["load_stddev"]))
    assert chart.caption == ""  # few windows have confidence intervals


def test_means_converge_to_those_of_all_replications(results: Results) -> None:
    found = running_means(by_replication(results, "notification_delay")).query("variant == 'static'")
    values = results.runs.query("variant == 'static'").sort_values("replication")["notification_delay"]
    assert found["replications"].tolist() == [2, 3, 4, 5]
    assert found["mean"].tolist() == pytest.approx(values.expanding().mean().tolist()[1:])
    low, high = stats.t.interval(0.95, 2, values[:3].mean(), stats.sem(values[:3]))
    assert found[["low", "high"]].to_numpy()[1] == pytest.approx([low, high])


@pytest.mark.parametrize("high", [3, 4, 12, 13])
def test_only_whole_numbers_of_replications_are_labelled(high: int) -> None:
    axis = whole_axis(2, high).to_dict()
    assert axis.get("values", []) == (list(range(2, high + 1)) if high <= 12 else [])
    assert ("tickMinStep" in axis) == (high > 12)


def test_a_paper_has_column_width_and_no_colours(charts: list[Figure], tmp_path: Path) -> None:
    chosen = [chart for chart in charts if chart.name in ("delay", "hot-queue_length-0")]
    save_figures(chosen, tmp_path, paper=True)
    delay = (tmp_path / "delay.svg").read_text()
    assert 'width="252"' in delay
    assert "Times" in delay
    assert delay.count("stroke-dasharray") > 3
    for picture in tmp_path.glob("*.svg"):
        colours = re.findall("#([0-9a-f]{6})", picture.read_text())
        assert [colour for colour in colours if len({colour[:2], colour[2:4], colour[4:]}) > 1] == []
        assert [
            rgb for rgb in re.findall(r"rgb\((\d+), ?(\d+), ?(\d+)\)", picture.read_text()) if len({*rgb}) > 1
        ] == []


def test_loads_are_averaged_by_rank(results: Results) -> None:
    found = load_by_rank(results).query("variant == 'static'")["subscriptions"].to_numpy()
    loads = [np.sort(results.table(run, "brokers")["subscriptions"])[::-1] for run in runs_of(results, "static")]
    assert found == pytest.approx(np.mean(loads, axis=0))


def test_the_tree_begins_at_its_root_and_tells_relays_from_subscribers(results: Results) -> None:
    found = busiest_tree(results, "static")
    assert found is not None
    tree, brokers = found
    assert tree["role"].tolist()[0] == "root"
    assert set(tree.loc[tree["role"] == "relay", "subscribes"]) == {False}
    depth = tree.set_index("node")["depth"]
    children = tree[tree["parent"] >= 0]
    assert (children["depth"].to_numpy() == depth[children["parent"]].to_numpy() + 1).all()
    assert len(brokers) == 12


def test_a_variant_has_one_colour_in_every_chart(charts: list[Figure]) -> None:
    scales = {str(found) for figure in charts for found in _scales(figure.spec)}
    assert scales == {"(['static', 'location', 'similarity'], ['#0072B2', '#D55E00', '#009E73'])"}


def _scales(node: Any) -> list[tuple[list[str], list[str]]]:
    if isinstance(node, list):
        return [scale for item in node for scale in _scales(item)]
    if not isinstance(node, dict):
        return []
    own = []
    if isinstance(color := node.get("color"), dict) and color.get("field") == "variant":
        own = [(color["scale"]["domain"], color["scale"]["range"])]
    return own + [scale for item in node.values() for scale in _scales(item)]


def test_pictures_need_no_browser(charts: list[Figure], tmp_path: Path) -> None:
    paths = save_figures([charts[0], charts[-1]], tmp_path / "figures")
    kinds = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF-1."}
    assert [path.name for path in paths] == [c.name + suffix for c in (charts[0], charts[-1]) for suffix in kinds]
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(kinds[path.suffix])
        assert len(content) > 3000
    assert sorted(tmp_path.joinpath("figures").iterdir()) == sorted(paths)  # no temporary file stays


def test_a_long_name_of_a_variant_still_makes_a_file_name(tmp_path: Path) -> None:
    drawn = trees.trees(load_results(write_results(tmp_path, variants=("x/" * 300, "y"), replications=2)))
    names = [chart.name for chart in drawn]
    assert names == [f"tree-0-{'x-' * 29}x", "tree-1-y"]


@pytest.mark.parametrize(
    "case",
    [
        {"variants": ("base",)},
        {"replications": 1},
        {"warm_up": 0},
        {"brokers": 1200},
        {"windows": 6},
        {"brokers": 1200, "ring": False},
        {"brokers": 1200, "ring": False, "places": False},
        {"overrides": {"notification_delay": None}},
        {"variants": tuple(f"variant {i}" for i in range(16))},
    ],
    ids=str,
)
def test_every_chart_stays_below_the_limit_of_rows(case: dict[str, Any], tmp_path: Path) -> None:
    charts = figures(load_results(write_results(tmp_path, **{"replications": 2, **case})))
    assert {chart.section for chart in charts} == {
        "intervals",
        "time",
        "delay",
        "load",
        "hot",
        "topics",
        "overlay",
        "tree",
    }
    assert max(data_rows(chart.spec) for chart in charts) <= 5000


def test_fourteen_thousand_windows_are_merged(tmp_path: Path) -> None:
    results = load_results(write_results(tmp_path, variants=("a", "b"), replications=2, windows=14_000))
    (chart,) = metrics_over_time(results, ["notification_delay"])
    assert 300 < data_rows(chart.spec) <= 1000


@pytest.mark.parametrize(
    ("case", "where", "brokers"),
    [
        ({}, "on the ring of brokers", 12),
        ({"ring": False}, "on the map of brokers", 12),
        ({"ring": False, "places": False}, "in layers by hops", None),
    ],
)
def test_a_tree_is_drawn_where_its_brokers_have_places(
    case: dict[str, bool], where: str, brokers: int | None, tmp_path: Path
) -> None:
    results = load_results(write_results(tmp_path, variants=("a", "b"), **case))
    chart = trees.trees(results)[0]
    assert chart.description.startswith(f"The busiest topic's tree under a, {where}. Topic 40,-74: ")
    points = [row for rows in chart.spec["datasets"].values() for row in rows if "x" in row]
    assert {round(max(abs(row["x"]), abs(row["y"])), 1) for row in points} <= {n / 10 for n in range(11)}
    by_node = {row["node"]: row for row in points if "node" in row}
    assert len(by_node) == 6
    alone = [row for row in points if row.keys() == {"x", "y"}]
    assert len(alone) == (brokers or 0)
    if brokers:  # the tree's nodes stand where their brokers do
        assert {(row["x"], row["y"]) for row in by_node.values()} <= {(row["x"], row["y"]) for row in alone}
    else:  # the root at the top, each one below its parent, nobody on another
        assert by_node[0]["y"] == 1 == max(row["y"] for row in by_node.values())
        assert all(by_node[node]["y"] < by_node[node // 4 * 2]["y"] for node in by_node if node)
        assert len({(row["x"], row["y"]) for row in by_node.values()}) == 6


def test_a_map_is_true_to_scale(tmp_path: Path) -> None:
    """East-west distances shrink by the cosine of the latitude."""
    x, y = trees.on_map(pd.DataFrame({"longitude": [0.0, 10.0, 0.0], "latitude": [59.0, 61.0, 60.0]}))
    assert (x[1] - x[0]) / (y[1] - y[0]) == pytest.approx(10 * 0.5 / 2, rel=1e-3)


def test_layers_of_intervals_that_no_row_has_are_left_out() -> None:
    def layers(low: float) -> int:
        base = alt.Chart(pd.DataFrame({"x": [1, 2], "mean": [1.0, 2.0], "low": [np.nan, low]}))
        bars = base.transform_filter("isValid(datum.low)").mark_rule().encode(x="x:Q", y="low:Q")
        return len(spec_of(alt.layer(bars, base.mark_line().encode(x="x:Q", y="mean:Q")))["layer"])

    assert (layers(np.nan), layers(1.0)) == (1, 2)
