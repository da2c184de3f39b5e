"""The axes of a sweep: which swept keys advance together, their names, and how their values are placed on a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

# Any: pandas has keys and values of any type.
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.charts import axis_title
from analysis.formatting import number, scale, with_unit
from sim.base.naming import Raw
from sim.base.units import write_duration
from sim.experiments.results import Results
from sim.scenario.experiment import unit_of
from sim.scenario.expressions import Value
from sim.scenario.sweep import GRID

if TYPE_CHECKING:
    import altair as alt

_TICKS = 8


@dataclass(frozen=True)
class Axis:
    """A swept key with its distinct values: numbers ascending, other values in the order of the points.

    `together` are keys that advance with this one. Numbers are on a logarithmic axis where that spaces them more evenly.
    """

    key: str
    values: tuple[Value, ...]
    unit: str = ""
    together: tuple[str, ...] = ()

    @cached_property
    def kind(self) -> Literal["linear", "log", "category"]:
        """The type of the chart's axis."""
        if any(isinstance(value, (str, bool)) for value in self.values):
            return "category"
        x = np.array(self.values, dtype=np.float64)
        return "log" if x.size > 2 and x[0] > 0 and _unevenness(np.log(x)) < _unevenness(x) else "linear"

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.kind != "category"

    @cached_property
    def scale(self) -> tuple[float, str]:
        """The divisor of the values on a chart, and the resulting unit."""
        return scale(self.unit, abs(float(self.values[-1])) / 3) if self.numeric else (1.0, "")

    @property
    def name(self) -> str:
        """The key with the keys that advance with it."""
        return f"{self.key} (with {', '.join(self.together)})" if self.together else self.key

    @property
    def title(self) -> str:
        """The name with the unit used in charts."""
        return axis_title(self.name, self.scale[1])

    def text(self, value: Value) -> str:
        """A value as text, with its unit."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return value
        if self.unit == "s":
            return write_duration(value).replace("us", "µs")
        factor, unit = scale(self.unit, value)
        return with_unit(number(value / factor), unit or "–")

    def said(self, value: Value) -> str:
        """The key and a value: `network.brokers = 20`."""
        return f"{self.key} = {self.text(value)}"

    def x(self) -> alt.X:
        """A horizontal axis for numbers, divided by the scale, with a few of them as ticks."""
        import altair as alt

        few = len(self.values) <= _TICKS
        ticks = [float(value) / self.scale[0] for value in self.values] if few else alt.Undefined
        return alt.X(
            "x:Q",
            title=self.title,
            scale=alt.Scale(nice=False, padding=12, **({"type": "log"} if self.kind == "log" else {"zero": False})),
            axis=alt.Axis(format=",.4~r", values=ticks),
        )


def axes_of(results: Results) -> list[Axis]:
    """The axes with at least two values among a results folder's points, in the order in which they are written."""
    return axes(results.points, results.manifest, zipped(results) if results.manifest["sweep"] else None)


def drawn(results: Results) -> bool:
    """Whether the points are a sample, or those of a search, rather than a grid: they hardly share values."""
    sweep = results.manifest["sweep"]
    if sweep:
        return bool(sweep.get("sample", GRID) != GRID)
    return 3 * len(results.points) < math.prod(len(axis.values) for axis in axes_of(results))


def zipped(results: Results) -> list[list[str]]:
    """The swept keys that advance together in the scenario."""
    return list(results.manifest["sweep"].get("zip", []))


def axes(points: pd.DataFrame, manifest: Raw, zipped: Sequence[Sequence[str]] | None = None) -> list[Axis]:
    """The axes of points, a table with a column per swept key; `manifest` has the scenario and the variants, like that of results.

    Keys that are `zipped` are one axis; if that is unknown, keys that rise or fall together.
    """
    found: list[Axis] = []
    for key in points:
        values = points[key].unique()
        if len(values) < 2:
            continue
        for place, axis in enumerate(found):
            if (
                _together(points[[axis.key, key]].drop_duplicates(), len(axis.values))
                if zipped is None
                else any({axis.key, key} <= {*keys} for keys in zipped)
            ):
                found[place] = Axis(axis.key, axis.values, axis.unit, (*axis.together, str(key)))
                break
        else:
            found.append(_axis(str(key), values.tolist(), manifest))
    return found


def _together(pairs: pd.DataFrame, count: int) -> bool:
    """Whether two keys determine each other and, if they are numbers, are monotone in each other."""
    if not len(pairs) == count == pairs.iloc[:, 1].nunique():
        return False
    if not all(pd.api.types.is_numeric_dtype(kind) for kind in pairs.dtypes):
        return True
    other = pairs.sort_values(pairs.columns[0]).iloc[:, 1]
    return bool(other.is_monotonic_increasing or other.is_monotonic_decreasing)


def points_said(axes: Sequence[Axis], values: Mapping[Any, Any] | pd.Series) -> str:
    """A point as text: `network.brokers = 20, selection.cluster_size = 5`."""
    return ", ".join(axis.said(values[axis.key]) for axis in axes)


def _axis(key: str, values: list[Value], manifest: Raw) -> Axis:
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        unit = unit_of(key, manifest["scenario"], manifest["variants"])
        return Axis(key, tuple(sorted(values, key=float)), unit)
    return Axis(key, tuple(values))


def _unevenness(x: NDArray[np.float64]) -> float:
    """The largest step of ascending numbers as a share of their range."""
    return float(np.diff(x).max() / (x[-1] - x[0]))
