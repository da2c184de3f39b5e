"""Publications on their way to brokers by quality of service: against the oracle of legs, of which they are the mirror image."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
import tiny
from oracles.clients import Clients, Coming, Quality, User, Way
from oracles.draws import uniform

from sim.base.errors import ScenarioError
from sim.scenario.reader import load_scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.workload import Workload
from sim.workloads.models.exchange_kernels import Path
from sim.workloads.models.publishing import ANSWERS, PublishingCounts, through_publishers

KEY = 99


def published(qualities: list[int], times: list[float], publishers: list[int], horizon: float) -> Workload:
    world = tiny.workload(
        [[0]] * 3, [(t, 0, who, 8) for t, who in zip(times, publishers, strict=True)], horizon=horizon
    )
    object.__setattr__(world.publications, "qos", np.array(qualities, np.int8))
    return world


def assert_tells(world: Workload, sent: Workload, found: PublishingCounts, clients: Clients) -> Counter[str]:
    """Everything arrives when, and as often, as the oracle says."""
    table, tally = world.publications, Counter[str]()
    first: dict[tuple[float, int], int] = Counter()
    for user in range(3):
        rows = np.flatnonzero(table.publisher == user).tolist()
        comings = [Coming(row, table.time.item(row), table.time.item(row), 8) for row in rows]
        truth = User(clients, user, comings, world.horizon)
        tally.update({kind: many for (kind, _), many in truth.said.items()})
        for coming in comings:
            if coming.fate == "delivered":
                assert coming.reached is not None
                first[coming.reached, user] += 1
            tally["lost"] += coming.fate != "delivered"
    names = [*(kind.removesuffix("_messages") for kind in ANSWERS[:4]), "retransmissions", "duplicates"]
    assert {name: int(many.sum()) for name, many in zip(names, found.columns.values(), strict=True)} == {
        name: tally[name] for name in names
    }
    assert found.lost == tally["lost"]
    arrived = Counter(zip(sent.publications.time.tolist(), sent.publications.publisher.tolist(), strict=True))
    outside = [(time, who) for time, who in arrived if who < 0]
    assert not first - arrived
    assert arrived.total() == first.total() + tally["duplicates"] + sum(arrived[each] for each in outside)
    assert (np.diff(sent.publications.time) >= 0).all()
    return tally


@pytest.mark.parametrize(("first", "cases"), [(0, 150), pytest.param(150, 350, marks=pytest.mark.long)])
def test_publications_get_there_as_the_oracle_says(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        rng = random.Random(seed)
        many, horizon = rng.randrange(30), 20.0
        times = sorted(rng.choice((0.25, 0.1)) * rng.randrange(80) for _ in range(many))
        publishers = [rng.randrange(-1, 3) for _ in range(many)]
        qualities = [rng.randrange(3) for _ in range(many)]
        latency, loss = rng.choice((0.25, 1.0)), rng.choice((0.0, 0.3))
        timeout, window = rng.choice((math.inf, 0.25, 3.0)), rng.choice((None, 1, 2, 5))
        world = published(qualities, times, publishers, horizon)
        sent, found = through_publishers(world, Path(latency, 0.0, 0, loss, KEY, timeout), window, horizon)

        def lost(number: int, user: int, attempt: int, part: int, loss: float = loss) -> bool:
            return uniform(KEY, number + (attempt << 40), user * 4 + part) < loss

        quality = Quality(lambda user, coming, qualities=qualities: qualities[coming.number], lost, timeout)
        way = Way(latency, None, window)
        tally += assert_tells(world, sent, found, Clients(lambda user, way=way: way, quality=quality))
    assert (
        min(tally[what] for what in ("lost", "puback", "pubrec", "pubrel", "pubcomp", "retransmissions", "duplicates"))
        > 50
    )


def test_a_publisher_with_ten_in_flight_over_100_ms_publishes_100_per_second() -> None:
    world = published([1] * 1000, [0.0] * 1000, [0] * 1000, 100.0)
    sent, found = through_publishers(world, Path(0.05, 0.0, 0, 0.0, KEY, math.inf), 10, 100.0)
    assert sent.publications.time[-1] == pytest.approx(0.05 + 99 * 0.1)
    assert found.delay == pytest.approx(0.05 + 0.1 * 99 / 2)


QOS = {"publications": [0.2, 0.5, 0.3], "loss": 0.1, "timeout": "1s", "publishers": {"latency": "50ms", "window": 10}}


def test_a_scenario_has_quality_of_service_on_both_ways() -> None:
    workload = {"kind": "poisson", "users": 30, "topics": 9, "publication_rate": 60, "horizon": "1h"}
    network = {"brokers": 2, "clients": {"latency": "50ms", "window": 10}, "qos": QOS}
    scenario = load_scenario({"workload": workload, "network": network}).base
    world = prepare_workload(scenario, 0, None)
    found = simulate(scenario, world, 0).metrics
    # 1 s for each of p / (1 − p) times that it is lost, but not of quality 0
    assert found["publishing_delay"] == pytest.approx(0.05 + 0.8 * 0.1 / 0.9, rel=0.3)
    assert isinstance(found["unpublished"], int)
    assert 0 < found["unpublished"] < 0.05 * len(world.publications)
    for name in ("puback_messages", "pubrec_messages", "pubrel_messages", "pubcomp_messages", "lost_leg"):
        assert found[name], name


@pytest.mark.parametrize(
    ("qos", "told"),
    [
        ({"publications": 3}, "expected 0, 1 or 2, or the shares of the three, which add up to 1, found 3"),
        ({"subscriptions": [0.5, 0.6, 0]}, "which add up to 1, found [0.5, 0.6, 0]"),
        ({"publications": True}, "expected 0, 1 or 2"),
        ({"loss": 1}, "loss"),
        ({"timeout": "0s"}, "timeout"),
        ({"publishers": {"window": 3}}, "window without a latency, so that it has no effect"),
    ],
)
def test_what_is_no_quality_is_refused(qos: dict[str, object], told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario({"network": {"brokers": 1, "qos": qos}})
    assert told in str(caught.value)


def test_the_way_of_publishers_is_for_topics() -> None:
    workload = {"kind": "content", "subscriptions": 20, "publications": 20}
    with pytest.raises(ScenarioError, match="has content"):
        load_scenario({"workload": workload, "network": {"brokers": 2, "qos": QOS}})
