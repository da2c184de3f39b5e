"""Delays by topic, recorded only on request: numbers of deliveries, exact sums and maxima, in a row for each topic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import integers
from sim.base.arrays import Columns
from sim.base.compiled import inlined, kernel
from sim.brokers.statistics.exact_sums import UNIT, add_exactly, exact_sums

_COLUMNS = 5
"""Deliveries, the three integers of an exact sum, and the bits of the largest delay, which order as it does."""
TO_BROKERS, TO_USERS = 0, _COLUMNS
"""Where in a row the columns of brokers begin, and those of users."""
TOPIC_DELAYS = 2 * _COLUMNS
"""The length of a row."""


@kernel
def topic_row(address: int, topic: int) -> NDArray[np.int64]:
    """A topic's row of those that begin at an address."""
    return integers(address + 8 * TOPIC_DELAYS * topic, TOPIC_DELAYS)


@inlined
def count_topic_delay(row: NDArray[np.int64], first: int, deliveries: int, delay: float) -> None:
    """Count deliveries with one delay (s) in a topic's row, in the columns from `first` on."""
    if deliveries > 0:
        row[first] += deliveries
        add_exactly(row[first + 1 : first + 4], delay * deliveries)
        row[first + 4] = max(row[first + 4], np.float64(delay).view(np.int64))


def topic_delays(counted: NDArray[np.int64], topics: NDArray[np.int64]) -> Columns:
    """Deliveries to brokers and to users on these topics, and their delays (s; NaN without any), from the rows of all topics."""
    rows, columns = counted[topics], {}
    for prefix, first in (("", TO_BROKERS), ("user_", TO_USERS)):
        deliveries, sums = rows[:, first], exact_sums(rows[:, first + 1 : first + 4])
        none = deliveries == 0
        means = [
            total / (UNIT * many) if many else np.nan for total, many in zip(sums, deliveries.tolist(), strict=True)
        ]
        columns[f"{prefix}deliveries"] = deliveries
        columns[f"{prefix}notification_delay"] = np.array(means, np.float64)
        columns[f"{prefix}notification_delay_max"] = np.where(none, np.nan, rows[:, first + 4].copy().view(np.float64))
    return columns
