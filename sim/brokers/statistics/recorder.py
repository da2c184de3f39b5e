"""The recorder: counts and exact sums per window, in memory that does not grow with the number of events."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

# Any: counts are int or Fraction, as their metric is declared.
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.averages import TimeAverage
from sim.brokers.statistics.balance import LoadBalance
from sim.brokers.statistics.delays import Delays
from sim.brokers.statistics.deliveries import Arrivals, DeliveryBuffer, DuePlaces, arrivals_of
from sim.brokers.statistics.hops import HopTrace
from sim.brokers.statistics.ledger import LOST, Ledger
from sim.brokers.statistics.receipts import Audience, Audiences, Receipts
from sim.brokers.statistics.records import Channel, Folds, Offloaded, Offloads, ResentCopies, Statistics, Ways, starts
from sim.brokers.statistics.satisfaction import Satisfaction
from sim.brokers.statistics.tallies import Tallies
from sim.brokers.statistics.topic_delays import TOPIC_DELAYS, topic_delays
from sim.brokers.statistics.traffic import Traffic
from sim.brokers.statistics.window_columns import WindowColumns
from sim.metrics import COUNTED, OURS, QUANTILES, MetricValue
from sim.overlay.pair_times import PairTimes

OffloadColumns = tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
]
"""The first eight of `Offloads`."""


class Details(NamedTuple):
    """Optional records beyond the counts: hops, subscribers of topics, and what users received.

    `receipts` and `satisfaction` count by user, and need the `audiences`. `channel` carries offloaded publications. With
    `deliveries`, users count, and receive, once these have been passed on and have reached them. `topics` is the number of topics
    whose delays are recorded: 0 or all.
    """

    trace: HopTrace | None = None
    audiences: Audiences | None = None
    receipts: Receipts | None = None
    satisfaction: Satisfaction | None = None
    channel: Channel | None = None
    deliveries: DeliveryBuffer | None = None
    topics: int = 0


class Recorder:
    """The statistics of one run. Publications count in the window in which they were published, control messages when they are sent.

    Windows are `width` seconds wide from time 0 on and are cut at `warm_up` too; those before it are kept apart from the metrics.
    `hops`: seconds of a hop without jitter, for the path stretch. `copies`: the number of copies of each publication.
    `off_tree`: the cause of loss of what is due at brokers that are not on the tree.
    """

    def __init__(
        self,
        horizon: float,
        warm_up: float,
        width: float,
        hops: PairTimes,
        copies: int,
        details: Details,
        off_tree: str,
    ) -> None:
        starts = np.arange(math.ceil(horizon / width)) * width
        starts = starts[starts < horizon]  # rounding may have put an edge at the very end
        starts = np.union1d(starts, [warm_up]) if 0 < warm_up < horizon else starts
        self.edges: list[float] = [*starts.tolist(), horizon]
        self.horizon, self.warm_up = horizon, warm_up
        self.trace, self.audiences, self.receipts, self.satisfaction, self.channel, self.deliveries, topics = details
        self._measured = starts >= warm_up
        self.measured: list[bool] = self._measured.tolist()
        windows, brokers = len(starts), len(hops)
        self._window = 0
        self.ledger = Ledger(windows, copies)
        self.histogram, self.links = Delays(brokers), Tallies(4 * brokers * max(brokers.bit_length(), 4))
        self.traffic = Traffic(windows, brokers)
        self.statistics = Statistics(
            self.ledger.pairs,
            self.ledger.publications,
            np.zeros((windows, rk.COUNTERS), np.int64),
            np.zeros((windows, rk.SUMS, 3), np.int64),
            np.zeros(1),
            self.links.hashed,
            self.traffic.rows,
            self.traffic.first,
            self.histogram.hashed,
            np.zeros(2, np.int64),
            np.zeros((topics, TOPIC_DELAYS), np.int64),
            self._measured,
            hops.record,
            brokers,
            self.deliveries is None,
            LOST[off_tree],
        )
        self.counted: dict[str, list[Any]] = {name: [exact(0)] * windows for name, exact in COUNTED.items()}
        self.bootstrap_messages = 0
        self.remembered = 0  # the most identities of publications that a broker remembered
        # which users are connected again after their broker has crashed, and when (s)
        self.when_reconnected: Callable[[int, float], None] = lambda user, now: None
        # the broker at which each publication enters, where that is asked for
        self.entered: NDArray[np.int32] | None = None
        self.session_queue = 0  # the most messages that waited in a session
        self.balance = LoadBalance(self.edges)
        self.brokers_up, self.users_absent = TimeAverage(self.edges, 1.0), TimeAverage(self.edges, 0.0)  # shares of all

    def window(self, time: float) -> int:
        """The window of a time, for ascending times."""
        while time >= self.edges[self._window + 1]:
            self._window += 1
        return self._window

    def count(self, name: str, time: float, amount: float = 1) -> None:
        """Add to the count of this name (a key of `sim.metrics.COUNTED`) at a time (s) before the horizon."""
        exact = amount if type(amount) is int else COUNTED[name](amount)
        self.counted[name][bisect_right(self.edges, time) - 1] += exact

    def count_at(self, times: NDArray[np.float64], counts: Mapping[str, NDArray[np.int64]]) -> None:
        """Add to the counts of these names what belongs to some times (s)."""
        within = times < self.horizon
        windows = self.windows(times[within])
        for name, many in counts.items():
            for window, amount in enumerate(
                np.bincount(windows, many[within], len(self.measured)).astype(int).tolist()
            ):
                self.counted[name][window] += amount

    def attached(self, user: int, broker: int) -> None:
        """The broker hosts the user from now on."""
        if self.audiences is not None:
            self.audiences.attach(user, broker)

    def interest_changed(self, user: int, topic: int, action: int) -> None:
        """The user begins (+1) or ceases (-1) to want the topic."""
        if self.audiences is not None:
            self.audiences.change(user, topic, action)

    def windows(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """The windows of any times before the horizon."""
        return np.searchsorted(self.edges, times, side="right") - 1

    # -- publications

    def publish(self, times: NDArray[np.float64], brokers: NDArray[np.int32], size: NDArray[Any]) -> None:
        """Count publications (columns) that come to brokers from their users."""
        counts = (times >= self.warm_up) & (times < self.horizon)
        self.traffic.publish(self.windows(times[counts]), brokers[counts], size[counts].astype(np.int64))

    def record(self, ways: Ways) -> None:
        """Count finished publications."""
        self._kernel(rk.record_all, (ways,), ways.window)

    def resend(self, resent: ResentCopies) -> None:
        """Count copies that brokers have sent again."""
        self._kernel(rk.count_resent, (resent,), resent.window)

    def fold(self, folds: Folds, reached: NDArray[np.int64], latest: NDArray[np.float64]) -> None:
        """Carry publications down their trees and count them; `reached` and `latest` are those of `fold_all`."""
        self._kernel(rk.fold_all, (folds, self.horizon, reached, latest), folds.window)

    def offload(
        self, columns: OffloadColumns, entries: Sequence[Offloaded], audiences: Sequence[Audience | None]
    ) -> None:
        """Send publications that the back end does not serve by the best-effort channel, and record them.

        An entry has the brokers to which publications go, and the number of due users there, who are among its audience.
        """
        channel = self.channel
        assert channel is not None
        brokers, users = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        bounds, reached = starts([brokers for brokers, _ in entries]), np.zeros(len(brokers), np.int64)
        arrivals = self.arrivals(bounds, columns[1])
        offloads = Offloads(*columns, brokers, users, bounds, *arrivals)
        self._kernel(rk.offload_all, (offloads, channel, self.horizon, reached), offloads.window)
        if self.deliveries is not None:
            places, by_channel = (
                DuePlaces(offloads.entry, bounds, brokers, users),
                np.full(len(offloads.number), np.nan),
            )
            self.deliveries.arrive(offloads.number, by_channel, places, arrivals, audiences)
        elif self.receipts is not None and self.audiences is not None:
            for audience, first, end in zip(audiences, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                if audience is not None:
                    times = self.audiences.reached(audience, brokers[first:end], reached[first:end])
                    self.receipts.receive(audience.topic, audience.users, times)

    def arrivals(self, bounds: NDArray[np.int64], entry: NDArray[np.int64]) -> Arrivals:
        """Arrays for arrival times, if requested: for each publication at the brokers of its entry e, `bounds[e]:bounds[e + 1]`."""
        return arrivals_of(np.diff(bounds)[entry] if self.deliveries is not None else np.zeros(len(entry), np.int64))

    def arrive(
        self,
        audience: Audience,
        period: int,
        publications: int,
        brokers: NDArray[np.int32],
        times: Integers | NDArray[np.bool_],
    ) -> None:
        """Record how many of the publications of a period that became due to an audience have arrived at these brokers."""
        assert self.audiences is not None
        receipts = self.receipts if self.deliveries is None else None
        if receipts is None and self.satisfaction is None:
            return
        reached = self.audiences.reached(audience, brokers, times)
        if receipts is not None:
            receipts.receive(audience.topic, audience.users, reached)
        if self.satisfaction is not None:
            self.satisfaction.receive(period, audience.users, publications, reached)

    def _kernel(self, kernel: Callable[..., int], records: tuple[object, ...], windows: NDArray[np.int64]) -> None:
        """Let a kernel count publications of these windows, making room whenever it lacks some."""
        done, before = 0, -1
        while (done := kernel(*records, done, self.statistics)) < len(windows):
            window = int(windows[done])
            if self.measured[window] and self.traffic.first[window] < 0:
                self.open_window(window)
                continue
            self.empty_tables()
            if done == before:  # one publication uses more links than that
                self.links.grow()
                self.statistics = self.statistics._replace(links=self.links.hashed)
            before = done

    def open_window(self, window: int) -> None:
        """Create rows for the traffic of a measured window."""
        self.traffic.open(window)
        self.statistics = self.statistics._replace(traffic=self.traffic.rows)

    def empty_tables(self) -> None:
        """Empty the hash tables of delays and links."""
        self.histogram.empty()
        self.links.empty()
        self.statistics.used[:] = 0

    # -- what came out

    def close(self) -> None:
        """Verify message conservation. Raises ConservationError where due is not delivered + lost + in flight."""
        self.balance.close(self.horizon)
        for average in (self.brokers_up, self.users_absent):
            average.set(self.horizon, 0.0)
        self.ledger.check()

    def timeseries(self) -> Columns:
        """All counts per window, and the means computed from them."""
        return self._columns().timeseries(self.measured)

    def _columns(self) -> WindowColumns:
        averages = {"broker_availability": self.brokers_up, "user_unavailability": self.users_absent}
        return WindowColumns(self.ledger, self.statistics, self.counted, self.balance, averages, self.edges)

    def delays(self) -> Columns:
        """The delay histogram: one row per window and bin that is not empty."""
        return self.histogram.table()

    def with_delays(self, topics: Mapping[str, NDArray[np.int64]]) -> Columns:
        """The table of topics with their delays, if requested."""
        counted = self.statistics.topics
        return {**topics, **(topic_delays(counted, topics["topic"]) if len(counted) else {})}

    def metrics(self) -> dict[str, MetricValue]:
        """The scalar metrics over everything after the warm-up; None where a mean is over nothing."""
        columns, windows = self._columns(), len(self.measured)
        first = windows - sum(self.measured)
        permilles = list(QUANTILES.values())
        quantiles = {
            f"{delay}_{name}": value
            for delay, of_users in (("notification_delay", False), ("user_notification_delay", True))
            for name, value in zip(
                QUANTILES, self.histogram.quantiles(self._measured, permilles, of_users), strict=True
            )
        }
        return {
            **{m.name: columns.over(m, first, windows) for m in OURS.values() if m.windows},
            **quantiles,
            "notification_delay_max": float(self.statistics.maxima[0])
            if columns.total("delivered", first, windows)
            else None,
            "bootstrap_messages": self.bootstrap_messages,
            "remembered_identities": self.remembered,
            "session_queue_max": self.session_queue,
        }
