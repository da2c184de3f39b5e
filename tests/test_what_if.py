"""The what-ifs for load and faults: what in their answers follows from arithmetic or theory, at sizes that take little time."""

from __future__ import annotations

import math
import runpy
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import scenarios
import sim
from analysis.figures import metrics_over_time
from analysis.tables import failing
from sim.scenario.reader import load_scenario

FOLDER = Path(scenarios.__file__).parent / "what-if"
PAGE = Path(scenarios.__file__).parents[1] / "docs" / "what-if.md"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))


def ran(folder: Path, name: str, overrides: Sequence[str]) -> tuple[pd.DataFrame, Any]:
    """A row for each variant, at the one point that overrides leave, and the results."""
    results = sim.run(FOLDER / f"{name}.toml", folder / "results", overrides=["replications=1", *overrides])
    return results.runs.set_index("variant"), results


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_question_that_the_page_answers(name: str) -> None:
    assert load_scenario(FOLDER / f"{name}.toml").title.endswith("?")
    assert tomllib.loads((FOLDER / f"{name}.toml").read_text())["report"]["metrics"]
    command = f"brokersim run scenarios/what-if/{name}.toml"
    assert command in (FOLDER / f"{name}.toml").read_text()
    assert command in PAGE.read_text()


# -- hot-topic


def test_one_node_is_an_m_d_1_queue_and_a_fast_one_has_three_times_the_rate(tmp_path: Path) -> None:
    """A tenth of the users, ten times as often; Pollaczek–Khinchine: the mean wait is ρ s / 2 (1 − ρ)."""
    small = ["workload.users=2000", "sweep.workload.publication_rate=[144000]", "brokers.service.wake_up=0"]
    runs, _ = ran(tmp_path, "hot-topic", [*small, "horizon=10min", "warm_up=20s"])
    takes = 2.56e-6 + 2000 * 9e-6
    for variant, service in (("one node", takes), ("three times as fast", takes / 3)):
        load = 40 * service
        expected = service + load * service / (2 * (1 - load))
        assert runs.loc[variant, "notification_delay"] == pytest.approx(expected, rel=0.1)
        assert runs.loc[variant, "utilisation"] == pytest.approx(load, rel=0.05)
    assert takes < runs.loc["three cores", "notification_delay"] < 1.02 * takes  # M/D/3 at ρ = 0.24: who waits is rare


def test_three_nodes_do_a_third_each_one_after_the_other(tmp_path: Path) -> None:
    """Without waiting: the publisher's broker serves its own 7,000 and sends two copies; the others have theirs a hop later."""
    few = ["workload.users=21000", "sweep.workload.publication_rate=[36]", "horizon=20h", "warm_up=0"]
    runs, _ = ran(tmp_path, "hot-topic", [*few, "window=1h", "brokers.service.wake_up=0"])
    own, other = 2.56e-6 + 7002 * 9e-6, 2.56e-6 + 7000 * 9e-6
    expected = (own + 2 * (own + 0.5e-3 + other)) / 3
    assert runs.loc["three nodes", "notification_delay"] == pytest.approx(expected, rel=0.01)


# -- regions


def test_copies_leave_one_after_the_other_at_the_rate_of_the_interface(tmp_path: Path) -> None:
    """1 MB takes 26.7 ms at 0.3 Gb/s, the k-th of eleven copies k times as long; a hop within Europe takes 8 ms."""
    rare = ["sweep.workload.publication_rate=[36]", "horizon=10h", "warm_up=0", "window=1h"]
    runs, _ = ran(tmp_path, "regions", rare)
    copy = 8e6 / 0.3e9
    mean = (sum(k * copy + 0.008 for k in range(1, 12)) + 0.0) / 12
    assert runs.loc["one region", "notification_delay"] == pytest.approx(mean, rel=0.01)
    assert runs.loc["one region", "notification_delay_max"] >= 11 * copy + 0.008 - 1e-9
    for variant, crossings in (("one region", 0), ("three regions", 8), ("gateways", 2)):
        assert runs.loc[variant, "cross_region_bytes"] == crossings * 1_000_000 * runs.loc[variant, "publications"]


# -- owners-broadcast-mesh


@pytest.mark.parametrize("wanted", [1, 5])
def test_what_each_design_sends_is_what_it_must(tmp_path: Path, wanted: int) -> None:
    runs, _ = ran(tmp_path, "owners-broadcast-mesh", [f"sweep.workload.topics_per_user=[{wanted}]", "warm_up=0"])
    mesh, owners, broadcast = (runs.loc[name] for name in ("mesh", "owners", "broadcast"))
    published, changes = mesh["publications"], mesh["broker_subscription_changes"]
    chance = 1 - (1 - wanted / 120) ** 20  # of 20 users at a broker, one at least wants a topic
    assert mesh["due"] / published == pytest.approx(12 * chance, rel=0.05)
    assert broadcast["notification_overhead"] == 11 * published
    assert mesh["messages_per_publication"] == pytest.approx(11 * chance, rel=0.05)
    assert owners["messages_per_publication"] == pytest.approx(11 * chance, rel=0.05)
    assert owners["uplink_messages"] / published == pytest.approx(
        11 / 12, rel=0.03
    )  # unless the publisher's broker owns it
    assert mesh["internal_overhead"] == broadcast["internal_overhead"]
    assert mesh["external_overhead"] == owners["external_overhead"] == 0
    assert (mesh["subscription_overhead"], broadcast["subscription_overhead"]) == (11 * changes, 0)
    assert owners["subscription_overhead"] / changes == pytest.approx(2 * 11 / 12, rel=0.05)


# -- mesh-degree


def test_the_graphs_are_those_that_the_script_writes() -> None:
    script = runpy.run_path(str(FOLDER / "meshes.py"))
    for degree in script["DEGREES"]:
        assert (FOLDER / "meshes" / f"degree-{degree}.csv").read_text() == script["edge_list"](degree)


@pytest.mark.parametrize("degree", [3, 10])
def test_floods_and_trees_take_the_shortest_ways_where_brokers_take_no_time(tmp_path: Path, degree: int) -> None:
    """A flood sends 2 E − (V − 1) messages, here V (d − 1) + 1; hops are those of the graph."""
    file = f"sweep.network.geometry.file=['{FOLDER}/meshes/degree-{degree}.csv']"
    runs, _ = ran(tmp_path, "mesh-degree", [file, "brokers.service.kind='none'", "warm_up=0"])
    rows = pd.read_csv(FOLDER / "meshes" / f"degree-{degree}.csv")
    graph = nx.from_pandas_edgelist(rows)
    assert set(dict(graph.degree).values()) == {degree}
    assert len(graph) == 64
    hops = nx.average_shortest_path_length(graph) * 63 / 64  # to itself: none
    flood, trees = runs.loc["flood"], runs.loc["trees"]
    assert flood["notification_overhead"] == pytest.approx((64 * (degree - 1) + 1) * flood["publications"], rel=2e-3)
    assert trees["tree_hops"] == pytest.approx(hops, rel=0.02)
    for name in ("tree_hops", "notification_delay", "delivered"):
        assert flood[name] == pytest.approx(trees[name], rel=1e-9)
    assert trees["notification_delay"] == pytest.approx(0.01 * trees["tree_hops"], rel=1e-9)


# -- connection-storm


def test_a_storm_keeps_brokers_busy_for_as_long_as_its_joins_take(tmp_path: Path) -> None:
    """Of a join by another broker than the owner, the owner handles the request (2 ms) and the broker the answer (1 ms)."""
    quiet = ["workload.publication_rate=0", "sweep.workload.connect_rate=[1000000]"]
    runs, results = ran(tmp_path, "connection-storm", quiet)
    row = runs.loc["control first"]
    joins = row["subscription_overhead"] / 2
    assert joins / row["broker_subscription_changes"] == pytest.approx(7 / 8, rel=0.02)
    assert row["utilisation"] == pytest.approx(joins * 0.003 / (8 * 30), rel=1e-6)
    busiest = results.table(row["run"], "brokers")["utilisation"].max() * 30
    load = results.table(row["run"], "load")
    assert math.ceil(busiest) <= (load.groupby("window")["utilisation"].max() > 0).sum() <= math.ceil(busiest) + 1


def test_nobody_waits_for_joins_where_nobody_has_to_ask(tmp_path: Path) -> None:
    runs, _ = ran(tmp_path, "connection-storm", ["sweep.workload.connect_rate=[1000000]"])
    storm, fifo, broadcast = (runs.loc[name] for name in ("control first", "fifo", "broadcast"))
    assert broadcast["lost_joining"] == broadcast["subscription_overhead"] == 0
    assert fifo["lost_joining"] > 0
    assert storm["notification_delay_p99"] > 1 > 0.1 > broadcast["notification_delay_p99"]


# -- slow-consumer


def test_a_slow_user_gets_what_its_rate_allows_and_waits_for_a_full_buffer(tmp_path: Path) -> None:
    """All users slow: 12.5 of 20 messages a second. A buffer of 100 is emptied in 8 s at that rate; where the oldest are dropped, in
    the 5 s in which as many come. That is D/D/1/K, to within a few messages, since the buffer is never far from full."""
    slow = ["network.clients.slow.share=1", "workload.users=20", "horizon=10min", "warm_up=1min"]
    runs, _ = ran(tmp_path, "slow-consumer", slow)
    for variant, wait in (("drop the newest", 100 / 12.5), ("drop the oldest", 100 / 20)):
        assert runs.loc[variant, "delivery_ratio"] == pytest.approx(12.5 / 20, rel=0.03)
        assert runs.loc[variant, "client_wait"] == pytest.approx(wait, rel=0.05)
        assert runs.loc[variant, "lost_slow_client"] > 0
    assert np.isfinite(runs.loc["wait", "client_wait"])
    assert runs.loc["wait", "lost_slow_client"] == 0
    assert runs.loc["disconnect", "delivery_ratio"] < runs.loc["drop the newest", "delivery_ratio"]


# -- window-by-distance


def test_a_window_over_a_round_trip_carries_as_many_messages_in_that_time(tmp_path: Path) -> None:
    """What does not get through is lost, but for the 100 that wait at the end and those in flight."""
    runs, _ = ran(tmp_path, "window-by-distance", ['sweep.network.clients.latency=["50ms"]'])
    published = runs.loc["window of 40", "publications"]
    for variant, window in (("window of 10", 10), ("window of 20", 20), ("window of 40", 40)):
        carried = min(window / 0.1, published / 100)
        assert runs.loc[variant, "delivery_ratio"] == pytest.approx(carried * 100 / published, rel=0.01)


# -- shared-workers


def test_in_turn_a_slow_worker_loses_four_of_five_and_the_least_loaded_none(tmp_path: Path) -> None:
    """Twelve workers get 60 tasks per second; eleven do ten each, and one does one; 20 may wait for each."""
    seconds, first = 100, "workload.publication_rate=216000"
    runs, _ = ran(tmp_path, "shared-workers", [first])
    published = 60 * seconds
    in_turn, least, sticky = (runs.loc[name] for name in ("round-robin", "least-loaded", "sticky"))
    under_way = 20 / published  # at the end the slow one's buffer is full
    assert in_turn["delivery_ratio"] == pytest.approx(11 / 12 + 1 / 60 - under_way, abs=0.003)
    assert in_turn["lost_slow_client"] == pytest.approx(published * 4 / 60, rel=0.1)
    assert least["lost_slow_client"] == 0
    assert least["delivery_ratio"] > 1 - 12 / published - 0.001
    assert sticky["delivery_ratio"] == pytest.approx(10 * seconds / published, rel=0.03)
    assert 0.101 < least["user_notification_delay"] < 0.1 + 1 / 60 + 0.01  # the slow one gets at most one per second


# -- node-death


def test_users_of_a_broker_that_dies_are_without_one_until_they_notice(tmp_path: Path) -> None:
    runs, results = ran(tmp_path, "node-death", ['sweep."network.reconnect.detection"=["30s"]'])
    for variant in runs.index:
        selections = results.table(runs.loc[variant, "run"], "decisions/selection")
        absent = selections[(selections["from"] == 3) & (selections["broker"] == -1)]
        assert len(absent) == runs.loc[variant, "reconnections"] == pytest.approx(100, rel=0.25)
    elsewhere, wait = runs.loc["go elsewhere"], runs.loc["wait"]
    assert elsewhere["user_unavailability"] == pytest.approx(elsewhere["reconnections"] / 1200 * 30 / 3600)
    assert wait["user_unavailability"] >= wait["reconnections"] / 1200 * 600 / 3600
    assert elsewhere["broker_availability"] == pytest.approx(1 - 1 / 12 / 6)
    assert failing(results).to_numpy().tolist() == [[1200.0, 1800.0, "crash", "3", 1.0]]
    charts = metrics_over_time(results, ["delivery_ratio"])
    assert [chart.caption for chart in charts] == ["Red areas: something has failed, the fainter the fewer the runs."]


# -- bad-networks


def test_a_hop_takes_as_many_copies_as_get_through_and_back(tmp_path: Path) -> None:
    loss = 0.1
    runs, _ = ran(tmp_path, "bad-networks", [f'sweep."network.links.loss"=[{loss}]'])
    for variant in ("at least once", "exactly once"):
        run = runs.loc[variant]
        hops = run["acknowledgements"] - run["duplicates"]
        assert run["retransmissions"] / hops == pytest.approx(1 / (1 - loss) ** 2 - 1, rel=0.05)
        assert run["duplicates"] / hops == pytest.approx(loss / (1 - loss), rel=0.05)
        assert run["lost"] == 0
        assert (run["duplicate_deliveries"] > 0) == (variant == "at least once")
    assert runs.loc["best effort", "delivery_ratio"] < 0.8


# -- reconnect-storm


@pytest.mark.parametrize("rate", [20, 50])
def test_a_storm_takes_as_long_as_the_broker_takes_to_accept_all(tmp_path: Path, rate: int) -> None:
    """A tenth of the users, at a tenth of the rate or less: n / r seconds from the restart at two minutes on."""
    small = ["workload.users=2000", f'sweep."brokers.connection_rate"=[{rate}]']
    runs, results = ran(tmp_path, "reconnect-storm", small)
    users, windows = {}, {}
    for variant in runs.index:
        windows[variant] = results.table(runs.loc[variant, "run"], "timeseries").set_index("start")
        users[variant] = runs.loc[variant, "reconnections"]
    every = windows["every second"]["reconnections"]
    storm = every[every > 0]
    assert storm.index[0] == 120
    assert storm.index[-1] - 120 == pytest.approx(users["every second"] / rate, abs=2)
    assert storm.iloc[1:-1].to_numpy() == pytest.approx(rate, abs=1)
    assert runs.loc["every second", "connection_attempts"] == 60 * users["every second"]
    assert runs.loc["back-off", "connection_attempts"] == 7 * users["back-off"]  # after 1, 2, 4 … 63 s


# -- rolling-drain


def test_a_drain_takes_as_long_as_its_rate_makes_of_the_users_of_a_broker(tmp_path: Path) -> None:
    """A fifth of the users and topics. Broker 1 is drained once broker 0 is up again, with those who have come from there."""
    runs, results = ran(tmp_path, "rolling-drain", ["workload.users=320", "workload.topics=800"])
    for variant, rate in (("2 per second", 2.0), ("20 per second", 20.0), ("all at once", math.inf)):
        faults = results.table(runs.loc[variant, "run"], "faults")
        assert faults["what"].tolist() == ["drain", "drained", "down", "up"] * 2
        users, took = faults.loc[faults["what"] == "drain", "value"], faults.loc[faults["what"] == "drained", "value"]
        assert took.tolist() == pytest.approx((users / rate).tolist())
        assert users.sum() == runs.loc[variant, "drained_users"]
        ends = 30 + np.cumsum(took + 5 + 10)
        assert faults.loc[faults["what"] == "up", "time"].tolist() == pytest.approx(ends.tolist())
        assert runs.loc[variant, ["user_unavailability", "lost_disconnected"]].tolist() == [0, 0]
    assert runs.loc["no drain", "user_unavailability"] > 0.01


# -- region-parted


def test_pairs_of_one_side_are_delivered_and_no_others(tmp_path: Path) -> None:
    """With so many users and topics that close to a third of them are in Asia, to three standard deviations."""
    many = [
        "workload.users=2400",
        *(f"workload.{key}=1000" for key in ("topics", "per_user")),
        "workload.publication_rate=144",
    ]
    runs, _ = ran(tmp_path, "region-parted", many)
    assert runs.loc["mesh", "delivery_ratio"] == pytest.approx((8**2 + 4**2) / 12**2, rel=0.03)
    assert runs.loc["gateways", "delivery_ratio"] == runs.loc["mesh", "delivery_ratio"]
    assert runs.loc["owners", "delivery_ratio"] == pytest.approx((8**3 + 4**3) / 12**3, rel=0.06)
    assert runs.loc["ring", "delivery_ratio"] < runs.loc["owners", "delivery_ratio"]


# -- overlay-churn


def test_a_ring_stabilises_by_ten_messages_of_each_live_broker_and_healing_saves_deliveries(tmp_path: Path) -> None:
    """The point of 40 % for half an hour: 59 rounds, with between 65 and 256 brokers up, so 3 + 2 + 4 + 1 messages each."""
    churn = 'sweep.faults=[[{ kind = "lifetimes", up = { mean = "2.5h" }, down = { mean = "5min" } }]]'
    runs, _ = ran(tmp_path, "overlay-churn", [churn, "horizon=30min"])
    assert runs["crashes"].nunique() == 1
    ring = runs.loc["Chord"]
    assert ring["stabilisation_messages"] == pytest.approx(ring["broker_availability"] * 1000 * 59, rel=0.01)
    for overlay in ("Chord", "Low-ODA"):
        assert runs.loc[overlay, "delivery_ratio"] > runs.loc[f"{overlay}, no healing", "delivery_ratio"]
        assert runs.loc[overlay, "healing_messages"] > 0 == runs.loc[f"{overlay}, no healing", "stabilisation_messages"]


# -- sessions


def test_what_waits_for_a_fleet_is_what_it_missed(tmp_path: Path) -> None:
    """Of 100 publications per topic and hour, those of users who are not offline are made meanwhile."""
    runs, _ = ran(tmp_path, "offline-fleet", ["workload.users=600", "workload.publication_rate=100", "horizon=135min"])
    everything = runs.loc["all waits"]
    devices = everything["resumed_sessions"]
    missed = devices * 3 * 100 * (1 - devices / 600)
    assert devices == pytest.approx(480, rel=0.1)
    assert everything["session_deliveries"] == pytest.approx(missed, rel=0.12)
    each = everything["session_deliveries"] / devices
    coming = 3 * 100 / 3600  # a second, which wait behind the others
    assert everything["catch_up_time"] == pytest.approx((each - 1) / (2 - coming), rel=0.03)
    assert everything["session_delay"] == pytest.approx(1800 + everything["catch_up_time"] / 2 + 30, rel=0.1)
    last = runs.loc["the last 10"]
    assert last["session_queue_max"] == 10
    lost = last["session_deliveries"] + last["lost_offline_queue_full"]
    assert lost == pytest.approx(everything["session_deliveries"], rel=0.01)
    assert runs.loc["not older than 20 minutes", "session_delay"] == pytest.approx(600, rel=0.1)
    expired = runs.loc["sessions of 30 minutes"]
    assert (expired["session_deliveries"], expired["lost_session_expired"] > 0) == (0, True)
    assert runs.loc["clean", "delivery_ratio"] == 1.0


def test_a_retained_configuration_comes_with_the_subscription(tmp_path: Path) -> None:
    runs, _ = ran(tmp_path, "retained-configuration", ["workload.users=500", "workload.change_rate=0"])
    retained = runs.loc["retained"]
    assert retained["retained_deliveries"] == pytest.approx(450 * 4 * (1 - math.exp(-4)), rel=0.1)
    one = 100 * 8 / 100_000
    assert retained["retained_delay"] == pytest.approx(0.030 + (1 + 2 + 3 + 4) / 4 * one, rel=0.05)
    assert runs.loc["persistent sessions", "session_deliveries"] < retained["retained_deliveries"] / 5
