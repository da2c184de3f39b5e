"""`prepare` on a standalone cluster on this machine: the same bytes as alone, even if a worker is killed meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spark_cluster import Cluster

COMMAND = [sys.executable, "-c", "from sim.cli.app import main; main()", "prepare", "checkins"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_writes_the_same_bytes(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = []
    for _ in range(400_000):
        time_of_day = f"2010-03-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00Z"
        rows.append(
            f"{rng.randrange(5000)}\t{time_of_day}\t{rng.uniform(-95, 95):.5f}\t{rng.uniform(-180, 180):.5f}\tp\n"
        )
    (tmp_path / "rows.tsv").write_text("".join(rows))
    arguments = [*COMMAND, "rows.tsv", "--format", "gowalla", "--quiet"]
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
