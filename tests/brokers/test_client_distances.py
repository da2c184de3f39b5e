"""The distance between users, who move, and their brokers: what it adds to delays, and where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny

from sim.base.errors import ScenarioError
from sim.brokers.network import Network
from sim.brokers.users.leg_distances import DistanceSetting
from sim.brokers.users.legs import ClientSetting, QualitySetting, Speed
from sim.scenario.reader import load_scenario
from sim.simulation import simulate
from sim.workloads.format.workload import Workload

DEGREE = 6371.0088 * np.pi / 180  # km along a meridian
PER_DEGREE = 0.5  # s


def at(world: Workload, homes: list[float]) -> Workload:
    """The workload with users at these latitudes of the meridian of Greenwich."""
    users = replace(world.users, latitude=np.array(homes), longitude=np.zeros(len(homes)))
    return replace(world, users=users)


def ran(world: Workload, brokers_at: list[float], hosts: list[int], **setting: Any) -> Network:
    """Brokers at latitudes of the same meridian, in a line, the first of which is the root; a hop takes 10 s."""
    sites = np.array(brokers_at), np.zeros(len(brokers_at))
    clients = {"speed": Speed(), "until": "client", **setting.pop("clients", {})}
    distance = DistanceSetting(PER_DEGREE / DEGREE, *sites)
    overlay = tiny.graph([(0, 1)] if len(brokers_at) > 1 else [], [0])
    setting["clients"] = ClientSetting(**clients, distance=distance)
    made = tiny.network(world, overlay, hosts, hop=10.0, trace=False, **setting)
    made.run()
    return made


@pytest.mark.parametrize("plane", ["events", "compiled", "folded"])
def test_delays_are_from_the_publisher_to_the_user_wherever_they_are_then(plane: str) -> None:
    """User 0 publishes 2° from broker 0, then 4°; user 1 is 1° from broker 1, and 3° since the second publication has been sent."""
    published, moved = [(0.0, 0, 0, 1), (100.0, 0, 0, 1)], [(100.0, 0, 4.0, 0.0), (105.0, 1, 53.0, 0.0)]
    world = at(tiny.workload([[], [0]], published, movements=moved, horizon=1000.0), [2.0, 51.0])
    metrics = ran(world, [0.0, 50.0], [0, 1], plane=plane).metrics()
    assert metrics["notification_delay"] == 10.0
    # 1 s up, 10 s, 0.5 s to the user; then 2 s up, 10 s, and 1.5 s from where the user is when the broker has it
    assert metrics["user_notification_delay"] == pytest.approx((11.5 + 13.5) / 2)
    assert metrics["user_tree_delay"] == pytest.approx((10.5 + 11.5) / 2)


def test_up_to_the_broker_no_distance_counts() -> None:
    world = at(tiny.workload([[0]], [(0.0, 0, 0, 1)], horizon=100.0), [2.0])
    for until, delay in {"broker": 0.0, "served": 0.0, "client": 2.0}.items():
        metrics = ran(world, [0.0], [0], clients={"until": until}).metrics()
        assert metrics["user_notification_delay"] == pytest.approx(delay)


def test_a_window_opens_after_the_way_there_and_back() -> None:
    """A message at a time to a user 3° away: each is sent 3 s after the one before; from outside there is no way up."""
    world = at(tiny.workload([[0]], [(0.0, 0, -1, 1)] * 4, horizon=100.0), [3.0])
    world = replace(world, publications=replace(world.publications, qos=np.ones(4, np.int8)))
    for quality in (None, QualitySetting()):
        made = ran(world, [0.0], [0], clients={"speed": Speed(window=1)}, quality=quality)
        assert made.metrics()["user_notification_delay"] == pytest.approx(1.5 + np.mean([0, 3, 6, 9]))


def test_acknowledgements_keep_their_order() -> None:
    """The user comes near after the first of two messages was sent: the second is acknowledged with the first, not before."""
    moved = [(1.0, 0, 0.0, 0.0)]
    world = at(tiny.workload([[0]], [(time, 0, -1, 1) for time in (0.0, 1.0, 2.0)], (), moved, horizon=100.0), [10.0])
    made = ran(world, [0.0], [0], clients={"speed": Speed(window=2)})
    # the first arrives at 5 s and is acknowledged at 10; the second arrives with the first, and the third is sent at 10
    assert made.metrics()["user_notification_delay"] == pytest.approx((5.0 + 4.0 + 8.0) / 3)


CLIENTS = {"per_km": "1ms"}


@pytest.mark.parametrize(
    ("scenario", "wrong"),
    [
        (
            {"workload": {"kind": "poisson"}, "network": {"brokers": 3, "clients": CLIENTS}},
            "a workload without places has no distances (allowed: a workload with places, or 0)",
        ),
        (
            {"workload": {"kind": "mobility"}, "network": {"brokers": "bare.csv", "clients": CLIENTS}},
            "brokers without places have no distances (allowed: a file with latitude and longitude)",
        ),
    ],
)
def test_distances_need_places(
    scenario: dict[str, Any], wrong: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare.csv").write_text("broker\na\nb\n")
    monkeypatch.chdir(tmp_path)
    scenario["network"]["latency"] = {"kind": "unit"}
    with pytest.raises(ScenarioError) as caught:
        load_scenario(scenario)
    assert str(caught.value) == f"scenario: network.clients.per_km: {wrong}"


def test_users_of_a_prepared_workload_need_places_too() -> None:
    world = tiny.workload([[0], [0]], places=[(0.0, 0.0)], cell=1.0)
    setting = load_scenario({"network": {"clients": CLIENTS, "latency": {"kind": "unit"}}}).base
    with pytest.raises(ScenarioError, match=r"^network\.clients\.per_km: user 'u0' has no place"):
        simulate(setting, world, 0)
    assert simulate(setting, at(world, [1.0, 2.0]), 0).metrics["handovers"] == 0
