"""The report by axe-core, which finds what keeps people from reading a page: `BROKERSIM_AXE` names its file, axe.min.js."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from browser import CHROMIUM, FLAGS
from fake_results import grid, write_sweep

from analysis.report import write_report
from sim.experiments.results import load_results

AXE = os.environ.get("BROKERSIM_AXE", "")
CHECK = """<script>
(function check(rounds) {
  const pending = [...document.querySelectorAll("[data-chart]")].some((chart) => !chart.dataset.state);
  if (rounds && pending) { setTimeout(check, 50, rounds - 1); return; }
  axe.run().then(({ violations }) => {
    document.documentElement.dataset.axe = JSON.stringify(violations.map(({ id, impact, nodes }) => [impact, id, nodes[0].html]));
  });
})(200);
</script>"""


@pytest.mark.skipif(CHROMIUM is None or not AXE, reason="needs Chromium, and BROKERSIM_AXE")
@pytest.mark.parametrize("width", [500, 1280, 1920])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_violation(theme: str, width: int, tmp_path: Path) -> None:
    write_sweep(
        tmp_path / "r", grid(network__brokers=[10, 20], horizon=[60.0, 120.0]), brokers=6, windows=6, replications=3
    )
    write_report(load_results(tmp_path / "r"), tmp_path / "report.html")
    before, end, after = (tmp_path / "report.html").read_text().rpartition("</body>")
    before = before.replace(f'id="theme-{theme}"', f'id="theme-{theme}" checked')
    (tmp_path / "report.html").write_text(f"{before}<script>{Path(AXE).read_text()}</script>{CHECK}{end}{after}")
    flags = FLAGS.replace("--window-size=1300,900", f"--window-size={width},900").split()
    command = [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "report.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = re.search(r'data-axe="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    assert [one for one in json.loads(html.unescape(found[1])) if one[0] in ("serious", "critical")] == []
