"""The hottest topics, brokers and links of a run, and the load of brokers over time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import seal_run, write_results

from analysis.hottest import hottest, load_over_time
from analysis.load_maps import load_maps
from analysis.report import render_report
from analysis.tables import runs_of
from sim.experiments.results import Results, load_results


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return load_results(write_results(tmp_path, brokers=14, replications=2))


def with_table(results: Results, run: str, name: str, table: pd.DataFrame | None) -> Results:
    """The results with another table in one run, or without it."""
    folder = results.folder / "runs" / run
    if table is None:
        (folder / f"{name}.parquet").unlink()
    else:
        table.to_parquet(folder / f"{name}.parquet", index=False)
    seal_run(folder, json.loads((folder / "manifest.json").read_text()))
    return load_results(results.folder)


def test_ten_of_each_the_hottest_first(results: Results) -> None:
    topics, brokers, links = hottest(results, "static")
    assert [table.what for table in (topics, brokers, links)] == ["topics", "brokers", "links"]
    copies = {f"t{topic}": (topic + 1) * (topic % 5) for topic in range(20)}
    assert [row[0] for row in topics.rows] == sorted(copies, key=lambda name: -copies[name])[:10]
    assert topics.rows[0] == ("t19", "20", "4", "80")
    # by the load that is offered to them, then by messages: 13 and 6 have most
    assert [row[0] for row in brokers.rows][:4] == ["b13", "b6", "b12", "b5"]
    assert brokers.columns == ("broker", "users", "messages", "offered load", "utilisation", "queue length", "wait")
    assert brokers.rows[0][2:] == ("195", "1.200", "1", "3", "60 ms")
    assert links.columns == ("link", "messages", "size")
    assert links.rows[0] == ("b0 → b1", "5", "500 B")
    assert len(topics.rows) == len(brokers.rows) == len(links.rows) == 10


def test_copies_to_users_count_as_those_to_brokers_do(results: Results) -> None:
    run = runs_of(results, "static")[0]
    table = results.table(run, "brokers").drop(columns="offered_load").assign(published=0, copies=0)
    table.loc[table["broker"] == 3, ["published", "copies"]] = 1, 200
    brokers = hottest(with_table(results, run, "brokers", table), "static")[1]
    assert [row[0] for row in brokers.rows][:3] == ["b3", "b13", "b12"]
    assert brokers.rows[0][2] == "246"  # received 30, sent 15


def test_links_of_a_rate_go_by_the_load_that_is_offered_to_them(results: Results) -> None:
    run = runs_of(results, "static")[0]
    table = results.table(run, "links").assign(offered_load=np.linspace(0.1, 1.5, 13), queue_wait=0.25)
    shown = with_table(results, run, "links", table)
    link = hottest(shown, "static")[2]
    assert link.rows[0] == ("b12 → b13", "5", "500 B", "1.500", "250 ms")


def test_windows_are_merged_by_their_length_and_idle_brokers_have_none(results: Results) -> None:
    run = runs_of(results, "location")[0]
    table = load_over_time(results, run, points=10)
    assert table.groupby("name").size().unique().tolist() == [10]  # of twenty windows after the warm-up
    busiest = table[table["rank"] == 0]
    assert set(busiest["name"]) == {"b13"}
    assert busiest["utilisation"].to_numpy() == pytest.approx(0.75)  # of 1 and 0.5
    assert busiest["queue_length"].to_numpy() == pytest.approx(13.0)
    assert busiest["messages"].to_numpy() == pytest.approx(15 * 13 / 3600)
    assert busiest["start"].min() == 4 * 3600
    assert (table.loc[table["name"] == "b7", "utilisation"] == 0).all()


def test_maps_show_stations_or_else_messages(results: Results) -> None:
    names = [figure.name for figure in load_maps(results)]
    assert names == [f"hot-{what}-{place}" for place in range(3) for what in ("utilisation", "queue_length")]
    run = runs_of(results, "static")[0]
    still = results.table(run, "load").assign(utilisation=np.nan, queue_length=np.nan)
    first, *_ = load_maps(with_table(results, run, "load", still))
    assert first.name == "hot-messages-0"
    assert "messages per second of 14 brokers over time; at most 0.05417, broker b13" in first.description


def test_links_that_something_limits_have_maps_too(results: Results) -> None:
    run = runs_of(results, "static")[0]
    windows = results.table(run, "load")["window"].unique()
    load = pd.DataFrame({"window": np.repeat(windows, 2), "source": [12, 0] * len(windows), "messages": 7200})
    load = load.assign(
        destination=load["source"] + 1, utilisation=load["source"] / 16, queue_length=load["source"] * 1.0
    )
    links = results.table(run, "links").assign(offered_load=np.linspace(0.1, 1.5, 13), queue_wait=0.25)
    shown = with_table(with_table(results, run, "links", links), run, "link_load", load)
    table = load_over_time(shown, run, points=10, of="link")
    hottest_link = table[table["rank"] == 0]
    assert set(hottest_link["name"]) == {"b12 → b13"}
    assert hottest_link["utilisation"].to_numpy() == pytest.approx(0.75)
    assert hottest_link["messages"].to_numpy() == pytest.approx(2.0)
    maps = [figure for figure in load_maps(shown) if figure.name.startswith("hot-link")]
    assert [figure.name for figure in maps] == ["hot-link-utilisation-0", "hot-link-queue_length-0"]
    assert "utilisation of 13 links over time; at most 0.7500, link b12 → b13, from " in maps[0].description


def test_the_report_has_maps_and_tables(results: Results) -> None:
    page = render_report(results)
    assert "The ten hottest" in page
    assert "hottest links: similarity" in page
    assert 'data-chart="chart-hot-utilisation-0"' in page


def test_results_without_these_tables_have_a_report_all_the_same(results: Results) -> None:
    for variant in ("static", "location", "similarity"):
        for name in ("load", "topics"):
            bare = with_table(results, runs_of(results, variant)[0], name, None)
    assert load_maps(bare) == []
    assert [table.what for table in hottest(bare, "static")] == ["brokers", "links"]
