"""What faults do: tiny stories on drawn networks. Every hop takes 1 s unless said; brokers have their node's number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny
from numpy.typing import NDArray

from sim.brokers.network import Network
from sim.brokers.users.legs import ClientSetting, Speed
from sim.brokers.users.reconnect import ReconnectSetting
from sim.workloads.faults.schedule import CRASH, CUT, LOSS, MEND, RESTART, SLOW_DOWN, FaultSchedule

LINE = [(0, 1), (1, 2), (2, 3)]
LATE = ReconnectSetting(detection=100.0)
"""Users don't come back."""


def faults(*rows: tuple[float, int, int], sides: Sequence[Sequence[int]] = (), brokers: int = 4) -> FaultSchedule:
    """A schedule of (time, action, target) or (time, action, target, other, value); `sides`: the brokers on one side of partitions."""
    full = sorted((*row, *(-1, 0.0)[len(row) - 3 :]) for row in rows)
    time, action, target, other, value = (np.array(column) for column in zip(*full, strict=True))
    members = np.array([np.isin(np.arange(brokers), side) for side in sides], np.bool_).reshape(-1, brokers)
    return FaultSchedule(
        time.astype(np.float64),
        action.astype(np.int8),
        target.astype(np.int32),
        other.astype(np.int32),
        value.astype(np.float64),
        members,
    )


PLANES = ("events", "compiled")


def run(network: Network) -> dict[str, Any]:
    """Run a story on each plane that knows faults, which come to the same bytes wherever the run ends; its metrics."""
    for horizon in (network.setting.horizon * share for share in tiny.HORIZONS):
        ends = []
        for plane in PLANES:
            one = network.anew(plane=plane, subscribers=True, horizon=horizon)
            one.run()
            ends.append(tiny.tables(one))
        assert [name for name in ends[0] if ends[0][name] != ends[1][name]] == [], f"by {horizon} s"
    network.run()
    return network.metrics()


def lost(metrics: dict[str, Any]) -> dict[str, int]:
    """What was lost, by cause."""
    return {name[5:]: value for name, value in metrics.items() if name.startswith("lost_") and value}


def by(network: Network, name: str) -> list[float]:
    column: NDArray[Any] | list[Any] = network.tables()["timeseries"][name]
    return list(column)


def test_what_comes_to_a_broker_that_is_down_is_lost_with_all_below() -> None:
    """
    0 ── 1 ── 2 ── 3     2 is down from 2.5 to 4.5: the publication of 1.0 s comes to it at 3 s, that of 4.0 s at 6 s.
    S    R    r    S
    """
    world = tiny.workload([{0}, {0}], [(1.0, 0, 0, 100), (4.0, 0, 0, 100)])
    network = tiny.network(world, tiny.graph(LINE, [1]), [0, 3], faults=faults((2.5, CRASH, 2), (4.5, RESTART, 2)))
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (4, 3, {"crashed": 1})
    assert metrics["crashes"] == 1
    assert metrics["broker_availability"] == pytest.approx(1 - 2 / 4 / 10)
    assert metrics["fault_messages"] == 0  # it subscribed to nothing


def test_users_of_a_broker_that_crashes_are_absent_and_come_back() -> None:
    """
    0 ── 1 ── 2 ── 3     3 is down from 2 to 3.5 s. Its user tries at 2, 3 and 5 s, and is at 3 again from then on.
    S    R    r    S

    The publication of 1 s comes to 3 at 4 s, that of 3 s leaves its root at 4 s when the user is absent; that of 5 s arrives.
    """
    world = tiny.workload([{0}, {0}], [(1.0, 0, 0, 100), (3.0, 0, 0, 100), (5.0, 0, 0, 100)])
    setting = ReconnectSetting(backoff="exponential", wait=1.0)
    network = tiny.network(
        world, tiny.graph(LINE, [1]), [0, 3], faults=faults((2.0, CRASH, 3), (3.5, RESTART, 3)), reconnect=setting
    )
    metrics = run(network)
    # the first leaves its root at 2 s, after the crash: the user is absent by then
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (4, 4, {"disconnected": 2})
    assert by(network, "due_users") == [6]
    assert by(network, "delivered_users") == [4]
    assert (metrics["connection_attempts"], metrics["reconnections"], metrics["resubscriptions"]) == (3, 1, 1)
    assert metrics["user_unavailability"] == pytest.approx(3 / 2 / 10)
    assert metrics["handovers"] == 0
    assert metrics["fault_messages"] == 4  # one leave, two hops to the root, and the answer
    selections = network.tables()["decisions/selection"]
    assert (selections["from"].tolist(), selections["broker"].tolist()) == ([-1, -1, 3, -1], [0, 3, -1, 3])


def test_a_publication_of_an_absent_user_gets_nowhere() -> None:
    world = tiny.workload([{0}, {0}], [(3.0, 0, 0, 100)])
    network = tiny.network(world, tiny.graph(LINE, [1]), [0, 3], faults=faults((2.0, CRASH, 0)), reconnect=LATE)
    metrics = run(network)
    assert (metrics["publications_dropped"], metrics["due"], lost(metrics)) == (1, 1, {"crashed": 1})
    assert by(network, "due_users") == [2]


def test_a_queue_is_lost_with_its_broker() -> None:
    """Services of 2 s: of three publications to 3 one is served, one in service and one waiting at its crash."""
    world = tiny.workload([{0}, {0}], [(t, 0, 0, 100) for t in (0.1, 0.2, 0.3)], horizon=30.0)
    network = tiny.network(
        world,
        tiny.graph(LINE, [1]),
        [1, 3],
        faults=faults((13.5, CRASH, 3)),
        reconnect=LATE,
        service="deterministic",
        service_time=3.0,
    )
    # 1 serves them until 3.1, 6.1 and 9.1; 2 from 4.1 on until 7.1, 10.1, 13.1; 3 from 8.1 until 11.1, then from 11.1 on
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (6, 4, {"crashed": 2})


def test_copies_are_lost_on_links_that_are_cut() -> None:
    """
    0 ── 1 ── 2 ── 3     1–2 is cut from 2.5 to 4.2: the copy of 1.0 s is on it at 3 s, that of 2.0 s sets out at 3 s.
    S    R    r    S     That of 3.0 s sets out at 4, before the end, and that of 4.0 at 5, after it.
    """
    world = tiny.workload([{0}, {0}], [(t, 0, 0, 100) for t in (1.0, 2.0, 3.0, 4.0)])
    network = tiny.network(
        world, tiny.graph(LINE, [1]), [0, 3], faults=faults((2.5, CUT, 1, 2, 0.0), (4.2, MEND, 1, 2, 0.0))
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (8, 5, {"partitioned": 3})


def test_sides_of_a_partition_do_not_hear_of_each_other() -> None:
    world = tiny.workload([{0}, {0}], [(1.0, 0, 0, 100), (6.0, 0, 0, 100), (6.0, 0, 1, 100)], horizon=20)
    schedule = faults((5.0, CUT, 0), (12.0, MEND, 0), sides=[(0, 1)])
    network = tiny.network(world, tiny.graph(LINE, [1]), [0, 3], faults=schedule)
    metrics = run(network)
    # 1.0: both; 6.0 from 0: 0 alone; 6.0 from 3: comes to 2 at 7, and no further: due to both there and then
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (6, 3, {"partitioned": 3})


def test_slow_brokers_and_losses() -> None:
    world = tiny.workload([{0}, {0}], [(1.0, 0, 0, 100), (11.0, 0, 0, 100), (21.0, 0, 0, 100)], horizon=40)
    schedule = faults((10.0, SLOW_DOWN, 3, -1, 4.0), (20.0, SLOW_DOWN, 3, -1, 1.0), (20.5, LOSS, -1, -1, 1.0))
    network = tiny.network(
        world, tiny.graph(LINE, [1]), [1, 3], faults=schedule, service="deterministic", service_time=0.5
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (6, 5, {"link": 1})
    delays = [0.5, 0.5, 0.5, 3.5, 3.5 + 1.5]  # at the root, and at 3 over two hops and three services
    assert metrics["notification_delay"] == pytest.approx(sum(delays) / 5)


def test_what_waits_for_users_is_lost_with_their_broker() -> None:
    """
    0 ── 1: the user of 1 takes 100 bytes in 2 s. Of those that come at 1, 2 and 3 s the last still waits at 3.5 s.
    """
    world = tiny.workload([{0}, {0}], [(t, 0, 0, 100) for t in (0.0, 1.0, 2.0)], horizon=20)
    network = tiny.network(
        world,
        tiny.graph([(0, 1)], [0]),
        [0, 1],
        faults=faults((3.5, CRASH, 1), brokers=2),
        reconnect=LATE,
        clients=ClientSetting(Speed(rate=50.0)),
    )
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], lost(metrics)) == (6, 6, {"disconnected": 1})
    # the one of 1 s from 1 to 3, that of 2 s from 3 on, and that of 3 s waits for it
    assert by(network, "delivered_users") == [5]


def test_a_table_tells_what_failed_when() -> None:
    schedule = faults(
        (1.0, CRASH, 2), (2.0, CUT, 1, 3, 0.0), (3.0, CUT, 0), (4.0, SLOW_DOWN, 1, -1, 2.0), sides=[(0, 3)]
    )
    table = schedule.table()
    assert table["what"].to_pylist() == ["crash", "cut", "cut", "slow"]
    assert table["brokers"].to_pylist() == [[2], [1, 3], [0, 3], [1]]
    assert (table["time"].tolist(), table["value"].tolist()) == ([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 2.0])
