"""A metric in one file: the share of deliveries that are not late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.units import PositiveDuration
from sim.metrics import Metric, Ratio


class OnTime:
    """The share of delivered (publication, broker) pairs whose notification delay is within a limit (to 1 %)."""

    class Parameters(plugins.Parameters):
        limit: PositiveDuration = 1.0
        """The longest delay that is not late."""

    metric = Metric(
        "on_time",
        "–",
        "share of delivered pairs that are not late",
        better="higher",
        windows=Ratio("on_time_sum", "delivered"),
    )

    def __init__(self, parameters: Parameters) -> None:
        self._limit = parameters.limit

    def compute(self, tables: Mapping[str, Any]) -> NDArray[np.float64]:
        """In each window, the delivered pairs that are not late."""
        delays, windows = tables["delays"], len(tables["timeseries"]["start"])
        on_time = delays["upper"] <= self._limit
        return np.bincount(delays["window"][on_time], delays["brokers"][on_time], windows)
