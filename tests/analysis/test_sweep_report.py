"""The report of a sweep: its content, read from its HTML, against the result files."""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_results import grid, write_sweep
from report_numbers import Page, body, interval

import sim
from analysis.formatting import describe
from analysis.report import draw, render_report
from sim.base.errors import ResultsError
from sim.experiments.results import Results, load_results
from sim.scenario.reader import load_scenario

DELAY, OVERHEAD = "notification_delay", "notification_overhead"
ONE = {"report": {"metrics": [DELAY, OVERHEAD]}, "replications": 3, "brokers": 4, "windows": 6, "warm_up": 1}
SWEEP = {"network.brokers": [10, 20], "horizon": ["1d", "2d"], "where": "network.brokers < 40"}
PRECISION = {"metric": DELAY, "relative": 0.02, "confidence": 0.95, "max_replications": 50}


def write(folder: Path, **case: Any) -> Results:
    points = grid(network__brokers=[10, 20], horizon=[86400.0, 2 * 86400.0])
    return load_results(write_sweep(folder, points, **{"detailed": (0, 3), "sweep": SWEEP, **ONE, **case}))


def text(page: str) -> str:
    page = re.sub(r"<style>.*?</style>", "", body(page), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def table_of_points(page: str) -> list[list[str]]:
    found = next(table for table in Page(body(page)).tables if table[0][0] == "point")
    return [[" ".join(cell.split()) for cell in row] for row in found]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return write(tmp_path_factory.mktemp("sweep"))


def test_the_page_says_what_was_swept_and_what_came_out(results: Results) -> None:
    said = text(render_report(results, []))
    for expected in (
        "4 points, 3 variants, 3 replications of each: 36 runs.",
        "network.brokers 10, 20 horizon 1 d, 2 d",
        "notification delay: lowest with location at network.brokers = 10, horizon = 1 d: ",
        "location against static: notification delay −2",
        "Point 0: network.brokers = 10, horizon = 1 d",
        "brokersim report RESULTS --point N , N from 0 to 3",
    ):
        assert expected in said


def test_the_table_of_points_has_the_numbers_of_the_files(results: Results) -> None:
    head, *rows = table_of_points(render_report(results, []))
    assert head == [
        *("point", "network.brokers", "horizon", "variant", "runs"),
        *("notification delay (ms)", "notification overhead (messages)"),
    ]
    assert len(rows) == 4 * 3
    assert rows[5][:5] == ["1", "10", "2 d", "similarity", "3"]
    runs = pd.read_parquet(results.folder / "runs.parquet").query("point == 1")
    wide = runs.pivot(index="replication", columns="variant", values=DELAY)
    mean = " ".join(describe(interval(wide["similarity"]), 1e-3))
    difference = describe(interval(100 * (wide["similarity"] / wide["static"] - 1)), signed=True)
    assert rows[5][5] == f"{mean} {difference[0]} % {difference[1]} ✗"


def test_another_point_can_be_shown(results: Results) -> None:
    page = render_report(results, [], point=3)
    said = text(page)
    assert "Point 3: network.brokers = 20, horizon = 2 d" in said
    assert "horizon 2 d warm-up 1 h" in said
    runs = results.runs.query("point == 3 and variant == 'static'")
    compared = next(table for table in Page(body(page)).tables if table[0][0] == "metric")
    assert " ".join(compared[1][2].split()) == " ".join(describe(interval(runs[DELAY]), 1e-3))


def test_a_point_that_does_not_exist_or_has_no_run_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="--point: expected 0 to 3, found 4"):
        render_report(results, [], point=4)
    failed = [
        {"point": 0, "label": "network.brokers = 10", "variant": "static", "replication": 0, "reason": "KeyError: 7"}
    ]
    broken = write(tmp_path, failed=failed, detailed=(0, 1))
    broken.__dict__["runs"] = broken.runs.query("point > 0")
    with pytest.raises(
        ResultsError, match=r"no run of point 0 finished \(network.brokers = 10, static, replication 0: Key"
    ):
        render_report(broken, [], point=0)
    said = text(render_report(broken, []))
    assert (
        "1 of 28 runs failed and are missing below: network.brokers = 10, static, replication 0: KeyError: 7." in said
    )
    assert "Point 1: " in said


def test_many_points_are_cut_and_said(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.sweeps.page._ROWS", 8)
    page = render_report(results, [])
    assert [row[0] for row in table_of_points(page)] == ["point", "0", "0", "0", "1", "1", "1"]
    assert "These are the first 2 points; 2 more stand in runs.parquet" in text(page)


def test_what_precision_and_warm_up_came_to_is_said(tmp_path: Path) -> None:
    reached = [{"replications": n, "reached": n < 50} for n in (10, 50, 17, 12)]
    warm_up = [{"seconds": 3600.0 * n, "detected": n != 3} for n in (1, 2, 3, 1)]
    results = write(tmp_path, precision={**PRECISION, "points": reached}, detected=warm_up)
    page = render_report(results, [], point=3)
    said = text(page).replace("\u00a0", " ")
    for expected in (
        "precision notification delay to within 2 % with 95 % confidence, or 50 replications: "
        "reached at 3 of 4 points, with 10 to 50; not at point 1 warm-up",
        "warm-up 1 h to 3 h, detected by MSER-5; no end of it found at point 2, where",
        "confidence, or 50 replications: reached with 12 seed",
        "warm-up 1 h, detected by MSER-5 window",
        "the mean over 12 replications",
    ):
        assert expected in said, expected
    head, *rows = table_of_points(page)
    assert head[4:7] == ["runs", "precise", "warm-up"]
    assert [row[5:7] for row in rows[::3]] == [["yes", "1 h"], ["no", "2 h"], ["yes", "3 h"], ["yes", "1 h"]]
    again = re.search(r"every default filled in</summary>\s*<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)
    assert again
    scenario = tomllib.loads(html.unescape(again[1]))
    assert (scenario["sweep"], scenario["precision"], scenario["warm_up"]) == (SWEEP, PRECISION, "detect")


def test_sobol_indices_stand_in_a_table_or_it_is_said_why_not(tmp_path: Path) -> None:
    points = [{"network.brokers": 10.0 + n % 7, "horizon": 60.0 + n % 5} for n in range(24)]
    sweep = {"sample": "saltelli", "samples": 4}
    results = load_results(write_sweep(tmp_path, points, sweep=sweep, **ONE, overrides={OVERHEAD: None}))
    page = render_report(results, [])
    found = next(table for table in Page(body(page)).tables if table[0][:2] == ["metric", "variant"])
    assert len(found) == 1 + 3 * 2
    assert found[1][:3] == ["notification delay", "static", "network.brokers"]
    assert "No index of notification overhead of static: 24 of 24 points have no value" in text(page)
    assert "network.brokers 10 to 16, sampled" in text(page)


def test_of_a_sweep_that_was_run(tmp_path: Path) -> None:
    scenario = {
        "replications": 2,
        "workload": {"kind": "poisson", "users": 30, "topics": 10, "horizon": "1h"},
        "network": {"brokers": 6},
        "variant": [{"name": "static"}, {"name": "four", "network": {"brokers": 4}}],
        "report": {"metrics": [DELAY]},
        "sweep": {"network.brokers": [4, 8], "workload.users": {"from": 20, "to": 40, "steps": 2}},
    }
    results = sim.run(scenario, out=tmp_path / "results")
    charts = draw(results, point=2)
    assert {chart.section for chart in charts} == {
        *("explore", "series", "lines", "heat", "pareto"),
        *("intervals", "time", "delay", "load", "hot", "topics", "overlay", "tree"),
    }
    page = render_report(results, charts, point=2)
    assert "4 points, 2 variants, 2 replications of each: 16 runs." in text(page)
    assert "Point 2: network.brokers = 8, workload.users = 20" in text(page)
    assert "users 20" in text(page)  # of the workload of this point
    again = re.search(r"every default filled in</summary>\s*<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)
    assert again
    (tmp_path / "again.toml").write_text(html.unescape(again[1]))
    wanted, found = load_scenario(scenario), load_scenario(tmp_path / "again.toml")
    assert [point.variants for point in found.points] == [
        {name: one.model_copy(update={"title": results.manifest["title"]}) for name, one in point.variants.items()}
        for point in wanted.points
    ]
