"""The report as a browser without a network shows it: every chart drawn, nothing on the console, no sideways scrolling."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_results import write_results

from analysis.report import write_report
from sim.experiments.results import load_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --disable-sync --no-first-run
--disable-background-networking --disable-component-update --proxy-server=127.0.0.1:9 --window-size=1300,900
--virtual-time-budget=20000 --enable-logging=stderr --v=0 --dump-dom"""

# In the page: waits until no chart is pending any more, then tells the frame's owner what it measured.
PROBE = """<script>
(function measure(rounds) {
  const charts = [...document.querySelectorAll("[data-chart]")];
  if (rounds && charts.some((chart) => !chart.dataset.state)) { setTimeout(measure, 50, rounds - 1); return; }
  parent.postMessage({
    inner: innerWidth,
    scroll: document.scrollingElement.scrollWidth,
    charts: charts.map((chart) => {
      const svg = chart.querySelector("svg");
      const box = svg ? svg.getBoundingClientRect() : { width: 0, height: 0 };
      return { name: chart.dataset.chart, state: chart.dataset.state, width: box.width, height: box.height,
               marks: svg ? svg.querySelectorAll("[class^=mark-] path").length : 0 };
    }),
  }, "*");
})(200);
</script>"""
# Around it: a frame, since no window of a browser is as narrow as a phone, that keeps what it is told.
FRAME = """<!doctype html><iframe style="border: 0; width: WIDTHpx; height: 800px" src="probed.html"></iframe><script>
onmessage = (message) => { document.documentElement.dataset.probe = JSON.stringify(message.data); };
</script>"""


@dataclass(frozen=True)
class Shown:
    inner: int
    scroll: int
    charts: list[dict[str, Any]]
    console: list[str]

    @property
    def undrawn(self) -> list[str]:
        return [chart["name"] for chart in self.charts if not self._drawn(**chart)]

    @staticmethod
    def _drawn(name: str, width: float, height: float, marks: int, state: str = "pending") -> bool:
        return state == "drawn" and width > 100 and height > 40 and marks > 0


def show(page: Path, width: int, folder: Path) -> Shown:
    """Open a copy of the page with the probe in it, in a browser that resolves no name."""
    before, end, after = page.read_text().rpartition("</body>")
    (folder / "probed.html").write_text(before + PROBE + end + after)
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)))
    own = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"]
    command = [str(CHROMIUM), *FLAGS.split(), *own, (folder / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    probe = re.search(r'data-probe="([^"]*)"', done.stdout)
    assert probe, f"the page never came to rest: {done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Shown(**json.loads(html.unescape(probe[1])), console=console)


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
