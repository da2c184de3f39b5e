"""The legs from brokers to users: against the oracle, on all data planes, and against arithmetic and theory."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least
from generated import difference, generated, network
from hypothesis import given
from test_against_oracle import Case, cases, compare, reproducible
from test_content import compare as compare_content
from test_content import contents
from test_engines_agree import assert_same_bytes

from sim.base.errors import ScenarioError
from sim.brokers.data.compiled import memory
from sim.brokers.data.folded import FoldedEngine
from sim.brokers.network import Network
from sim.brokers.statistics import deliveries
from sim.brokers.users import legs
from sim.brokers.users.legs import ClientSetting, QualitySetting, Speed
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate
from sim.workloads.format.workload import Absences


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries are passed on again and again, and there is room for few of anything."""
    monkeypatch.setattr(deliveries, "_BATCH", 3)
    monkeypatch.setattr(memory, "_DELIVERIES", 2)
    monkeypatch.setattr(legs, "_RECEIVED", 1)
    monkeypatch.setattr(legs, "_MESSAGES", 1)
    monkeypatch.setattr("sim.brokers.data.folded._BATCH", 2)


# -- against the oracle


@pytest.mark.usefixtures("few_at_once")
def test_users_get_what_the_oracle_says() -> None:
    tally: Counter[str] = Counter()

    @reproducible(200)
    @given(cases())
    def run(case: Case) -> None:
        truth = compare(case)
        given_, users = case.clients, truth.users.values()
        lost = {coming.fate for coming in truth.came.values()}
        tally.update(lost - {None, "delivered"})
        tally["in flight"] += None in lost
        tally[given_.get("until", "served")] += 1
        tally["slow and fast"] += given_.get("slow_share") == 0.3
        for what in ("jitter", "reconnect_after"):
            tally[what] += bool(given_.get(what))
        for what in ("drop-newest", "drop-oldest"):
            tally[what] += given_.get("overflow") == what and "slow_client" in lost
        tally["waited"] += any(user.waited for user in users)
        for what, many in sum((user.said for user in users), Counter()).items():
            tally[what[0]] += many
        tally["by the window"] += any(user.waited and user.way.window and not user.way.rate for user in users)

    run()
    few = ("slow_client", "disconnected", "in flight", "broker", "client", "slow and fast", "jitter", "reconnect_after")
    few += ("drop-newest", "drop-oldest", "waited", "by the window")
    few += ("leg", "puback", "pubrec", "pubrel", "pubcomp", "retransmissions", "duplicates")
    assert min(tally[what] for what in few) >= least(10), tally


@pytest.mark.usefixtures("few_at_once")
def test_users_get_content_as_the_oracle_says() -> None:
    tally: Counter[str | None] = Counter()

    @reproducible(60)
    @given(contents())
    def run(made: Any) -> None:
        tally.update({coming.fate for coming in compare_content(made).came.values()})

    run()
    assert min(tally[fate] for fate in ("slow_client", "disconnected", "delivered", None)) >= least(5), tally


# -- on all planes


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_planes_agree_however_few_are_passed_on_at_once(seed: int) -> None:
    assert_same_bytes(generated(seed))


NOTHING_CONTENDS = {
    "service": ("none", 0.0),
    "queue": None,
    "jitter": 0.0,
    "load": {},
    "lines": {},
    "dissemination": "tree",
}


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_folded_publications_get_to_users_as_others_do(seed: int) -> None:
    made = generated(seed, "content" if seed % 3 == 0 else "tree")
    made.case = Case(**{**vars(made.case), **NOTHING_CONTENDS})
    made.matching, made.capacity = 0.0, None
    runs = [network(made, plane) for plane in ("events", "folded")]
    for each in runs:
        each.run()
    assert difference(*runs) is None
    assert runs[1].metrics()["due"] is not None


# -- by arithmetic


def one_user(
    times: list[float],
    horizon: float = 1000.0,
    size: int = 8,
    users: int = 1,
    quality: QualitySetting | None = None,
    qos: int = 1,
    away: tuple[float, float] | None = None,
    **clients: Any,
) -> Network:
    """A broker with users of one topic, on which something is published at these times; user 0 may be away."""
    world = tiny.workload([[0]] * users, [(time, 0, -1, size) for time in times], horizon=horizon)
    world = replace(world, publications=replace(world.publications, qos=np.full(len(times), qos, np.int8)))
    if away is not None:
        columns = np.zeros(1, np.int32), np.array(away[:1]), np.array(away[1:]), np.ones(1, np.int8)
        world = replace(world, absences=Absences(*columns))
    ways = {"clients": ClientSetting(**clients), "quality": quality}
    made = tiny.network(world, tiny.graph([], [0]), [0] * users, trace=False, **ways)
    made.run()
    return made


def test_a_message_takes_its_bytes_and_the_latency() -> None:
    metrics = one_user([0.0, 0.5, 9.0], speed=Speed(latency=0.25, rate=8.0), until="client").metrics()
    assert metrics["user_notification_delay"] == pytest.approx((1.25 + 1.75 + 1.25) / 3)
    assert metrics["client_wait"] == pytest.approx(0.5 / 3)
    assert metrics["notification_delay"] == 0.0


def test_delays_count_to_the_broker_to_its_service_or_to_the_client() -> None:
    world = tiny.workload([[0]], [(0.0, 0, 0, 8), (0.0, 0, 0, 8)], horizon=100.0)
    way, found = Speed(latency=10.0), {}
    for until in ("broker", "served", "client"):
        setting = {"service": "deterministic", "service_time": 1.0, "clients": ClientSetting(way, until=until)}
        made = tiny.network(world, tiny.graph([(0, 1)], [0]), [1], hop=0.5, trace=False, **setting)
        made.run()
        metrics = made.metrics()
        found[until] = metrics["user_notification_delay"]
        assert (metrics["arrival_delay"], metrics["notification_delay"]) == (3.5, 4.5)
    # a second at broker 1, half a second up, a second at the root, half a second down, a second at broker 1, ten to the user; and the
    # other a second later
    assert found == {"broker": 3.5, "served": 4.5, "client": 14.5}


def test_an_overflowing_buffer_loses_the_newest_the_oldest_or_all() -> None:
    """A message a second, which takes ten: the first is sent at once, two may wait."""
    slow, every_second = Speed(rate=0.8), [float(second) for second in range(10)]
    series: dict[str, tuple[Any, ...]] = {}
    for overflow in ("drop-newest", "drop-oldest", "disconnect"):
        made = one_user(every_second, speed=slow, buffer=2, overflow=overflow, until="client", reconnect_after=3.5)
        metrics = made.metrics()
        series[overflow] = tuple(
            metrics[name]
            for name in ("lost_slow_client", "lost_disconnected", "disconnects", "user_notification_delay")
        )
    # those of 0 to 2 s arrive at 10, 20 and 30 s; or those of 0, 8 and 9
    assert series["drop-newest"] == (7, 0, 0, pytest.approx((10 + 19 + 28) / 3))
    assert series["drop-oldest"] == (7, 0, 0, pytest.approx((10 + 12 + 21) / 3))
    # cut off at 3 s with those of 1, 2 and 3; away for those of 4 to 6; then the line is free at 10 s for 7 and 8, but 9 does not fit
    assert series["disconnect"] == (0, 9, 2, pytest.approx(10.0))


def test_the_conservation_of_what_is_due_to_users_is_checked() -> None:
    made = one_user([0.0, 1.0], speed=Speed(latency=5.0), horizon=5.5)
    due, delivered, in_flight, *lost = made.recorder.ledger.pairs[:, :, 1].sum(axis=0).tolist()
    assert (due, delivered, in_flight, sum(lost)) == (2, 1, 1, 0)


# -- against theory


@pytest.mark.parametrize("room", [0, 1, 3, 10])
@pytest.mark.parametrize("rate", [5.0, 4.0, 1.0])
def test_a_slow_client_is_a_queue_with_constant_times_and_bounded_room(room: int, rate: float) -> None:
    """D/D/1/K: messages come each second and take x = 8 / rate seconds, x > 1, and K − 1 may wait.

    With room the client is busy for good: the n-th is sent at (n − 1) x, and after each arrival the queue is full. Without, one is
    sent at the first arrival after the last.
    """
    seconds, takes = 700, 8.0 / rate
    metrics = one_user([float(second) for second in range(seconds)], 1e6, speed=Speed(rate=rate), buffer=room).metrics()
    sent = math.floor((seconds - 1) / takes) + 1 if room else math.ceil(seconds / math.ceil(takes))
    assert metrics["lost_slow_client"] == seconds - sent - room
    assert metrics["delivery_ratio"] == (sent + room) / seconds


@pytest.mark.parametrize("window", [1, 4])
def test_a_window_carries_as_many_in_each_round_trip(window: int) -> None:
    """w messages in flight over a round trip of r seconds: w / r messages a second, whatever the rate."""
    round_trip, seconds = 0.5, 100.0
    times = np.arange(0.0, seconds, 0.01).tolist()
    made = one_user(times, seconds, speed=Speed(latency=round_trip / 2, window=window), until="client")
    delivered = round(made.metrics()["delivery_ratio"] * len(times))
    assert delivered == pytest.approx(window * seconds / round_trip, abs=window)
    limited = one_user(times, seconds, speed=Speed(latency=0.25, window=window, rate=8.0), until="client")
    delivered = round(limited.metrics()["delivery_ratio"] * len(times))
    assert delivered == pytest.approx(seconds * min(1.0, window / (1.0 + round_trip)), abs=window)


def test_a_client_of_a_given_rate_is_an_m_d_1_queue() -> None:
    """Pollaczek–Khinchine: ρ s / 2 (1 − ρ) seconds of waiting, from Poisson arrivals, at ρ = 0.8 and a second each: 2 s."""
    waits = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        times = np.cumsum(rng.exponential(1 / 0.8, 25_000)).tolist()
        waits.append(one_user(times, times[-1] + 100.0, speed=Speed(rate=8.0)).metrics()["client_wait"])
    error = 2.36 * float(np.std(waits, ddof=1)) / len(waits) ** 0.5
    assert float(np.mean(waits)) == pytest.approx(2.0, abs=error)


def test_a_share_of_users_is_slow() -> None:
    made = one_user([0.0], users=5000, slow_share=0.1, slow=Speed(latency=2.0), speed=Speed(1.0), until="client")
    table = made.recorder.delays()
    slow = int(table["users"][table["lower"] > 1.5].sum())
    assert slow == pytest.approx(500, abs=5 * (5000 * 0.1 * 0.9) ** 0.5)
    assert table["users"].sum() == 5000


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("plane", ["events", "compiled", "folded"])
def test_nothing_is_kept_of_what_has_been_delivered(plane: str, content: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of deliveries a few hundred wait to be passed on, and of messages as many as the buffers and windows hold."""
    monkeypatch.setattr(deliveries, "_BATCH", 100)
    monkeypatch.setattr(memory, "_DELIVERIES", 10)
    monkeypatch.setattr(legs, "_MESSAGES", 1)
    monkeypatch.setattr("sim.brokers.data.folded._BATCH", 100)
    times = [n / 4 for n in range(2000)]
    if content:
        wanted = [(user, {0: 1}) for user in range(4)]
        world = tiny.content(wanted, [(time, -1, 8, (1,)) for time in times], users=4, horizon=500.0)
    else:
        world = tiny.workload([[0]] * 4, [(time, 0, -1, 8) for time in times], horizon=500.0)
    way = ClientSetting(Speed(latency=3.0, rate=8.0, window=5), buffer=10)
    made = tiny.network(world, tiny.graph([(0, 1)], [0]), [0, 1, 0, 1], 0.25, plane=plane, trace=False, clients=way)
    buffer, held = made.recorder.deliveries, [0]
    assert buffer is not None
    advance = buffer.advance

    def watched(until: float) -> None:
        held.append(buffer._held)
        advance(until)

    buffer.advance = watched  # type: ignore[method-assign]
    made.run()
    assert made.metrics()["delivered"] > 3900
    assert max(held) < 500
    assert made._legs is not None
    assert len(made._legs._arrays["messages"]) <= 128  # four users with 15 at most


def test_brokers_know_nothing_of_clients() -> None:
    plain, behind = one_user([0.0, 1.0, 2.0]), one_user([0.0, 1.0, 2.0], speed=Speed(rate=0.1), buffer=0)
    tables, others = plain.tables(), behind.tables()
    for name in ("brokers", "links"):
        assert tiny_bytes(tables[name]) == tiny_bytes(others[name])
    assert isinstance(behind.engine, FoldedEngine)


def tiny_bytes(table: dict[str, Any]) -> dict[str, str]:
    return {name: repr(np.asarray(values).tolist()) for name, values in table.items()}


# -- scenarios

TWO = tiny.workload([[0], [0]], [(float(second), 0, 0, 1000) for second in range(50)], horizon=100.0)


def test_a_scenario_says_what_the_way_to_users_is() -> None:
    clients = {"latency": "1s", "rate": "4kb/s", "buffer": 3, "overflow": "drop-oldest"}
    network = {"brokers": 2, "clients": clients, "delay_until": "client"}
    record = simulate(load_scenario({"network": network, "subscribers": True}).base, TWO, 0)
    plain = simulate(load_scenario({"network": {"brokers": 2}, "subscribers": True}).base, TWO, 0)
    # 2 s for each of 1000 B: half of those of 50 s get through, and what waits then
    assert record.metrics["lost_slow_client"] == pytest.approx(2 * (50 - 25 - 3), abs=4)
    assert record.metrics["user_notification_delay"] > 3.0
    assert plain.metrics["lost_slow_client"] == plain.metrics["disconnects"] == plain.metrics["client_wait"] == 0
    assert record.metrics["delivered"] == plain.metrics["delivered"] > 0
    assert record.tables["subscribers"]["delivered"].sum() == 100 - record.metrics["lost_slow_client"]
    assert plain.tables["subscribers"]["delivered"].tolist() == [50, 50]


def test_slow_users_have_what_all_have_but_for_what_is_said() -> None:
    slow = {"share": 1.0, "window": 1}
    setting = load_scenario({"network": {"brokers": 2, "clients": {"latency": "2s", "slow": slow}}}).base
    made = build(setting, TWO, 0).setting.clients
    assert (made.speed, made.slow) == (Speed(2.0), Speed(2.0, None, 1))


def test_a_rate_needs_messages_with_bytes() -> None:
    world = tiny.workload([[0]], [(1.0, 0, 0, 0)])
    for key, clients in {"rate": {"rate": "1kb/s"}, "slow.rate": {"slow": {"share": 0.5, "rate": "1kb/s"}}}.items():
        with pytest.raises(ScenarioError) as caught:
            build(load_scenario({"network": {"brokers": 1, "clients": clients}}).base, world, 0)
        assert str(caught.value) == (
            f"network.clients.{key}: no publication of the workload has a size (allowed: publications with bytes, or no rate)"
        )


# -- quality of service


@pytest.mark.parametrize(("qos", "round_trips"), [(1, 1), (2, 2)])
def test_a_window_carries_its_messages_per_round_trip(qos: int, round_trips: int) -> None:
    """Ten in flight over 100 ms are 100 messages per second, or half as many of quality 2; those of quality 0 don't wait."""
    way: dict[str, Any] = {"quality": QualitySetting(), "speed": Speed(0.05, None, 10), "until": "client"}
    found = one_user([0.0] * 1000, 50.0, qos=qos, **way).metrics()
    assert found["client_wait"] == pytest.approx(round_trips * 0.1 * 99 / 2)
    assert found["delivery_ratio"] == 1
    at_once = one_user([0.0] * 1000, 50.0, qos=0, **way).metrics()
    assert (at_once["client_wait"], at_once["puback_messages"]) == (0.0, 0)


def test_losses_cost_what_theory_says() -> None:
    """Of loss p, a message of quality 1 is sent 1 / (1 − p)² times, and arrives 1 / (1 − p) times; each half of quality 2 likewise."""
    lossy: dict[str, Any] = {"quality": QualitySetting(loss=0.2, timeout=0.5), "speed": Speed(0.05)}
    times, found = [float(second) for second in range(10_000)], {}
    for qos in (0, 1, 2):
        found[qos] = one_user(times, 11_000.0, qos=qos, **lossy).metrics()
    assert found[0]["lost_leg"] == pytest.approx(2000, rel=0.05)
    assert found[1]["client_retransmissions"] == pytest.approx(10_000 * (1 / 0.64 - 1), rel=0.05)
    assert found[1]["puback_messages"] == 10_000 + found[1]["client_duplicates"] == pytest.approx(12_500, rel=0.02)
    assert found[2]["pubrec_messages"] == pytest.approx(12_500, rel=0.02)
    assert found[2]["pubrel_messages"] == pytest.approx(15_625, rel=0.02)
    assert found[2]["pubcomp_messages"] == pytest.approx(12_500, rel=0.02)
    assert found[2]["client_duplicates"] == 0
    assert found[1]["delivery_ratio"] == found[2]["delivery_ratio"] == 1


@pytest.mark.parametrize(("qos", "outcomes"), [(0, (0, 0, 1)), (1, (1, 1, 0)), (2, (1, 0, 0))])
def test_what_is_unanswered_when_a_user_leaves_is_sent_again(qos: int, outcomes: tuple[int, int, int]) -> None:
    """A second there and back: the first message has arrived, but not its answer; the other is on its way."""
    way: dict[str, Any] = {"quality": QualitySetting(), "speed": Speed(1.0), "away": (11.5, 20.0)}
    found = one_user([10.0, 11.0], 60.0, qos=qos, **way).metrics()
    assert found["lost_disconnected"] == outcomes[2]
    assert found["client_duplicates"] == outcomes[1]
    assert found["delivery_ratio"] == (1 if qos else 0.5)
    assert found["session_deliveries"] == outcomes[0]
    assert found["client_retransmissions"] == (2 if qos else 0)
