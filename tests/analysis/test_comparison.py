"""Comparisons of variants against pandas and scipy, and their sentences."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import write_results
from scipy import stats

from analysis.comparison import compare, compare_table, headline_of, method, texts
from analysis.formatting import describe, number, quantity
from sim.experiments.results import Results, load_results
from sim.experiments.statistics import Interval, mean_interval


def test_the_table_agrees_with_pandas_and_scipy(tmp_path: Path) -> None:
    found = compare_table(load_results(write_results(tmp_path))).set_index(["metric", "variant"])
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    for metric in ("broker_subscription_changes", "notification_delay", "load_stddev"):
        wide = runs.pivot(index="replication", columns="variant", values=metric)
        for variant in wide:
            row = found.loc[(metric, variant)]
            x = wide[variant]
            low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
            assert row[["mean", "low", "high"]].tolist() == pytest.approx([x.mean(), low, high])
            if variant == "static":
                assert math.isnan(row["difference"])
                continue
            d = 100 * (x / wide["static"] - 1)
            low, high = stats.t.interval(0.95, len(d) - 1, d.mean(), stats.sem(d))
            expected = [d.mean(), low, high]
            assert row[["difference", "difference_low", "difference_high"]].tolist() == pytest.approx(expected)


def test_verdicts_know_which_way_is_better(tmp_path: Path) -> None:
    found = {row.metric.name: row.outcomes for row in compare(load_results(write_results(tmp_path)))}
    assert found["broker_subscription_changes"]["similarity"].verdict == "better"
    assert found["broker_subscription_changes"]["location"].verdict == "worse"
    assert found["load_jain"]["similarity"].verdict == "better"  # higher is better
    assert found["handovers"]["similarity"].verdict == "lower"  # neither way is better
    assert found["notification_overhead"]["similarity"].verdict == ""  # the same in every replication


def test_tests_agree_with_scipy_and_are_corrected_for_all_variants(tmp_path: Path) -> None:
    found = compare_table(load_results(write_results(tmp_path))).set_index(["metric", "variant"])
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    for metric in ("broker_subscription_changes", "load_stddev"):
        wide = runs.pivot(index="replication", columns="variant", values=metric)
        p = {}
        for variant in ("location", "similarity"):
            d = 100 * (wide[variant] / wide["static"] - 1)
            p[variant] = stats.ttest_1samp(d, 0).pvalue
            row = found.loc[(metric, variant)]
            hedges = math.gamma(2) / math.gamma(1.5) / math.sqrt(2)  # of four degrees of freedom
            assert row[["effect", "p_raw"]].tolist() == pytest.approx([d.mean() / d.std() * hedges, p[variant]])
            assert row["test"] == "paired"
        small, large = sorted(p, key=p.__getitem__)
        assert found.loc[(metric, small), "p"] == pytest.approx(2 * p[small])
        assert found.loc[(metric, large), "p"] == pytest.approx(max(2 * p[small], p[large]))


def test_what_one_of_two_comparisons_shows_may_be_chance_when_there_are_many(tmp_path: Path) -> None:
    """A difference whose interval excludes 0: certain against one variant, not as the best of five."""
    values = {"a": [100.0, 200.0, 300.0, 400.0], "b": [101.0, 205.0, 304.5, 409.0]}
    for variants in (("a", "b"), ("a", "b", "c", "d", "e", "f")):
        folder = write_results(tmp_path / str(len(variants)), variants=variants, replications=4)
        runs = pd.read_parquet(folder / "runs.parquet")
        runs["subscription_overhead"] = [
            x + 50 * (-1) ** i * (v > 1)
            for v, name in enumerate(variants)
            for i, x in enumerate(values.get(name, values["a"]))
        ]
        runs.to_parquet(folder / "runs.parquet")
    two, six = (load_results(tmp_path / n) for n in "26")
    metric = ["subscription_overhead"]
    alone, among = (compare(results, metric)[0].outcomes["b"] for results in (two, six))
    assert alone.difference == among.difference
    assert alone.difference.excludes(0)
    assert (alone.verdict, among.verdict) == ("worse", "")
    assert alone.p == alone.test.p
    assert among.p == pytest.approx(5 * alone.test.p)
    assert method(two).endswith("paired; significant means p ≤ 0.05.")
    assert method(six).endswith("paired; significant means p ≤ 0.05 after Holm's correction for 5 comparisons.")


def shown(results: Results) -> list[dict[str, tuple[str, ...]]]:
    """The texts shown for each headline metric and variant."""
    return [{name: texts(row, name) for name in row.outcomes} for row in compare(results, headline_of(results))]


def test_one_replication_has_differences_and_no_intervals(tmp_path: Path) -> None:
    results = load_results(write_results(tmp_path, replications=1))
    table = compare_table(results)
    assert table[["low", "high", "difference_low", "difference_high"]].isna().all(axis=None)
    assert set(table["verdict"]) == {""}
    assert shown(results)[0]["similarity"][2].startswith("−43")


def test_a_difference_to_zero_is_from_zero_to_what_and_is_tested(tmp_path: Path) -> None:
    """Of four pairs two have a baseline of 0: percentages of the others would stand for all."""
    write_results(tmp_path, variants=("none", "some", "more"), replications=4, report={"metrics": ["lost"]})
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    values = {"none": [0, 0, 0, 0], "some": [3030, 3036, 3040, 3038], "more": [1, 0, 0, 1]}
    runs["lost"] = [values[variant][n] for variant, n in runs[["variant", "replication"]].itertuples(index=False)]
    runs.to_parquet(tmp_path / "runs.parquet")
    results = load_results(tmp_path)
    (row,) = compare(results, ["lost"])
    some = row.outcomes["some"]
    assert (some.difference, some.verdict) == (None, "worse")
    assert some.test.p == pytest.approx(stats.ttest_rel(values["some"], values["none"]).pvalue)
    assert shown(results)[0]["some"] == ("3,036", "[3,029, 3,043]", "from 0 to 3,036")
    results.manifest["report"]["baseline"] = "more"
    (row,) = compare(results, ["lost"])
    assert (row.outcomes["some"].difference, row.outcomes["some"].verdict) == (None, "worse")
    assert row.outcomes["none"].verdict == ""


def test_a_baseline_of_zero_and_an_undefined_metric_have_no_difference(tmp_path: Path) -> None:
    report = {"metrics": ["lost", "queue_wait"]}
    results = load_results(write_results(tmp_path, variants=("a", "b"), report=report))
    lost, wait = shown(results)
    assert lost["b"] == ("0", "", "")
    assert wait["b"] == ("–", "", "")


def test_pairs_with_a_failed_run_are_left_out(tmp_path: Path) -> None:
    write_results(tmp_path, variants=("a", "b"), replications=4)
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    runs[~((runs["variant"] == "a") & (runs["replication"] == 2))].to_parquet(tmp_path / "runs.parquet")
    outcome = compare(load_results(tmp_path), ["broker_subscription_changes"])[0].outcomes
    assert (outcome["a"].value.n, outcome["b"].value.n, outcome["b"].difference.n) == (3, 4, 3)


@pytest.mark.parametrize(
    ("values", "factor", "expected"),
    [
        ([57.2, 55.0, 58.1], 1.0, ("57", "[53, 61]")),
        ([12345.0, 12301.0, 12388.0], 1.0, ("12,340", "[12,240, 12,450]")),
        ([0.0361, 0.0363, 0.0362], 1e-3, ("36.2", "[36.0, 36.4]")),
        ([5.0, 5.0], 1.0, ("5", "")),
        ([np.nan], 1.0, ("–", "")),
    ],
)
def test_digits_follow_the_width_of_the_interval(values: list[float], factor: float, expected: tuple[str, str]) -> None:
    assert describe(mean_interval(values), factor) == expected


def test_a_bound_beyond_zero_is_not_rounded_to_zero() -> None:
    assert describe(Interval(3.0, 0.04, 5.96, 5, varies=True), signed=True) == ("+3.00", "[+0.04, +5.96]")


def test_numbers_and_quantities_read_well() -> None:
    assert [number(x) for x in (1234567, -0.5, 0.0, 12.3456, math.nan)] == ["1,234,567", "−0.5000", "0", "12.35", "–"]
    assert quantity(0.0362, "s") == "36.20 ms"
    assert quantity(86400 * 3, "s") == "3 d"
    assert quantity(1234567, "bytes") == "1.235 MB"
    assert quantity(1204, "messages") == "1,204 messages"
    assert quantity(0.93, "–") == "0.9300"
