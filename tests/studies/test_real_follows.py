"""Offloading on real follows: the two scenarios on Last.fm and CiaoDVD, from the raw files to the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_numbers import assert_numbers_of_files

import sim
from analysis.report import render_report
from sim.spark import spark_session
from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
from sim.workloads.traces.follow_tables import preset_trace

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "data", "format"), [("lastfm", "lastfm-hetrec2011", "lastfm-hetrec"), ("ciaodvd", "ciaodvd", "ciaodvd")]
)  # fmt: skip
def test_a_short_back_end_on_real_follows(
    shared_data: Path, tmp_path: Path, scenario: str, data: str, format: str
) -> None:
    with spark_session("local[2]") as spark:
        prepare_follows(
            spark, preset_trace(format, shared_data / data), tmp_path / "w", FollowOptions(period=30 * 86400)
        )
    results = sim.run(SCENARIOS / f"{scenario}.toml", tmp_path / "r", workload=tmp_path / "w", jobs=2)
    runs = results.runs
    assert not results.failed
    assert (runs["due"] == runs["delivered"] + runs["lost"] + runs["in_flight"]).all()
    limited = runs[runs["variant"] != "none"]
    assert (limited["backend_load"] <= limited["backend_capacity"]).all()
    assert (limited["best_effort_deliveries"] > 0).all()

    means = runs.groupby("variant")[["satisfied_subscribers", "satisfaction", "approximation_ratio"]].mean()
    print(means.to_string())
    assert (means.loc["none"] >= means).drop(columns="approximation_ratio").all(axis=None)
    assert means["satisfaction"].drop("none").idxmax() == "fb3m"
    assert means.loc["fb3m", "approximation_ratio"] > 0.9
    assert means.loc["portfolio", "approximation_ratio"] >= means.loc["b3m", "approximation_ratio"]

    # what the back end does follows from the trace and varies with nothing that a replication draws
    assert_numbers_of_files(render_report(results), results.folder, "popular", ["notification_overhead"])
