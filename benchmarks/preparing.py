"""The cost of whole `brokersim prepare` commands against an earlier commit, in alternation, and as rows become more (Linux).

BEFORE in the environment is that commit, which is checked out beside the measurements; MOST_ROWS the most check-ins to prepare.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import traces
from benchmarks.measure import Figure
from benchmarks.pipelines import Meter

ROOT = Path(__file__).resolve().parents[1]
BEFORE = os.environ.get("BEFORE", "")
MOST_ROWS = int(os.environ.get("MOST_ROWS", 10_000_000))
ROUNDS = 3
CHECKINS, EVENTS, FOLLOWS = 1_500_000, 7_500_000, 1_500_000
_COMMAND = "from sim.cli.app import main; main()"


@dataclass(frozen=True)
class Whole:
    """The cost of a whole command: wall and CPU time (s), the most memory (bytes) of all processes and of itself; what it wrote."""

    seconds: float
    cpu: float
    peak: float
    command: float
    written: str


def prepare(checkout: Path, arguments: Sequence[str], out: Path) -> Whole:
    """Run `prepare` of a checkout. It writes to a new folder `out`."""
    command = [sys.executable, "-c", _COMMAND, "prepare", *arguments, "--quiet", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    process = subprocess.Popen(command, env=environment, cwd=out.parent, stdout=subprocess.DEVNULL)
    meter = Meter(process.pid)
    start = meter.look()
    with meter.running():
        assert process.wait() == 0, arguments
    end = meter.look()
    digest = hashlib.sha256()
    for path in sorted(out.rglob("*.parquet")):
        digest.update(path.read_bytes())
    return Whole(end[0] - start[0], end[1], meter.peak, meter.command, digest.hexdigest())


def figures() -> Iterator[Figure]:
    """Medians of three commands each; those of the earlier commit in alternation, if BEFORE names one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkins = _made(traces.write_checkins, folder / "checkins.tsv", CHECKINS)
        local = ["--master", "local[2]", "--driver-memory", "3g"]
        few = _made(traces.write_checkins, folder / "few.tsv", 1000)
        start = _runs(folder, [*few, *local])
        yield Figure("prepare 1,000 check-ins, local[2]: CPU", f"{start.cpu:.1f} s", "≤ 8 s", start.cpu <= 8)
        now = _runs(folder, [*checkins, *local])
        yield Figure(f"prepare {CHECKINS:,} check-ins, local[2]: peak", _mb(now.peak), "≤ 2,000 MB", now.peak <= 2e9)
        one = _runs(folder, [*checkins, "--master", "local[1]", "--driver-memory", "3g"])
        yield Figure(
            f"prepare {CHECKINS:,} check-ins: local[1] / local[2], wall time",
            f"{one.seconds / now.seconds:.2f}",
            "≥ 1.7",
            one.seconds >= 1.7 * now.seconds,
        )
        if BEFORE:
            yield from _against_before(folder, checkins, local)
        before = 0.0
        for rows in (count for count in dict.fromkeys((10_000_000, MOST_ROWS)) if count <= MOST_ROWS):
            many = _made(traces.write_checkins, folder / "many.tsv", rows, users=10_000_000 // 60)
            cost = _runs(folder, [*many, *local[:2]], rounds=1)
            figure = f"{cost.cpu:.0f} s of CPU, {cost.cpu / rows * 1e6:.1f} µs per row, {_mb(cost.peak)}"
            yield Figure(
                f"prepare {rows:,} check-ins of the same users, local[2]", figure, "≤ 4,000 MB", cost.peak <= 4e9
            )
            before = before or cost.command
            growth = f"{_mb(cost.command)}, {cost.command / before:.2f} of that for 10,000,000"
            yield Figure("… memory of the command itself", growth, "≤ 1.1", cost.command <= 1.1 * before)


def _against_before(folder: Path, checkins: Sequence[str], local: Sequence[str]) -> Iterator[Figure]:
    events = _made(traces.write_events, folder / "events.tsv", EVENTS, format="mqtt")
    follows = _follows(folder)
    before, git = folder / "before", str(shutil.which("git"))
    subprocess.run([git, "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(before), BEFORE], check=True)
    try:
        for what, arguments, engine, bar in (
            (f"{CHECKINS:,} check-ins, local[2]", checkins, local, 0.35),
            (f"{CHECKINS:,} check-ins, in-process", checkins, ["--engine", "in-process"], 0.16),
            (f"{EVENTS:,} events, local[2]", events, local, 0.4),
            (f"{FOLLOWS:,} follows, local[2]", follows, local, 0.4),
        ):
            pairs = [
                (
                    prepare(ROOT, [*arguments, *engine], folder / f"w{n}"),
                    prepare(before, [*arguments, *local], folder / f"v{n}"),
                )
                for n in range(ROUNDS)
            ]
            for n in range(ROUNDS):
                for side in "wv":
                    shutil.rmtree(folder / f"{side}{n}")
            ratio = median(now.cpu / then.cpu for now, then in pairs)
            equal = all(now.written == then.written for now, then in pairs)
            costs = [f"{median(cost.cpu for cost in some):.1f} s" for some in zip(*pairs, strict=True)]
            said = f"{ratio:.2f} ({costs[0]} for {costs[1]}), {'the same' if equal else 'OTHER'} bytes"
            yield Figure(f"prepare {what}: CPU / that of {BEFORE[:9]}", said, f"≤ {bar}", ratio <= bar and equal)
    finally:
        subprocess.run([git, "-C", str(ROOT), "worktree", "remove", "--force", str(before)], check=True)


def _runs(folder: Path, arguments: Sequence[str], rounds: int = ROUNDS) -> Whole:
    """The medians of several runs of a command."""
    found = []
    for _ in range(rounds):
        found.append(prepare(ROOT, arguments, folder / "w"))
        shutil.rmtree(folder / "w")
    return Whole(
        median(cost.seconds for cost in found),
        median(cost.cpu for cost in found),
        median(cost.peak for cost in found),
        median(cost.command for cost in found),
        found[0].written,
    )


def _made(write: Callable[..., None], path: Path, rows: int, format: str = "gowalla", **more: int) -> list[str]:
    """The arguments that name a file of synthetic rows, which is written."""
    write(path, rows, **more)
    return ["checkins" if format == "gowalla" else "events", str(path), "--format", format]


def _follows(folder: Path) -> list[str]:
    traces.write_follows(folder / "follows.tsv", FOLLOWS)
    traces.write_posts(folder / "posts.tsv", FOLLOWS // 5)
    files = ["--follows", str(folder / "follows.tsv"), "--events", str(folder / "posts.tsv")]
    return ["follows", *files, "--follows-columns", "user,topic,since", "--events-columns", "time,topic,publisher"]


def _mb(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"
