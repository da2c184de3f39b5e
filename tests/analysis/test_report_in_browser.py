"""The report as a browser without a network shows it: every chart drawn, nothing on the console, no sideways scrolling."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM, show
from fake_results import write_results

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


def test_the_check_notices_what_is_broken(page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    wide = '<p style="width: 600px">wide</p><img alt="" src="http://brokersim.invalid/a.png">'
    text = page.read_text().replace('"type":"area"', '"type":"aria"')
    broken.write_text(text.replace("</header>", f"{wide}</header>", 1))
    shown = show(broken, 480, tmp_path)
    assert "chart-time-notification_delay" in shown.undrawn
    assert "chart-delay" not in shown.undrawn
    assert any("brokersim.invalid" in line for line in shown.console)
    assert len(shown.console) > 1
    assert shown.scroll > 480
