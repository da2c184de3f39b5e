"""Workloads at the size of Spotify, made, checked and written by the command: CPU time and peak memory of the whole process (Linux)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Figure

_RUN = """
import sys, time
from sim.cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), peak)
"""


def figures() -> Iterator[Figure]:
    """`generate` of the dense and of the sparse shape, 1.1 million topics and 4.9 million users each."""
    for kind in ("spotify-dense", "spotify-sparse"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _RUN, "generate", kind]
            subprocess.run([*command, "--scale", "0.001", "--out", folder], check=True, capture_output=True)  # compiles
            shown = subprocess.run([*command, "--out", folder], check=True, capture_output=True, text=True).stdout
        counts, measured = shown.splitlines()
        seconds, kibibytes = measured.split()
        name = f"generate {kind}, {counts.split(', ')[-1]}"
        yield Figure(f"{name}: CPU", f"{float(seconds):.1f} s", "≤ 120 s", float(seconds) <= 120)
        peak = int(kibibytes) / 1024
        yield Figure(f"{name}: peak memory", f"{peak:,.0f} MiB", "≤ 2,048 MiB", peak <= 2048)
