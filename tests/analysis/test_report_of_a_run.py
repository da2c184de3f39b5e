"""The report of a real run: charts over time add up to the tables, and every section has its charts."""

from __future__ import annotations

from pathlib import Path

import pytest

import sim
from analysis.figures import figures, metrics_over_time
from analysis.formatting import quantity
from analysis.hottest import hottest
from analysis.report import render_report
from analysis.tables import delay_distribution, over_time
from analysis.topics import topic_scatter
from sim.experiments.results import Results
from sim.metrics import METRICS, Metric

SCENARIO = {
    "title": "A small network",
    "replications": 2,
    "warm_up": "2h",
    "workload": {"kind": "poisson", "users": 60, "topics": 40, "horizon": "12h", "change_rate": 0.5},
    "network": {"brokers": 12, "latency": {"kind": "unit"}},
    "variant": [
        {"name": "static"},
        {"name": "similarity", "selection": {"kind": "similarity", "update_period": "2h"}},
    ],
    "report": {"metrics": ["subscription_overhead", "notification_delay", "uplink_hops", "load_stddev"]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return sim.run(SCENARIO, out=tmp_path_factory.mktemp("run") / "results")


MOVING = {
    **SCENARIO,
    "replications": 1,
    "topic_delays": True,
    "warm_up": "150min",
    "workload": {**SCENARIO["workload"], "publication_rate": 20.0},  # type: ignore[dict-item]
    "reconfiguration": {"kind": "lsap", "period": "90min"},
    "offloading": {"kind": "b3m", "capacity": "60%", "tau": 10, "period": "50min", "delivery_probability": 0.9},
    "faults": [{"kind": "drain", "brokers": [0], "at": "4h", "rate": 1, "for": "10min"}],
    "variant": [{"name": "base"}],
}


@pytest.fixture(scope="module", params=["10h", "25min", "1h"])
def moving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run in which everything happens that windows know of, with windows of that width."""
    return sim.run({**MOVING, "window": request.param}, out=tmp_path_factory.mktemp("moving") / "results")


@pytest.mark.parametrize("metric", [metric for metric in METRICS.values() if metric.windows], ids=lambda one: one.name)
def test_what_a_chart_draws_of_all_windows_together_is_the_scalar_of_the_run(moving: Results, metric: Metric) -> None:
    scalar = moving.runs[metric.name].iloc[0]
    drawn = over_time(moving, [metric.name], points=1).query("not warm_up")
    hours = (12 - 2.5) if metric.windows == "sum" else 1.0  # sums are drawn per hour
    happened = metric.name not in {"session_delay", "catch_up_time", "retained_delay"}  # nobody is offline here
    assert drawn["mean"].tolist() == pytest.approx([scalar / hours] if happened else [])


def test_delays_of_topics_add_up_to_those_of_the_run_and_colour_the_scatter(moving: Results) -> None:
    run = moving.runs.iloc[0]
    topics = moving.table(run["run"], "topics")
    for whom in ("", "user_"):
        deliveries, delays = topics[f"{whom}deliveries"], topics[f"{whom}notification_delay"]
        assert (deliveries * delays).sum() / deliveries.sum() == pytest.approx(run[f"{whom}notification_delay"])
    assert topics["notification_delay_max"].max() == run["notification_delay_max"]
    (scatter,) = topic_scatter(moving)
    assert "Colours are mean delays to brokers." in scatter.caption
    (hot, *_) = hottest(moving, "base")
    busiest = topics.sort_values(["copies", "publications"], ascending=False, kind="stable").iloc[0]
    assert hot.columns[-2:] == ("delay to brokers", "longest")
    assert hot.rows[0][-2:] == tuple(quantity(busiest[f"notification_delay{which}"], "s") for which in ("", "_max"))


def test_delays_of_topics_have_a_chart_for_each_variant_with_the_same_colours(tmp_path: Path) -> None:
    """In one chart the marks of variants would hide each other, as their topics have the same audiences and rates."""
    charts = topic_scatter(sim.run({**SCENARIO, "replications": 1, "topic_delays": True}, out=tmp_path / "r"))
    assert [(chart.name, chart.variant) for chart in charts] == [("topics-0", "static"), ("topics-1", "similarity")]
    ends = [chart.spec["encoding"]["color"]["scale"]["domain"] for chart in charts]
    drawn = [row["delay"] for chart in charts for rows in chart.spec["datasets"].values() for row in rows]
    assert ends[0] == ends[1] == [min(drawn), max(drawn)]


def test_windows_have_no_metric_of_which_nobody_knows_how_it_adds_up(moving: Results) -> None:
    columns = {*moving.table(moving.runs["run"].iloc[0], "timeseries").columns}
    assert {name for name, metric in METRICS.items() if metric.windows is None} & columns == set()
    sums = {name for name, metric in METRICS.items() if metric.windows in ("sum", "average")}
    assert sums <= columns


def test_a_cost_per_period_and_a_bound_are_drawn_as_what_they_are(moving: Results) -> None:
    charts = {chart.name: chart.spec for chart in metrics_over_time(moving, ["ssbr_cost", "reconfiguration_bound"])}
    titles = [
        layer["encoding"]["y"]["title"]
        for name in ("time-ssbr_cost", "time-reconfiguration_bound")
        for layer in charts[name]["layer"]
        if "title" in layer["encoding"].get("y", {})
    ]
    assert titles == ["ssbr cost", "reconfiguration bound (messages/h)"]


def test_quantiles_of_the_distribution_are_those_of_the_table(results: Results) -> None:
    found = delay_distribution(results).set_index("variant")
    for variant, runs in results.runs.groupby("variant"):
        curve = found.loc[variant]
        median = curve.loc[curve["share"] >= 0.5, "delay"].min()
        low, high = runs["notification_delay_p50"].agg(["min", "max"])
        assert 0.98 * low <= median <= 1.02 * high


def test_every_section_has_its_charts(results: Results) -> None:
    charts = figures(results)
    sections = [chart.section for chart in charts]
    assert {name: sections.count(name) for name in dict.fromkeys(sections)} == {
        "intervals": 4,
        "time": 4,
        "delay": 2,
        "load": 1,
        "hot": 2,
        "topics": 1,
        "overlay": 2,
        "tree": 2,
    }
    page = render_report(results, charts)
    assert "none (generated for each replication)" in page
    assert "brokersim run scenario.toml --out RESULTS" in page
