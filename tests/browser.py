"""Open a page in a browser without a network: its charts, its console output, and its width."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    cut: [...document.querySelectorAll(".scroll")]
      .filter((place) => place.checkVisibility() && place.scrollWidth > place.clientWidth).length,
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
    cut: int
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
