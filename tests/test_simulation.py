"""From scenario and workload to a run: brokers' sites, mismatches, what replications redraw, and the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny

from sim.base.errors import InputError, ScenarioError, WorkloadError
from sim.metrics import METRICS
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import broker_sites, build, prepare_workload, simulate
from sim.workloads.format.workload import Workload

MOBILE: dict[str, Any] = {
    "workload": {"kind": "mobility", "users": 30, "horizon": "4d", "friends": 3, "cities": 4},
    "network": {"latency": {"kind": "distance"}},
}


def scenario(**keys: Any) -> Scenario:
    return load_scenario(keys).base


def cells(*publications: int, **more: Any) -> Workload:
    """One topic per cell along a parallel, with the given publications; one user that wants all."""
    times = [0.001 * n for n in range(sum(publications))]
    topics = [topic for topic, count in enumerate(publications) for _ in range(count)]
    return tiny.workload(
        [set(range(len(publications)))],
        [(time, topic, 0, 1) for time, topic in zip(times, topics, strict=True)],
        topics=len(publications),
        places=more.pop("places", [(0.5, column + 0.5) for column in range(len(publications))]),
        cell=1.0,
        **more,
    )


# -- where brokers stand


def test_cells_makes_each_topic_with_a_place_a_broker() -> None:
    nan = float("nan")
    workload = cells(1, 1, 1, places=[(0.5, 0.5), (nan, nan), (0.5, 7.5)])
    sites, cell = broker_sites(scenario(network={"brokers": "cells"}), workload)
    assert (sites.latitude.tolist(), sites.longitude.tolist(), cell) == ([0.5, 0.5], [0.5, 7.5], 1.0)
    assert sites.names == ("t0", "t2")


def test_a_number_of_brokers_takes_the_busiest_cells_and_the_lowest_of_equals() -> None:
    workload = cells(1, 5, 2, 0, 2)
    for brokers, columns in ((1, [1.5]), (2, [1.5, 2.5]), (3, [1.5, 2.5, 4.5]), (5, [0.5, 1.5, 2.5, 3.5, 4.5])):
        sites, cell = broker_sites(scenario(network={"brokers": brokers}), workload)
        assert sites.longitude.tolist() == columns
        assert cell is None  # some users are in no broker's cell: the nearest serves them


def test_brokers_stand_nowhere_where_topics_have_no_places() -> None:
    sites, cell = broker_sites(scenario(network={"brokers": 3}), tiny.workload([{0}]))
    assert np.isnan([*sites.latitude, *sites.longitude]).all()
    assert sites.names == ("0", "1", "2")
    assert (len(sites), sites.have_places, cell) == (3, False, None)


BROKERS = """\
broker,latitude,longitude,region,capacity
a,0.5,0.5,west,1
b,0.5,1.5,east,4
c,0.5,2.5,east,
"""


def written(folder: Path, text: str) -> str:
    path = folder / "brokers.csv"
    path.write_text(text)
    return str(path)


def test_brokers_of_a_file_stand_where_it_says_whether_or_not_topics_have_places(tmp_path: Path) -> None:
    what = scenario(network={"brokers": written(tmp_path, BROKERS), "latency": {"kind": "distance"}})
    for workload in (tiny.workload([{0}]), cells(1, 1)):
        sites, cell = broker_sites(what, workload)
        assert (sites.names, sites.longitude.tolist(), cell) == (("a", "b", "c"), [0.5, 1.5, 2.5], None)
        brokers = simulate(what, workload, 0).tables["brokers"]
        assert list(brokers["name"]) == ["a", "b", "c"]
        assert brokers["region"].to_pylist() == ["west", "east", "east"]
        assert brokers["capacity"].tolist() == [1.0, 4.0, 1.0]


def test_a_message_is_served_faster_where_capacity_is_higher(tmp_path: Path) -> None:
    """The one broker has a capacity of 4: each message takes it a quarter of the service time."""
    network = {"brokers": written(tmp_path, "broker,capacity\nonly,4\n")}
    service = {"kind": "deterministic", "time": "1s"}
    world = tiny.workload([{0}], [(1.0, 0, 0, 1)])
    brokers = simulate(scenario(network=network, brokers={"service": service}), world, 0).tables["brokers"]
    assert brokers["utilisation"] == pytest.approx([brokers["served"][0] * 0.25 / 10.0])
    assert brokers["served"][0] >= 1


def test_bytes_between_regions_are_those_of_links_between_them(tmp_path: Path) -> None:
    network = {"brokers": written(tmp_path, BROKERS)}
    workload = cells(3, 4, 5)
    region = np.array([0, 1, 1])
    for plane in ("events", "folded"):
        record = simulate(scenario(network={**network, "data_plane": plane}, warm_up="5ms"), workload, 0)
        links = pd.DataFrame(record.tables["links"])
        crossing = region[links["source"]] != region[links["destination"]]
        assert record.metrics["cross_region_bytes"] == links["bytes"][crossing].sum() > 0
        assert links["bytes"].sum() == record.metrics["uplink_bytes"] + record.metrics["notification_bytes"]
    assert simulate(scenario(), workload, 0).metrics["cross_region_bytes"] is None


def test_distances_make_hop_times_and_hop_cost_says_how_much_of_them() -> None:
    """Cells 0 and 1 are 111.19 km apart: round trip 1 ms + 111.19 · 0.02 ms."""
    network = {"latency": {"kind": "distance"}}
    one_way, rtt = (
        build(scenario(network={**network, "hop_cost": cost}), cells(1, 1), 0).setting.hop_delay
        for cost in ("one_way", "rtt")
    )
    assert rtt[0, 1] == rtt[1, 0] == pytest.approx(0.001 + 0.00002 * 111.19, rel=1e-3)
    assert np.asarray(one_way.times(2)).tolist() == np.asarray(rtt).tolist()
    assert np.diag(rtt).tolist() == [0.0, 0.0]


# -- what does not fit


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"network": {"brokers": 4}}, r"network\.brokers: 4 brokers.* only 3 cells \(allowed: 1 to 3\)"),
        ({"warm_up": "10s"}, r"warm_up: expected less than the horizon \(10 s\), found 10 s"),
        ({"window": "9us"}, r"window: 1,000,000 windows at most, so 1e-05 s or more up to 10 s, found 9e-06 s"),
        (
            {"network": {"brokers": 3, "geometry": {"kind": "chord", "bits": 1}}},
            r"geometry\.bits.*3 brokers \(found 1\)",
        ),
    ],
)
def test_a_scenario_that_does_not_fit_a_workload_with_places(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        simulate(scenario(**keys), cells(1, 1, 1), 0)


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({}, r'network\.brokers: "cells" needs topics with places'),
        (
            {"network": {"brokers": 2, "latency": {"kind": "distance"}}},
            r"network\.latency: .*needs the brokers' positions",
        ),
        (
            {"network": {"brokers": 2}, "selection": {"kind": "location"}},
            r"selection\.kind: .*needs brokers with positions",
        ),
    ],
)
def test_a_scenario_that_needs_places_where_there_are_none(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        simulate(scenario(**keys), tiny.workload([{0}]), 0)


def test_brokers_that_no_memory_has_room_for_are_refused_before_anything_is_made() -> None:
    with pytest.raises(
        InputError, match=r"^network\.brokers: 1,000,000,000 brokers and 1 topics: this needs about 8,017"
    ):
        simulate(scenario(network={"brokers": 10**9}), tiny.workload([{0}]), 0)


# -- replications


def test_replications_draw_ids_mapping_and_friends_anew_and_the_first_is_the_workload_as_it_is() -> None:
    what = scenario(**MOBILE)
    base = prepare_workload(what, 0, None)
    fixed = scenario(network=MOBILE["network"])
    assert prepare_workload(fixed, 0, base) is base
    again, other = (prepare_workload(fixed, replication, base) for replication in (1, 2))
    for redrawn in (again, other):
        assert redrawn.movements is base.movements
        assert redrawn.interests.indices.tolist() != base.interests.indices.tolist()
    assert again.interests.indices.tolist() != other.interests.indices.tolist()
    networks = [build(fixed, base, replication) for replication in (0, 1, 1)]
    ids = [network.setting.overlay.ids.tolist() for network in networks]
    mappings = [network.node_of.tolist() for network in networks]
    assert ids[0] != ids[1] == ids[2]
    assert mappings[0] != mappings[1] == mappings[2]


def test_every_replication_draws_users_where_that_is_asked_for(tmp_path: Path) -> None:
    base = prepare_workload(scenario(**MOBILE), 0, None)
    what = scenario(workload={"kind": "prepared", "path": str(tmp_path), "resample_users": True})
    drawn = [prepare_workload(what, replication, base).users.latitude.tolist() for replication in (0, 1, 1)]
    assert base.users.latitude.tolist() != drawn[0] != drawn[1] == drawn[2]
    for latitude in drawn[:2]:
        assert len(latitude) == len(base.users)
        assert set(latitude) < set(base.users.latitude.tolist())


def test_replications_of_a_generated_workload_generate_anew() -> None:
    what = scenario(**MOBILE)
    first, second, same = (prepare_workload(what, replication, None) for replication in (0, 1, 1))
    assert first.publications.time.tolist() != second.publications.time.tolist()
    assert second.publications.time.tolist() == same.publications.time.tolist()


def test_a_broker_of_random_users_wants_nearly_all_topics() -> None:
    """DYNATOPS, section IV.A.2: 500 users with 5 of 1000 topics each leave a broker without 1000 · (1 - 5/1000)^500 of them."""
    workload = {"kind": "poisson", "users": 50_000, "topics": 1000, "topics_per_user": 5, "horizon": "1h"}
    what = scenario(workload={**workload, "change_rate": 0, "publication_rate": 0}, network={"brokers": 100})
    topics = simulate(what, prepare_workload(what, 0, None), 0).tables["brokers"]["topics"]
    assert np.mean(topics) == pytest.approx(1000 * (1 - (1 - 5 / 1000) ** 500), abs=3)


# -- what a run hands out


@pytest.fixture(scope="module")
def mobile() -> tuple[Scenario, Workload, Any]:
    what = scenario(**MOBILE, selection={"kind": "similarity", "update_period": "6h"}, warm_up="1d", trace=True)
    workload = prepare_workload(what, 0, None)
    return what, workload, simulate(what, workload, 0)


def test_metrics_are_those_of_the_list_in_its_order(mobile: tuple[Scenario, Workload, Any]) -> None:
    _, _, record = mobile
    assert list(record.metrics) == list(METRICS)
    for name, metric in METRICS.items():
        value = record.metrics[name]
        assert value is None or isinstance(value, int) == metric.integer, name


def test_all_tables_load_in_pandas(mobile: tuple[Scenario, Workload, Any]) -> None:
    _, workload, record = mobile
    frames = {name: pd.DataFrame(columns) for name, columns in record.tables.items()}
    assert set(frames) == {
        "timeseries",
        "brokers",
        "links",
        "load",
        "topics",
        "delays",
        "tree",
        "decisions/selection",
        "decisions/configuration",
        "trace",
    }
    assert all(len(frame) for frame in frames.values())
    brokers = len(frames["brokers"])
    assert sorted(frames["decisions/configuration"]["node"]) == list(range(brokers))
    assert frames["brokers"]["position"].between(0, 1, inclusive="left").all()
    selected = frames["decisions/selection"]
    assert (selected["from"] == -1).sum() == len(workload.users)


def test_windows_add_up_to_the_metrics_and_to_the_trace(mobile: tuple[Scenario, Workload, Any]) -> None:
    what, workload, record = mobile
    series = pd.DataFrame(record.tables["timeseries"])
    kept = series[~series["warm_up"]]
    for name in series.columns.intersection(list(METRICS)):
        if METRICS[name].integer:
            assert kept[name].sum() == record.metrics[name], name
    total = kept["notification_delay_sum"].sum() / kept["delivered"].sum()
    assert total == pytest.approx(record.metrics["notification_delay"])
    trace = pd.DataFrame(record.tables["trace"])
    late = trace[workload.publications.time[trace["publication"]] >= what.warm_up]
    links = pd.DataFrame(record.tables["links"]).set_index(["source", "destination"])["messages"]
    in_flight = record.metrics["in_flight"]
    assert abs(links.sum() - len(late)) <= in_flight
    assert record.metrics["handovers"] == sum(
        (time >= what.warm_up) & (former >= 0)
        for time, former in zip(
            record.tables["decisions/selection"]["time"], record.tables["decisions/selection"]["from"], strict=True
        )
    )


def test_the_tree_table_is_the_tree_of_the_busiest_topic() -> None:
    """Topic 1 is published most, but nobody wants it; topics 0 and 2 follow, the lower one is shown."""
    workload = cells(2, 3, 2)
    interests = replace(workload.interests, indptr=np.array([0, 2]), indices=np.array([0, 2], np.int32))
    network = build(scenario(), replace(workload, interests=interests), 0)
    tree = pd.DataFrame(simulate(scenario(), replace(workload, interests=interests), 0).tables["tree"])
    assert set(tree["topic"]) == {0}
    assert set(tree["topic_name"]) == {"t0"}
    (host,) = tree.loc[tree["subscribes"], "broker"]
    route = network.setting.overlay.uplink(0, 0)  # any route ends at the root
    root = int(route[-1])
    assert tree.loc[tree["parent"] == -1, "node"].tolist() == [root]
    path = [int(network.node_of[host])]
    parents = dict(zip(tree["node"], tree["parent"], strict=True))
    while parents[path[-1]] != -1:
        path.append(parents[path[-1]])
    assert sorted(path) == sorted(tree["node"])  # the one route from the root to the one subscriber
    assert network.broker_of[tree["node"]].tolist() == tree["broker"].tolist()


def test_a_workload_without_topics_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no topics"):
        simulate(scenario(network={"brokers": 2}), tiny.workload([], topics=0), 0)


def test_a_workload_in_which_nothing_happens_runs() -> None:
    record = simulate(scenario(network={"brokers": 2}), tiny.workload([]), 0)
    assert record.metrics["publications"] == record.metrics["due"] == 0
    assert record.metrics["delivery_ratio"] is record.metrics["notification_delay"] is None
    assert (record.metrics["load_stddev"], record.metrics["load_jain"]) == (0.0, 1.0)
    frames = {name: pd.DataFrame(columns) for name, columns in record.tables.items()}
    assert [name for name, frame in frames.items() if len(frame)] == [
        "timeseries",
        "brokers",
        "decisions/configuration",
    ]


def test_a_shorter_horizon_than_the_workloads_cuts_the_run() -> None:
    workload = tiny.workload([{0}], [(t, 0, 0, 1) for t in (1.0, 4.0, 8.0)])
    record = simulate(scenario(horizon="5s", network={"brokers": 1}), workload, 0)
    assert record.metrics["publications"] == record.metrics["delivered"] == 2
    assert record.tables["timeseries"]["end"] == [5.0]


def test_progress_rises_to_the_end() -> None:
    told: list[float] = []
    simulate(scenario(network={"brokers": 1}), tiny.workload([{0}]), 0, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_where_publishers_are_roots_the_tree_is_that_of_the_broker_with_most_publications() -> None:
    """Two users publish on the one topic that both want, at different brokers."""
    network = {"brokers": 5, "geometry": {"kind": "full-mesh"}}
    hosts = build(scenario(network=network), tiny.workload([{0}, {0}]), 0)
    hosts.users.join_all()
    one, other = hosts.users.host.tolist()
    assert one != other
    for publishers, root in (([0, 1, 1], other), ([0, 0, 1], one), ([-1, -1, 1], other), ([-1], 0)):
        world = tiny.workload([{0}, {0}], [(float(n), 0, who, 1) for n, who in enumerate(publishers)])
        tree = pd.DataFrame(simulate(scenario(network=network), world, 0).tables["tree"])
        assert tree["broker"][0] == root
        assert set(tree["broker"]) == {one, other, root}
