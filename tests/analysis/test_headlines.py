"""The findings in words: what is better and worse, also over points, and the note on few replications."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import grid, seal_run, write_results, write_sweep

from analysis.collection import collect
from analysis.comparison_page import render_comparison
from analysis.formatting import describe
from analysis.headlines import headlines
from analysis.report import render_report
from sim.experiments.results import Results, load_results
from sim.experiments.statistics import mean_interval

SEVEN = (
    "broker_subscription_changes", "subscription_overhead", "notification_delay", "notification_overhead", "handovers",
    "load_stddev", "lost",
)  # fmt: skip


def said(results: Results) -> list[str]:
    return list(map(str, headlines(results).sentences))


def with_values(folder: Path, values: Mapping[str, Mapping[str, Sequence[float]]], **case: object) -> Results:
    """Results with these values, by metric and variant, a number for each replication."""
    variants = list(next(iter(values.values())))
    count = len(next(iter(next(iter(values.values())).values())))
    write_results(folder, variants=variants, replications=count, report={"metrics": list(values)}, **case)
    runs = pd.read_parquet(folder / "runs.parquet")
    for metric, own in values.items():
        runs[metric] = [own[name][n] for name, n in runs[["variant", "replication"]].itertuples(index=False)]
    runs.to_parquet(folder / "runs.parquet")
    return load_results(folder)


def test_every_headline_metric_that_gets_worse_is_named_after_what_gets_better(tmp_path: Path) -> None:
    """Seven metrics, the last two of which get worse; that of handovers is better neither way."""
    location, similarity = said(load_results(write_results(tmp_path, report={"metrics": SEVEN})))
    assert similarity.startswith("similarity: better than static in broker subscription changes −43")
    assert location.startswith("location: better than static in notification delay −2")
    assert "; worse than static in broker subscription changes +" in location
    assert ", load stddev +3" in location
    assert similarity.endswith("; the same notification overhead, lost.")


def test_what_rises_from_zero_is_said_from_zero_to_what(tmp_path: Path) -> None:
    results = with_values(
        tmp_path,
        {
            "handover_messages": {"static": [0] * 5, "similarity": [3030, 3036, 3040, 3038, 3036]},
            "queue_wait": {"static": [0.0] * 5, "similarity": [0.0361, 0.0362, 0.0363, 0.0362, 0.0362]},
            "lost": {"static": [0] * 5, "similarity": [0, 0, 0, 1, 0]},
        },
    )
    assert said(results) == [
        "similarity: worse than static in handover messages from 0 to 3,036 messages [3,031, 3,041], "
        "queue wait from 0 to 36.20 ms [36.11, 36.29]; no significant difference in lost."
    ]


def test_what_may_be_chance_is_called_not_significant(tmp_path: Path) -> None:
    uncertain = {"a": [100, 200, 300], "b": [110, 190, 300]}
    assert said(with_values(tmp_path, {"subscription_overhead": uncertain})) == [
        "b: no significant difference in subscription overhead."
    ]


def test_what_one_of_two_comparisons_shows_is_not_significant_among_five(tmp_path: Path) -> None:
    rest = {name: [150.0, 150.0, 350.0, 350.0] for name in "cdef"}
    two = {"a": [100.0, 200.0, 300.0, 400.0], "b": [101.0, 205.0, 304.5, 409.0]}
    (alone,) = said(with_values(tmp_path / "2", {"subscription_overhead": two}))
    among, *_ = said(with_values(tmp_path / "6", {"subscription_overhead": two | rest}))
    assert alone == "b: worse than a in subscription overhead +1.8 % [+0.7, +2.9]."
    assert among == "b: no significant difference in subscription overhead."


def test_one_variant_is_described_by_all_its_means(tmp_path: Path) -> None:
    (sentence,) = said(load_results(write_results(tmp_path, variants=("static",), report={"metrics": SEVEN})))
    assert sentence.startswith("static: broker subscription changes 4,000 [3,400, 4,600]")
    assert " messages [" in sentence
    assert " ms [" in sentence
    assert sentence.endswith(", lost 0.")


def test_what_has_no_variance_is_said_without_a_test(tmp_path: Path) -> None:
    steady = {"a": [10.0, 20.0], "b": [9.0, 18.0]}
    assert said(with_values(tmp_path / "2", {"load_stddev": steady})) == [
        "b: better than a in every replication in load stddev −10.0 %."
    ]
    single = {"a": [10.0], "b": [9.0]}
    assert said(with_values(tmp_path / "1", {"load_stddev": single})) == [
        "b: load stddev −10.0 % against a in one replication."
    ]


def test_what_is_undefined_cannot_be_compared(tmp_path: Path) -> None:
    report = {"metrics": ["queue_wait"]}
    results = load_results(write_results(tmp_path, variants=("a", "b"), report=report))
    assert said(results) == ["b: no metric that can be compared with a."]


def swept(folder: Path, by_point: Sequence[Mapping[str, Sequence[float]]], metric: str = "load_stddev") -> Results:
    """A sweep over brokers with these values of one metric at each point, by variant and replication."""
    points = grid(network__brokers=[10 * (n + 1) for n in range(len(by_point))])
    variants, count = list(by_point[0]), len(next(iter(by_point[0].values())))
    write_sweep(folder, points, variants=variants, replications=count, report={"metrics": [metric]}, detailed=())
    runs = pd.read_parquet(folder / "runs.parquet")
    places = runs[["point", "variant", "replication"]].itertuples(index=False)
    runs[metric] = [float(by_point[point][name][n]) for point, name, n in places]
    runs.to_parquet(folder / "runs.parquet")
    return load_results(folder)


BASE = [100.0, 110.0, 90.0, 105.0, 95.0]
NOISY = [90.0, 112.0, 88.0, 106.0, 80.0]


def times(factor: float) -> list[float]:
    """The baseline times a factor, but for a little."""
    return [x * factor * (1 + 0.01 * (-1) ** n) for n, x in enumerate(BASE)]


def test_a_sweep_without_a_significant_point_says_so_with_the_intervals(tmp_path: Path) -> None:
    halved = [50 + x / 2 for x in NOISY]
    results = swept(tmp_path, [{"a": BASE, "b": NOISY}, {"a": [50 + x / 2 for x in BASE], "b": halved}])
    (_, sentence) = said(results)
    ends = []
    for shift, share in ((0, 1), (50, 0.5)):
        d = pd.Series(shift + share * pd.Series(NOISY)) / (shift + share * pd.Series(BASE)) * 100 - 100
        ends.append(describe(mean_interval(d), signed=True))
    assert sentence == (
        f"b against a: load stddev {ends[0][0]} % {ends[0][1]} to {ends[1][0]} % {ends[1][1]}, significant at 0 of 2 points."
    )


def test_a_sweep_says_at_how_many_points_a_variant_is_better_and_worse(tmp_path: Path) -> None:
    here = [{"a": BASE, "b": times(factor)} for factor in (1.5, 0.5, 1.2)] + [{"a": BASE, "b": NOISY}]
    least, sentence = said(swept(tmp_path, here))
    assert least.startswith("load stddev: lowest with b at network.brokers = 20: ")
    assert sentence.startswith("b against a: load stddev −49.9 % [")
    assert " to +50 % [" in sentence
    assert sentence.endswith("significant at 3 of 4 points (better at 1, worse at 2).")


def test_a_sweep_says_what_rises_from_zero(tmp_path: Path) -> None:
    lost = [
        {"a": [0] * 5, "b": [7, 8, 9, 8, 8]},
        {"a": [0] * 5, "b": [70, 80, 90, 80, 80]},
        {"a": [4] * 5, "b": [6] * 5},
    ]
    (_, sentence) = said(swept(tmp_path, lost, "lost"))
    assert sentence == (
        "b against a: lost +50.0 %, at most from 0 to 80 [71, 89], significant at 2 of 3 points (worse), without variance at 1."
    )


def test_what_is_the_same_at_all_points_is_said_to_be(tmp_path: Path) -> None:
    assert said(swept(tmp_path, [{"a": BASE, "b": BASE}] * 2)) == ["b against a: the same load stddev at 2 points."]


@pytest.mark.parametrize(("replications", "reach"), [(2, "12.7"), (3, "4.3"), (4, "3.2")])
def test_few_replications_have_a_note_on_what_that_means(tmp_path: Path, replications: int, reach: str) -> None:
    write_results(tmp_path / "r", replications=replications)
    (note,) = headlines(load_results(tmp_path / "r")).notes
    assert note.startswith(
        f"{replications} replications are few: a confidence interval extends {reach} standard errors to each side"
    )
    assert "Only large differences become significant" in note
    assert f'<p class="note">{note}</p>' in render_report(load_results(tmp_path / "r"), [])
    assert f'<p class="note">{note}</p>' in render_comparison(collect([tmp_path / "r"]), [])


def test_five_replications_have_no_note_and_one_has_no_interval(tmp_path: Path) -> None:
    assert headlines(load_results(write_results(tmp_path / "5", replications=5))).notes == []
    (note,) = headlines(load_results(write_results(tmp_path / "1", replications=1))).notes
    assert note.startswith("There is one replication")


def test_points_with_fewer_replications_than_others_are_noted(tmp_path: Path) -> None:
    results = swept(tmp_path, [{"a": BASE, "b": NOISY}] * 2)
    results.__dict__["runs"] = results.runs.query("point == 0 or replication < 2")
    assert headlines(results).notes[0].startswith("2 replications at some points are few: ")


def test_saturated_brokers_are_named_with_since_when_and_what_waits_there(tmp_path: Path) -> None:
    results = with_values(tmp_path, {"saturated_brokers": {"a": [0] * 5, "b": [0, 5, 0, 0, 1]}})
    run = results.runs.query("variant == 'b' and replication == 1")["run"].iloc[0]
    brokers = results.table(run, "brokers").assign(saturated_since=np.nan, backlog=0, backlog_seconds=0.0)
    brokers["capacity_share"] = np.nan
    brokers["name"] = [f"b{broker}" for broker in brokers["broker"]]
    for broker, since, messages, seconds in [
        (3, 7200.0, 36_000, 36_000.0),
        (1, 60.0, 2, 5.0),
        (4, 60.0, 2, 4.0),
        (5, 60.0, 2, 3.0),
    ]:
        brokers.loc[broker, ["saturated_since", "backlog", "backlog_seconds"]] = since, messages, seconds
        brokers.loc[broker, "capacity_share"] = 0.41 if broker == 3 else 0.996
    folder = tmp_path / "runs" / run
    brokers.to_parquet(folder / "brokers.parquet")
    seal_run(folder, json.loads((folder / "manifest.json").read_text()))
    assert headlines(load_results(tmp_path)).notes == [
        "b: 4 brokers are saturated in 2 of 5 replications, the first of them: "
        "broker b3 since 2 h (it can do 41 % of the work that has arrived since; 36,000 messages there at the end, "
        "10 h of work undone), "
        "broker b1 since 1 min (it can do 99.6 % of the work that has arrived since; 2 messages there at the end, "
        "5 s of work undone), "
        "broker b4 since 1 min (it can do 99.6 % of the work that has arrived since; 2 messages there at the end, "
        "4 s of work undone) "
        "and 1 other. "
        "Delays and deliveries cover only what was delivered."
    ]


def test_saturated_links_and_interfaces_are_named_with_since_when_and_what_they_can_carry(tmp_path: Path) -> None:
    results = with_values(tmp_path, {"saturated_brokers": {"a": [0] * 5, "b": [0] * 5}})
    runs = pd.read_parquet(tmp_path / "runs.parquet").assign(saturated_links=0)
    run = results.runs.query("variant == 'b' and replication == 1")["run"].iloc[0]
    runs.loc[runs["run"] == run, "saturated_links"] = 2
    runs.to_parquet(tmp_path / "runs.parquet")
    brokers, links = results.table(run, "brokers"), results.table(run, "links")
    brokers["name"] = [f"b{broker}" for broker in brokers["broker"]]
    for way in ("in", "out"):
        brokers[f"interface_{way}_saturated_since"] = brokers[f"interface_{way}_capacity_share"] = np.nan
    brokers.loc[2, ["interface_out_saturated_since", "interface_out_capacity_share"]] = 60.0, 0.25
    links["saturated_since"] = links["capacity_share"] = np.nan
    links.loc[1, ["saturated_since", "capacity_share"]] = 7200.0, 0.5
    folder = tmp_path / "runs" / run
    brokers.to_parquet(folder / "brokers.parquet")
    links.to_parquet(folder / "links.parquet")
    seal_run(folder, json.loads((folder / "manifest.json").read_text()))
    assert headlines(load_results(tmp_path)).notes == [
        "b: 2 links are saturated in 1 of 5 replications: "
        "interface out of broker b2 since 1 min (it can carry 25 % of what has come since), "
        "link b1 → b2 since 2 h (it can carry 50 % of what has come since). "
        "Delays and deliveries cover only what was delivered."
    ]


def test_a_sweep_says_at_which_points_brokers_are_saturated(tmp_path: Path) -> None:
    points = [{"saturated_brokers": [float(point > 1)] * 5} for point in range(6)]
    (note,) = headlines(swept(tmp_path, points, "saturated_brokers")).notes
    assert note.startswith("Brokers are saturated at 4 of 6 points (")
    assert note.endswith("; and 1 more). Delays and deliveries cover only what was delivered there.")


def test_a_delay_is_not_called_least_where_brokers_are_saturated(tmp_path: Path) -> None:
    delays = [[3.0] * 5, [2.0] * 5, [1.0] * 5]
    results = swept(tmp_path, [{"a": values} for values in delays], "notification_delay")
    assert "lowest at network.brokers = 30" in " ".join(said(results))
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    runs["saturated_brokers"] = (runs["point"] == 2).astype(int)
    runs.to_parquet(tmp_path / "runs.parquet")
    assert "lowest at network.brokers = 20" in " ".join(said(load_results(tmp_path)))
