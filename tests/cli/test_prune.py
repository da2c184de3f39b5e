"""`brokersim prune`: what is listed, removed and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sweeping import SWEEP, contents

from sim.experiments.store import Store

Brokersim = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(brokersim: Brokersim, tmp_path: Path) -> Path:
    """Results with two runs that are needed no more."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    for setting in ('sweep."network.brokers"=[2,4,8]', 'sweep."network.brokers"=[2,4]'):
        assert brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1", "--quiet", "--set", setting)[0] == 0
    return tmp_path / "r"


def runs(folder: Path) -> set[str]:
    return {entry.name for entry in (folder / "runs").iterdir()}


def test_runs_of_a_point_that_was_given_up_are_listed_and_go_when_it_is_confirmed(
    brokersim: Brokersim, folder: Path
) -> None:
    before, kept = runs(folder), contents(folder)
    status, out, err = brokersim("prune", "r")
    assert (status, err, runs(folder)) == (0, "", before)
    listed = [line.split()[0].rpartition("/")[2] for line in out.splitlines()[:-1]]
    assert out.splitlines()[-1].startswith("r: 2 runs, ")
    assert out.endswith(" can be removed: --yes removes them\n")
    status, out, _ = brokersim("prune", "r", "--yes")
    assert status == 0
    assert out.endswith(" removed\n")
    assert runs(folder) == before - set(listed)
    assert len(listed) == 2
    assert contents(folder) == {name: data for name, data in kept.items() if not any(run in name for run in listed)}
    assert brokersim("prune", "r") == (0, "r: nothing to remove\n", "")
    status, out, _ = brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1", "--quiet")
    assert status == 0
    assert runs(folder) == before - set(listed)


def test_who_is_asked_may_say_no(brokersim: Brokersim, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = runs(folder)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question: question.startswith("Remove 2 runs, ") and False)
    assert brokersim("prune", "r")[1].endswith("Nothing was removed\n")
    assert runs(folder) == before


def test_what_is_not_ours_stays(brokersim: Brokersim, folder: Path, tmp_path: Path) -> None:
    mine, link = folder / "runs" / "notes", folder / "runs" / ("a" * 32)
    mine.mkdir()
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    listed = [Path(line.split()[0]) for line in brokersim("prune", "r")[1].splitlines()[:-1]]
    (tmp_path / listed[0] / "notes.txt").write_text("mine")
    status, out, err = brokersim("prune", "r", "--yes")
    assert (status, len(err.splitlines())) == (0, 3)
    assert out.splitlines()[-1].startswith("r: 1 run, ")
    assert (tmp_path / listed[0] / "notes.txt").read_text() == "mine"
    assert mine.is_dir()
    assert link.is_symlink()


def test_pilots_of_a_warm_up_are_needed(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP.replace('"1h"', '"detect"'))
    assert brokersim("run", "s.toml", "--out", "r", "--jobs", "1", "--quiet")[0] == 0
    assert brokersim("prune", "r", "--yes")[1] == "r: nothing to remove\n"


def test_nothing_is_removed_while_another_command_writes_or_from_what_is_no_result(
    brokersim: Brokersim, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis").mkdir()
    assert "not a folder of results" in brokersim("prune", "thesis", "--yes")[2]
    assert list((tmp_path / "thesis").iterdir()) == []
    before = runs(folder)
    with Store(folder):
        status, _, err = brokersim("prune", "r", "--yes")
    assert status == 2
    assert "the runs were not finished" in err
    assert brokersim("prune", "r", "--yes")[0] == 2
    assert runs(folder) == before
