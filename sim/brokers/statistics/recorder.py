"""The recorder: counts and exact sums per window, in memory that does not grow with the number of events."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.delays import Delays
from sim.brokers.statistics.ledger import DELIVERED, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED, Ledger
from sim.brokers.statistics.receipts import Audience, Audiences, Receipts
from sim.brokers.statistics.records import Channel, Folds, Offloaded, Offloads, Statistics, Ways, starts
from sim.brokers.statistics.satisfaction import Satisfaction

RecordedColumns = dict[str, Any]  # column name → array or list


OffloadColumns = tuple[Any, Any, Any, Any, Any, Any]
"""The first six of `Offloads`."""


COUNTED: dict[str, float] = {
    "duplicates": 0,
    "false_positive_messages": 0,
    "broker_subscription_changes": 0,
    "subscription_overhead": 0,
    "handovers": 0,
    "handover_messages": 0,
    "reconfigurations": 0,
    "reconfigured_brokers": 0,
    "reconfiguration_overhead": 0,
    "reconfiguration_bound": 0.0,
    "drain_messages": 0,
    "offload_churn": 0,
    "offload_messages": 0,
    "decisions": 0,
    "backend_load_sum": 0.0,
    "periods": 0,
    "satisfied_subscribers_sum": 0,
    "satisfaction_sum": 0.0,
}
"""What is counted one by one when it happens, and its zero: whole numbers, or floating-point ones."""


class Recorder:
    """The statistics of one run. Publications count in the window in which they were published, control messages when they are sent.

    Windows are `width` seconds wide from time 0 on and are cut at `warm_up` too; those before it are kept apart from the metrics.
    `hop_delay` (brokers, brokers): seconds of a hop without jitter, for the path stretch. `copies`: in how many each publication goes
    to its roots. `receipts` and `satisfaction` count by user, where asked for, and need the `audiences`. `channel` takes what is
    offloaded.
    """

    def __init__(
        self,
        horizon: float,
        warm_up: float,
        width: float,
        hop_delay: NDArray[np.float64],
        keep_trace: bool,
        copies: int = 1,
        audiences: Audiences | None = None,
        receipts: Receipts | None = None,
        satisfaction: Satisfaction | None = None,
        channel: Channel | None = None,
    ) -> None:
        starts = np.arange(math.ceil(horizon / width)) * width
        starts = starts[starts < horizon]  # rounding may have put one at the very end
        starts = np.union1d(starts, [warm_up]) if 0 < warm_up < horizon else starts
        self.edges: list[float] = [*starts.tolist(), horizon]
        self.horizon, self.warm_up = horizon, warm_up
        self.audiences, self.receipts, self.satisfaction, self.channel = audiences, receipts, satisfaction, channel
        self._measured = starts >= warm_up
        self.measured: list[bool] = self._measured.tolist()
        windows, brokers = len(starts), len(hop_delay)
        self._window = 0
        self.ledger = Ledger(windows, copies)
        self._delays = Delays(brokers)
        self.statistics = Statistics(
            self.ledger.pairs,
            self.ledger.publications,
            np.zeros((windows, rk.COUNTERS), np.int64),
            np.zeros((windows, rk.SUMS, 2), np.int64),
            np.zeros(1),
            np.zeros((brokers, brokers, 2), np.int64),
            np.zeros((brokers, 4), np.int64),
            self._delays.keys,
            self._delays.counts,
            self._measured,
            hop_delay,
        )
        self.counted: dict[str, list[Any]] = {name: [zero] * windows for name, zero in COUNTED.items()}
        self.ssbr_costs: list[tuple[float, float]] = []  # time (s), from which on it holds
        self.bootstrap_messages = 0
        self.trace: list[tuple[float, float, int, int, int, str, bool]] | None = [] if keep_trace else None
        self._load_from = 0.0
        self._load = (0.0, 1.0)  # relative standard deviation, Jain's index
        self._load_area = np.zeros((windows, 2))

    def window(self, time: float) -> int:
        """The window of a time that is not before those asked for earlier."""
        while time >= self.edges[self._window + 1]:
            self._window += 1
        return self._window

    def count(self, name: str, time: float, amount: float = 1) -> None:
        """So many of what has this name (a key of `COUNTED`) have happened at a time (s) before the horizon."""
        self.counted[name][bisect_right(self.edges, time) - 1] += amount

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
        self._kernel(rk.record_all, (ways,), len(ways.window))

    def fold(self, folds: Folds, reached: NDArray[np.int64], latest: NDArray[np.float64]) -> None:
        """Carry publications down their trees and count them; `reached` and `latest` are those of `fold_all`."""
        self._kernel(rk.fold_all, (folds, self.horizon, reached, latest), len(folds.published))

    def offload(
        self, columns: OffloadColumns, entries: Sequence[Offloaded], audiences: Sequence[Audience | None]
    ) -> None:
        """Send what the back end does not serve by the best-effort channel, and record it.

        An entry holds the brokers that publications go to and how many users
        are due there, who are among its audience.
        """
        channel = self.channel
        assert channel is not None
        brokers, users = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        bounds, reached = starts([brokers for brokers, _ in entries]), np.zeros(len(brokers), np.int64)
        offloads = Offloads(*columns, brokers, users, bounds)
        self._kernel(rk.offload_all, (offloads, channel, self.horizon, reached), len(columns[0]))
        if self.receipts is not None and self.audiences is not None:
            for audience, first, end in zip(audiences, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                if audience is not None:
                    times = self.audiences.reached(audience, brokers[first:end], reached[first:end])
                    self.receipts.receive(audience.topic, audience.users, times)

    def arrive(
        self, audience: Audience, period: int, publications: int, brokers: NDArray[np.int32], times: NDArray[Any]
    ) -> None:
        """Of so many publications of a period that became due to an audience, so many have arrived at these brokers."""
        assert self.audiences is not None
        reached = self.audiences.reached(audience, brokers, times)
        if self.receipts is not None:
            self.receipts.receive(audience.topic, audience.users, reached)
        if self.satisfaction is not None:
            self.satisfaction.receive(period, audience.users, publications, reached)

    def _kernel(self, kernel: Any, records: tuple[Any, ...], publications: int) -> None:
        """Have a kernel count publications; whenever the hash table of delays is half full, it is emptied first."""
        done, delays = 0, self._delays
        while True:
            done, delays.used = kernel(*records, done, delays.used, self.statistics)
            if done == publications:
                return
            delays.empty()

    # -- load

    def load_changed(self, now: float, brokers: int, total: int, squares: int) -> None:
        """From `now` on the brokers host `total` user subscriptions whose squares sum up to `squares`."""
        if now > self._load_from:
            self._integrate_load(now)
        jain = total * total / (brokers * squares) if squares else 1.0
        self._load = (math.sqrt(max(brokers * squares / (total * total) - 1.0, 0.0)) if total else 0.0, jain)

    def _integrate_load(self, until: float) -> None:
        start = self._load_from
        window = bisect_right(self.edges, start) - 1
        deviation, jain = self._load
        while start < until:
            end = min(self.edges[window + 1], until)
            self._load_area[window, 0] += deviation * (end - start)
            self._load_area[window, 1] += jain * (end - start)
            start, window = end, window + 1
        self._load_from = until

    # -- what came out

    def close(self) -> None:
        """Verify message conservation. Raises ConservationError where due is not delivered + lost + in flight."""
        self._integrate_load(self.horizon)
        self._delays.close()
        self.ledger.check()

    def _exact(self, row: int, windows: Sequence[int]) -> Fraction:
        high, low = (sum(self.statistics.sums[w, row, part].item() for w in windows) for part in (0, 1))
        return Fraction((high << 52) + low, 1 << 72)

    def _arrival_delay(self, windows: Sequence[int]) -> float:
        """The sum of delays until arrival: the receiving brokers' waits and services are left out."""
        return float(self._exact(rk.NOTIFICATION_DELAY, windows) - self._exact(rk.LAST_SERVICE, windows))

    def timeseries(self) -> RecordedColumns:
        """The time series: everything that is counted, per window."""
        c, publications = self.statistics.counters, self.ledger.publications.T.tolist()
        brokers, users = self.ledger.pairs.T.tolist()  # by row of the ledger, then by window
        starts, ends = self.edges[:-1], self.edges[1:]
        seconds = np.subtract(ends, starts)
        each = [self._exact_all(row) for row in range(rk.SUMS)]
        ssbr = [self._ssbr_costs(start, end) for start, end in pairwise(self.edges)]
        return {
            "window": list(range(len(starts))),
            "start": starts,
            "end": ends,
            "warm_up": [not m for m in self.measured],
            "publications": publications[PUBLISHED],
            "publications_dropped": publications[DROPPED],
            "publications_rooted": publications[ROOTED],
            "due": brokers[DUE],
            "delivered": brokers[DELIVERED],
            "lost": [sum(lost) for lost in zip(*(brokers[row] for row in LOST.values()), strict=True)],
            **{f"lost_{cause}": brokers[row] for cause, row in LOST.items()},
            "in_flight": brokers[IN_FLIGHT],
            "duplicates": self.counted["duplicates"],
            "false_positive_messages": self.counted["false_positive_messages"],
            "due_users": users[DUE],
            "delivered_users": users[DELIVERED],
            "best_effort_deliveries": c[:, rk.BEST_EFFORT],
            "best_effort_users": c[:, rk.BEST_EFFORT_USERS],
            **self.counted,
            "ssbr_cost": [math.fsum(costs) / len(costs) if costs else None for costs in ssbr],
            "ssbr_cost_sum": [math.fsum(costs) for costs in ssbr],
            "ssbr_cost_count": [len(costs) for costs in ssbr],
            "notification_overhead": c[:, rk.INTERNAL] + c[:, rk.EXTERNAL],
            "internal_overhead": c[:, rk.INTERNAL],
            "external_overhead": c[:, rk.EXTERNAL],
            "notification_bytes": c[:, rk.INTERNAL_BYTES] + c[:, rk.EXTERNAL_BYTES],
            "internal_bytes": c[:, rk.INTERNAL_BYTES],
            "external_bytes": c[:, rk.EXTERNAL_BYTES],
            "uplink_messages": c[:, rk.UPLINKS],
            "uplink_bytes": c[:, rk.UPLINK_BYTES],
            "notification_delay_sum": each[rk.NOTIFICATION_DELAY],
            "arrival_delay_sum": [self._arrival_delay([w]) for w in range(len(starts))],
            "tree_delay_sum": each[rk.TREE_DELAY],
            "user_notification_delay_sum": each[rk.USER_NOTIFICATION_DELAY],
            "user_tree_delay_sum": each[rk.USER_TREE_DELAY],
            "path_stretch_sum": each[rk.STRETCH],
            "path_stretch_count": c[:, rk.STRETCHED],
            "tree_hops_sum": c[:, rk.TREE_HOPS],
            "uplink_hops_sum": c[:, rk.UPLINK_HOPS],
            "notification_delay": [
                total / n if n else None
                for total, n in zip(each[rk.NOTIFICATION_DELAY], brokers[DELIVERED], strict=True)
            ],
            "load_stddev": self._load_area[:, 0] / seconds,
            "load_jain": self._load_area[:, 1] / seconds,
        }

    def _exact_all(self, row: int) -> list[float]:
        return [float(self._exact(row, [w])) for w in range(len(self.measured))]

    def delays(self) -> RecordedColumns:
        """The delay histogram: one row per window and bin that is not empty."""
        return self._delays.table()

    def metrics(self) -> dict[str, float | int | None]:
        """The scalar metrics over everything after the warm-up; None where a mean is over nothing."""
        after = [w for w, measured in enumerate(self.measured) if measured]
        counter = self.statistics.counters[after].sum(axis=0).tolist()
        pairs = self.ledger.pairs[after].sum(axis=0).tolist()
        published, rooted, dropped, _ = self.ledger.publications[after].sum(axis=0).tolist()

        def total(name: str) -> int:
            return sum(self.counted[name][w] for w in after)

        def mean(row: int, count: int) -> float | None:
            return float(self._exact(row, after)) / count if count else None

        (due, due_users), (delivered, delivered_users) = pairs[DUE], pairs[DELIVERED]
        by_tree, by_tree_users = delivered - counter[rk.BEST_EFFORT], delivered_users - counter[rk.BEST_EFFORT_USERS]
        overhead = counter[rk.INTERNAL] + counter[rk.EXTERNAL]
        seconds = self.horizon - self.warm_up
        load = self._load_area[after].sum(axis=0) / seconds if seconds > 0 else np.zeros(2)
        quantile = self._delays.quantiles(self._measured, (50, 95, 99))
        ssbr = self._ssbr_costs(self.warm_up, self.horizon)
        return {
            "broker_subscription_changes": total("broker_subscription_changes"),
            "subscription_overhead": total("subscription_overhead"),
            "notification_delay": mean(rk.NOTIFICATION_DELAY, delivered),
            **{f"notification_delay_p{q}": quantile[q] for q in (50, 95, 99)},
            "notification_delay_max": float(self.statistics.maxima[0]) if delivered else None,
            "arrival_delay": self._arrival_delay(after) / delivered if delivered else None,
            "user_notification_delay": mean(rk.USER_NOTIFICATION_DELAY, delivered_users),
            "tree_delay": mean(rk.TREE_DELAY, by_tree),
            "user_tree_delay": mean(rk.USER_TREE_DELAY, by_tree_users),
            "tree_hops": counter[rk.TREE_HOPS] / by_tree if by_tree else None,
            "uplink_hops": counter[rk.UPLINK_HOPS] / rooted if rooted else None,
            "notification_overhead": overhead,
            "internal_overhead": counter[rk.INTERNAL],
            "external_overhead": counter[rk.EXTERNAL],
            "uplink_messages": counter[rk.UPLINKS],
            "messages_per_publication": overhead / published if published else None,
            "notification_bytes": counter[rk.INTERNAL_BYTES] + counter[rk.EXTERNAL_BYTES],
            "internal_bytes": counter[rk.INTERNAL_BYTES],
            "external_bytes": counter[rk.EXTERNAL_BYTES],
            "uplink_bytes": counter[rk.UPLINK_BYTES],
            "handovers": total("handovers"),
            "handover_messages": total("handover_messages"),
            "reconfigurations": total("reconfigurations"),
            "reconfigured_brokers": total("reconfigured_brokers"),
            "reconfiguration_overhead": total("reconfiguration_overhead"),
            "reconfiguration_bound": math.fsum(self.counted["reconfiguration_bound"][w] for w in after),
            "drain_messages": total("drain_messages"),
            "offload_churn": total("offload_churn"),
            "offload_messages": total("offload_messages"),
            "ssbr_cost": math.fsum(ssbr) / len(ssbr) if ssbr else None,
            "bootstrap_messages": self.bootstrap_messages,
            "load_stddev": float(load[0]),
            "load_jain": float(load[1]),
            "publications": published,
            "publications_dropped": dropped,
            "due": due,
            "delivered": delivered,
            "lost": sum(pairs[row][0] for row in LOST.values()),
            **{f"lost_{cause}": pairs[row][0] for cause, row in LOST.items()},
            "best_effort_deliveries": counter[rk.BEST_EFFORT],
            "in_flight": pairs[IN_FLIGHT][0],
            "duplicates": total("duplicates"),
            "false_positive_messages": total("false_positive_messages"),
            "delivery_ratio": delivered_users / due_users if due else None,
            "path_stretch": mean(rk.STRETCH, counter[rk.STRETCHED]),
        }

    def _ssbr_costs(self, start: float, end: float) -> list[float]:
        """Those of the reconfiguration periods that ended in a span of time."""
        return [cost for time, cost in self.ssbr_costs if start <= time < end]
