"""The report in a browser without a network: every chart is drawn, the console is empty, and nothing scrolls sideways."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM, show
from fake_results import grid, write_results, write_sweep

from analysis.report import write_report
from sim.experiments.results import load_results

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_report(load_results(write_results(folder, topic="<script>alert(1)</script>")), folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("width", [1280, 480])
def test_every_chart_is_drawn_without_a_network(page: Path, width: int, tmp_path: Path) -> None:
    shown = show(page, width, tmp_path)
    assert len(shown.charts) == page.read_text().count('type="application/json"') >= 10
    assert shown.undrawn == []
    assert shown.console == []
    assert shown.inner == width
    assert shown.scroll <= width
    assert shown.cut == 0  # no table has columns out of sight


@pytest.mark.parametrize("width", [1280, 500])
def test_so_is_every_chart_of_a_sweep(width: int, tmp_path: Path) -> None:
    """At the width of a desk two axes of numbers, at that of a phone one of categories among three, and Sobol's indices."""
    small = {"variants": ("static", "location"), "brokers": 4, "windows": 6, "warm_up": 1, "replications": 2}
    report = {"metrics": ["notification_delay"]}
    points, sweep = grid(network__brokers=[10, 100, 1000], horizon=[60.0, 120.0]), {}
    if width == 500:
        points = [
            {"network.brokers": 10 + n % 5, "selection": ["static", "a long name" * 9][n % 2], "horizon": 60.0 * n}
            for n in range(32)
        ]
        sweep = {"sample": "saltelli", "samples": 4}
    write_sweep(tmp_path / "results", points, sweep=sweep, report=report, **small)
    write_report(load_results(tmp_path / "results"), tmp_path / "report.html")
    shown = show(tmp_path / "report.html", width, tmp_path)
    assert {chart["name"].split("-")[1] for chart in shown.charts} > {
        "line",
        "pareto",
        "heat" if width > 500 else "sobol",
    }
    assert shown.undrawn == []
    assert shown.console == []
    assert shown.scroll <= shown.inner == width


def test_the_check_notices_what_is_broken(page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    table = '<div class="scroll"><table style="width: 600px"></table></div>'
    wide = '<p style="width: 600px">wide</p><img alt="" src="http://brokersim.invalid/a.png">'
    text = page.read_text().replace('"type":"area"', '"type":"aria"')
    broken.write_text(text.replace("</header>", f"{wide}{table}</header>", 1))
    shown = show(broken, 480, tmp_path)
    assert "chart-time-notification_delay" in shown.undrawn
    assert "chart-delay" not in shown.undrawn
    assert any("brokersim.invalid" in line for line in shown.console)
    assert len(shown.console) > 1
    assert shown.scroll > 480
    assert shown.cut > 0
