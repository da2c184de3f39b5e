"""The recorder: counts and exact sums per window, in memory that does not grow with the number of events."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.balance import LoadBalance
from sim.brokers.statistics.delays import Delays
from sim.brokers.statistics.deliveries import Arrivals, DeliveryBuffer, DuePlaces, arrivals_of
from sim.brokers.statistics.hops import HopTrace
from sim.brokers.statistics.ledger import DELIVERED, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED, Ledger
from sim.brokers.statistics.receipts import Audience, Audiences, Receipts
from sim.brokers.statistics.records import Channel, Folds, Offloaded, Offloads, Statistics, Ways, starts
from sim.brokers.statistics.satisfaction import Satisfaction
from sim.brokers.statistics.tallies import Tallies
from sim.brokers.statistics.traffic import Traffic
from sim.metrics import CAUSES, COUNTED, OURS, QUANTILES, Metric, MetricValue
from sim.overlay.pair_times import PairTimes

RecordedColumns = dict[str, Any]  # column name → array or list

OffloadColumns = tuple[Any, Any, Any, Any, Any, Any]
"""The first six of `Offloads`."""


UNIT = 1 << 72
"""Exact sums are whole numbers of 1 / UNIT."""


class Column(NamedTuple):
    """What adds up over windows: a number for each, in units of 1 / `unit`."""

    values: Sequence[Any]
    unit: int = 1

    def total(self, windows: slice) -> Any:
        """The sum over some windows, exact unless its numbers are not."""
        found = reduce(add, self.values[windows], 0)
        return found if self.unit == 1 else Fraction(found, self.unit)

    def shown(self) -> Any:
        """The numbers of all windows for a table."""
        return self.values if self.unit == 1 else [value / self.unit for value in self.values]


class Details(NamedTuple):
    """What is recorded beside the counts, each where it is asked for: hops, who subscribes to what, and what users received.

    `receipts` and `satisfaction` count by user, and need the `audiences`. `channel` takes what is offloaded. Where there are
    `deliveries`, users count, and receive, when these have been passed on and have got to them.
    """

    trace: HopTrace | None = None
    audiences: Audiences | None = None
    receipts: Receipts | None = None
    satisfaction: Satisfaction | None = None
    channel: Channel | None = None
    deliveries: DeliveryBuffer | None = None


class Recorder:
    """The statistics of one run. Publications count in the window in which they were published, control messages when they are sent.

    Windows are `width` seconds wide from time 0 on and are cut at `warm_up` too; those before it are kept apart from the metrics.
    `hops`: seconds of a hop without jitter, for the path stretch. `copies`: in how many each publication goes
    to its roots.
    """

    def __init__(
        self,
        horizon: float,
        warm_up: float,
        width: float,
        hops: PairTimes,
        copies: int,
        details: Details,
    ) -> None:
        starts = np.arange(math.ceil(horizon / width)) * width
        starts = starts[starts < horizon]  # rounding may have put one at the very end
        starts = np.union1d(starts, [warm_up]) if 0 < warm_up < horizon else starts
        self.edges: list[float] = [*starts.tolist(), horizon]
        self.horizon, self.warm_up = horizon, warm_up
        self.trace, self.audiences, self.receipts, self.satisfaction, self.channel, self.deliveries = details
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
            self._measured,
            hops.record,
            brokers,
            self.deliveries is None,
        )
        self.counted: dict[str, list[Any]] = {name: [exact(0)] * windows for name, exact in COUNTED.items()}
        self.bootstrap_messages = 0
        self.balance = LoadBalance(self.edges)

    def window(self, time: float) -> int:
        """The window of a time that is not before those asked for earlier."""
        while time >= self.edges[self._window + 1]:
            self._window += 1
        return self._window

    def count(self, name: str, time: float, amount: float = 1) -> None:
        """So many of what has this name (a key of `sim.metrics.COUNTED`) have happened at a time (s) before the horizon."""
        exact = amount if type(amount) is int else COUNTED[name](amount)
        self.counted[name][bisect_right(self.edges, time) - 1] += exact

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

    def record(self, ways: Ways) -> None:
        """Count finished publications."""
        self._kernel(rk.record_all, (ways,), ways.window)

    def fold(self, folds: Folds, reached: NDArray[np.int64], latest: NDArray[np.float64]) -> None:
        """Carry publications down their trees and count them; `reached` and `latest` are those of `fold_all`."""
        self._kernel(rk.fold_all, (folds, self.horizon, reached, latest), folds.window)

    def offload(
        self, columns: OffloadColumns, entries: Sequence[Offloaded], audiences: Sequence[Audience | None]
    ) -> None:
        """Send what the back end does not serve by the best-effort channel, and record it.

        An entry holds the brokers that publications go to and how many users are due there, who are among its audience.
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
        """Room for when publications arrive, where that is asked for: at the brokers of an entry e, `bounds[e]:bounds[e + 1]`, each."""
        return arrivals_of(np.diff(bounds)[entry] if self.deliveries is not None else np.zeros(len(entry), np.int64))

    def arrive(
        self, audience: Audience, period: int, publications: int, brokers: NDArray[np.int32], times: NDArray[Any]
    ) -> None:
        """Of so many publications of a period that became due to an audience, so many have arrived at these brokers."""
        assert self.audiences is not None
        receipts = self.receipts if self.deliveries is None else None
        if receipts is None and self.satisfaction is None:
            return
        reached = self.audiences.reached(audience, brokers, times)
        if receipts is not None:
            receipts.receive(audience.topic, audience.users, reached)
        if self.satisfaction is not None:
            self.satisfaction.receive(period, audience.users, publications, reached)

    def _kernel(self, kernel: Any, records: tuple[Any, ...], windows: NDArray[np.int64]) -> None:
        """Have a kernel count publications of these windows; whenever there is no room for one, it is made."""
        done, before = 0, -1
        while (done := kernel(*records, done, self.statistics)) < len(windows):
            window = int(windows[done])
            if self.measured[window] and self.traffic.first[window] < 0:
                self.open_window(window)
                continue
            self.empty_tables()
            if done == before:  # one publication goes over more links than that
                self.links.grow()
                self.statistics = self.statistics._replace(links=self.links.hashed)
            before = done

    def open_window(self, window: int) -> None:
        """Have rows for the traffic of a window that is measured."""
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
        self.ledger.check()

    def _sums(self, row: int) -> Column:
        parts = self.statistics.sums[:, row].tolist()
        return Column([(large << 84) + (middle << 52) + small for large, middle, small in parts], UNIT)

    def _columns(self) -> dict[str, Column]:
        """What is counted per window; of means that the time series shows, too, there are only the places."""
        publications, counters = self.ledger.publications.T.tolist(), self.statistics.counters.T.tolist()
        brokers, users = self.ledger.pairs.T.tolist()  # by row of the ledger, then by window
        sums = [self._sums(row) for row in range(rk.SUMS)]
        delays, services = sums[rk.NOTIFICATION_DELAY].values, sums[rk.LAST_SERVICE].values
        counted = {name: Column(values) for name, values in self.counted.items()}
        load_stddev, load_jain = self.balance.areas.T.tolist()
        return {
            "publications": Column(publications[PUBLISHED]),
            "publications_dropped": Column(publications[DROPPED]),
            "publications_rooted": Column(publications[ROOTED]),
            "due": Column(brokers[DUE]),
            "delivered": Column(brokers[DELIVERED]),
            "lost": Column([sum(lost) for lost in zip(*(brokers[row] for row in LOST.values()), strict=True)]),
            **{
                f"lost_{cause}": Column((users if CAUSES[cause].of_users else brokers)[row])
                for cause, row in LOST.items()
            },
            "in_flight": Column(brokers[IN_FLIGHT]),
            "duplicates": counted["duplicates"],
            "false_positive_messages": counted["false_positive_messages"],
            "due_users": Column(users[DUE]),
            "delivered_users": Column(users[DELIVERED]),
            "best_effort_deliveries": Column(counters[rk.BEST_EFFORT]),
            "best_effort_users": Column(counters[rk.BEST_EFFORT_USERS]),
            **{name: column for name, column in counted.items() if not name.startswith("ssbr_cost_")},
            "ssbr_cost": Column(()),
            **counted,
            "notification_overhead": _both(counters, rk.INTERNAL, rk.EXTERNAL),
            "internal_overhead": Column(counters[rk.INTERNAL]),
            "external_overhead": Column(counters[rk.EXTERNAL]),
            "notification_bytes": _both(counters, rk.INTERNAL_BYTES, rk.EXTERNAL_BYTES),
            "internal_bytes": Column(counters[rk.INTERNAL_BYTES]),
            "external_bytes": Column(counters[rk.EXTERNAL_BYTES]),
            "uplink_messages": Column(counters[rk.UPLINKS]),
            "uplink_bytes": Column(counters[rk.UPLINK_BYTES]),
            "notification_delay_sum": sums[rk.NOTIFICATION_DELAY],
            # until arrival: the receiving brokers' waits and services are left out
            "arrival_delay_sum": Column([delay - last for delay, last in zip(delays, services, strict=True)], UNIT),
            "tree_delay_sum": sums[rk.TREE_DELAY],
            "user_notification_delay_sum": sums[rk.USER_NOTIFICATION_DELAY],
            "user_tree_delay_sum": sums[rk.USER_TREE_DELAY],
            "client_wait_sum": sums[rk.CLIENT_WAIT],
            "path_stretch_sum": sums[rk.STRETCH],
            "path_stretch_count": Column(counters[rk.STRETCHED]),
            "tree_hops_sum": Column(counters[rk.TREE_HOPS]),
            "uplink_hops_sum": Column(counters[rk.UPLINK_HOPS]),
            "notification_delay": Column(()),
            "load_stddev": Column(load_stddev),
            "load_jain": Column(load_jain),
        }

    def _over(self, metric: Metric, columns: Mapping[str, Column], first: int, last: int) -> MetricValue:
        """A metric over the windows from the first to before the last, by its rule."""
        windows = slice(first, last)
        return metric.over(lambda name: columns[name].total(windows), self.edges[last] - self.edges[first])

    def timeseries(self) -> RecordedColumns:
        """Everything that is counted, per window, and what follows from it."""
        columns, windows = self._columns(), range(len(self.measured))

        def shown(name: str, column: Column) -> Any:
            metric = OURS.get(name)
            if metric is not None and metric.windows != "sum":
                return [self._over(metric, columns, window, window + 1) for window in windows]
            return [float(v) for v in column.values] if COUNTED.get(name) is Fraction else column.shown()

        return {
            "window": list(windows),
            "start": self.edges[:-1],
            "end": self.edges[1:],
            "warm_up": [not measured for measured in self.measured],
            **{name: shown(name, column) for name, column in columns.items()},
        }

    def delays(self) -> RecordedColumns:
        """The delay histogram: one row per window and bin that is not empty."""
        return self.histogram.table()

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
        delivered = columns["delivered"].total(slice(first, windows))
        return {
            **{m.name: self._over(m, columns, first, windows) for m in OURS.values() if m.windows},
            **quantiles,
            "notification_delay_max": float(self.statistics.maxima[0]) if delivered else None,
            "bootstrap_messages": self.bootstrap_messages,
        }


def _both(counters: Sequence[Sequence[int]], one: int, other: int) -> Column:
    return Column(list(map(add, counters[one], counters[other])))
