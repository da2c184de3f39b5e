"""Tamper evidence: swapped, edited, copied or outdated results are never shown as others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweeping import Spy, contents

import sim
from analysis.collection import collect
from analysis.comparison_page import write_comparison
from analysis.report import write_report
from sim.base.errors import ResultsError
from sim.experiments.question import default_folder
from sim.experiments.results import Results
from sim.scenario.reader import load_scenario

SMALL: dict[str, Any] = {
    "horizon": "4h",
    "workload": {"kind": "poisson", "users": 12, "topics": 9},
    "network": {"brokers": 2},
}
FILE = """\
horizon = "4h"
workload = { kind = "poisson", users = 12, topics = 9 }
network.brokers = 2
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are given in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def brokers(results: Results) -> list[int]:
    return [len(results.table(run, "brokers")) for run in results.runs["run"]]


def test_two_scenarios_without_titles_keep_their_own_rows(here: Path, spy: Spy) -> None:
    a = sim.run(SMALL)
    b = sim.run({**SMALL, "network": {"brokers": 3}})
    assert a.folder != b.folder
    assert (brokers(a), brokers(b)) == ([2], [3])
    assert spy.told(lambda: sim.run(SMALL)) == []
    assert a.folder.parent == Path("results")
    assert a.folder.name.startswith("scenario-")


def test_folders_are_named_after_the_file_or_the_title_and_differ_by_question(here: Path, spy: Spy) -> None:
    (here / "desk.toml").write_text(FILE)

    def folder(*overrides: str) -> str:
        return str(sim.run("desk.toml", overrides=overrides).folder)

    assert folder() == folder("replications=2") == folder('title="Desk"') == str(Path("results", "desk"))
    assert spy.told(lambda: folder("replications=2")) == []
    four, five = folder("network.brokers=4"), folder("network.brokers=5")
    assert len({four, five, folder()}) == 3
    assert four.startswith(str(Path("results", "desk-")))
    assert sim.run({**SMALL, "title": "Two / brokers?"}).folder.name.startswith("two-brokers-")


def test_a_question_written_in_another_order_has_the_same_folder() -> None:
    variants = [{"name": "a"}, {"name": "b", "network": {"brokers": 3}}]
    one, other = (load_scenario({**SMALL, "variant": order}) for order in (variants, variants[::-1]))
    assert default_folder(one) == default_folder(other)


def test_a_folder_with_the_results_of_another_question_is_refused_and_left_as_it_is(here: Path, spy: Spy) -> None:
    sim.run(SMALL, "r")
    before = contents(here / "r")
    refused = r"r: contains the results of another question, which differs in network\.brokers; give another folder"
    with pytest.raises(ResultsError, match=refused):
        sim.run({**SMALL, "network": {"brokers": 3}}, "r")
    (here / "desk.toml").write_text(FILE)
    sim.run("desk.toml")
    (here / "other").mkdir()
    (here / "other" / "desk.toml").write_text(FILE.replace("= 2", "= 7"))
    with pytest.raises(ResultsError, match="desk: contains the results of another question"):
        sim.run("other/desk.toml")
    assert len(spy.runs) == 2
    assert contents(here / "r") == before


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ("users=13 workload.topics=8 network.brokers=3", r"workload\.users, workload\.topics, network\.brokers; give"),
        ("users=13 workload.topics=8 network.brokers=3 seed=2", r".*, .*, .* and 1 more keys; give"),
    ],
)
def test_three_keys_of_another_question_are_named(here: Path, spy: Spy, keys: str, named: str) -> None:
    sim.run(SMALL, "r")
    overrides = f"workload.{keys}".split()
    with pytest.raises(ResultsError, match=f"another question, which differs in {named} another folder"):
        sim.run(SMALL, "r", overrides=overrides)


def test_an_object_keeps_the_rows_that_it_was_made_with(sweep: Path, tmp_path: Path) -> None:
    a = sim.run(sweep, tmp_path / "r")
    loaded = sim.load_results(tmp_path / "r")
    b = sim.run(sweep, tmp_path / "r", overrides=["replications=1"])
    assert (len(a.runs), len(b.runs)) == (8, 4)
    with pytest.raises(ResultsError, match=r"runs\.parquet: rewritten since these results were loaded; load them"):
        _ = loaded.runs


def test_an_edited_table_of_runs_is_noticed_and_never_taken_up(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    sim.run(sweep, tmp_path / "r")
    before = contents(tmp_path / "r")
    table = tmp_path / "r" / "runs.parquet"
    pd.read_parquet(table).assign(notification_delay=0.0).to_parquet(table)
    with pytest.raises(ResultsError, match=r"runs\.parquet: changed since it was written; the same `brokersim run`"):
        _ = sim.load_results(tmp_path / "r").runs
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r")) == []
    assert contents(tmp_path / "r") == before


def test_an_edited_manifest_of_all_runs_is_noticed(sweep: Path, tmp_path: Path) -> None:
    sim.run(sweep, tmp_path / "r")
    before, manifest = contents(tmp_path / "r"), tmp_path / "r" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"Small"', '"Large"'))
    with pytest.raises(ResultsError, match=r"manifest\.json: changed since it was written"):
        sim.load_results(tmp_path / "r")
    sim.run(sweep, tmp_path / "r")
    assert contents(tmp_path / "r") == before


def test_swapped_run_folders_are_noticed_and_done_again(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    results = sim.run(sweep, tmp_path / "r")
    before = contents(tmp_path / "r")
    one, other = (tmp_path / "r" / "runs" / run for run in results.manifest["runs"][:2])
    for old, new in ((one, tmp_path / "x"), (other, one), (tmp_path / "x", other)):
        old.rename(new)
    with pytest.raises(ResultsError, match=rf"{one.name}: contains another run, {other.name}"):
        results.table(one.name, "brokers")
    assert len(spy.told(lambda: sim.run(sweep, tmp_path / "r"))) == 2
    assert contents(tmp_path / "r") == before


def test_a_copy_of_a_run_in_the_place_of_another_is_noticed(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    results = sim.run(sweep, tmp_path / "r")
    one, other = (tmp_path / "r" / "runs" / run for run in results.manifest["runs"][:2])
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with pytest.raises(ResultsError, match="contains another run"):
        results.table(one.name, "timeseries")
    assert len(spy.told(lambda: sim.run(sweep, tmp_path / "r"))) == 1


def test_a_copy_of_all_results_is_as_good(sweep: Path, tmp_path: Path, spy: Spy) -> None:
    results = sim.run(sweep, tmp_path / "r")
    shutil.copytree(tmp_path / "r", tmp_path / "copy")
    copy = sim.load_results(tmp_path / "copy")
    pd.testing.assert_frame_equal(copy.runs, results.runs)
    assert len(copy.table(results.manifest["runs"][0], "brokers"))
    assert spy.told(lambda: sim.run(sweep, tmp_path / "copy")) == []


def test_one_byte_of_a_run_that_is_edited_is_noticed_when_it_is_read(sweep: Path, tmp_path: Path) -> None:
    results = sim.run(sweep, tmp_path / "r")
    run = results.manifest["runs"][0]
    path = tmp_path / "r" / "runs" / run / "timeseries.parquet"
    table = pd.read_parquet(path)
    table["delivered"] += 1
    table.to_parquet(path)
    with pytest.raises(ResultsError, match=rf"{run}/timeseries\.parquet: changed since it was written; .*--verify"):
        results.table(run, "timeseries")
    with pytest.raises(ResultsError, match="changed since it was written"):
        write_report(results, tmp_path / "report.html")
    sim.run(sweep, tmp_path / "r", verify=True)
    assert len(results.table(run, "timeseries")) == len(table)


def test_one_byte_of_a_runs_manifest_that_is_edited_is_noticed_by_the_next_run(
    sweep: Path, tmp_path: Path, spy: Spy
) -> None:
    results = sim.run(sweep, tmp_path / "r")
    before = contents(tmp_path / "r")
    manifest = tmp_path / "r" / "runs" / results.manifest["runs"][0] / "manifest.json"
    data = bytearray(manifest.read_bytes())
    data[data.index(b'"delivered": ') + 13] ^= 1  # another digit
    manifest.write_bytes(data)
    assert spy.told(lambda: sim.run(sweep, tmp_path / "r")) == [(2, 0)]
    assert contents(tmp_path / "r") == before


def test_a_page_that_is_older_than_its_runs_is_removed(sweep: Path, tmp_path: Path) -> None:
    results = sim.run(sweep, tmp_path / "r")
    report, compared, foreign = (tmp_path / "r" / name for name in ("report.html", "compared.html", "mine.html"))
    write_report(results, report)
    write_comparison(collect([tmp_path / "r"]), compared, [])
    foreign.write_text("<p>My notes</p>")
    (tmp_path / "r" / "folder.html").mkdir()  # no page that could be read
    sim.run(sweep, tmp_path / "r")
    assert report.is_file()
    assert compared.is_file()
    sim.run(sweep, tmp_path / "r", overrides=["replications=3"])
    assert not report.exists()
    assert not compared.exists()
    assert foreign.read_text() == "<p>My notes</p>"
    assert (tmp_path / "r" / "folder.html").is_dir()


def test_what_a_seal_is_can_be_checked_without_code_of_ours(sweep: Path, tmp_path: Path) -> None:
    import hashlib

    sim.run(sweep, tmp_path / "r")
    for manifest in [tmp_path / "r" / "manifest.json", *(tmp_path / "r").glob("runs/*/manifest.json")]:
        found = json.loads(manifest.read_text())
        _, _, rest = manifest.read_bytes().split(b"\n", 2)
        assert found["seal"] == hashlib.sha256(rest).hexdigest()
        for name, digest in found["files"].items():
            assert hashlib.sha256((manifest.parent / name).read_bytes()).hexdigest() == digest
