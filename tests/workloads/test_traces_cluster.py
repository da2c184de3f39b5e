"""`prepare` on a standalone cluster on this machine: the same bytes as alone, even if a worker is killed meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spark_cluster import Cluster

COMMAND = """
from sim.cli.app import main
from sim.workloads.traces import event_pipeline, pipeline
event_pipeline.MANY_ROWS = pipeline.MANY_ROWS = 1000  # so that tasks do all that they can
main()
"""


def check_ins(rng: random.Random) -> str:
    time_of_day = f"2010-03-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00Z"
    return f"{rng.randrange(5000)}\t{time_of_day}\t{rng.uniform(-95, 95):.5f}\t{rng.uniform(-180, 180):.5f}\tp\n"


def events(rng: random.Random) -> str:
    """A row of a log with retained messages and, of odd clients, shared subscriptions."""
    action = rng.choice(["connect", "disconnect", "subscribe", "unsubscribe", *["publish", "deliver"] * 5])
    client, topic = rng.randrange(900), f"home/{rng.randrange(90)}"
    if "scribe" in action:
        topic = f"$share/g/home/{rng.randrange(9)}" if client % 2 else rng.choice([topic, "home/+"])
    retain = rng.choice([0, 0, 1]) if action in ("publish", "deliver") else ""
    return f"2010-03-01T{rng.randrange(24):02}:{rng.randrange(60):02}:00Z,{action},{client},{topic},{retain}\n"


ROWS = {
    "checkins": (check_ins, ["--format", "gowalla"]),
    "events": (events, ["--format", "csv", "--columns", "time,action,client,topic,retain", "--filters", "mqtt"]),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize("kind", ROWS)
def test_a_cluster_that_loses_a_worker_writes_the_same_bytes(tmp_path: Path, kind: str) -> None:
    rng, (row, layout) = random.Random(1), ROWS[kind]
    (tmp_path / "rows").write_text("".join(row(rng) for _ in range(400_000)))
    arguments = [sys.executable, "-c", COMMAND, "prepare", kind, "rows", *layout, "--quiet"]
    subprocess.run([*arguments, "--engine", "in-process", "--out", "alone"], cwd=tmp_path, check=True)
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as cluster:
        spark = ["--master", cluster.url, "--partitions", "60", "--conf", "spark.task.maxFailures=8"]
        with subprocess.Popen([*arguments, *spark, "--out", "far"], cwd=tmp_path) as command:
            while command.poll() is None and len(list(tmp_path.glob(".far.*/judged-0/*.usable"))) < 10:
                time.sleep(0.02)
            assert command.poll() is None
            cluster.kill("worker-0")
            for executor in cluster.executors()[:1]:
                subprocess.run(["/bin/kill", "-9", str(executor)], check=False)
        assert command.returncode == 0
    assert contents(tmp_path / "far") == contents(tmp_path / "alone")
