"""The main job on real input: what similarity-based selection saves on a world-wide trace of check-ins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report_numbers import assert_numbers_of_files
from scipy import stats

import sim
from analysis.report import render_report
from sim.spark import spark_session
from sim.workloads.traces.layouts import GOWALLA
from sim.workloads.traces.pipeline import prepare_checkins

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios" / "gowalla-world.toml"


@pytest.mark.long
def test_similarity_saves_subscription_changes_on_gowalla(shared_data: Path, tmp_path: Path) -> None:
    with spark_session("local[2]") as spark:
        trace = shared_data / "gowalla-world" / "checkins.tsv.gz"
        workload = prepare_checkins(spark, [trace], tmp_path / "w", GOWALLA)
    assert workload.rows is not None
    assert (workload.rows["read"], len(workload.topics), len(workload.users)) == (86_670, 284, 11_864)

    results = sim.run(SCENARIO, tmp_path / "r", workload=tmp_path / "w", jobs=2)
    runs = results.runs
    assert not results.failed
    assert (runs["due"] == runs["delivered"] + runs["lost"] + runs["in_flight"]).all()
    changes = runs.pivot(index="replication", columns="variant", values="broker_subscription_changes")
    saved = 100 * (changes["similarity"] / changes["location"] - 1)
    low, high = stats.t.interval(0.95, len(saved) - 1, saved.mean(), saved.std(ddof=1) / np.sqrt(len(saved)))
    print(f"broker subscription changes, similarity against location: {saved.mean():.1f} % [{low:.1f}, {high:.1f}]")
    assert high < 0

    page = render_report(results)
    assert "duplicate" in page
    assert_numbers_of_files(
        page, results.folder, "location", [m for m in results.manifest["report"]["metrics"] if m != "handovers"]
    )
