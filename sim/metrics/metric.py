"""What a metric is: its name, its unit, which way is better, and how it aggregates over windows of the time series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Any: totals are int, float or Fraction, and rules compute with them as they are.
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Better = Literal["lower", "higher", "neutral"]
MetricValue = float | int | None


@dataclass(frozen=True)
class Ratio:
    """A mean over any windows: the sum of the column `above`, divided by the sum of `below` without those of `less`."""

    above: str
    below: str
    less: tuple[str, ...] = ()


Windows = Literal["sum", "average"] | Ratio
"""How a metric aggregates over windows: as the sum of its column, as its average over time, or as a ratio of sums."""


@dataclass(frozen=True)
class Metric:
    """One scalar metric: its unit ("–" where it has none), a line that says what it counts, and which way is better.

    `integer` tells counts (int64 in the results) from measures (float64). `got_through`: it covers only what was delivered, or
    worsens only with a lag, so that it looks too good where a broker is saturated. `windows` is None where it is not in the time
    series but computed by the network at the end of the run. `counted`: its column of the time series is filled by calls of
    `Recorder.count` with its name.
    """

    name: str
    unit: str
    description: str
    better: Better = "lower"
    integer: bool = False
    got_through: bool = False
    windows: Windows | None = None
    counted: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns of the time series that it is computed from."""
        if isinstance(self.windows, Ratio):
            return self.windows.above, self.windows.below, *self.windows.less
        return (self.name,) if self.windows else ()

    @property
    def column(self) -> str:
        """Its own column of the time series: for a ratio, the numerator."""
        return self.windows.above if isinstance(self.windows, Ratio) else self.name

    def over(self, total: Callable[[str], Any], seconds: float) -> MetricValue:
        """The metric over some windows, which last `seconds` in all; None where it is a mean over nothing.

        `total` sums a column of the time series over these windows; for a time average, value times seconds.
        """
        match self.windows:
            case "sum":
                return total(self.name) if self.integer else float(total(self.name))
            case "average":
                return float(total(self.name)) / seconds if seconds else 0.0
            case Ratio(above, below, less):
                number = total(below) - sum(map(total, less))
                return float(total(above)) / number if number else None
        raise AssertionError(f"{self.name} has no windows")

    def each(self, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """The metric in each window, NaN where it is a mean over nothing; None where the time series does not have it."""
        match self.windows:
            case Ratio(above, below, less) if {above, below} <= columns.keys():
                number = columns[below] - sum(columns.get(name, 0.0) for name in less)
                return columns[above] / np.where(number > 0, number, np.nan)
            case "sum" | "average" if self.name in columns:
                return columns[self.name]
        return None
