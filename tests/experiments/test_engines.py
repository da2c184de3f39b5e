"""Many runs: the same bytes on every engine, no half-written result, and failures that do not stop other runs."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from depth import tried
from sweeping import contents

import sim
from sim import plugins
from sim.base.errors import InputError, ResultsError, ScenarioError
from sim.base.randomness import Streams
from sim.experiments import perform as performing
from sim.experiments import run as running
from sim.experiments.code import version
from sim.experiments.engines.pool import Pool
from sim.experiments.outcomes import Failure
from sim.experiments.plan import RunSpec, plan
from sim.experiments.results import load_results
from sim.experiments.store import Store
from sim.metrics import METRICS
from sim.scenario.reader import load_scenario
from sim.simulation import RunRecord, simulate
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.mobility import MobilityWorkload
from sim.workloads.synthetic.poisson import PoissonWorkload

TINY = """\
title = "Tiny"
replications = 2
warm_up = "1h"
horizon = "6h"
[workload]
kind = "poisson"
users = 30
topics = 10
change_rate = 0.5
[network]
brokers = 4
[[variant]]
name = "static"
[[variant]]
name = "similarity"
selection = { kind = "similarity", update_period = "1h", cluster_size = 4 }
[report]
baseline = "static"
metrics = ["broker_subscription_changes", "queue_wait"]
"""
MANY = [
    "--set",
    "workload.users=600",
    "--set",
    "workload.topics=200",
    "--set",
    "horizon=60h",
    "--set",
    "replications=40",
]
"""Runs of a second each, so that most are still to do when the first has ended."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def command(*arguments: object, hash_seed: str = "0", **options: Any) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    code = [sys.executable, "-c", "from sim.cli.app import main; main()", *map(str, arguments)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.Popen(code, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_the_same_bytes_in_this_process_in_a_pool_and_under_any_hash_seed(tiny: Path, tmp_path: Path) -> None:
    sim.run(tiny, tmp_path / "here")
    sim.run(tiny, tmp_path / "again")
    pool = command("run", tiny, "--out", tmp_path / "pool", "--jobs", 2, hash_seed="17")
    _, error = pool.communicate()
    assert pool.returncode == 0, error
    here = contents(tmp_path / "here")
    assert len(here) == 2 + 4 * 10
    assert contents(tmp_path / "again") == here
    assert contents(tmp_path / "pool") == here


def test_results_load_with_pandas_alone(tiny: Path, tmp_path: Path) -> None:
    results = sim.run(tiny, tmp_path / "r")
    runs = pd.read_parquet(tmp_path / "r" / "runs.parquet")
    assert list(runs.columns) == ["run", "point", "variant", "replication", "seed", *METRICS]
    assert list(zip(runs["variant"], runs["replication"], strict=True)) == [
        ("static", 0), ("static", 1), ("similarity", 0), ("similarity", 1),
    ]  # fmt: skip
    assert runs["due"].dtype == np.int64
    assert runs["queue_wait"].isna().all()
    for _, run in runs.iterrows():
        series = pd.read_parquet(tmp_path / "r" / "runs" / run["run"] / "timeseries.parquet")
        counted = series[~series["warm_up"]]
        assert counted["broker_subscription_changes"].sum() == run["broker_subscription_changes"]
        assert counted["notification_delay_sum"].sum() / counted["delivered"].sum() == pytest.approx(
            run["notification_delay"]
        )
        assert results.table(run["run"], "decisions/selection")["user"].nunique() == 30
    pd.testing.assert_frame_equal(load_results(tmp_path / "r").runs, runs)


def test_the_manifests_say_what_was_run(tiny: Path, tmp_path: Path) -> None:
    manifest = sim.run(tiny, tmp_path / "r").manifest
    assert (manifest["title"], manifest["seed"], manifest["replications"]) == ("Tiny", 1, 2)
    assert list(manifest["variants"]) == ["static", "similarity"]
    assert manifest["variants"]["similarity"]["selection"]["update_period"] == 3600.0
    assert manifest["report"] == {"baseline": "static", "metrics": ["broker_subscription_changes", "queue_wait"]}
    assert (manifest["workload"]["kind"], manifest["workload"]["counts"]["users"]) == ("poisson", 30)
    assert manifest["version"] == version()
    assert len(manifest["runs"]) == 4
    assert manifest["failed"] == []


def never(*_: object, **__: object) -> RunRecord:
    raise AssertionError("this run was done already")


def test_finished_runs_are_not_done_again(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sim.run(tiny, tmp_path / "r")
    before = contents(tmp_path / "r")
    (tmp_path / "r" / "report.html").write_text("a report may stand there")
    monkeypatch.setattr(performing, "simulate", never)
    told: list[tuple[str, float]] = []
    again = sim.run(tiny, tmp_path / "r", progress=lambda spec, fraction: told.append((str(spec), fraction)))
    assert again.failed == []
    assert again.manifest == first.manifest
    assert [fraction for _, fraction in told] == [1.0] * 4
    assert {name: data for name, data in contents(tmp_path / "r").items() if name != "report.html"} == before


def test_replications_can_be_added_later(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sim.run(tiny, tmp_path / "r")
    done: list[int] = []

    def counted(scenario: Any, workload: Workload, replication: int, progress: Any) -> RunRecord:
        done.append(replication)
        return simulate(scenario, workload, replication, progress)

    monkeypatch.setattr(performing, "simulate", counted)
    results = sim.run(tiny, tmp_path / "r", overrides=["replications=3", 'title="More"'])
    assert done == [2, 2]
    assert len(results.runs) == 6


def test_a_damaged_or_half_written_run_is_done_again(tiny: Path, tmp_path: Path) -> None:
    results = sim.run(tiny, tmp_path / "r")
    before = contents(tmp_path / "r")
    first, second = results.manifest["runs"][:2]
    runs = tmp_path / "r" / "runs"
    (runs / first / "manifest.json").unlink()
    (runs / second / "manifest.json").write_text('{"complete": tr')
    (runs / ".unfinished-x").mkdir()
    (runs / ".unfinished-x" / "tree.parquet").write_text("half")
    sim.run(tiny, tmp_path / "r")
    assert contents(tmp_path / "r") == before


def test_a_folder_that_cannot_be_used_is_told_in_a_sentence(tiny: Path, tmp_path: Path) -> None:
    sim.run(tiny, tmp_path / "r")
    shutil.rmtree(tmp_path / "r" / "runs")
    (tmp_path / "r" / "runs").touch()
    with pytest.raises(ResultsError, match=r"r/runs: cannot be written \(File exists\)"):
        sim.run(tiny, tmp_path / "r")
    (tmp_path / "r" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ResultsError, match="contains something other than results"):
        sim.run(tiny, tmp_path / "r")


def failing(variant_kind: str, replication: int, error: Exception) -> Callable[..., RunRecord]:
    def instead(scenario: Any, workload: Workload, number: int, progress: Any) -> RunRecord:
        if scenario.selection.kind == variant_kind and number == replication:
            raise error
        return simulate(scenario, workload, number, progress)

    return instead


def test_one_failure_stops_no_other_run(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performing, "simulate", failing("static", 1, ZeroDivisionError("by nothing")))
    results = sim.run(tiny, tmp_path / "r")
    (failure,) = results.failed
    assert (failure["variant"], failure["replication"]) == ("static", 1)
    assert failure["reason"] == "ZeroDivisionError: by nothing"
    assert "in instead" in failure["traceback"]
    assert len(results.runs) == 3
    monkeypatch.undo()
    assert sim.run(tiny, tmp_path / "r").failed == results.failed  # what has failed is told again, and not done
    assert sim.run(tiny, tmp_path / "r", retry_failed=True).failed == []
    assert sim.run(tiny, tmp_path / "r").failed == []


MOVING = 'workload={ kind = "mobility", users = 12 }'
"""A workload whose cells are drawn."""


def test_what_a_person_got_wrong_is_no_failed_run(tiny: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        with pytest.raises(
            ScenarioError, match=r"tiny\.toml: variant similarity: .* 999 brokers, but the workload has only"
        ):
            sim.run(tiny, tmp_path / "r", overrides=[MOVING, "variant.similarity.network.brokers=999"], jobs=jobs)
        with pytest.raises(ResultsError, match="were not finished"):
            load_results(tmp_path / "r")
    with pytest.raises(InputError, match=r"jobs: expected 1 or more \(found 0\)"):
        sim.run(tiny, tmp_path / "r", jobs=0)
    with pytest.raises(
        ScenarioError, match=r"workload\.path: missing; name a workload folder there or with --workload"
    ):
        sim.run({}, tmp_path / "r")
    with pytest.raises(ScenarioError, match="already loaded"):
        sim.run(load_scenario(tiny), tmp_path / "r", overrides=["seed=2"])


def test_too_little_memory_is_told_in_a_sentence(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performing, "simulate", failing("static", 1, MemoryError("1 TiB")))
    (failure,) = sim.run(tiny, tmp_path / "r").failed
    assert (failure["reason"], failure["traceback"]) == ("not enough memory (1 TiB)", "")


def test_a_pool_does_not_run_the_calling_script_again(tiny: Path, tmp_path: Path) -> None:
    script = "import sim\nprint('called')\nprint(len(sim.run('tiny.toml', 'OUT', jobs=2).runs))\n"
    (tmp_path / "unguarded.py").write_text(script.replace("OUT", "a"))
    for arguments, text in ((["unguarded.py"], None), (["-"], script.replace("OUT", "b")))[: tried(2)]:
        done = subprocess.run(
            [sys.executable, *arguments], input=text, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert (done.stdout, done.stderr) == ("called\n4\n", "")


DEADLY = """\
import os
from pathlib import Path
from sim.policies.selection.fixed import StaticSelection
class Deadly(StaticSelection):
    '''Static selection that kills its process: always, or the first time.'''
    class Parameters(StaticSelection.Parameters):
        number: int
    def __init__(self, parameters, *arguments):
        super().__init__(parameters, *arguments)
        mark = Path(__file__).with_name("died")
        if parameters.number == 1 or (parameters.number == 3 and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), 9)
"""


def test_only_the_run_that_kills_its_process_has_failed(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    about = tmp_path / "deadly-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[brokersim.selection]\ndeadly = deadly:Deadly\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins._entries.cache_clear()
    kinds = [{"name": str(i), "selection": {"kind": "deadly", "number": i}} for i in range(5)]
    source = {"workload": {"kind": "poisson", "users": 12, "topics": 9}, "horizon": "4h", "variant": kinds}
    results = sim.run({**source, "network": {"brokers": 3}}, tmp_path / "r", jobs=2)
    (failure,) = results.failed
    assert (failure["variant"], failure["reason"]) == ("1", "a process of the pool was killed (too little memory?)")
    assert results.runs["variant"].tolist() == ["0", "2", "3", "4"]
    assert (tmp_path / "died").exists()
    plugins._entries.cache_clear()


def test_a_pool_is_handed_a_few_runs_at_a_time(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process is killed, only the runs that are in the pool are repeated, one at a time."""
    handed: list[RunSpec] = []

    def ended(self: Pool, spec: RunSpec) -> Future[Any]:
        handed.append(spec)
        future: Future[Any] = Future()
        future.set_result(Failure("never run", ""))
        return future

    monkeypatch.setattr(Pool, "_submit", ended)
    specs = plan(load_scenario(tiny, ["replications=6"]), {})
    with Store(tmp_path / "r") as store, Pool(store, 2) as pool:
        for done, _ in enumerate(pool.perform(specs, lambda *_: None)):
            assert len(handed) <= done + 4
    assert handed == specs


def test_processes_that_cannot_share_memory_say_what_to_do(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: BaseContext) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(BaseContext, "SimpleQueue", refused)
    specs = plan(load_scenario(tiny), {})
    said = pytest.raises(InputError, match=r"/dev/shm: Permission denied\): --jobs 1 runs")
    with said, Store(tmp_path / "r") as store, Pool(store, 2) as pool:
        list(pool.perform(specs, lambda *_: None))


def test_equal_variants_share_their_runs(tiny: Path, tmp_path: Path) -> None:
    results = sim.run(
        {**load_scenario(tiny).base.model_dump(mode="json"), "variant": [{"name": "a"}, {"name": "b"}]}, tmp_path / "r"
    )
    assert len(results.manifest["runs"]) == 2
    a, b = (results.runs[results.runs["variant"] == name].drop(columns="variant") for name in "ab")
    pd.testing.assert_frame_equal(a.reset_index(drop=True), b.reset_index(drop=True))


def test_equal_variants_fail_together(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performing, "simulate", failing("static", 0, ValueError("no")))
    source = {**load_scenario(tiny).base.model_dump(mode="json"), "variant": [{"name": "a"}, {"name": "b"}]}
    results = sim.run(source, tmp_path / "r")
    assert [(failure["variant"], failure["replication"]) for failure in results.failed] == [("a", 0), ("b", 0)]


def test_progress_goes_up_to_one(tiny: Path, tmp_path: Path) -> None:
    told: dict[str, list[float]] = {}

    def tell(spec: RunSpec, fraction: float) -> None:
        told.setdefault(str(spec), []).append(fraction)

    sim.run(tiny, tmp_path / "r", progress=tell)
    assert len(told) == 4
    for fractions in told.values():
        assert fractions == sorted(fractions)
        assert fractions.count(1.0) == 1


def test_the_identity_of_a_run(tiny: Path) -> None:
    def hashes(*overrides: str) -> list[str]:
        return [spec.hash for spec in plan(load_scenario(tiny, overrides), {})]

    plain = hashes()
    assert len(set(plain)) == 4
    assert hashes('title="x"', 'report.metrics=["due"]') == plain
    assert hashes("replications=3")[:4] == plain
    for override in ("seed=2", "window=2h", "trace=true", "network.geometry.bits=16", "workload.users=31"):
        assert not set(hashes(override)) & set(plain)
    assert sum(new == old for new, old in zip(hashes("variant.similarity.window=2h"), plain, strict=True)) == 2


PLUGIN = """\
from sim.plugins import Parameters
from sim.policies.selection.fixed import StaticSelection
class Mine(StaticSelection):
    '''{text}'''
    Parameters = Parameters
"""


def test_an_edited_policy_from_elsewhere_is_another_run(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "my_policy.py"
    source.write_text(PLUGIN.format(text="One."))
    monkeypatch.syspath_prepend(tmp_path)
    entry = plugins.EntryPoint("mine", "my_policy:Mine", "brokersim.selection")
    known = plugins._entries
    more = {"mine": entry, **known("selection")}
    monkeypatch.setattr(plugins, "_entries", lambda group: more if group == "selection" else known(group))
    experiment = load_scenario({"selection": {"kind": "mine"}})
    first = plan(experiment, {})[0].hash
    assert plan(experiment, {})[0].hash == first
    source.write_text(PLUGIN.format(text="Two."))
    assert plan(experiment, {})[0].hash != first
    plugins.load.cache_clear()


def test_a_prepared_workload_is_read_once_and_mapped_by_all(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MobilityWorkload(MobilityWorkload.Parameters(users=60, horizon=20 * 3600.0)).generate(Streams(5))
    write_workload(made, tmp_path / "w")
    options: dict[str, Any] = {"workload": tmp_path / "w", "overrides": ["variant.static.workload.resample_users=true"]}
    sim.run(tiny, tmp_path / "pool", jobs=2, **options)
    monkeypatch.setattr(running, "load_workload", lambda folder: (read.append(folder), load_workload(folder))[1])
    read: list[Path] = []

    def looked_at(scenario: Any, workload: Workload, number: int, progress: Any) -> RunRecord:
        assert not workload.topics.latitude.flags.writeable
        assert list((tmp_path / "r" / "runs").glob(".unfinished-workload-*"))
        return simulate(scenario, workload, number, progress)

    monkeypatch.setattr(performing, "simulate", looked_at)
    (tmp_path / "r" / "runs").mkdir(parents=True)
    (tmp_path / "r" / "runs" / ".unfinished-workload-of-a-killed-process").touch()
    (tmp_path / "r" / "manifest.json").write_text('{"format": "brokersim-results", "complete": false}')
    sim.run(tiny, tmp_path / "r", **options)
    assert read == [tmp_path / "w"]
    assert contents(tmp_path / "r") == contents(tmp_path / "pool")
    assert not list((tmp_path / "r" / "runs").glob(".unfinished*"))


def test_replications_of_a_prepared_workload_and_its_hash(tiny: Path, tmp_path: Path) -> None:
    made = PoissonWorkload(PoissonWorkload.Parameters(users=20, topics=8, horizon=20000.0)).generate(Streams(5))
    write_workload(made, tmp_path / "w")
    (tmp_path / "elsewhere").mkdir()
    write_workload(made, tmp_path / "elsewhere" / "v")
    results = sim.run(tiny, tmp_path / "r", workload=tmp_path / "w")
    assert results.manifest["workload"]["hash"] == load_workload(tmp_path / "w").hash
    moved = sim.run(tiny, tmp_path / "s", workload=tmp_path / "elsewhere" / "v")
    assert moved.manifest["runs"] == results.manifest["runs"]  # where a workload stands does not matter
    other = PoissonWorkload(PoissonWorkload.Parameters(users=21, topics=8, horizon=20000.0)).generate(Streams(5))
    write_workload(other, tmp_path / "w")
    assert sim.run(tiny, tmp_path / "t", workload=tmp_path / "w").manifest["workload"]["counts"]["users"] == 21


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in listed]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_result_and_no_process(tiny: Path, tmp_path: Path, end: signal.Signals) -> None:
    if signal.getsignal(end) is signal.SIG_IGN:
        pytest.skip("shells start what they leave in the background so that it ignores Ctrl-C")
    out = tmp_path / "r"
    process = command("run", tiny, "--out", out, "--jobs", 2, *MANY, start_new_session=True)
    wait_for(lambda: any((out / "runs").glob("[0-9a-f]*")), "the first finished run")
    workers = children(process.pid)
    assert len(workers) >= 2
    os.kill(process.pid, end)
    _, error = process.communicate(timeout=60)
    if end == signal.SIGINT:
        assert process.returncode == 130
        assert error.endswith(f"brokersim: interrupted; finished runs are kept in {out}, the same command resumes\n")
        assert "Traceback" not in error
        assert not list((out / "runs").glob(".unfinished*"))
    wait_for(lambda: not any(map(alive, workers)), "the workers' end")
    with pytest.raises(ResultsError, match="the runs were not finished"):
        load_results(out)
