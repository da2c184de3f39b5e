"""Runs on Spark: the files of runs in one process, byte for byte, by shipped code, whatever fails meanwhile."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from spark_cluster import Cluster
from test_engines import contents

import sim
from sim import plugins
from sim.base.errors import InputError, PluginError
from sim.base.randomness import Streams
from sim.experiments.engines import spark_executor
from sim.experiments.engines.spark import CODE, PATIENCE, Spark
from sim.experiments.engines.spark_wheels import pack_wheels
from sim.experiments.plan import plan
from sim.experiments.store import Store
from sim.scenario.reader import load_scenario
from sim.workloads.format.folder import write_workload
from sim.workloads.synthetic.poisson import PoissonWorkload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY: dict[str, Any] = {
    "horizon": "5h",
    "workload": {"kind": "poisson", "users": 20, "topics": 10},
    "network": {"brokers": 4, "data_plane": "events", "geometry": {"kind": "star"}},
}
TELLING = '''\
"""A policy that says by which code it is run."""
import sim
from sim import plugins


class Telling:
    class Parameters(plugins.Parameters):
        pass

    def __init__(self, parameters, setting):
        raise RuntimeError(f"{sim.__file__} {__file__}")
'''


@pytest.fixture(scope="module", autouse=True)
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A distribution with a plug-in that is installed where the runs are asked for, and nowhere else."""
    place = tmp_path_factory.mktemp("elsewhere")
    info = place / "telling_policy-1.0.dist-info"
    info.mkdir()
    (place / "telling.py").write_text(TELLING)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: telling-policy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[brokersim.selection]\ntelling = telling:Telling\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        plugins._entries.cache_clear()
        yield
    plugins._entries.cache_clear()
    plugins.load.cache_clear()


def test_a_sweep_on_spark_writes_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    made = PoissonWorkload(PoissonWorkload.Parameters(users=30, topics=10, horizon=20000.0)).generate(Streams(5))
    write_workload(made, tmp_path / "w")
    prepared = {"kind": "prepared", "path": str(tmp_path / "w")}
    scenario = {
        **TINY,
        "variant": [{"name": "made"}, {"name": "mapped", "workload": prepared}],
        "sweep": {"network.brokers": [2, 4]},
    }
    sim.run(scenario, tmp_path / "here")
    share_kernels(tmp_path)
    done: list[str] = []
    sim.run(
        scenario,
        tmp_path / "spark",
        engine="spark",
        progress=lambda spec, part: done.append(spec.hash) if part == 1.0 else None,
    )
    assert contents(tmp_path / "spark") == contents(tmp_path / "here")
    assert sorted(done) == sorted(path.name for path in (tmp_path / "here" / "runs").iterdir() if path.is_dir())
    assert CODE not in spark.sparkContext.environment
    assert spark.sparkContext.parallelize([1, 2], 2).sum() == 3  # a session that was there goes on


def share_kernels(tmp_path: Path) -> None:
    """Put what this process has compiled beside the code that executors unpack, as each of them would compile all of it."""
    [wheel] = (wheel for wheel in pack_wheels(tmp_path) if wheel.name.startswith("brokersim"))
    package, home = Path(sim.__file__).parent, spark_executor.unpack(wheel) / "sim"
    for kind in ("nbc", "nbi"):  # an index after what it names
        for file in package.rglob(f"*.{kind}"):
            place = home / file.relative_to(package)
            place.parent.mkdir(exist_ok=True)
            partial = place.with_suffix(f".{os.getpid()}")
            partial.write_bytes(file.read_bytes())
            partial.replace(place)


def test_executors_run_the_code_that_was_shipped_and_find_its_plug_ins(spark: SparkSession, tmp_path: Path) -> None:
    scenario = {**TINY, "selection": {"kind": "telling"}}
    with pytest.raises(PluginError) as failure:
        sim.run(scenario, tmp_path / "r", engine="spark")
    found = re.search(r"Telling .*raised RuntimeError: (\S+) (\S+) \(telling.py, line 11\)", str(failure.value))
    assert found, failure.value
    package, plugin = found.groups()
    home = Path(tempfile.gettempdir()) / f"brokersim-{os.getuid()}"
    stems = {wheel.name.partition("-")[0]: wheel.stem for wheel in pack_wheels(tmp_path)}
    assert Path(package) == home / stems["brokersim"] / "sim" / "__init__.py"
    assert Path(plugin) == home / stems["telling_policy"] / "telling.py"


def test_what_is_wrong_with_a_run_is_told_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    scenario = {**TINY, "workload": {"kind": "mobility", "users": 12}, "network": {"brokers": 999}}  # more than cells
    with pytest.raises(InputError) as here:
        sim.run(scenario, tmp_path / "here")
    with pytest.raises(InputError) as there:
        sim.run(scenario, tmp_path / "spark", engine="spark")
    assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))


def test_a_machine_that_lacks_something_is_told_and_a_run_that_kills_its_process_has_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sim.experiments.perform", None)
    said = spark_executor.perform_shipped(b"", [], None)
    assert isinstance(said, str)
    assert sys.executable in said
    monkeypatch.undo()
    monkeypatch.setattr(spark_executor, "perform_shipped", lambda *_: said)
    with pytest.raises(InputError, match=r"cannot run brokersim \(.*; install brokersim there, or set PYSPARK_PYTHON"):
        sim.run(TINY, tmp_path / "lacking", engine="spark")
    monkeypatch.setattr(spark_executor, "perform_shipped", lambda *_: os._exit(1))
    [failure] = sim.run(TINY, tmp_path / "dying", engine="spark").failed
    assert failure["reason"].startswith("Spark gave up the run: Python worker exited unexpectedly")


def test_leaving_the_engine_ends_what_is_under_way(spark: SparkSession, tmp_path: Path) -> None:
    lively = {**TINY["workload"], "publication_rate": 300.0}
    endless = {**TINY, "horizon": "300d", "window": "30d", "workload": lively}
    specs = [spec for scenario in (endless, TINY) for spec in plan(load_scenario(scenario), {})]

    def interrupted(engine: Spark) -> None:
        for spec, _ in engine.perform(specs, lambda _spec, _part: None):
            assert spec is specs[1]
            raise KeyboardInterrupt

    with Store(tmp_path / "r") as store, pytest.raises(KeyboardInterrupt), Spark(store) as engine:
        interrupted(engine)
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []
    assert [path.name for path in (tmp_path / "r" / "runs").iterdir()] == [specs[1].hash]


def test_a_cluster_without_machines_or_without_python_is_told(tmp_path: Path) -> None:
    with Store(tmp_path / "r") as store:
        engine = Spark(store, "spark://127.0.0.1:7077")
    spark = SimpleNamespace(isLocal=lambda: False, getExecutorMemoryStatus=lambda: SimpleNamespace(size=lambda: 1))
    engine.context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: spark), defaultParallelism=2)
    engine.seen = time.monotonic() - PATIENCE + 60
    assert engine._slots() == 2  # executors may still come
    engine.seen -= 60
    with pytest.raises(InputError, match=r"no machine of spark://127\.0\.0\.1:7077 has had an executor for 120 s"):
        engine._slots()
    said = 'Lost task 0.3: java.io.IOException: Cannot run program "/opt/python": Exec failed, error: 2\n\tat java.base'
    with pytest.raises(InputError, match='7077: Cannot run program "/opt/python": Exec failed, error: 2; install'):
        engine._lost(RuntimeError(said))


def test_wheels_hold_code_and_metadata_as_they_are_here_and_are_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    ours, telling = pack_wheels(tmp_path)
    assert [wheel.read_bytes() for wheel in pack_wheels(tmp_path / "again")] == [
        ours.read_bytes(),
        telling.read_bytes(),
    ]
    folder = unpack(ours, tmp_path)
    [found] = Distribution.discover(name="brokersim", path=[str(folder)])
    assert set(found.entry_points) == set(distribution("brokersim").entry_points)
    assert found.version == distribution("brokersim").version
    package = Path(sim.__file__).parent
    sources = {path.relative_to(package) for path in package.rglob("*.py")}
    assert {path.relative_to(folder / "sim") for path in (folder / "sim").rglob("*.py")} == sources
    for file in found.files or []:
        if file.hash is not None:
            digest = hashlib.sha256((folder / file).read_bytes()).digest()
            assert file.hash.value == urlsafe_b64encode(digest).decode().rstrip("=")
    assert {str(file) for file in found.files or []} == set(zipfile.ZipFile(ours).namelist())


def unpack(wheel: Path, place: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        return spark_executor.unpack(wheel)


def test_what_was_tidied_away_is_unpacked_again_and_nobody_elses_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [_, wheel] = pack_wheels(tmp_path)
    folder = unpack(wheel, tmp_path)
    code, kept = folder / "telling.py", folder / "telling_policy-1.0.dist-info" / "METADATA"
    before = kept.stat()
    code.unlink()
    assert unpack(wheel, tmp_path) == folder
    assert code.read_text() == TELLING
    assert kept.stat() == before
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "brokersim-12345").mkdir()
    assert unpack(wheel, tmp_path).parents[0] != tmp_path / "brokersim-12345"


SCRIPT = """\
import sys
import sim
from sim.experiments.store import Store

write_run = Store.write_run

def told(self, spec, record):
    print(spec.hash, flush=True)
    return write_run(self, spec, record)

Store.write_run = told
sim.run(sys.argv[1], sys.argv[2], engine="spark", master=sys.argv[3])
"""
LONGER = """\
title = "Longer"
replications = 8
horizon = "100h"
workload = { kind = "poisson", users = 300, topics = 100, change_rate = 0.5 }
network = { brokers = 20, data_plane = "events" }
sweep = { "network.brokers" = [10, 20] }
[[variant]]
name = "mapped"
workload = { kind = "prepared", path = "w" }
[[variant]]
name = "similarity"
selection = { kind = "similarity", update_period = "1h", cluster_size = 4 }
"""


@pytest.mark.long
def test_a_cluster_that_loses_executors_and_a_worker_writes_the_same_bytes_and_no_run_twice(tmp_path: Path) -> None:
    made = PoissonWorkload(PoissonWorkload.Parameters(users=300, topics=100)).generate(Streams(5))
    write_workload(made, tmp_path / "w")
    scenario = tmp_path / "longer.toml"
    scenario.write_text(LONGER)
    runs = sim.run(scenario, tmp_path / "here").manifest["runs"]
    assert len(runs) == 32
    with Cluster(tmp_path) as cluster, ExitStack() as last:
        command = [sys.executable, "-c", SCRIPT, str(scenario), str(tmp_path / "spark"), cluster.url]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        last.callback(process.kill)
        assert process.stdout is not None
        written = []
        for line in process.stdout:
            written.append(line.strip())
            if len(written) in (4, 8, 12, 16):
                os.kill(cluster.executors()[-1], signal.SIGKILL)
            if len(written) == 20:
                cluster.kill("worker-0")
        _, error = process.communicate()
    assert process.returncode == 0, error
    assert sorted(written) == sorted(runs)
    assert contents(tmp_path / "spark") == contents(tmp_path / "here")
