"""The compiled data plane gives the same bytes as the plane that makes every hop an event, in every metric and every table."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from generated import KINDS, Generated, difference, faulty, generated, guaranteed, network, shrunk, watched, written
from test_folded import with_plane

from sim.base.randomness import Streams
from sim.brokers.data.events import EventEngine
from sim.brokers.network import Network
from sim.overlay.pair_times import PairTimes
from sim.scenario.reader import load_scenario
from sim.simulation import build, prepare_workload

CASES, MORE = 150, 1500
BARRIERS_AT_A_CRASH = 439  # of a tree, which ends with what a crash loses
LEFT_AT_A_RESTART = 1456  # of a tree: a broker that restarts leaves trees after it has sent again
BARRIERS_AT_ONCE = 5108  # both of them end with a publication that is lost on its way up
FAULTY, ALL_FAULTY = 75, 2000  # cases in which something fails
KEPT, ALL_KEPT = 40, 2000  # and is sent again
HOURS = 2 * 3600.0
HARD = (
    "queues that fill",
    "control messages that waited",
    "tree changes in flight",
    "barriers",
    "offloading",
    "floods",
    "content",
)
"""What at least a third of all cases each have, as their runs show."""
FAILS = (
    "crashes with publications waiting",
    "crashes with publications in service",
    "crashes with joins under way",
    "cuts with copies on the link",
    "changes of absent users",
    "movements of absent users",
    "reconnections at a limited rate",
    "partitions",
    "loss",
    "slow",
)
"""Likewise, where something fails."""


def differs(made: Generated, **setting: bool) -> str | None:
    """Where the results of the compiled run differ from those of the other; None where all are the same."""
    compiled = network(made, "compiled", **setting)
    assert not isinstance(compiled.engine, EventEngine)
    events = network(made, "events", **setting)
    events.run()
    try:
        compiled.run()
    except Exception as error:  # a fault of the one plane is a difference, and is shrunk like any other
        return f"{type(error).__name__}: {error}"
    return difference(events, compiled)


def assert_same_bytes(made: Generated, **setting: bool) -> None:
    found = differs(made, **setting)
    if found is not None:
        smallest = shrunk(made, lambda each: differs(each, **setting) is not None)
        pytest.fail(f"{differs(smallest, **setting)} (at first {found})\n{written(smallest)}", pytrace=False)


@pytest.mark.parametrize(
    ("first", "cases"), [(0, CASES), pytest.param(CASES, MORE, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_third_of_the_cases_each_have_what_is_hard(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        tally.update(watched(network(generated(seed), "events")).keys())
    assert min(tally[what] for what in HARD) >= cases / 3, tally
    assert min(tally["publications that made room"], tally["hop limits"]) >= cases / 20, tally
    assert tally["lost to users"] >= cases / 5, tally


@pytest.mark.parametrize("seed", [*range(CASES), BARRIERS_AT_ONCE])
def test_all_tables_and_metrics_are_the_same_bytes(seed: int) -> None:
    assert_same_bytes(generated(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES, CASES + MORE))
def test_all_tables_and_metrics_are_the_same_bytes_in_many_cases(seed: int) -> None:
    assert_same_bytes(generated(seed))


@pytest.mark.parametrize("seed", range(0, CASES, 5))
def test_traces_are_the_same_hop_by_hop(seed: int) -> None:
    assert_same_bytes(generated(seed), trace=1.0)


@pytest.mark.parametrize("seed", range(0, CASES, 7))
def test_hop_times_that_are_computed_from_places_are_the_same(seed: int) -> None:
    made, networks = generated(seed), []
    latitude, longitude = np.random.default_rng(seed).uniform(-60, 60, (2, made.case.brokers))
    for plane in ("events", "compiled"):
        one = network(made, plane)
        setting = replace(one.setting, hop_delay=PairTimes.on_sphere(latitude, longitude, 0.1, 1.0))
        networks.append(Network(setting, one.workload, Streams(seed)))
        networks[-1].run()
    assert difference(*networks) is None


@pytest.mark.parametrize("geometry", ["chord", "star"])
@pytest.mark.parametrize("join", ["instant", "message"])
def test_copies_over_hops_that_take_no_time_arrive_in_the_same_order(geometry: str, join: str) -> None:
    """With fixed service times many messages of brokers that wait for each other are served at the same moment."""
    service = {"kind": "deterministic", "time": "1s"}
    workload = {
        "kind": "poisson",
        "users": 60,
        "topics": 6,
        "topics_per_user": 3,
        "change_rate": 2,
        "publication_rate": 60,
    }
    network = {"brokers": 12, "latency": {"rtt": 0}, "join": join, "geometry": {"kind": geometry}}
    raw = {"horizon": "2h", "workload": workload, "network": network, "brokers": {"service": service, "queue": 2}}
    scenario, networks = load_scenario(raw).base, []
    for plane in ("events", "compiled"):
        networks.append(build(with_plane(scenario, plane), prepare_workload(scenario, 0, None), 0))
        networks[-1].run()
    assert difference(*networks) is None


@pytest.mark.parametrize(
    ("first", "cases"),
    [(0, FAULTY), pytest.param(FAULTY, ALL_FAULTY - FAULTY, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_a_third_of_the_cases_in_which_something_fails_each_have_what_is_hard(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        tally.update(what for what, times in watched(network(faulty(seed), "events")).items() if times)
    assert min(tally[what] for what in FAILS) >= cases / 3, tally
    rarer = "floods", "offloading", "crashes while brokers change places", "drains", "healing"
    assert min(tally[what] for what in rarer) >= cases / 8, tally


@pytest.mark.parametrize("seed", range(FAULTY))
def test_all_tables_and_metrics_are_the_same_bytes_whatever_fails(seed: int) -> None:
    assert_same_bytes(faulty(seed))


def test_barriers_at_crashes_are_the_same() -> None:
    assert_same_bytes(faulty(BARRIERS_AT_A_CRASH, "tree"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FAULTY, ALL_FAULTY))
def test_all_tables_and_metrics_are_the_same_bytes_in_many_cases_whatever_fails(seed: int) -> None:
    assert_same_bytes(faulty(seed))


@pytest.mark.parametrize("seed", range(0, FAULTY, 5))
def test_traces_are_the_same_hop_by_hop_whatever_fails(seed: int) -> None:
    assert_same_bytes(faulty(seed), trace=1.0)


@pytest.mark.parametrize(
    ("first", "cases"),
    [(0, KEPT), pytest.param(KEPT, ALL_KEPT - KEPT, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_a_tenth_of_the_cases_with_guarantees_each_have_what_is_hard(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        tally.update(what for what, times in watched(network(guaranteed(seed), "events")).items() if times)
    assert min(tally[what] for what in SENT_AGAIN) >= cases / 3, tally
    assert min(tally["lost in crashes"], tally["offloading"], tally["barriers that waited"]) >= cases / 10, tally
    assert tally["crashes with acknowledgements"] >= cases / 20, tally


@pytest.mark.parametrize("seed", [*range(KEPT), LEFT_AT_A_RESTART])
def test_all_tables_and_metrics_are_the_same_bytes_with_guarantees(seed: int) -> None:
    assert_same_bytes(guaranteed(seed))


@pytest.mark.parametrize(("qos", "guarantee"), [(0, "best-effort"), (1, "at-least-once"), (2, "exactly-once")])
@pytest.mark.parametrize("seed", range(0, KEPT, 6))
def test_a_quality_of_service_of_all_publications_is_a_guarantee(seed: int, qos: int, guarantee: str) -> None:
    made = guaranteed(seed, "qos")
    case = replace(made.case, sessions={}, quality={**ONE_QUALITY, "qos": [qos] * len(made.case.publications)})
    other = replace(case, delivery={**case.delivery, "guarantee": guarantee} if qos else {})
    networks = [network(replace(made, case=each), "compiled") for each in (case, other)]
    for each in networks:
        each.run()
    assert difference(*networks) is None


@pytest.mark.long
@pytest.mark.parametrize("seed", range(KEPT, ALL_KEPT))
def test_all_tables_and_metrics_are_the_same_bytes_in_many_cases_with_guarantees(seed: int) -> None:
    assert_same_bytes(guaranteed(seed))


@pytest.mark.parametrize("seed", range(0, KEPT, 5))
def test_traces_are_the_same_hop_by_hop_with_guarantees(seed: int) -> None:
    assert_same_bytes(guaranteed(seed), trace=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(0, KEPT, 4))
def test_a_guarantee_loses_nothing_between_brokers(seed: int, kind: str) -> None:
    assert_nothing_is_lost(seed, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(KEPT, ALL_KEPT))
def test_a_guarantee_loses_nothing_between_brokers_in_many_cases(seed: int, kind: str) -> None:
    assert_nothing_is_lost(seed, kind)


def assert_nothing_is_lost(seed: int, kind: str) -> None:
    """Nothing is lost on its way, or as its publisher is connected to no broker; what no broker had accepted waits with the client."""
    made = guaranteed(seed, kind=kind)
    delivery = {**made.case.delivery, "attempts": None, "store": "persistent", "expire_after": None}
    if delivery["guarantee"] == "qos":  # publications of quality 0 have none
        delivery["guarantee"] = "exactly-once"
    one = network(replace(made, case=replace(made.case, delivery=delivery)), "events")
    one.run()
    metrics = one.metrics()
    assert [cause for cause in BETWEEN_BROKERS if metrics[f"lost_{cause}"]] == []
    if delivery["guarantee"] == "exactly-once":
        assert metrics["duplicate_deliveries"] == 0


BETWEEN_BROKERS = "queue_full", "link", "crashed", "partitioned", "expired"
ONE_QUALITY = {"shares": (0.0, 0.0, 1.0), "loss": 0.0, "timeout": math.inf, "subscribed": []}
SENT_AGAIN = "retransmissions", "duplicates of what is sent again", "given up", "acknowledgements served"
"""What at least a third of the cases with guarantees each have."""
SHIPPED = Path(__file__).parents[2] / "scenarios"
LOAD = (
    "brokers.service={ kind = 'exponential', time = '20ms', send = '2ms', send_client = '1ms' }",
    "brokers.queue=20",
)


@pytest.mark.long
@pytest.mark.parametrize("load", [(), LOAD], ids=["as it is", "loaded"])
@pytest.mark.parametrize("name", sorted(str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.toml")))
def test_shipped_scenarios_come_to_the_same_bytes(name: str, load: tuple[str, ...]) -> None:
    """The first and the last point, up to four variants, for two hours."""
    experiment = load_scenario(SHIPPED / name, load)
    for point in {id(each): each for each in (experiment.points[0], experiment.points[-1])}.values():
        for variant, scenario in list(point.variants.items())[:4]:
            if scenario.workload.kind == "prepared":
                pytest.skip("needs a prepared workload")
            short = scenario.model_copy(update={"horizon": min(scenario.horizon or HOURS, HOURS), "warm_up": 0.0})
            workload = prepare_workload(short, 0, None)
            networks = []
            for plane in ("events", "compiled"):
                networks.append(build(with_plane(short, plane), workload, 0))
                networks[-1].run()
            assert difference(*networks) is None, (point.label, variant)
