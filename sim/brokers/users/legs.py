"""Legs from brokers to the users that they host, which take time or may be too slow.

They have no effect on brokers, so they are a separate stage behind all data planes, which pass on what due brokers have served.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users import leg_kernels as lk
from sim.brokers.users import leg_record as lr
from sim.brokers.users.leg_distances import Distances, DistanceSetting
from sim.brokers.users.retained import Retained
from sim.workloads.format.workload import NO_SESSION, Absences, Qualities, Workload

_RECEIVED = 1 << 16  # deliveries that are noted at once
_MESSAGES = 1 << 10  # the initial number of records


@dataclass(frozen=True)
class Speed:
    """The speed of a leg: one-way latency (s), bytes per second (None: no limit), unacknowledged messages (None: no limit)."""

    latency: float = 0.0
    rate: float | None = None
    window: int | None = None


@dataclass(frozen=True)
class ClientSetting:
    """The setting of legs: their `speed`, and that of those which are `slow`: a random share of them, and the `slow_first` users.

    The buffer for a user is limited in messages and bytes, with `overflow` telling what happens beyond that. `until` is the end of
    a delivery's delay. The time over the `distance` from users to brokers is no part of speeds; None where it takes none.
    """

    speed: Speed = Speed()
    slow_share: float = 0.0
    slow_first: int = 0
    slow: Speed = Speed()
    jitter: float = 0.0
    buffer: int | None = None
    buffer_bytes: int | None = None
    overflow: Literal["drop-newest", "drop-oldest", "disconnect"] = "drop-newest"
    reconnect_after: float = 0.0
    until: Literal["broker", "served", "client"] = "served"
    distance: DistanceSetting | None = None

    @property
    def matters(self) -> bool:
        """Whether users are reached later than their brokers, or other delays count."""
        return (
            self.until != "served"
            or self.distance is not None
            or self.speed != Speed()
            or ((self.slow_share > 0 or self.slow_first > 0) and self.slow != Speed())
        )


AT_ONCE = ClientSetting()
"""The setting in which users have what their broker has served."""


@dataclass(frozen=True)
class SessionSetting:
    """What waits in the session of a user who is away: messages and bytes up to bounds, for up to `max_age` seconds (None: any).

    `rate` messages per second are sent to a user who has returned (None: no limit). Publications of quality of service 0 wait if
    `qos_0` is "keep". `survive` tells whether sessions outlive a crash of their broker.
    """

    queue: int | None = None
    queue_bytes: int | None = None
    max_age: float | None = None
    overflow: Literal["drop-newest", "drop-oldest"] = "drop-newest"
    rate: float | None = None
    qos_0: Literal["drop", "keep"] = "drop"
    survive: bool = False


@dataclass(frozen=True)
class QualitySetting:
    """Messages go to users by quality of service: that of subscriptions, where the workload does not say it, by `shares` of the three.

    The way between a client and its broker loses a message, or an answer, with probability `loss`; who waits for an answer for
    `timeout` (s) sends again.
    """

    shares: tuple[float, float, float] = (0.0, 0.0, 1.0)
    loss: float = 0.0
    timeout: float = math.inf


SESSIONS = SessionSetting()
"""The setting in which sessions are without limits."""


class Legs:
    """Carries what brokers have served to their users, and counts it (see `sim.brokers.users.leg_kernels`).

    `keys` are for draws of jitter, by publication and user; of slow users, by user; of what is lost, like jitter; and of the quality
    of service of subscriptions, by user and topic.
    """

    def __init__(
        self,
        setting: ClientSetting,
        sessions: SessionSetting,
        recorder: Recorder,
        workload: Workload,
        retained: Retained | None,
        quality: QualitySetting | None,
        keys: Sequence[int],
    ) -> None:
        assert recorder.deliveries is not None
        self._recorder, self._publications, self._deliveries = recorder, workload.publications, recorder.deliveries
        self._deliveries.receive, self._deliveries.lose = self.receive, self.cut_off
        self._retained, self._keeps_qos_0, users = retained, sessions.qos_0 == "keep", len(workload.users)
        self._receipts, statistics = recorder.receipts, recorder.statistics
        self._states = np.zeros(1, lr.LEG_STATE)
        self._state: Item = self._states[0]
        self._arrays: dict[str, Items] = {}
        # the users of recent audiences in order of brokers, by the audiences' ids
        self._by_broker: dict[int, tuple[Audience, NDArray[np.int32], NDArray[np.int64]]] = {}
        legs, speeds = np.zeros(users, lr.LEG), np.zeros(2, lr.SPEED)
        for row, each in enumerate((setting.speed, setting.slow)):
            speeds[row] = (each.latency, math.inf if each.rate is None else each.rate, each.window or 0)
        lk.slow_ones(legs, keys[1], setting.slow_share)
        self._distances = None if setting.distance is None else Distances(setting.distance, workload, recorder)
        legs["slow"][: setting.slow_first] = 1
        self._use("absences", _by_user(workload.absences, legs, recorder.horizon))
        self._use("subscribed", _subscribed(workload.qualities, legs))
        self._use("by_quality", np.zeros(len(recorder.measured) * len(lr.QUALITY_COUNTS), lr.LEG_ARRAYS["by_quality"]))
        if self._distances is not None:
            self._use("places", self._distances.places)
            self._use("sites", self._distances.sites)
            legs["place"], legs["places_end"] = self._distances.first[:-1], self._distances.first[1:]
            self._state["per_arc"] = self._distances.per_arc
        self._use("legs", legs)
        self._use("speeds", speeds)
        self._use("disconnects", np.zeros(len(recorder.measured), lr.LEG_ARRAYS["received"]))
        self._use("edges", np.array(recorder.edges).view(lr.LEG_ARRAYS["edges"]))
        self._use("received", np.zeros(0 if self._receipts is None else _RECEIVED, lr.LEG_ARRAYS["received"]))
        self._use("messages", np.zeros(0, lr.LEG_MESSAGE))
        for name in lr.LEG_STATISTICS:
            self._use(name, getattr(statistics, name))
        state = self._state
        state["free"], state["windows"], state["delay_slots"] = -1, len(recorder.measured), len(statistics.delays)
        state["by_topic"], state["warm_up"] = len(statistics.topics) > 0, recorder.warm_up
        state["notes"], state["room"] = self._receipts is not None, len(self._arrays["received"])
        state["bound"] = -1 if setting.buffer is None else setting.buffer
        state["bytes_bound"] = -1 if setting.buffer_bytes is None else setting.buffer_bytes
        state["overflow"] = ("drop-newest", "drop-oldest", "disconnect").index(setting.overflow)
        state["until"] = ("broker", "served", "client").index(setting.until)
        state["reconnect_after"], state["horizon"] = setting.reconnect_after, recorder.horizon
        state["jitter"], state["jitter_key"] = setting.jitter, keys[0]
        state["session_bound"] = -1 if sessions.queue is None else sessions.queue
        state["session_bytes"] = -1 if sessions.queue_bytes is None else sessions.queue_bytes
        state["session_overflow"] = ("drop-newest", "drop-oldest").index(sessions.overflow)
        state["oldest"] = math.inf if sessions.max_age is None else sessions.max_age
        state["gap"] = 0.0 if sessions.rate is None else 1.0 / sessions.rate
        state["survives"] = sessions.survive
        state["qualities"], state["loss_key"], state["quality_key"] = quality is not None, keys[2], keys[3]
        if quality is not None:
            state["loss"], state["timeout"] = quality.loss, quality.timeout
            state["share_0"], state["share_1"] = quality.shares[0], quality.shares[0] + quality.shares[1]
        if sessions.survive and len(self._publications):
            recorder.when_reconnected = self._back
        elif retained is not None:
            recorder.when_reconnected = retained.subscribe
        lk.first_absences(self._states, legs)
        self._grow()

    def _use(self, name: str, array: NDArray[np.generic]) -> None:
        self._arrays[name] = array
        self._state[name] = array.ctypes.data

    def _grow(self) -> None:
        """Double the room for messages."""
        messages, state = self._arrays["messages"], self._state
        size, more = len(messages), max(len(messages), _MESSAGES)
        messages = np.concatenate([messages, np.zeros(more, lr.LEG_MESSAGE)])
        messages["next"][size:] = np.arange(size + 1, size + more + 1)
        messages["next"][-1] = state["free"]
        state["free"], state["frees"] = size, state["frees"] + more
        self._use("messages", messages)

    def receive(self, deliveries: Items, audiences: Sequence[Audience]) -> None:
        """Take what brokers have served (DELIVERY, in order of time) for their users among the audiences."""
        handed, number = np.zeros(len(deliveries), lr.HANDED), deliveries["number"]
        for name in ("served", "arrived", "rooted", "number"):
            handed[name] = deliveries[name]
        if self._retained is not None:
            number = self._retained.told_apart(handed)
        handed["kind"][number < 0] = lr.BACK
        live = handed["kind"] == lr.LIVE
        handed["published"] = np.where(live, self._publications.time[number], handed["served"])
        handed["size"] = self._publications.size[number]
        handed["quality"] = self._publications.qos[number]
        handed["kept"] = self._keeps_qos_0 | ((handed["quality"] != 0) & (self._state["qualities"] == 0))
        handed["window"] = self._recorder.windows(handed["published"])
        if self._distances is not None:
            by_broker = ~np.isnan(handed["rooted"])
            handed["broker"] = np.where(by_broker, deliveries["broker"], -1)
            handed["up"][live & by_broker] = self._distances.up(number[live & by_broker])
        users = self._find_users(handed, deliveries, audiences)
        self._run(lk.deliver_all, handed, users)

    def cut_off(self, users: Sequence[int], now: float) -> None:
        """The broker of these users has crashed: what waits for them is lost."""
        self._run(partial(lk.catch_up_all, now=now, cuts=True), np.array(users, np.int64))

    def observe(self, users: NDArray[np.int64], now: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The messages that wait for each user now (s), are being sent or not acknowledged; and who is away.

        Everything that brokers have served before has been passed on then. Where nobody is connected, who has a session is there.
        """
        self._deliveries.advance(now)
        self._run(partial(lk.catch_up_all, now=now, cuts=False), users)
        legs = self._arrays["legs"][users]
        windowed = self._arrays["speeds"]["window"][legs["slow"]] > 0
        offline = (legs["away"] == 1) | (legs["held"] == 1)
        under_way = np.where(windowed, legs["unacknowledged"] + legs["caught"], legs["free"] > now)
        away: NDArray[np.bool_] = (legs["cut_until"] > now) | offline
        if away.all():
            away = ~offline | ((legs["away"] == 1) & (legs["session"] == NO_SESSION))
        return legs["waiting"].astype(np.int64) + np.where(offline, 0, under_way), away

    def _back(self, user: int, now: float) -> None:
        """A user whose session has outlived the crash of its broker is connected again."""
        self._deliveries.add(now, now, math.nan, -1, 0, Audience(-1, -1, np.array([user]), np.zeros(1, np.int32)))

    def _find_users(self, handed: Items, deliveries: Items, audiences: Sequence[Audience]) -> NDArray[np.int64]:
        """The users of all audiences by broker, of which each publication has a part."""
        parts, first, known = [np.empty(0, np.int64)], 0, self._by_broker
        self._by_broker = {}
        order = np.argsort(deliveries["audience"], kind="stable")
        numbers, starts = np.unique(deliveries["audience"][order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            audience = audiences[number]
            found = known.get(id(audience))
            if found is None:
                order_by_broker = np.argsort(audience.brokers, kind="stable")
                found = audience, audience.brokers[order_by_broker], audience.users[order_by_broker]
            self._by_broker[id(audience)] = found
            _, brokers, users = found
            here = deliveries["broker"][rows]
            low = np.searchsorted(brokers, here)
            handed["topic"][rows] = audience.topic
            handed["first"][rows], handed["count"][rows] = first + low, np.searchsorted(brokers, here, "right") - low
            parts.append(users)
            first += len(users)
        return np.concatenate(parts)

    def close(self) -> None:
        """Carry all that brokers have served, and count what is in transit at the end."""
        self._deliveries.advance(math.inf)
        self._run(lk.close_all, self._arrays["legs"])
        self._take_received()
        self._recorder.session_queue = int(self._state["longest"])
        for window, many in enumerate(self._arrays["disconnects"]["value"].tolist()):
            self._recorder.counted["disconnects"][window] += many
        counts = self._arrays["by_quality"]["value"].reshape(-1, len(lr.QUALITY_COUNTS))
        recorder = self._recorder
        recorder.count_at(np.array(recorder.edges[:-1]), dict(zip(lr.QUALITY_COUNTS, counts.T, strict=True)))

    def _run(self, kernel: Callable[..., int], *arguments: NDArray[np.generic]) -> None:
        """Run a kernel, and do what it cannot."""
        state, recorder = self._state, self._recorder
        used = recorder.statistics.used
        while True:
            state["delay_keys"] = used[0]
            code = kernel(self._states, *arguments)
            used[0] = state["delay_keys"]
            if code == lr.FINISHED:
                return
            if code == lr.DELAYS_FULL:
                recorder.empty_tables()
            elif code == lr.RECEIPTS_FULL:
                self._take_received()
            else:
                self._grow()

    def _take_received(self) -> None:
        if self._receipts is not None:
            keys = self._arrays["received"]["value"][: self._state["noted"]].copy()
            self._receipts.add(keys, np.ones(len(keys), np.int64))
            self._state["noted"] = 0


def _by_user(absences: Absences, legs: Items, horizon: float) -> Items:
    """The absences before the horizon (ABSENCE), one user's after the other's, and where those of each leg are."""
    rows = absences.rows(absences.start < horizon)
    order = np.argsort(rows.user, kind="stable")
    found = np.zeros(len(rows), lr.ABSENCE)
    found["start"], found["end"], found["session"] = rows.start[order], rows.end[order], rows.session[order]
    bounds = np.searchsorted(rows.user[order], np.arange(len(legs) + 1))
    legs["absence"], legs["absences_end"] = bounds[:-1], bounds[1:]
    return found


def _subscribed(qualities: Qualities, legs: Items) -> Items:
    """The qualities of service of subscriptions (SUBSCRIBED), one user's after the other's, and where those of each leg are."""
    order = np.lexsort((qualities.time, qualities.topic, qualities.user))
    found = np.zeros(len(qualities), lr.SUBSCRIBED)
    found["topic"], found["time"], found["qos"] = (
        column[order] for column in (qualities.topic, qualities.time, qualities.qos)
    )
    bounds = np.searchsorted(qualities.user[order], np.arange(len(legs) + 1))
    legs["quality"], legs["qualities_end"] = bounds[:-1], bounds[1:]
    return found
