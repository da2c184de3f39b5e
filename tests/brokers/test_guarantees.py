"""What guarantees do: tiny stories on drawn networks. Every hop takes 1 s unless said; brokers have their node's number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny
from test_faults import LATE, LINE, faults, lost, run

from sim.base.errors import ScenarioError
from sim.brokers.data.events import EventEngine
from sim.brokers.fabric.delivery import DeliverySetting
from sim.brokers.fabric.transmission import LinkSetting
from sim.brokers.network import Network
from sim.brokers.users.reconnect import ReconnectSetting
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.workloads.faults.schedule import CRASH, CUT, LOSS, MEND, RESTART, FaultSchedule

PATIENT = {"timeout": 2.5}  # an acknowledgement takes 2 s


def story(
    schedule: FaultSchedule | None,
    hosts: tuple[int, int] = (0, 3),
    publications: tuple[float, ...] = (1.0,),
    horizon: float = 40.0,
    delivery: dict[str, Any] = PATIENT,
    **setting: Any,
) -> Network:
    """
    0 ── 1 ── 2 ── 3     The first user publishes; both subscribe.
    S    R    r    S
    """
    world = tiny.workload([{0}, {0}], [(time, 0, 0, 100) for time in publications], horizon=horizon)
    promised = DeliverySetting(**{"guarantee": "at-least-once", **delivery})
    return tiny.network(world, tiny.graph(LINE, [1]), list(hosts), faults=schedule, delivery=promised, **setting)


def counted(metrics: dict[str, Any]) -> tuple[int, ...]:
    """The kinds of messages that a guarantee costs, and what it does twice."""
    names = "retransmissions", "acknowledgements", "duplicates", "duplicate_deliveries"
    return tuple(metrics[name] for name in names)


def test_without_faults_it_costs_acknowledgements_only() -> None:
    """A hop up, one back down to the publisher's broker, and two to the other user."""
    metrics = run(story(None))
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (2, 2, {})
    assert counted(metrics) == (0, 4, 0, 0)
    assert metrics["notification_overhead"] + metrics["uplink_messages"] == 4


def test_a_copy_that_a_cut_loses_is_sent_again() -> None:
    """1–2 is cut from 2.5 to 4.2: the copy that sets out at 2 is lost at 3, and sent again at 4.5; it comes to 3 at 6.5."""
    metrics = run(story(faults((2.5, CUT, 1, 2, 0.0), (4.2, MEND, 1, 2, 0.0))))
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (2, 2, {})
    assert counted(metrics) == (1, 4, 0, 0)
    assert metrics["notification_delay_max"] == 5.5


@pytest.mark.parametrize(("guarantee", "again", "remembered"), [("at-least-once", 1, 0), ("exactly-once", 0, 1)])
def test_an_acknowledgement_that_gets_lost_makes_a_duplicate(guarantee: str, again: int, remembered: int) -> None:
    """2–3 is cut from 4.2 to 6: the copy is there at 4, its acknowledgement would be back at 5.

    It is sent again at 5.5, in vain, and 5 s later; at 11.5 it is at 3.
    """
    network = story(faults((4.2, CUT, 2, 3, 0.0), (6.0, MEND, 2, 3, 0.0)), delivery={**PATIENT, "guarantee": guarantee})
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (2, 2, {})
    assert counted(metrics) == (2, 5, 1, again)
    assert metrics["remembered_identities"] == remembered
    assert metrics["notification_delay_max"] == 3.0
    links = network.tables()["links"]
    messages = dict(
        zip(zip(links["source"].tolist(), links["destination"].tolist(), strict=True), links["messages"], strict=True)
    )
    assert messages[2, 3] == 3
    assert network.tables()["brokers"]["copies"].tolist() == [1, 0, 0, 1 + again]


@pytest.mark.parametrize(("store", "found"), [("persistent", {}), ("memory", {"crashed": 1})])
def test_a_store_survives_a_crash_or_not(store: str, found: dict[str, int]) -> None:
    """2 crashes at 3.5, with the copy to 3 on its way, which is lost at 4 by a cut; it restarts at 7."""
    schedule = faults((3.2, CUT, 2, 3, 0.0), (3.5, CRASH, 2), (4.5, MEND, 2, 3, 0.0), (7.0, RESTART, 2))
    metrics = run(story(schedule, delivery={**PATIENT, "store": store}))
    assert lost(metrics) == found
    assert (metrics["due"], metrics["delivered"]) == (2, 2 - len(found))
    if not found:  # sent again at the restart, as the timer ran out at 5.5
        assert metrics["notification_delay_max"] == 7.0


def test_a_crash_loses_nothing_that_was_acknowledged() -> None:
    """Services of 3 s: of three publications to 3 one is served, one in service and one on its way at its crash."""
    network = story(
        faults((13.5, CRASH, 3), (15.0, RESTART, 3)),
        hosts=(1, 3),
        publications=(0.1, 0.2, 0.3),
        horizon=60.0,
        delivery={"timeout": 12.0, "backoff": 1.0},
        reconnect=LATE,
        service="deterministic",
        service_time=3.0,
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (6, 6, {})
    assert metrics["retransmissions"] == 2
    assert metrics["duplicates"] == 0


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_acknowledgements_keep_their_receivers_busy(plane: str) -> None:
    """Ten publications: of each, the root gets two acknowledgements, from 0 and 2, and 0 and 2 get one, which take 0.125 s each."""

    def busy(cost: float) -> list[float]:
        times = tuple(range(1, 101, 10))
        stations = {"service": "deterministic", "service_time": 0.5, "acknowledgement": cost}
        network = story(None, publications=times, horizon=128.0, delivery={"timeout": 8.0}, plane=plane, **stations)
        network.run()
        assert network.metrics()["retransmissions"] == 0
        table = network.tables()["brokers"]
        assert table["served"] == ([20, 10, 10, 10] if cost == 0 else [30, 30, 20, 10])
        return [128.0 * share for share in table["utilisation"]]

    assert busy(0.0) == [10.0, 5.0, 5.0, 5.0]
    assert busy(0.125) == [10.0 + 10 * 0.125, 5.0 + 20 * 0.125, 5.0 + 10 * 0.125, 5.0]


def test_a_sender_learns_of_an_acknowledgement_once_it_has_served_it() -> None:
    """2 sends to 3 at 2; the acknowledgement is back at 4, and in service for 2 s: the timer may run out at 5.5, before."""
    stations = {"service": "deterministic", "service_time": 0.0, "acknowledgement": 2.0}
    delivery = {"timeout": 3.5, "attempts": 2, "backoff": 1.0}
    metrics = run(story(None, hosts=(1, 3), delivery=delivery, **stations))
    assert (metrics["delivered"], metrics["retransmissions"], metrics["duplicates"]) == (2, 2, 2)
    metrics = run(story(None, hosts=(1, 3), delivery={**delivery, "timeout": 4.5}, **stations))
    assert (metrics["delivered"], metrics["retransmissions"], metrics["duplicates"]) == (2, 0, 0)


def test_a_full_queue_delays() -> None:
    """Nothing may wait at the root, where services take 2 s: the client sends the second publication again, after 1 s, and 2 more."""
    network = story(
        None,
        hosts=(1, 3),
        publications=(1.0, 1.5),
        delivery={"timeout": 1.0},
        service="deterministic",
        service_time=2.0,
        queue=0,
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (4, 4, {})
    assert metrics["publications_dropped"] == 0


def test_whoever_has_sent_as_often_as_allowed_gives_up() -> None:
    """Links lose everything: three copies leave at 1, 3.5 and 8.5; at 18.5 nobody waits any more, at 15 the pairs are in flight."""

    def network(horizon: float) -> Network:
        schedule = faults((0.5, LOSS, -1, -1, 1.0))
        return story(schedule, horizon=horizon, delivery={**PATIENT, "attempts": 3})

    metrics = run(network(30.0))
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (2, 0, {"expired": 2})
    assert (metrics["publications_dropped"], metrics["retransmissions"], metrics["uplink_messages"]) == (1, 2, 1)
    assert network(15.0).anew().setting.horizon == 15.0
    early = network(15.0)
    early.run()
    assert (early.metrics()["in_flight"], early.metrics()["lost"]) == (2, 0)


def test_what_is_too_old_is_not_sent_again() -> None:
    """Links lose everything until 10: copies leave at 1, 3.5, 6 and 8.5; at 11 the publication is 10 s old, and its sender gives up."""
    schedule = faults((0.5, LOSS, -1, -1, 1.0), (10.0, LOSS, -1, -1, 0.0))
    metrics = run(story(schedule, delivery={**PATIENT, "backoff": 1.0, "expire_after": 10.0}))
    assert (metrics["due"], lost(metrics), metrics["retransmissions"]) == (2, {"expired": 2}, 3)
    metrics = run(story(schedule, delivery={**PATIENT, "backoff": 1.0, "expire_after": 10.5}))
    assert (metrics["due"], lost(metrics), metrics["delivered"]) == (2, {}, 2)


def test_a_client_keeps_what_its_broker_has_not_handled() -> None:
    """0 serves the publication from 1.5 on, crashes at 2, and is up again at 3.5; its client sends it again at 4, in vain at 2.75.

    What is published at 3, while the user is connected to no broker, is published once it is: at 10.5, at 0 again; or never.
    """
    setting = {"service": "deterministic", "service_time": 1.0, "delivery": {"timeout": 1.25, "backoff": 1.0}}

    def found(detection: float) -> dict[str, Any]:
        back = ReconnectSetting(detection=detection)
        schedule = faults((2.0, CRASH, 0), (3.5, RESTART, 0))
        return run(story(schedule, publications=(1.5, 3.0), reconnect=back, **setting))

    # due at 7 to the user of 3 and to the absent one, and at the end to the user of 3
    metrics = found(100.0)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (2, 1, {"disconnected": 1})
    assert (metrics["in_flight"], metrics["notification_delay"]) == (1, 2.5 + 1 + 2 + 2 + 2)
    metrics = found(8.5)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (3, 3, {"disconnected": 1})
    assert metrics["notification_delay_max"] == 7.5 + 1 + 2 + 2 + 2


def test_links_that_lose_half_of_everything_lose_nothing_in_the_end() -> None:
    network = story(
        None,
        publications=tuple(map(float, range(50))),
        horizon=500.0,
        links=LinkSetting(loss=0.5),
        delivery={**PATIENT, "backoff": 1.0},
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (100, 100, {})
    assert metrics["retransmissions"] > 300 - 100
    assert metrics["duplicate_deliveries"] > 0


def refusal(overlay: Any, world: Any, **setting: Any) -> str:
    with pytest.raises(ScenarioError) as error:
        tiny.network(world, overlay, [0, 1], delivery=DeliverySetting("exactly-once"), trace=False, **setting)
    return str(error.value)


def test_what_no_plane_has_is_refused() -> None:
    world, overlay = tiny.workload([{0}, {0}]), tiny.graph([(0, 1)], [0])
    told = refusal(overlay, world, plane="folded")
    assert "network.data_plane" in told
    assert 'network.delivery.guarantee = "exactly-once"' in told
    near = GeometrySetting(2, 1, 1, round_trips=np.zeros((2, 2)))
    floods = TopicConnected(TopicConnected.Parameters(design="gm", dissemination="flood"), near)
    assert refusal(floods, world, plane="compiled") == (
        'network.data_plane: "compiled" has no guarantee ("exactly-once") for topics that are flooded (allowed: "events", "auto")'
    )
    content = tiny.content([(0, {0: 1})], users=2)
    assert "for content (allowed:" in refusal(tiny.graph([(0, 1)], [0]), content, plane="compiled")


def test_floods_and_content_have_guarantees_by_events() -> None:
    """Links lose half of all copies; every pair is delivered, and a plane that makes every hop an event is chosen."""
    every = tuple(map(float, range(20)))
    times = GeometrySetting(4, 1, 1, round_trips=2 * (1 - np.eye(4)))
    world = tiny.workload([{0}] * 4, [(time, 0, 0, 100) for time in every], horizon=400.0)
    content = tiny.content(
        [(user, {0: 1}) for user in range(4)], [(time, 0, 100, [1]) for time in every], users=4, horizon=400.0
    )
    flooded = FullMesh(FullMesh.Parameters(dissemination="flood"), times)
    again = {"delivery": DeliverySetting("at-least-once", timeout=2.5, backoff=1.0), "links": LinkSetting(loss=0.5)}
    for overlay, published in (flooded, world), (tiny.graph(LINE, [1]), content):
        network = tiny.network(published, overlay, [0, 1, 2, 3], plane="auto", trace=False, **again)
        assert isinstance(network.engine, EventEngine)
        network.run()
        metrics = network.metrics()
        assert (metrics["due"], metrics["delivered"], lost(metrics)) == (80, 80, {})
        assert metrics["retransmissions"] > 0
        assert (metrics["duplicate_deliveries"] > 0) == (overlay is not flooded)
