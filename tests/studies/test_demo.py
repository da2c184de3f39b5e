"""The demo, run once by the reader of the pages: its output and its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from reader import Reader

import sim
from sim.base.errors import InputError
from sim.studies import demo as study
from sim.workloads.format.folder import load_workload


def test_says_each_step_and_where_the_report_is(reader: Reader) -> None:
    steps = [line for line in reader.demo.splitlines() if line[1:2] == "/"]
    assert [line[:3] for line in steps] == ["1/4", "2/4", "3/4", "4/4"]
    assert reader.demo.rstrip().endswith("Report: demo/report.html")
    assert (reader.folder / "demo" / "report.html").stat().st_size > 100_000


def test_every_kind_of_dirt_is_in_quarantine(reader: Reader) -> None:
    rows = load_workload(reader.folder / "demo" / "workload").rows
    assert rows is not None
    assert set(rows["quarantined"]) == {
        "unparsable",
        "bad_time",
        "bad_position",
        "null_island",
        "outside_box",
        "outside_window",
        "duplicate",
    }
    assert rows["kept"] + sum(rows["quarantined"].values()) == rows["read"]
    lines = (reader.folder / "demo" / "checkins.tsv").read_text().count("\n")
    assert rows["read"] == lines


def test_similarity_saves_subscription_changes_against_location(reader: Reader) -> None:
    results = sim.load_results(reader.folder / "demo" / "results")
    changes = results.runs.pivot(index="replication", columns="variant", values="broker_subscription_changes")
    assert list(results.manifest["variants"]) == ["static", "location", "similarity"]
    assert len(changes) >= 3
    assert (changes["similarity"] < changes["location"]).all()


@pytest.mark.long
def test_runs_again_without_doing_runs_again(reader: Reader) -> None:
    demo = reader.folder / "demo"
    before = (demo / "results" / "runs.parquet").read_bytes(), (demo / "workload" / "manifest.json").read_bytes()
    said = reader.type("./brokersim demo --quiet", "again")
    assert "1/4" not in said
    after = (demo / "results" / "runs.parquet").read_bytes(), (demo / "workload" / "manifest.json").read_bytes()
    assert before == after


def test_refuses_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"contains 'thesis\.tex'"):
        study.demo(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        study.demo(tmp_path / "thesis.tex")
