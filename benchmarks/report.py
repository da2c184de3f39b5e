"""Reports in a browser: their size, and how long they take until what is in view is drawn, and everything.

Times are of Chromium, headless and without a network, as it measures them itself from the start of the navigation; beside them the CPU
time of all its processes, which a busy machine does not change much.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

# Any: messages of the browser have values of any type.
from typing import Any

import sim
from benchmarks.measure import Figure, family

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-sync --disable-background-networking
--disable-component-update --proxy-server=127.0.0.1:9 --window-size=1280,900 --remote-debugging-pipe"""
# when each chart was drawn, and whether it was in view
_WATCH = """addEventListener("load", () => { window.loadedAt = performance.now(); }); window.drawnAt = [];
new MutationObserver((changes) => changes.forEach(({ target }) => window.drawnAt.push(
  { at: performance.now(), seen: target.getBoundingClientRect().top < innerHeight, state: target.dataset.state })))
  .observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });"""
_SEEN = "({ loaded: window.loadedAt, drawn: window.drawnAt, all: document.querySelectorAll('[data-chart]').length })"
_SCENARIO: dict[str, Any] = {
    "replications": 2,
    "window": "1min",
    "workload": {"kind": "poisson", "users": 40, "topics": 20, "horizon": "1h", "publication_rate": 20.0},
    "network": {"brokers": 20},
    "variant": [{"name": f"variant {n}", "network": {"geometry": {"kind": "chord", "bits": 20 + n}}} for n in range(6)],
}
_SWEEP = {
    "network.brokers": [4, 8, 12, 16, 20],
    "workload.users": [20, 30, 40, 50],
    "workload.topics": [8, 12, 16, 20, 24],
}


def figures() -> list[Figure]:
    """A report of 100 points and six variants, and one of five variants."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, most, scenario in (
            ("100 points, 6 variants", 10, {**_SCENARIO, "sweep": _SWEEP}),
            ("5 variants", 3, {**_SCENARIO, "variant": _SCENARIO["variant"][:5], "network": {"brokers": 300}}),
        ):
            page = sim.report(sim.run(scenario, Path(folder) / name, jobs=2))
            size = page.stat().st_size / 1e6
            found.append(Figure(f"report of {name}", f"{size:.2f} MB", f"≤ {most} MB", size <= most))
            if _CHROMIUM is None:
                found.append(Figure(f"report of {name} opens", "no Chromium is installed", "≤ 2 s", None))
                continue
            seen, everything, cpu = min(opened(page) for _ in range(3))
            said = f"{seen:.2f} s, all charts in {everything:.2f} s, {cpu:.2f} s of CPU"
            found.append(Figure(f"report of {name} opens", said, "≤ 2 s", seen <= 2))
    return found


def opened(page: Path) -> tuple[float, float, float]:
    """Seconds until the page is loaded and its charts in view are drawn, until all charts are, and of CPU until then."""
    with tempfile.TemporaryDirectory() as profile:
        (out, commands), (answers, back) = os.pipe(), os.pipe()
        line = f"exec {shlex.quote(str(_CHROMIUM))} {_FLAGS} --user-data-dir={profile} about:blank 3<&{out} 4>&{back}"
        command = ["bash", "-c", line.replace("\n", " ")]
        browser = subprocess.Popen(command, pass_fds=(out, back), stderr=subprocess.DEVNULL)
        os.close(out)
        os.close(back)
        ask = _Protocol(commands, answers)
        target = next(one for one in ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        ask.session = ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        ask("Page.enable")
        ask("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        before = _cpu_seconds(browser.pid)
        ask("Page.navigate", url=page.resolve().as_uri())
        found: Any = {"drawn": []}
        while not found.get("loaded") or len(found["drawn"]) < found["all"]:
            time.sleep(0.2)
            found = ask("Runtime.evaluate", expression=_SEEN, returnByValue=True)["result"].get("value", found)
        cpu = _cpu_seconds(browser.pid) - before
        ask.session = None
        ask("Browser.close")
        browser.wait(30)
        os.close(commands)
        os.close(answers)
    assert {one["state"] for one in found["drawn"]} == {"drawn"}
    first = max(found["loaded"], *(one["at"] for one in found["drawn"] if one["seen"]), 0.0)
    return first / 1e3, max(one["at"] for one in found["drawn"]) / 1e3, cpu


def _cpu_seconds(browser: int) -> float:
    """The CPU time (s) of a process and its descendants so far."""
    ticks = 0
    for process in family(browser):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class _Protocol:
    """Chromium's debugging protocol over a pipe: commands with their answers, each ended by a zero byte."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._number, self._rest = write, read, 0, b""
        self.session: str | None = None

    def __call__(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        session = {"sessionId": self.session} if self.session else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found
