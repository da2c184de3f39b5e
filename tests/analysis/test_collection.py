"""Several results folders as one: names, pairs, points, and reported differences."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from fake_results import grid, write_results, write_sweep
from scipy import stats

from analysis.collection import changes, collect
from analysis.compared import comparison_tables
from analysis.comparison import compare, compare_table, method
from analysis.comparison_page import draw_comparison, render_comparison
from analysis.exports import export_comparison
from analysis.tables import over_time
from sim.base.errors import ResultsError
from sim.experiments.results import load_results

DELAY = ["notification_delay"]
TWENTY = {"network": {"brokers": 20, "geometry": {"kind": "chord", "bits": 32}}}


def test_variants_are_named_by_folder_where_that_is_needed(tmp_path: Path) -> None:
    old, new = (write_results(tmp_path / name / "r", variants=("a", "b"), replications=2) for name in ("old", "new"))
    alone = write_results(tmp_path / "alone", variants=("a",), replications=2)
    assert list(collect([old]).manifest["variants"]) == ["a", "b"]
    assert list(collect([old, new]).manifest["variants"]) == ["old/r: a", "old/r: b", "new/r: a", "new/r: b"]
    assert list(collect([old, alone]).manifest["variants"]) == ["r: a", "r: b", "alone: a"]
    other = write_results(tmp_path / "other", variants=("a",), replications=2)
    both = collect([alone, other], baseline="other")
    assert list(both.manifest["variants"]) == ["alone", "other"]
    assert both.manifest["report"]["baseline"] == "other"
    assert both.runs["variant"].tolist() == ["alone"] * 2 + ["other"] * 2


def test_one_folder_is_what_it_is_alone(tmp_path: Path) -> None:
    points = grid(network__brokers=[10, 20], selection__cluster_size=[2, 5])
    folder = write_sweep(tmp_path, points, variants=("static", "similarity"), replications=2)
    one, alone = collect([folder]), load_results(folder)
    assert one.manifest["points"] == alone.manifest["points"]
    pd.testing.assert_frame_equal(compare_table(one), compare_table(alone))
    pd.testing.assert_frame_equal(one.at(3).runs[alone.runs.columns], alone.at(3).runs)


def test_runs_of_one_seed_and_workload_are_pairs_and_others_are_not(tmp_path: Path) -> None:
    one = write_results(tmp_path / "one", variants=("a",))
    two = write_results(tmp_path / "two", variants=("a",), replications=3, slower=1.1)
    collection = collect([one, two])
    (row,) = compare(collection, DELAY)
    assert row.outcomes["two"].difference.mean == pytest.approx(10)
    assert row.outcomes["two"].difference.n == 3
    assert method(collection).startswith(
        "Means of 3 to 5 replications with 95 % confidence intervals; differences to one in %, paired;"
    )
    for name, other in {"seed": {"seed": 8}, "workload": {"workload_hash": "ef" * 32}}.items():
        three = write_results(tmp_path / name, variants=("a",), slower=1.3, **other)
        collection = collect([one, three])
        x, b = (collection.runs.query("variant == @variant")["notification_delay"] for variant in (name, "one"))
        expected = stats.ttest_ind(x, b, equal_var=False)
        table = compare_table(collection, DELAY).iloc[1]
        assert table["test"] == "welch"
        assert table["p_raw"] == pytest.approx(expected.pvalue)
        assert table["difference"] == pytest.approx(100 * (x.mean() / b.mean() - 1))
        assert table["difference_low"] < table["difference"] < table["difference_high"]
        assert ", unpaired, by Welch's test, since no runs share" in method(collection)


def test_points_meet_where_their_values_are_equal(tmp_path: Path) -> None:
    """Two sweeps that overlap, and a folder that is one point of them."""
    ten, twenty, fifty = grid(network__brokers=[10, 20, 50])
    first = write_sweep(tmp_path / "first", [ten, twenty], variants=("a",), detailed=(0, 1), replications=2)
    second = write_sweep(tmp_path / "second", [fifty, twenty], variants=("a",), detailed=(0, 1), replications=2)
    third = write_results(tmp_path / "third", variants=("a",), replications=2, changed=TWENTY)
    collection = collect([first, second, third])
    assert collection.manifest["points"] == [ten, twenty, fifty]
    runs = collection.runs.groupby("point")["variant"].unique()
    assert [sorted(names) for names in runs] == [["first"], ["first", "second", "third"], ["second"]]
    assert collection.runs.loc[collection.runs["variant"] == "third", "network.brokers"].tolist() == [20, 20]
    table = compare_table(collection, DELAY).set_index(["point", "variant"])
    assert table["difference"].notna().to_dict() == {
        (point, variant): point == 1 and variant != "first"
        for point in range(3)
        for variant in ("first", "second", "third")
    }


def test_a_key_that_a_folder_does_not_have_is_missing_there(tmp_path: Path) -> None:
    points = grid(selection__cluster_size=[2, 5])
    swept = write_sweep(tmp_path / "swept", points, variants=("a",), detailed=(0, 1), replications=2)
    plain = write_results(tmp_path / "plain", variants=("a",), replications=2)
    collection = collect([swept, plain], DELAY)
    assert [point["selection.cluster_size"] for point in collection.manifest["points"]] == [2, 5, "–"]
    assert [row.cells[:2] for row in comparison_tables(collection)[0].rows] == [
        ("2", "swept"),
        ("5", "swept"),
        ("–", "plain"),
    ]
    render_comparison(collection, draw_comparison(collection))
    export_comparison(collection, tmp_path / "c.parquet")
    assert pd.read_parquet(tmp_path / "c.parquet")["selection.cluster_size"].tolist() == ["2", "2", "5", "5", "–", "–"]


def test_folders_become_points_of_a_key_that_is_varied(tmp_path: Path) -> None:
    twelve = write_results(tmp_path / "twelve", variants=("a", "b"), replications=2)
    twenty = write_results(tmp_path / "twenty", variants=("a", "b"), replications=2, slower=2, changed=TWENTY)
    collection = collect([twenty, twelve], vary="network.brokers")
    assert list(collection.manifest["variants"]) == ["a", "b"]
    assert collection.points["network.brokers"].tolist() == [20, 12]
    assert compare_table(collection, DELAY)["difference"].notna().tolist() == [False, True, False, True]
    same = write_results(tmp_path / "same", variants=("a",), replications=2, changed=TWENTY)
    clash = collect([twenty, twelve, same], vary="network.brokers")
    assert list(clash.manifest["variants"])[::2] == ["twenty: a", "twelve: a", "same: a"]


def test_points_of_a_sample_that_are_the_same_stay_apart_in_one_folder_only(tmp_path: Path) -> None:
    """Sobol indices need each of them; beside others, they are the same runs."""
    ten, twenty = grid(network__brokers=[10, 20])
    sampled = write_sweep(tmp_path / "s", [ten, twenty, ten], variants=("a",), detailed=(0, 1, 2), replications=2)
    runs = pd.read_parquet(sampled / "runs.parquet")
    runs.loc[runs["point"] == 2, "run"] = runs.loc[runs["point"] == 0, "run"].tolist()
    runs.to_parquet(sampled / "runs.parquet")
    assert collect([sampled]).manifest["points"] == [ten, twenty, ten]
    other = write_results(tmp_path / "o", variants=("a",), replications=2, changed=TWENTY)
    both = collect([sampled, other])
    assert both.manifest["points"] == [ten, twenty]
    assert both.runs["point"].tolist() == [0, 0, 1, 1, 1, 1]
    assert compare_table(both, DELAY)["replications"].tolist() == [2, 0, 2, 2]


def test_a_variant_whose_runs_all_failed_is_there_without_numbers(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = write_results(tmp_path / name, variants=("static", "similarity"), replications=2)
    runs = pd.read_parquet(folder / "runs.parquet")
    runs[runs["variant"] == "static"].to_parquet(folder / "runs.parquet")
    collection = collect([tmp_path / "one", tmp_path / "two"], DELAY)
    assert compare_table(collection)["replications"].tolist()[:4] == [2, 2, 2, 0]
    assert changes(collection).loc["selection.kind", "two: similarity"] == "similarity"
    assert "two: similarity" not in [cell for row in comparison_tables(collection)[0].rows for cell in row.cells]


def test_tables_of_runs_are_found_in_their_folders(tmp_path: Path) -> None:
    one = write_results(tmp_path / "one", variants=("a",), replications=2)
    two = write_results(tmp_path / "two", variants=("a",), replications=2, version="0.2.0")
    table = over_time(collect([one, two]), ["notification_overhead"])
    assert table["variant"].value_counts().to_dict() == {"one": 24, "two": 24}


def test_what_changed_names_keys_version_and_workload(tmp_path: Path) -> None:
    points = grid(network__brokers=[10, 20, 50])
    old = write_sweep(tmp_path / "old", points, variants=("a", "b"), detailed=(0, 1, 2), replications=2)
    changed = {**TWENTY, "horizon": 86400.0}
    other = {"seed": 8, "version": "0.2.0", "workload_hash": "ef" * 32}
    new = write_results(tmp_path / "new", variants=("a",), replications=2, changed=changed, **other)
    table = changes(collect([old, new]))
    assert table.to_dict("index") == {
        "seed": {"old: a": "7", "old: b": "7", "new: a": "8"},
        "network.brokers": {"old: a": "10, 20, 50", "old: b": "10, 20, 50", "new: a": "20"},
        "selection.kind": {"old: a": "a", "old: b": "b", "new: a": "a"},
        "horizon": {"old: a": "–", "old: b": "–", "new: a": "1 d"},
        "workload": {"old: a": "ab" * 6, "old: b": "ab" * 6, "new: a": "ef" * 6},
        "version": {"old: a": "0.1.0", "old: b": "0.1.0", "new: a": "0.2.0"},
    }
    assert changes(collect([new])).empty


def test_failed_runs_keep_their_place(tmp_path: Path) -> None:
    failed = [{"variant": "a", "replication": 2, "reason": "KeyError: 7"}]
    one = write_results(tmp_path / "one", variants=("a", "b"), replications=2)
    two = write_results(tmp_path / "two", variants=("a", "b"), replications=2, failed=failed)
    (failure,) = collect([one, two]).failed
    assert failure == {"variant": "two: a", "point": 0, "replication": 2, "reason": "KeyError: 7"}


def test_mistakes_are_told_with_the_right_names(tmp_path: Path) -> None:
    one = write_results(tmp_path / "one", variants=("a", "b"), replications=2)
    two = write_results(tmp_path / "two", variants=("a", "b"), replications=2, overrides={"notification_delay": None})

    def message(*folders: Path, **options: object) -> str:
        with pytest.raises(ResultsError) as error:
            collect(folders, **options)
        return str(error.value)

    assert message(one, tmp_path / "one") == f"{one}: given twice; name every folder once"
    assert message(one, metrics=["notification_dlay"]).startswith(
        "unknown metric 'notification_dlay', did you mean 'notification_delay'?"
    )
    assert message(one, two, metrics=DELAY).startswith("metric 'notification_delay' is undefined in all runs of two (")
    assert message(one, baseline="aa") == "baseline: unknown variant 'aa', did you mean 'a'? (allowed: a, b)"
    assert "key 'network.broker', did you mean 'network.brokers'?" in message(one, two, vary="network.broker")
    assert message(one, two, vary="network.brokers") == (
        "vary: network.brokers is 12 in all results; name a key in which they differ"
    )
    assert "variants of one differ in selection.kind (a, b)" in message(one, two, vary="selection.kind")
    write_results(two, variants=("a", "b"), replications=2, report={"metrics": ["queue_wait"]})
    write_results(one, variants=("a", "b"), replications=2, report={"metrics": ["queue_wait"]})
    assert message(one, two).startswith(
        "no metric of the reports is defined in all of one, two; name one of those that are: bro"
    )
    pd.read_parquet(one / "runs.parquet").iloc[:0].to_parquet(one / "runs.parquet")
    assert message(one, two) == f"{one}: no run finished, so there is nothing to compare"
    manifest = json.loads((two / "manifest.json").read_text())
    (two / "manifest.json").write_text(json.dumps({**manifest, "complete": False}))
    assert "the runs were not finished" in message(two)
