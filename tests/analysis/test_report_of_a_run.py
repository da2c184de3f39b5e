"""The report of a real run: what it draws over time adds up to what it tabulates, and every section has its charts."""

from __future__ import annotations

import pandas as pd
import pytest

import sim
from analysis.figures import figures
from analysis.report import render_report
from analysis.tables import RATIOS, delay_distribution
from sim.experiments.results import Results

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


def windows(results: Results, run: str) -> pd.DataFrame:
    series = results.table(run, "timeseries")
    return series[~series["warm_up"]]


def test_windows_add_up_to_the_scalars(results: Results) -> None:
    for _, run in results.runs.iterrows():
        counted = windows(results, run["run"])
        for metric, (above, below, *without) in RATIOS.items():
            number = counted[below].sum() - sum(counted[name].sum() for name in without if name in counted)
            if number:
                assert counted[above].sum() / number == pytest.approx(run[metric]), metric
            else:  # nothing was decided, and nobody's satisfaction measured
                assert pd.isna(run[metric]), metric
        for metric in ("broker_subscription_changes", "subscription_overhead", "notification_overhead", "delivered"):
            assert counted[metric].sum() == run[metric] > 0, metric
        width = counted["end"] - counted["start"]
        assert (counted["load_jain"] * width).sum() / width.sum() == pytest.approx(run["load_jain"])


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
        "delay": 1,
        "load": 1,
        "tree": 2,
    }
    page = render_report(results, charts)
    assert "none (generated anew for each replication)" in page
    assert "brokersim run scenario.toml --out RESULTS" in page
