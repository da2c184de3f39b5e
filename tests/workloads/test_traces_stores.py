"""Traces in a store, and a cluster that shares nothing but a store: the same bytes as from files, and a sentence where it cannot be."""

from __future__ import annotations

import gzip
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from object_store import ObjectStore, object_store
from spark_cluster import Cluster
from test_traces_cluster import COMMAND, contents
from test_traces_many import divided

from sim.base.errors import WorkloadError
from sim.files import stores
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.layouts import CSV, PARQUET, Layout, lay_over
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.traces.sources import find_sources

NAMES = "user,time,latitude,longitude"
IN_STORE = CheckinOptions(work="s3://bucket/exchange")
TEXT = lay_over(CSV, columns=NAMES, header=True)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        yield found


def rows(count: int, users: int = 50) -> str:
    rng = random.Random(1)
    days = (f"2010-03-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00" for _ in range(count))
    lines = (f"{rng.randrange(users)},{day},{rng.randrange(-95, 95)}.5,{rng.randrange(180)}.5" for day in days)
    return "\n".join([NAMES, *lines, ""])


def put(folder: Path, store: ObjectStore) -> None:
    """All files of a folder, in the bucket of the same name."""
    for path in folder.rglob("*"):
        if path.is_file():
            store.objects[f"{folder.name}/{path.relative_to(folder)}"] = path.read_bytes()


def traces(folder: Path) -> None:
    """A day as text, one compressed, and both as Parquet."""
    (folder / "days").mkdir(parents=True)
    (folder / "days" / "1.csv").write_text(rows(300))
    (folder / "days" / "2.csv.gz").write_bytes(gzip.compress(rows(200).encode(), mtime=0))
    (folder / "days" / "_SUCCESS").write_bytes(b"x")
    whole = pyarrow.csv.read_csv(folder / "days" / "1.csv")
    pq.write_table(whole, folder / "rows.parquet", row_group_size=100)


@pytest.mark.parametrize(
    ("inputs", "layout"),
    [
        (["{}/days"], TEXT),
        (["{}/days/*.csv", "{}/**/2.*"], TEXT),
        (["{}/rows.parquet"], lay_over(PARQUET, columns=NAMES)),
    ],
)
def test_what_is_in_a_store_makes_the_workload_of_files(
    store: ObjectStore, tmp_path: Path, inputs: list[str], layout: Layout
) -> None:
    traces(tmp_path / "bucket")
    put(tmp_path / "bucket", store)
    before = dict(store.objects)
    prepare_checkins(None, [name.format(tmp_path / "bucket") for name in inputs], tmp_path / "here", layout)
    far = [name.format("s3a://bucket") for name in inputs]
    prepare_checkins(None, far, tmp_path / "far", layout, IN_STORE, partitions=3)
    assert contents(tmp_path / "far") == contents(tmp_path / "here")
    assert {name: held for name, held in store.objects.items() if held} == before  # nothing is left behind


def test_tasks_exchange_files_in_it(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1.csv").write_text(rows(2000))
    store.objects["bucket/1.csv"] = (tmp_path / "1.csv").read_bytes()
    divided(monkeypatch)
    prepare_checkins(None, [tmp_path / "1.csv"], tmp_path / "here", TEXT)
    prepare_checkins(None, ["s3://bucket/1.csv"], tmp_path / "far", TEXT, IN_STORE)
    assert contents(tmp_path / "far") == contents(tmp_path / "here")
    assert any("/exchange/brokersim-" in request and "split-" in request for request in store.requests)


def test_what_is_not_there_is_said(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.objects |= {"bucket/t/_delta_log/0.json": b"{}", "bucket/1.csv": rows(9).encode()}
    for url, said in {
        "s3://bucket/none.csv": "s3://bucket/none.csv: no file there",
        "s3://bucket/*.tsv": "s3://bucket/*.tsv: no file matches this pattern",
        "s3://bucket/t": "s3://bucket/t: a table in Delta format",
    }.items():
        with pytest.raises(WorkloadError) as raised:
            find_sources([url])
        assert str(raised.value).startswith(said)
    odd = lay_over(TEXT, time_formats=("yyyy-MM-dd'T'HH:mm:ss a",))
    with pytest.raises(WorkloadError, match=r"^s3://bucket/1.csv: times in the format .* give --engine spark"):
        prepare_checkins(None, ["s3://bucket/1.csv"], tmp_path / "w", odd)
    with pytest.raises(WorkloadError, match=r"^--work 'elsewhere': expected a URL"):
        prepare_checkins(None, ["s3://bucket/1.csv"], tmp_path / "w", TEXT, CheckinOptions(work="elsewhere"))
    both = CheckinOptions(append=True, work="s3://bucket/w")
    with pytest.raises(WorkloadError, match=r"^--append: keeps rows beside the workload"):
        prepare_checkins(None, ["s3://bucket/1.csv"], tmp_path / "w", TEXT, both)


@pytest.mark.long
def test_a_cluster_that_shares_only_a_store_and_loses_a_worker(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(rows(400_000, 5000))
    store.objects["bucket/rows.csv"] = (tmp_path / "rows.csv").read_bytes()
    layout = ["--columns", NAMES, "--header", "--quiet"]
    subprocess.run(
        [*COMMAND, "rows.csv", *layout, "--engine", "in-process", "--out", "alone"], cwd=tmp_path, check=True
    )
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as cluster:
        spark = ["--master", cluster.url, "--partitions", "60", "--conf", "spark.task.maxFailures=8"]
        command = [*COMMAND, "s3://bucket/rows.csv", *layout, *spark, "--work", "s3://bucket/exchange", "--out", "far"]
        with subprocess.Popen(command, cwd=tmp_path) as running:
            while running.poll() is None and sum(name.endswith(".usable") for name in list(store.objects)) < 10:
                time.sleep(0.02)
            assert running.poll() is None
            assert not list(tmp_path.glob(".far.*/judged-*"))
            cluster.kill("worker-0")
            for executor in cluster.executors()[:1]:
                subprocess.run(["/bin/kill", "-9", str(executor)], check=False)
        assert running.returncode == 0
    assert contents(tmp_path / "far") == contents(tmp_path / "alone")


def test_a_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    monkeypatch.setattr(stores, "_GS_SECONDS", 0)
    with pytest.raises(
        WorkloadError, match=r"gs://bucket/x: the store cannot be reached.*GOOGLE_APPLICATION_CREDENTIALS"
    ):
        find_sources(["gs://bucket/x"])
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WorkloadError, match=r"hdfs://127.0.0.1:1/x: HDFS needs Hadoop's libhdfs.so"):
        find_sources(["hdfs://127.0.0.1:1/x"])
