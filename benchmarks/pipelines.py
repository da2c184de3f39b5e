"""Rows per second, CPU and memory of `brokersim prepare` against DuckDB and Polars validating the same raw rows (Linux).

ROWS in the environment is how many check-ins there are, two million by default, with five times as many events.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import traces
from benchmarks.measure import Figure, family
from benchmarks.rivals import Counts

ROWS = int(os.environ.get("ROWS", 2_000_000))
THREADS = 2
DRIVER_MEMORY = "3g"
MOST = 6e9  # bytes that all processes of a pipeline may take
MANY = 10_000_000  # rows from which on the CPU time of each counts
RIVALS = {"duckdb": "DuckDB", "polars": "Polars"}
_RIVAL = """
import importlib, json, sys
from pathlib import Path
from benchmarks import rivals
library, trace, source, out, threads = sys.argv[1:]
importlib.import_module(library)
print("reading", file=sys.stderr, flush=True)
counts = getattr(rivals, f"{library}_{trace}")(Path(source), Path(out), int(threads))
print("done", file=sys.stderr, flush=True)
print(json.dumps(counts))
"""
PAUSE = 0.1  # s, between two checks of the processes


@dataclass(frozen=True)
class Trace:
    """Raw rows of one kind; `options` tell `prepare` how they are laid out, `after` is its first step without Spark."""

    name: str
    rows: int
    options: Sequence[str]
    after: str


@dataclass(frozen=True)
class Cost:
    """Wall and CPU time (s) of validating the rows, and of the whole command; the most memory (bytes) of all processes."""

    seconds: float
    cpu: float
    whole_seconds: float
    whole_cpu: float
    peak: float

    def described(self, rows: int) -> str:
        """The rate of validating rows, in words."""
        speed = f"{rows / self.seconds:,.0f} rows/s, {rows / self.cpu:,.0f} per second of CPU"
        return f"{speed} ({self.cpu:,.1f} s), {self.peak / 1e6:,.0f} MB"


@dataclass
class Meter:
    """The cost so far of a process and its descendants, including a JVM and processes that have ended."""

    process: int
    peak: float = 0.0
    command: float = 0.0
    """The most memory (bytes) of the process itself."""
    _ticks: dict[int, int] = field(default_factory=dict)

    def look(self) -> tuple[float, float]:
        """The time (s) now, and the CPU time (s) so far."""
        resident = 0
        for process in family(self.process):
            try:
                numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            self._ticks[process] = max(self._ticks.get(process, 0), int(numbers[11]) + int(numbers[12]))
            memory = int(numbers[21]) * os.sysconf("SC_PAGE_SIZE")
            resident += memory
            if process == self.process:
                self.command = max(self.command, memory)
        self.peak = max(self.peak, resident)
        return time.perf_counter(), sum(list(self._ticks.values())) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Check repeatedly while the body runs."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(PAUSE):
                self.look()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _measure(command: Sequence[str], environment: Mapping[str, str], after: str) -> tuple[Cost, str]:
    """The cost of a command that validates rows from where it says "reading" to where it says `after`; its output."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    meter = Meter(process.pid)
    start = first = last = meter.look()
    with meter.running():
        said = []
        for line in process.stderr:
            said.append(line)
            if "reading" in line:
                first = meter.look()
            elif after in line:
                last = meter.look()
        output = process.stdout.read()
        assert process.wait() == 0, "".join(said)
    end = meter.look()
    return Cost(last[0] - first[0], last[1] - first[1], end[0] - start[0], end[1], meter.peak), output


def _spark(trace: Trace, source: Path, out: Path, cores: int) -> tuple[Cost, Counts]:
    prepare = [str(Path(sys.executable).with_name("brokersim")), "prepare", trace.name, str(source), "--out", str(out)]
    session = ["--master", f"local[{cores}]", "--driver-memory", DRIVER_MEMORY]
    cost, _ = _measure([*prepare, *trace.options, *session], {}, trace.after)
    manifest = json.loads((out / "manifest.json").read_text())
    rows, counts = manifest["rows"], manifest["counts"]
    return cost, {"kept": rows["kept"], **rows["quarantined"], "users": counts["users"], "topics": counts["topics"]}


def _rival(library: str, trace: Trace, source: Path, out: Path) -> tuple[Cost, Counts]:
    out.mkdir()
    command = [sys.executable, "-c", _RIVAL, library, trace.name, str(source), str(out), str(THREADS)]
    cost, output = _measure(command, {"POLARS_MAX_THREADS": str(THREADS)}, "done")
    return cost, json.loads(output)


def figures() -> Iterator[Figure]:
    """Rows/s from the raw file to typed usable rows and the quarantine, each library in a process of its own.

    All must come to the same counts of usable rows, of rows by reason, of users and of topics.
    """
    _check_rivals()
    for trace in (
        Trace("checkins", ROWS, ("--format", "gowalla"), "finding visits"),
        Trace("events", 5 * ROWS, ("--format", "mqtt"), "following sessions"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            yield from _compare(trace, Path(folder))
    from benchmarks import preparing  # which measures with the same meter

    yield from preparing.figures()


def _compare(trace: Trace, folder: Path) -> Iterator[Figure]:
    source = folder / f"{trace.name}.tsv"
    getattr(traces, f"write_{trace.name}")(source, trace.rows)
    what = f"{trace.rows:,} {trace.name}"
    expected: Counts = {}
    duckdb = 0.0
    for library, name in RIVALS.items():
        cost, counts = _rival(library, trace, source, folder / library)
        duckdb = duckdb or cost.cpu
        expected = expected or counts
        assert counts == expected, f"{name}: {counts}, expected {expected}"  # else there is nothing to compare
        yield Figure(f"{what}: {name}, {THREADS} threads", cost.described(trace.rows), "the same counts", True)
    alone = 0.0
    for cores in (1, 2):
        cost, counts = _spark(trace, source, folder / f"spark-{cores}", cores)
        per_core = trace.rows / cost.seconds / cores
        alone = alone or per_core
        text = (
            f"{cost.described(trace.rows)}; {per_core / alone:.0%} of local[1]'s rows/s per core; "
            f"whole command {cost.whole_seconds:,.0f} s, {cost.whole_cpu:,.0f} s of CPU; {cost.cpu / duckdb:.1f} × DuckDB's CPU"
        )
        assert counts == expected, f"Spark: {counts}, expected {expected}"
        few = trace.rows < MANY  # of which starting takes most
        bar = "the same counts, < 6 GB" if few else "the same counts, < 6 GB, ≤ 3 × DuckDB's CPU"
        yield Figure(f"{what}: Spark, local[{cores}]", text, bar, cost.peak < MOST and (few or cost.cpu <= 3 * duckdb))


def _check_rivals() -> None:
    from importlib.util import find_spec

    missing = [name for library, name in RIVALS.items() if find_spec(library) is None]
    if missing:
        sys.exit(f"benchmarks: {' and '.join(missing)} not installed: .venv/bin/pip install -e '.[benchmarks]'")
