"""The store: one command at a time, seals that reveal damage, and write errors that lose nothing."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from sweeping import Spy, contents

import sim
from sim.base.errors import ResultsError
from sim.experiments import store as storing
from sim.experiments.index import Index
from sim.experiments.outcomes import Record
from sim.experiments.plan import RunSpec, plan
from sim.experiments.store import Store
from sim.files.parquet import write_table
from sim.scenario.reader import load_scenario

HOLD = """
import sys, time
from pathlib import Path
from sim.experiments.store import Store
store = Store(Path(sys.argv[1]))
print(flush=True)
time.sleep(99)
"""


def test_one_command_at_a_time_writes_to_a_folder(sweep: Path, tmp_path: Path) -> None:
    refused = r"r: another command is writing there; wait until it has ended, or give another folder"
    with Store(tmp_path / "r"), pytest.raises(ResultsError, match=refused):
        sim.run(sweep, tmp_path / "r")
    other = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / "r"], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(ResultsError, match=refused):
        Store(tmp_path / "r")
    other.kill()
    other.communicate()
    Store(tmp_path / "r").close()


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ResultsError, match="contains something other than results"):
        Store(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("file", ["timeseries.parquet", "decisions/selection.parquet"])
def test_verify_finds_what_is_damaged_and_does_it_again(sweep: Path, tmp_path: Path, spy: Spy, file: str) -> None:
    results = sim.run(sweep, tmp_path / "r")
    before = contents(tmp_path / "r")
    damaged = tmp_path / "r" / "runs" / results.manifest["runs"][0] / file
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-9])
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r")) == []
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r", verify=True)) == [(2, 0)]
    assert contents(tmp_path / "r") == before
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r", verify=True)) == []


def a_run(sweep: Path) -> tuple[RunSpec, Record]:
    spec = plan(load_scenario(sweep), {})[0]
    times = {
        "start": "2026-01-01T00:00:00.000+00:00",
        "end": "2026-01-01T00:00:01.000+00:00",
        "seconds": 1.0,
        "host": "h",
    }
    return spec, Record({"due": 3}, {"timeseries": {"window": [0, 1], "start": [0.0, 1.0]}}, (), {}, times)


def test_a_run_that_another_process_has_written_just_now_stays(sweep: Path, tmp_path: Path) -> None:
    spec, record = a_run(sweep)
    with Store(tmp_path / "r") as store:
        orphan = pickle.loads(pickle.dumps(store))
        for writer in (store, orphan):
            assert writer.write_run(spec, record) is None
        assert store.sealed(spec.hash)
        assert [entry.name for entry in (tmp_path / "r" / "runs").iterdir()] == [spec.hash]
        assert Index(tmp_path / "r").metric(spec.hash, "due") == 3


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_full_disk_loses_nothing_that_was_finished(
    sweep: Path, tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    written = 0

    def full(path: Path, table: pa.Table) -> None:
        nonlocal written
        written += 1
        if written == 10:  # of the second run
            raise OSError(error, os.strerror(error))
        write_table(path, table)

    monkeypatch.setattr(storing, "write_table", full)
    with pytest.raises(ResultsError, match=rf"r: cannot be written \({os.strerror(error)}\)"):
        sim.run(sweep, tmp_path / "r")
    assert not list((tmp_path / "r" / "runs").glob(".unfinished*"))
    monkeypatch.undo()
    assert len(spy.runs) == 2
    sim.run(sweep, tmp_path / "r")
    sim.run(sweep, tmp_path / "undisturbed")
    assert contents(tmp_path / "r") == contents(tmp_path / "undisturbed")


def test_a_file_that_may_not_grow_ends_a_command_with_one_message(sweep: Path, tmp_path: Path) -> None:
    """The table of all runs is larger than any file of a run: the size limit allows those, and not that table."""
    code = (
        "import resource, sys; from sim.cli.app import main; import sim.simulation, analysis.comparison;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); main()"
    )
    options = ["run", "sweep.toml", "--out", "r", "--jobs", "1", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("brokersim: error: ")
    assert done.stderr.endswith("cannot be written (File too large)\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(sweep: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir(mode=0o555)
    with pytest.raises(ResultsError, match=r"r.*: cannot be written \(Permission denied\)"):
        sim.run(sweep, tmp_path / "r")


def test_a_damaged_run_is_told_when_it_is_read(sweep: Path, tmp_path: Path) -> None:
    results = sim.run(sweep, tmp_path / "r")
    run = results.manifest["runs"][0]
    (tmp_path / "r" / "runs" / run / "delays.parquet").write_bytes(b"")
    with pytest.raises(ResultsError, match=rf"{run}/delays\.parquet: not a readable parquet file"):
        results.table(run, "delays")
    (tmp_path / "r" / "runs" / run / "manifest.json").write_text("{}")
    with pytest.raises(ResultsError, match=rf"{run}: damaged; the same `brokersim run` repeats it"):
        results.table(run, "timeseries")
    sim.run(sweep, tmp_path / "r", verify=True)
    assert len(results.table(run, "delays")) > 0
