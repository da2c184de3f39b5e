"""The picture of a report that the README shows: the top of the demo's report, as a browser draws it.

Run in the project's folder as `python -m docs.picture`; the demo is run for it in a temporary folder. With the folder of a demo
that was run before, `python -m docs.picture demo`, its report is rewritten. It needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from analysis.report import write_report
from sim.base.errors import InputError
from sim.experiments.results import load_results
from sim.studies.demo import RESULTS, demo

IMAGE = Path(__file__).parent / "images" / "report.png"
WIDTH, HEIGHT = 1180, 1370
# A page of ours needs no network, so that it gets none; the time is virtual, and ends when all charts are drawn.
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --disable-sync --no-first-run --hide-scrollbars
--disable-background-networking --disable-component-update --proxy-server=127.0.0.1:9 --virtual-time-budget=20000
--force-device-scale-factor=1"""


def picture(page: Path, image: Path, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Draw the top of a page. Raises InputError where there is no Chromium, or it draws nothing."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise InputError("no Chromium is installed, which draws the picture")
    with tempfile.TemporaryDirectory() as profile:
        own = [f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={image.resolve()}"]
        command = [browser, *FLAGS.split(), *own, page.resolve().as_uri()]
        image.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if not image.is_file():
        raise InputError(f"{browser} drew nothing: {done.stderr[-500:]}")


def main(arguments: list[str]) -> None:
    """Draw the picture of a demo, which is run where no folder of one is given."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, page = Path(arguments[0]) if arguments else Path(temporary) / "demo", Path(temporary) / "report.html"
        results = load_results(folder / RESULTS) if arguments else demo(folder, say=print)
        write_report(results, page)
        picture(page, IMAGE)
    print(IMAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
