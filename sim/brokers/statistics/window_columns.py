"""The counts of windows as columns of the time series, and over several windows as metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import add

# Any: sums are int, float or Fraction, each as exact as what is counted.
from typing import Any, NamedTuple

from sim.base.arrays import Columns
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.averages import TimeAverage
from sim.brokers.statistics.balance import LoadBalance
from sim.brokers.statistics.exact_sums import UNIT, exact_sums
from sim.brokers.statistics.ledger import DELIVERED, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED, Ledger
from sim.brokers.statistics.records import Statistics
from sim.metrics import CAUSES, COUNTED, OURS, Metric, MetricValue


class Column(NamedTuple):
    """An additive column: a number for each window, in units of 1 / `unit`."""

    values: Sequence[Any]
    unit: int = 1

    def total(self, windows: slice) -> Any:
        """The sum over some windows, exact if its numbers are."""
        found = reduce(add, self.values[windows], 0)
        return found if self.unit == 1 else Fraction(found, self.unit)

    def shown(self) -> Any:
        """The numbers of all windows, for a table."""
        return self.values if self.unit == 1 else [value / self.unit for value in self.values]


class WindowColumns:
    """All columns that add up over windows, which end at `edges`; of means that the time series shows, too, only the places."""

    def __init__(
        self,
        ledger: Ledger,
        statistics: Statistics,
        counts: Mapping[str, Sequence[Any]],
        balance: LoadBalance,
        averages: Mapping[str, TimeAverage],
        edges: Sequence[float],
    ) -> None:
        self._edges = edges
        publications, counters = ledger.publications.T.tolist(), statistics.counters.T.tolist()
        brokers, users = ledger.pairs.T.tolist()  # by row of the ledger, then by window
        sums = [_sums(statistics, row) for row in range(rk.SUMS)]
        delays, services = sums[rk.NOTIFICATION_DELAY].values, sums[rk.LAST_SERVICE].values
        counted = {name: Column(values) for name, values in counts.items()}
        load_stddev, load_jain = balance.areas.T.tolist()
        self._columns = {
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
            "session_deliveries": Column(counters[rk.SESSION_DELIVERIES]),
            "retained_deliveries": Column(counters[rk.RETAINED_DELIVERIES]),
            "resumed_sessions": Column(counters[rk.RESUMED]),
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
            # until arrival: waits and services at receiving brokers are excluded
            "arrival_delay_sum": Column([delay - last for delay, last in zip(delays, services, strict=True)], UNIT),
            "last_delivery_delay_sum": sums[rk.LAST_DELIVERY],
            "publications_delivered": Column(counters[rk.REACHED]),
            "tree_delay_sum": sums[rk.TREE_DELAY],
            "user_notification_delay_sum": sums[rk.USER_NOTIFICATION_DELAY],
            "user_tree_delay_sum": sums[rk.USER_TREE_DELAY],
            "client_wait_sum": sums[rk.CLIENT_WAIT],
            "session_delay_sum": sums[rk.SESSION_DELAY],
            "retained_delay_sum": sums[rk.RETAINED_DELAY],
            "catch_up_time_sum": sums[rk.CATCH_UP],
            "path_stretch_sum": sums[rk.STRETCH],
            "path_stretch_count": Column(counters[rk.STRETCHED]),
            "tree_hops_sum": Column(counters[rk.TREE_HOPS]),
            "uplink_hops_sum": Column(counters[rk.UPLINK_HOPS]),
            "notification_delay": Column(()),
            "load_stddev": Column(load_stddev),
            "load_jain": Column(load_jain),
            **{name: Column(average.areas.tolist()) for name, average in averages.items()},
        }

    def total(self, name: str, first: int, last: int) -> Any:
        """The sum of a column over the windows from the first to before the last."""
        return self._columns[name].total(slice(first, last))

    def over(self, metric: Metric, first: int, last: int) -> MetricValue:
        """A metric over the windows from the first to before the last, by its rule."""
        return metric.over(lambda name: self.total(name, first, last), self._edges[last] - self._edges[first])

    def timeseries(self, measured: Sequence[bool]) -> Columns:
        """All counts per window, and the means computed from them."""
        columns, windows = self._columns, range(len(measured))

        def shown(name: str, column: Column) -> Any:
            metric = OURS.get(name)
            if metric is not None and metric.windows != "sum":
                return [self.over(metric, window, window + 1) for window in windows]
            return [float(v) for v in column.values] if COUNTED.get(name) is Fraction else column.shown()

        return {
            "window": list(windows),
            "start": self._edges[:-1],
            "end": self._edges[1:],
            "warm_up": [not counts for counts in measured],
            **{name: shown(name, column) for name, column in columns.items()},
        }


def _sums(statistics: Statistics, row: int) -> Column:
    return Column(exact_sums(statistics.sums[:, row]), UNIT)


def _both(counters: Sequence[Sequence[int]], one: int, other: int) -> Column:
    return Column(list(map(add, counters[one], counters[other])))
