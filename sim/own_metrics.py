"""Users' own metrics: plug-ins that compute a metric from the tables of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

# Any: tables have arrays of all types, with which metrics compute.
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns, frozen
from sim.base.errors import cut
from sim.files.parquet import column
from sim.metrics import Metric, MetricValue, Ratio
from sim.plugins import Found, Parameters, Promises, make, promise

TableColumns = Mapping[str, NDArray[Any]]


class OwnMetric(Protocol):
    """A user's own metric. Plug-in group `brokersim.metric`.

    The class has a nested `Parameters(sim.plugins.Parameters)` and the declaration `metric`, and is created by `OwnMetric(parameters)`.
    """

    metric: Metric
    """The declaration, under the name that the entry point has."""

    def compute(self, tables: Mapping[str, TableColumns]) -> Found:
        """The metric of a run, a pure function of its tables as written.

        Without a rule over windows: one number for the time after the warm-up, or None where it is undefined. With a rule: a number
        for each window, from which the metric is the sum or the average over time; for a ratio they are the numerator.
        """


class Tables(Mapping[str, TableColumns]):
    """The tables of a run by the names of their files, such as "delays"; columns are read-only, with NaN for missing numbers."""

    def __init__(self, tables: Mapping[str, Columns]) -> None:
        self._tables = tables
        self._read: dict[str, TableColumns] = {}

    def __getitem__(self, name: str) -> TableColumns:
        if name not in self._tables:
            raise KeyError(f"this run has no table {name!r} (it has: {', '.join(self._tables)})")
        if name not in self._read:
            self._read[name] = {key: _frozen(column(values)) for key, values in self._tables[name].items()}
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def _frozen(values: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return frozen(found.view())


class MetricPromises(Promises):
    """The contract of a user's own metric."""

    group, protocol = "metric", OwnMetric

    @promise("metric")
    def declared(self, found: Found, *_: Found) -> Iterator[str]:
        """`metric` is a Metric, and its `windows` are None, "sum", "average" or a Ratio."""
        if not isinstance(found, Metric) or not (
            found.windows in (None, "sum", "average") or isinstance(found.windows, Ratio)
        ):
            yield f"metric is {found!r}, expected a Metric with a rule over windows or None"

    @promise("compute")
    def number(self, found: Found, _: Mapping[str, TableColumns]) -> Iterator[str]:
        """Without a rule over windows `compute` returns a finite number, or None (or NaN) where it is undefined."""
        if self.plugin.metric.windows is None and found is not None:
            number = isinstance(found, int | float | np.integer | np.floating) and not isinstance(found, bool)
            if not number or math.isinf(found):
                yield f"compute returned {cut(repr(found))}, expected a finite number or None"

    @promise("compute")
    def per_window(self, found: Found, tables: Mapping[str, TableColumns]) -> Iterator[str]:
        """With a rule over windows `compute` returns a finite number for each window of the time series."""
        if self.plugin.metric.windows is not None:
            values, windows = np.asarray(found), len(tables["timeseries"]["start"])
            if values.shape != (windows,) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
                yield f"compute returned {cut(repr(found))}, expected a finite number for each of {windows} windows"

    @promise("compute")
    def columns(self, _: Found, tables: Mapping[str, TableColumns]) -> Iterator[str]:
        """The time series does not have the metric's column yet; for a ratio it has those of the denominator."""
        metric, series = self.plugin.metric, tables["timeseries"]
        if metric.windows is not None and metric.column in series:
            yield f"the time series already has a column '{metric.column}'"
        for part in (metric.windows.below, *metric.windows.less) if isinstance(metric.windows, Ratio) else ():
            if part and part not in series:
                yield f"the time series has no column '{part}' (it has: {', '.join(series)})"


def compute(name: str, parameters: Parameters, tables: Tables) -> tuple[MetricValue, dict[str, NDArray[np.float64]]]:
    """A metric of a run, and the columns that it adds to the time series. Raises BrokenPromise where the result is not valid."""
    made: OwnMetric = make(MetricPromises, name, parameters)
    metric, found, series = made.metric, made.compute(tables), tables["timeseries"]
    if metric.windows is None:
        return (None if found is None or math.isnan(found) else float(found)), {}
    own = {metric.column: np.asarray(found, np.float64)}
    measured, seconds = ~series["warm_up"].astype(bool), series["end"] - series["start"]

    def total(name: str) -> float:
        each = {**series, **own}[name]
        return math.fsum((each * seconds if metric.windows == "average" else each)[measured].tolist())

    value = metric.over(total, math.fsum(seconds[measured].tolist()))
    return None if value is None else float(value), own
