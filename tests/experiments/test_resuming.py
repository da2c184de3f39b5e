"""Resuming a sweep: existing runs are not repeated, failures are reported, and no finished run is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweeping import Spy, contents

import sim
from sim.base.errors import ResultsError
from sim.experiments import rows
from sim.experiments.results import Results
from sim.experiments.run import RunFailed

ALL = [(2, 0), (1, 0), (4, 0), (2, 1), (1, 1), (4, 1)]


def test_a_sweep_has_the_same_bytes_in_this_process_and_in_a_pool(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sim.run(sweep, tmp_path / "here")
    sim.run(sweep, tmp_path / "pool", jobs=2)
    monkeypatch.setattr(rows, "_OFTEN", 0.0)
    streamed = sim.run(sweep, tmp_path / "streamed")
    assert contents(tmp_path / "here") == contents(tmp_path / "pool") == contents(tmp_path / "streamed")
    assert len(here.runs) == len(streamed.runs) == 8
    assert len(here.manifest["runs"]) == here.runs["run"].nunique() == 6
    assert here.runs["network.brokers"].tolist() == [2] * 4 + [4] * 4


def test_what_a_change_touches_is_run_and_nothing_else(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    def told(*overrides: str) -> list[tuple[int, int]]:
        return spy.told(lambda: sim.run(sweep, tmp_path / "r", overrides=overrides))

    assert told() == ALL
    assert told() == []
    assert told('sweep."network.brokers"=[2,4,8]') == [(8, 0), (8, 1)]
    assert told("replications=3") == [(2, 2), (1, 2), (4, 2)]
    assert told('variant."one broker".window="30min"') == [(1, 0), (1, 1)]
    assert told('sweep."network.brokers"=[4,8]') == []
    assert len(spy.runs) == 13


def test_no_run_is_opened_again_for_what_rows_tell(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_OFTEN", 0.0)
    interrupted = 3

    def stop(_spec: Any, fraction: float) -> None:
        nonlocal interrupted
        interrupted -= fraction == 1.0
        if interrupted == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sim.run(sweep, tmp_path / "r", progress=stop)
    assert len(list((tmp_path / "r" / "runs" / ".rows").glob("*.parquet"))) == 1
    read: list[str] = []
    known = rows.run_row

    def looked_at(folder: Path, run: str) -> rows.RunRow:
        read.append(run)
        return known(folder, run)

    monkeypatch.setattr(rows, "run_row", looked_at)
    results = sim.run(sweep, tmp_path / "r")
    assert (read, len(results.runs)) == ([], 8)
    assert not (tmp_path / "r" / "runs" / ".rows").exists()
    again = sim.run(sweep, tmp_path / "r")
    assert read == []
    assert again.manifest == results.manifest
    timing = pd.read_parquet(tmp_path / "r" / "timing.parquet")
    assert timing["run"].tolist() == results.manifest["runs"]
    assert (timing["seconds"] > 0).all()


def test_rows_that_are_damaged_are_read_from_the_runs(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    sim.run(sweep, tmp_path / "r")
    before = contents(tmp_path / "r")
    (tmp_path / "r" / "runs.parquet").write_bytes(b"PAR1 and nothing of use")
    with pytest.raises(ResultsError, match=r"runs\.parquet: not a readable parquet file .*--verify"):
        _ = sim.load_results(tmp_path / "r").runs
    (tmp_path / "r" / "runs" / ".rows").mkdir()
    (tmp_path / "r" / "runs" / ".rows" / "x.parquet").write_bytes(b"PAR1")
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r")) == []
    assert contents(tmp_path / "r") == before


def test_a_failure_is_told_each_time_and_done_again_when_asked_for(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    spy.fails[2, 1] = ZeroDivisionError("by nothing")
    told: list[dict[str, Any]] = []

    def run(**options: Any) -> Results:
        return sim.run(sweep, tmp_path / "r", on_failure=lambda record: told.append(dict(record)), **options)

    (failure,) = run().failed
    assert {key: failure[key] for key in ("point", "label", "variant", "replication", "reason")} == {
        "point": 0, "label": "network.brokers = 2", "variant": "static", "replication": 1,
        "reason": "ZeroDivisionError: by nothing",
    }  # fmt: skip
    assert "sweeping.py" in failure["traceback"]
    assert spy.told(run) == []
    assert told == [failure, failure]
    assert (tmp_path / "r" / "failed" / f"{failure['run']}.json").is_file()
    assert spy.told(lambda: run(retry_failed=True)) == [(2, 1)]
    spy.fails.clear()
    assert spy.told(lambda: run(retry_failed=True)) == [(2, 1)]
    assert not list((tmp_path / "r" / "failed").iterdir())
    sim.run(sweep, tmp_path / "undisturbed")
    (tmp_path / "r" / "failed").rmdir()
    assert contents(tmp_path / "r") == contents(tmp_path / "undisturbed")


def test_a_failure_stops_the_others_when_asked_for(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    spy.fails[4, 0] = ZeroDivisionError("by nothing")
    with pytest.raises(RunFailed, match=r"network\.brokers = 4, variant static, replication 0 failed: ZeroDivision"):
        sim.run(sweep, tmp_path / "r", fail_fast=True)
    assert spy.runs == ALL[:3]
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r", fail_fast=True)) == ALL[3:]


def test_in_a_sweep_what_does_not_fit_at_a_point_fails_there(sweep: Path, tmp_path: Path) -> None:
    moving = 'workload={ kind = "mobility", users = 12 }'  # whose cells are drawn
    fits = sim.run(sweep, tmp_path / "r", overrides=['sweep."network.brokers"=[2,999]', moving])
    assert [(failure["point"], failure["replication"], failure["traceback"]) for failure in fits.failed] == [
        (1, 0, ""), (1, 1, ""),
    ]  # fmt: skip
    assert "network.brokers: 999 brokers, but the workload has only" in fits.failed[0]["reason"]
    assert len(fits.runs) == 6


def test_an_experiment_of_which_every_run_fails(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    spy.fails = dict.fromkeys(ALL, ValueError("no"))
    results = sim.run(sweep, tmp_path / "r")
    assert (len(results.failed), len(results.runs), results.manifest["workload"]) == (8, 0, {})
    where = [(failure["point"], failure["variant"], failure["replication"]) for failure in results.failed]
    assert where == [(point, variant, i) for point in (0, 1) for variant in ("static", "one broker") for i in (0, 1)]


@pytest.mark.parametrize("manifest", ["", '{"format": "brok', None])
def test_runs_outlive_a_manifest_that_is_damaged(sweep: Path, tmp_path: Path, spy: Spy, manifest: str | None) -> None:
    sim.run(sweep, tmp_path / "r")
    before, path = contents(tmp_path / "r"), tmp_path / "r" / "manifest.json"
    path.unlink() if manifest is None else path.write_text(manifest)
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r")) == []
    assert contents(tmp_path / "r") == before
