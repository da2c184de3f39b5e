"""Brokers that fail and users who reconnect, against formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from depth import tried
from scipy import stats
from tiny import graph, network, workload

from sim.brokers.network import Network
from sim.brokers.users.reconnect import ReconnectSetting
from sim.workloads.faults.fault import Fault, FaultSetting, Outage
from sim.workloads.faults.lifetimes import LifetimeFaults
from sim.workloads.faults.schedule import resolve_faults

PLANES = ("events", "compiled")
STAR = [(0, 1), (0, 2), (0, 3)]


def failing(
    faults: Sequence[Fault], users: int, plane: str, horizon: float, warm_up: float = 0.0, **reconnect: object
) -> Network:
    """A star after its run; all users are at broker 1 and subscribe to the hub's topic, and one publisher at the hub."""
    world = workload([{0}] * users + [set()], [(horizon / 2, 0, users, 1)], horizon=horizon)
    made = network(
        world,
        graph(STAR, [0]),
        [1] * users + [0],
        plane=plane,
        warm_up=warm_up,
        trace=0.0,
        faults=resolve_faults(faults, 4, horizon),
        reconnect=ReconnectSetting(**reconnect),  # type: ignore[arg-type]
    )
    made.run()
    return made


@pytest.mark.parametrize(
    ("up", "down"),
    [
        ({"mean": "100s"}, {"mean": "25s"}),
        ({"mean": "20s"}, {"mean": "20s"}),
        ({"mean": "100s", "distribution": "weibull", "shape": 0.7}, {"mean": "10s"}),
    ][-tried(3) :],
    ids=str,
)
def test_availability_is_the_share_of_the_mean_time_up(up: dict[str, object], down: dict[str, object]) -> None:
    """MTTF / (MTTF + MTTR), whatever the distributions; the brokers of a run fail on their own, all of them up at first.

    Of 20 intervals of 95 %, by 10 runs each, fewer than 17 would have it once in sixty times.
    """
    kind, horizon = LifetimeFaults(LifetimeFaults.Parameters(up=up, down=down)), 5000.0
    found = []
    for replication in range(200):
        faults = kind.faults(FaultSetting(("a", "b", "c", "d"), None, horizon, replication))
        found.append(failing(faults, 1, "events", horizon, warm_up=1000.0).metrics()["broker_availability"])
    mean_up, mean_down = float(str(up["mean"])[:-1]), float(str(down["mean"])[:-1])
    theory, groups = mean_up / (mean_up + mean_down), np.array(found).reshape(20, 10)
    half = stats.t.ppf(0.975, 9) * groups.std(axis=1, ddof=1) / math.sqrt(10)
    assert np.count_nonzero(np.abs(groups.mean(axis=1) - theory) <= half) >= 17
    assert half.max() < 0.05


@pytest.mark.parametrize(
    ("machines", "repairers", "up", "down"), [(5, 1, 100.0, 20.0), (8, 1, 80.0, 16.0), (6, 2, 30.0, 20.0)]
)
def test_brokers_that_wait_for_repairers_are_an_m_m_c_queue_without_others(
    machines: int, repairers: int, up: float, down: float
) -> None:
    """The machine-repair model M/M/c//N: n of N are down with p(n) ∝ Π λ (N - i) / μ min(i + 1, c), over i < n."""
    kind = LifetimeFaults(
        LifetimeFaults.Parameters(up={"mean": f"{up}s"}, down={"mean": f"{down}s"}, repairers=repairers)
    )
    weights = [1.0]
    for i in range(machines):
        weights.append(weights[-1] * (machines - i) / up * down / min(i + 1, repairers))
    theory = 1 - sum(n * weight for n, weight in enumerate(weights)) / sum(weights) / machines
    found, start, horizon = [], 1000.0, 6000.0
    for replication in range(200):
        outages = kind.faults(FaultSetting(tuple(map(str, range(machines))), None, horizon, replication))
        gone = sum(max(min(outage.end, horizon) - max(outage.start, start), 0.0) for outage in outages)
        found.append(1 - gone / machines / (horizon - start))
        changes = sorted([(o.start, 1) for o in outages] + [(o.end, -1) for o in outages])
        assert len(outages) > 20
        assert max(np.cumsum([step for _, step in changes])) > repairers
    groups = np.array(found).reshape(20, 10)
    half = stats.t.ppf(0.975, 9) * groups.std(axis=1, ddof=1) / math.sqrt(10)
    assert np.count_nonzero(np.abs(groups.mean(axis=1) - theory) <= half) >= 17
    assert half.max() < 0.06


def test_repairers_that_suffice_change_nothing() -> None:
    given = {"up": {"mean": "100s"}, "down": {"mean": "50s", "distribution": "weibull", "shape": 0.7}}
    setting = FaultSetting(("a", "b", "c"), None, 5000.0, 3)
    alone = LifetimeFaults(LifetimeFaults.Parameters(**given)).faults(setting)
    pool = LifetimeFaults(LifetimeFaults.Parameters(**given, repairers=3)).faults(setting)
    assert [fault.broker for fault in sorted(alone, key=lambda fault: fault.start)] == [fault.broker for fault in pool]
    for one, other in zip(sorted(alone, key=lambda fault: fault.start), pool, strict=True):
        assert (one.start, one.end) == pytest.approx((other.start, other.end))


@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize(("users", "rate"), [(200, 10.0), (500, 50.0), (37, 3.0)])
def test_a_storm_of_users_takes_as_long_as_their_number_by_the_rate(users: int, rate: float, plane: str) -> None:
    """All of them notice a second after the crash, when the broker is up again: the last is back n/r later, the middle one n/2r."""
    after = failing([Outage(10.0, 10.5, 1)], users, plane, 100.0, detection=1.0, connection_rate=rate)
    table = after.tables()["decisions/selection"]
    back = table["time"][(table["from"] == -1) & (table["time"] > 0)]
    assert len(back) == users
    assert back[-1] - 11.0 == pytest.approx(users / rate)
    np.testing.assert_allclose(np.diff(back), 1 / rate)
    found = after.metrics()
    assert found["connection_attempts"] == found["reconnections"] == found["resubscriptions"] == users
    absent = users * 1.0 + users * (users + 1) / (2 * rate)  # s: the i-th of them waits for i/r
    assert found["user_unavailability"] == pytest.approx(absent / (100.0 * (users + 1)))


@pytest.mark.parametrize("plane", PLANES)
def test_attempts_back_off_exponentially(plane: str) -> None:
    """Of an outage of 1000 s, at waits of 1, 2, 4, … 256, 256, … s: 1 + 9 attempts up to 511 s, and one more each 256 s."""
    after = failing([Outage(0.0, 1000.0, 1)], 3, plane, 2000.0, wait=1.0, longest=256.0)
    assert after.metrics()["connection_attempts"] == 3 * (1 + 9 + 2)
    assert after.metrics()["user_unavailability"] == pytest.approx(3 * (511 + 2 * 256) / (2000.0 * 4))
