"""Offloading at the full size of Spotify's notifications: memory and time of the command, CPU time beside C++ (Linux: VmHWM)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.measure import Figure, cpu_seconds
from benchmarks.offloading import beside, policy, reference, spotify

MEMORY = 1.75
"""Most memory (GiB) of the command that decides on the dense workload."""
SECONDS = 10.0
"""Most CPU time (s) of a decision on the sparse workload."""
TAUS = (2, 27, 276, 2763)
_RUN = """
import sys, time
from sim.cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), peak, file=sys.stderr)
"""


def figures() -> Iterator[Figure]:
    """The command on 101 million interests; decisions for each threshold on the sparse workload; then both shapes beside C++."""
    yield from _commands()
    for name in ("b3m", "fb3m"):
        yield _sparse(name)
    with reference() as plain:
        for shape, tau, rounds in (("sparse", 27, 3), ("sparse", 2763, 3), ("dense", 27, 3), ("dense", 2763, 1)):
            yield from beside(plain, f"{shape}, full size", spotify(shape, 1, tau), tau, rounds)


def _commands() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        workload = f"{folder}/w"
        _command("generate", "spotify-dense", "--out", workload)
        for name in ("b3m", "fb3m"):
            options = ["--policy", name, "--capacity", "10%", "--tau", "27", "--json", "--quiet"]
            shown, wall, cpu, peak = _command("solve", "offloading", workload, *options)
            seconds = json.loads(shown)["seconds"]
            what = f"brokersim solve offloading, {name}, dense, full size, τ = 27: peak memory"
            text = f"{peak:.2f} GiB ({wall:.0f} s, {cpu:.0f} s of CPU; decides for {seconds:.0f} s)"
            yield Figure(what, text, f"≤ {MEMORY:g} GiB", peak <= MEMORY)


def _command(*arguments: str) -> tuple[str, float, float, float]:
    """What a command prints, its wall and CPU time (s), and its peak memory (GiB)."""
    start = time.perf_counter()
    ended = subprocess.run([sys.executable, "-c", _RUN, *arguments], check=True, capture_output=True, text=True)
    cpu, peak = ended.stderr.split()[-2:]
    return ended.stdout, time.perf_counter() - start, float(cpu), int(peak) / 2**20


def _sparse(name: str) -> Figure:
    """CPU times of a policy for all thresholds that the paper has."""
    chosen, given = policy(name), spotify("sparse", 1, TAUS[0])
    taken = [cpu_seconds(partial(chosen.decide, replace(given, threshold=tau))) for tau in TAUS]
    what = f"{name}, sparse, full size, τ = {', '.join(f'{tau:,}' for tau in TAUS)}: CPU time"
    text = ", ".join(f"{seconds:.1f}" for seconds in taken) + " s"
    return Figure(what, text, f"≤ {SECONDS:g} s", max(taken) <= SECONDS)
