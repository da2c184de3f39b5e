"""What happened, as counts and exact sums per window: memory does not grow with the number of events."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers import record_kernels as rk
from sim.brokers.messages import Flight
from sim.brokers.receipts import Audience, Audiences, Receipts
from sim.brokers.satisfaction import Satisfaction
from sim.brokers.subscriptions import Offloaded
from sim.errors import ConservationError

CAUSES = ("joining", "queue_full", "offloaded")
_BATCH = 512  # publications that are entered at once
_POSITIONS = 1 << 16  # of their trees, likewise
_NONE: NDArray[np.int32] = np.empty(0, np.int32)

Columns = dict[str, Any]  # column name → array or list


class Channel(NamedTuple):
    """The best-effort channel for what the back end does not serve: how likely it delivers, how much later (s), and its draws' key."""

    probability: float
    extra_delay: float
    key: int


class Recorder:
    """The books of one run. Publications count in the window in which they were published, control messages when they are sent.

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
        self._copies = copies
        self._measured = starts >= warm_up
        self.measured: list[bool] = self._measured.tolist()
        self.hop_delay = hop_delay
        windows, brokers = len(starts), len(hop_delay)
        self._window = 0
        self._counters = np.zeros((windows, rk.COUNTERS), np.int64)
        self._sums = np.zeros((windows, rk.SUMS, 2), np.int64)
        self._maxima = np.zeros(1)
        self.links = np.zeros((brokers, brokers, 2), np.int64)
        self.per_broker = np.zeros((brokers, 4), np.int64)
        self._finished = _Finished()
        self._offloaded = np.zeros((windows, rk.OFFLOAD_TALLIES), np.int64)
        slots = 1 << max(15, (4 * brokers).bit_length())  # room for one publication that is delivered everywhere
        self._keys = np.full(slots, -1, np.int64)
        self._counts = np.empty((slots, 2), np.int64)  # brokers, users
        self._used = 0
        self._histogram = np.empty((3, 0), np.int64)  # key, brokers, users; ascending keys
        self._emptied: list[NDArray[np.int64]] = []  # such columns in any order, still to be merged
        self.published = [0] * windows
        self.rooted = [0] * windows
        self.dropped = [0] * windows
        self.climbing = [0] * windows
        self.due = [0] * windows
        self.due_users = [0] * windows
        self.lost = {cause: [0] * windows for cause in CAUSES}
        self.lost_users = [0] * windows
        self.in_flight = [0] * windows
        self.in_flight_users = [0] * windows
        self.duplicates = [0] * windows
        self.false_positives = [0] * windows
        self.subscription_changes = [0] * windows
        self.subscription_overhead = [0] * windows
        self.handovers = [0] * windows
        self.handover_messages = [0] * windows
        self.reconfigurations = [0] * windows
        self.reconfigured_brokers = [0] * windows
        self.reconfiguration_overhead = [0] * windows
        self.reconfiguration_bound = [0.0] * windows
        self.drain_messages = [0] * windows
        self.offload_churn = [0] * windows
        self.offload_messages = [0] * windows
        self.decisions = [0] * windows  # of the offloading service; what they keep is expected to come to:
        self.backend_load = [0.0] * windows
        self.periods = [
            0
        ] * windows  # in which something was due; subscribers whom the back end satisfied, and what share:
        self.satisfied = [0] * windows
        self.share = [0.0] * windows
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

    def windows(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """The windows of any times before the horizon."""
        return np.searchsorted(self.edges, times, side="right") - 1

    # -- publications

    def finish(self, flight: Flight, uplinks_sent: int) -> None:
        """Enter a publication that no message carries any more (or that the end of the run overtook)."""
        finished = self._finished
        finished.add(flight, uplinks_sent)
        period = 0 if self.satisfaction is None else int(self.satisfaction.period_of[flight.number])
        if flight.audience is not None:
            delivered = ~np.isnan(flight.served) & (flight.due_users > 0)
            self.arrive(flight.audience, period, 1, flight.broker_array, delivered)
        if self.satisfaction is not None:
            self.satisfaction.enter(period, 1)
        if len(finished.window) >= _BATCH or len(finished.arrival) >= _POSITIONS:
            self._enter()

    def _enter(self) -> None:
        """Enter the finished publications, many at a time: handing arrays to compiled code costs more than the counting."""
        finished = self._finished
        if finished.window:
            columns: Any = finished.columns()
            self._kernel(rk.record_flights, columns, len(finished.window))
            if finished.offloaded:
                self.offload(*finished.offloaded_columns())
            self._finished = _Finished()

    def fold(
        self, columns: Any, tally: NDArray[np.int64], reached: NDArray[np.int64], latest: NDArray[np.float64]
    ) -> None:
        """Carry publications down their trees and enter them; `columns` are the first ones of `fold_publications`."""
        self._kernel(rk.fold_publications, (*columns, self.horizon, tally, reached, latest), len(columns[-1]))

    def offload(self, columns: Any, entries: Sequence[Offloaded], audiences: Sequence[Audience | None]) -> None:
        """Send what the back end does not serve by the best-effort channel, and enter it.

        `columns` are the first six of `offload_publications`; an entry holds the brokers that publications go to and how many users
        are due there, who are among its audience.
        """
        channel = self.channel
        assert channel is not None
        brokers, users = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        bounds, reached = starts([brokers for brokers, _ in entries]), np.zeros(len(brokers), np.int64)
        rest = brokers, users, bounds, channel.key, channel.probability, channel.extra_delay, self.horizon
        self._kernel(rk.offload_publications, (*columns, *rest, self._offloaded, reached), len(columns[0]))
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

    def _kernel(self, kernel: Any, columns: Any, publications: int) -> None:
        """Have a kernel enter publications; whenever the hash table of delays is half full, it is emptied first."""
        done = 0
        while True:
            done, self._used = kernel(
                *columns,
                done,
                self._used,
                self._measured,
                self.hop_delay,
                self._counters,
                self._sums,
                self._maxima,
                self.links,
                self.per_broker,
                self._keys,
                self._counts,
            )
            if done == publications:
                return
            self._empty()

    def _empty(self) -> None:
        """Empty the hash table of delays; what was in it is merged once it is as much as the histogram, so that this happens rarely."""
        taken = self._keys >= 0
        self._emptied.append(np.stack([self._keys[taken], *self._counts[taken].T]))
        self._keys[:] = -1
        self._used = 0
        if sum(part.shape[1] for part in self._emptied) > self._histogram.shape[1]:
            self._merge()

    def _merge(self) -> None:
        """Move what was counted into the sparse histogram."""
        parts = np.concatenate([self._histogram, *self._emptied], axis=1)
        self._emptied = []
        parts = parts[:, np.argsort(parts[0], kind="stable")]
        unique, first = np.unique(parts[0], return_index=True)
        if len(unique):
            self._histogram = np.stack([unique, *np.add.reduceat(parts[1:], first, axis=1)])

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
        """Check that nothing was lost count of. Raises ConservationError where due is not delivered + lost + in flight."""
        self._integrate_load(self.horizon)
        self._enter()
        self._empty()
        self._merge()
        self._close_offloaded()
        for window, due in enumerate(self.due):
            copies = self._copies * self.published[window]
            accounted = self.rooted[window] + self.dropped[window] + self.climbing[window]
            if copies != accounted:
                raise ConservationError(
                    f"window {window}: {copies} publications were published, but {accounted} are accounted for"
                )
            delivered = int(self._counters[window, rk.DELIVERED])
            lost = sum(self.lost[cause][window] for cause in CAUSES)
            if due != delivered + lost + self.in_flight[window]:
                raise ConservationError(
                    f"window {window}: {due} notifications were due to brokers, but {delivered} were delivered, {lost} lost "
                    f"and {self.in_flight[window]} in flight at the end"
                )
            delivered = int(self._counters[window, rk.DELIVERED_USERS])
            accounted = delivered + self.lost_users[window] + self.in_flight_users[window]
            if self.due_users[window] != accounted:
                raise ConservationError(
                    f"window {window}: {self.due_users[window]} notifications were due to users, but {accounted} are accounted for"
                )

    def _close_offloaded(self) -> None:
        """Count what became of that which went by the best-effort channel."""
        books = {
            rk.OFFLOADED: self.due,
            rk.OFFLOADED_USERS: self.due_users,
            rk.MISSED: self.lost["offloaded"],
            rk.MISSED_USERS: self.lost_users,
            rk.UNDER_WAY: self.in_flight,
            rk.UNDER_WAY_USERS: self.in_flight_users,
        }
        for column, counts in books.items() if self.channel is not None else ():
            counts[:] = (self._offloaded[:, column] + counts).tolist()

    def _exact(self, row: int, windows: Sequence[int]) -> Fraction:
        high, low = (sum(self._sums[w, row, part].item() for w in windows) for part in (0, 1))
        return Fraction((high << 52) + low, 1 << 72)

    def _arrival_delay(self, windows: Sequence[int]) -> float:
        """The sum of delays until arrival: the receiving brokers' waits and services are left out."""
        return float(self._exact(rk.NOTIFICATION_DELAY, windows) - self._exact(rk.LAST_SERVICE, windows))

    def timeseries(self) -> Columns:
        """Everything that is counted, per window."""
        c = self._counters
        starts, ends = self.edges[:-1], self.edges[1:]
        seconds = np.subtract(ends, starts)
        delivered = c[:, rk.DELIVERED].tolist()
        each = [self._exact_all(row) for row in range(rk.SUMS)]
        ssbr = [self._ssbr_costs(start, end) for start, end in pairwise(self.edges)]
        return {
            "window": list(range(len(starts))),
            "start": starts,
            "end": ends,
            "warm_up": [not m for m in self.measured],
            "publications": self.published,
            "publications_dropped": self.dropped,
            "publications_rooted": self.rooted,
            "due": self.due,
            "delivered": c[:, rk.DELIVERED],
            "lost": [sum(self.lost[cause][w] for cause in CAUSES) for w in range(len(starts))],
            **{f"lost_{cause}": self.lost[cause] for cause in CAUSES},
            "in_flight": self.in_flight,
            "duplicates": self.duplicates,
            "false_positive_messages": self.false_positives,
            "due_users": self.due_users,
            "delivered_users": c[:, rk.DELIVERED_USERS],
            "best_effort_deliveries": c[:, rk.BEST_EFFORT],
            "best_effort_users": c[:, rk.BEST_EFFORT_USERS],
            "broker_subscription_changes": self.subscription_changes,
            "subscription_overhead": self.subscription_overhead,
            "handovers": self.handovers,
            "handover_messages": self.handover_messages,
            "reconfigurations": self.reconfigurations,
            "reconfigured_brokers": self.reconfigured_brokers,
            "reconfiguration_overhead": self.reconfiguration_overhead,
            "reconfiguration_bound": self.reconfiguration_bound,
            "drain_messages": self.drain_messages,
            "offload_churn": self.offload_churn,
            "offload_messages": self.offload_messages,
            "decisions": self.decisions,
            "backend_load_sum": self.backend_load,
            "periods": self.periods,
            "satisfied_subscribers_sum": self.satisfied,
            "satisfaction_sum": self.share,
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
                total / n if n else None for total, n in zip(each[rk.NOTIFICATION_DELAY], delivered, strict=True)
            ],
            "load_stddev": self._load_area[:, 0] / seconds,
            "load_jain": self._load_area[:, 1] / seconds,
        }

    def _exact_all(self, row: int) -> list[float]:
        return [float(self._exact(row, [w])) for w in range(len(self._sums))]

    def delays(self) -> Columns:
        """The delay histogram: one row per window and bin that is not empty."""
        keys, brokers, users = self._histogram
        bins = keys % rk.BINS
        return {
            "window": keys // rk.BINS,
            "lower": np.where(bins == 0, 0.0, rk.FIRST_BIN * (1 + rk.BIN_WIDTH) ** (bins - 1.0)),
            "upper": rk.FIRST_BIN * (1 + rk.BIN_WIDTH) ** bins.astype(float),
            "brokers": brokers,
            "users": users,
        }

    def metrics(self) -> dict[str, float | int | None]:
        """The scalar metrics over everything after the warm-up; None where a mean is over nothing."""
        after = [w for w, measured in enumerate(self.measured) if measured]
        counter = self._counters[after].sum(axis=0).tolist() if after else [0] * rk.COUNTERS

        def total(values: list[int]) -> int:
            return sum(values[w] for w in after)

        def mean(row: int, count: int) -> float | None:
            return float(self._exact(row, after)) / count if count else None

        publications, due = total(self.published), total(self.due)
        delivered, delivered_users = counter[rk.DELIVERED], counter[rk.DELIVERED_USERS]
        by_tree, by_tree_users = delivered - counter[rk.BEST_EFFORT], delivered_users - counter[rk.BEST_EFFORT_USERS]
        overhead = counter[rk.INTERNAL] + counter[rk.EXTERNAL]
        rooted = total(self.rooted)
        seconds = self.horizon - self.warm_up
        load = self._load_area[after].sum(axis=0) / seconds if seconds > 0 else np.zeros(2)
        quantile, ssbr = self._quantiles(), self._ssbr_costs(self.warm_up, self.horizon)
        return {
            "broker_subscription_changes": total(self.subscription_changes),
            "subscription_overhead": total(self.subscription_overhead),
            "notification_delay": mean(rk.NOTIFICATION_DELAY, delivered),
            **{f"notification_delay_p{q}": quantile[q] for q in (50, 95, 99)},
            "notification_delay_max": float(self._maxima[0]) if delivered else None,
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
            "messages_per_publication": overhead / publications if publications else None,
            "notification_bytes": counter[rk.INTERNAL_BYTES] + counter[rk.EXTERNAL_BYTES],
            "internal_bytes": counter[rk.INTERNAL_BYTES],
            "external_bytes": counter[rk.EXTERNAL_BYTES],
            "uplink_bytes": counter[rk.UPLINK_BYTES],
            "handovers": total(self.handovers),
            "handover_messages": total(self.handover_messages),
            "reconfigurations": total(self.reconfigurations),
            "reconfigured_brokers": total(self.reconfigured_brokers),
            "reconfiguration_overhead": total(self.reconfiguration_overhead),
            "reconfiguration_bound": math.fsum(self.reconfiguration_bound[w] for w in after),
            "drain_messages": total(self.drain_messages),
            "offload_churn": total(self.offload_churn),
            "offload_messages": total(self.offload_messages),
            "ssbr_cost": math.fsum(ssbr) / len(ssbr) if ssbr else None,
            "bootstrap_messages": self.bootstrap_messages,
            "load_stddev": float(load[0]),
            "load_jain": float(load[1]),
            "publications": publications,
            "publications_dropped": total(self.dropped),
            "due": due,
            "delivered": delivered,
            "lost": sum(total(self.lost[cause]) for cause in CAUSES),
            **{f"lost_{cause}": total(self.lost[cause]) for cause in CAUSES},
            "best_effort_deliveries": counter[rk.BEST_EFFORT],
            "in_flight": total(self.in_flight),
            "duplicates": total(self.duplicates),
            "false_positive_messages": total(self.false_positives),
            "delivery_ratio": delivered_users / total(self.due_users) if due else None,
            "path_stretch": mean(rk.STRETCH, counter[rk.STRETCHED]),
        }

    def _ssbr_costs(self, start: float, end: float) -> list[float]:
        """Those of the reconfiguration periods that ended in a span of time."""
        return [cost for time, cost in self.ssbr_costs if start <= time < end]

    def _quantiles(self) -> dict[int, float | None]:
        """Quantiles (%) of the notification delay: the middle of the bin that holds the pair of that rank."""
        keys, brokers, _ = self._histogram
        kept = np.array(self.measured)[keys // rk.BINS]
        counts = np.bincount(keys[kept] % rk.BINS, brokers[kept], minlength=1)
        ranks = np.cumsum(counts)
        if ranks[-1] == 0:
            return dict.fromkeys((50, 95, 99))
        bins = {q: int(np.searchsorted(ranks, math.ceil(ranks[-1] * q / 100))) for q in (50, 95, 99)}
        return {q: rk.FIRST_BIN * (1 + rk.BIN_WIDTH) ** (b - 0.5) if b else 0.0 for q, b in bins.items()}


class _Finished:
    """Publications that wait to be entered, as columns for `record_flights`.

    Nothing in here is an object that Python's garbage collector tracks, one by one: flights that piled up would have it walk
    through the backlogs of all brokers again and again.
    """

    def __init__(self) -> None:
        self.uplinks: list[NDArray[np.int32]] = []
        self.brokers: list[NDArray[np.int32]] = []
        self.parents: list[NDArray[np.int32]] = []
        self.depth: list[NDArray[np.int32]] = []
        self.due_users: list[NDArray[np.int32]] = []
        self.fresh: list[NDArray[np.int32]] = []
        self.further: list[NDArray[np.bool_]] = []
        self.arrival = array("d")
        self.served = array("d")
        self.sent = bytearray()
        self.copies = array("i")
        self.copies_from = array("q", [0])
        self.uplinks_sent = array("q")
        self.published = array("d")
        self.rooted = array("d")
        self.size = array("q")
        self.window = array("q")
        self.offloaded: list[Flight] = []

    def add(self, flight: Flight, uplinks_sent: int) -> None:
        self.uplinks.append(flight.uplink_array)
        self.uplinks_sent.append(uplinks_sent)
        self.brokers.append(flight.broker_array)
        self.parents.append(_NONE if flight.tree is None else flight.tree.parents)
        self.depth.append(flight.depth)
        self.due_users.append(flight.due_users)
        if len(flight.further):
            self.fresh.append(flight.fresh)
            self.further.append(flight.further)
        self.arrival.extend(flight.arrival)
        self.served.extend(flight.served)
        self.sent += flight.sent
        self.copies += flight.copies
        self.copies_from.append(len(self.copies) // 2)
        self.published.append(flight.published)
        self.rooted.append(flight.rooted)
        self.size.append(flight.size)
        self.window.append(flight.window)
        if flight.offloaded is not None:
            self.offloaded.append(flight)

    def columns(self) -> tuple[Any, ...]:
        due_users = np.concatenate(self.due_users)
        return (
            np.concatenate(self.uplinks),
            starts(self.uplinks),
            np.array(self.uplinks_sent),
            np.concatenate(self.brokers),
            np.concatenate(self.parents),
            np.concatenate(self.depth),
            due_users,
            np.array(self.arrival),
            np.array(self.served),
            np.array(self.sent),
            starts(self.brokers),
            np.array(self.published),
            np.array(self.rooted),
            np.array(self.size),
            np.array(self.window),
            np.array(self.copies).reshape(-1, 2),
            np.array(self.copies_from),
            np.concatenate(self.fresh) if self.fresh else due_users,
            np.concatenate(self.further) if self.further else np.empty(0, np.bool_),
        )

    def offloaded_columns(self) -> tuple[Any, list[Offloaded], list[Audience | None]]:
        """What `Recorder.offload` takes, an entry for each publication."""
        flights = self.offloaded
        columns = (
            np.array([flight.number for flight in flights]),
            np.arange(len(flights)),
            np.array([flight.published for flight in flights]),
            np.array([flight.rooted for flight in flights]),
            np.array([flight.window for flight in flights]),
            np.array([flight.uplink[-1] for flight in flights], np.int32),
        )
        return (
            columns,
            [flight.offloaded for flight in flights if flight.offloaded is not None],
            [flight.audience for flight in flights],
        )


def starts(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Where each of the parts begins in their concatenation, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])])
