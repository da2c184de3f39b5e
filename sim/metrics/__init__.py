"""All metrics by name: the built-in ones (`declared.py`) and those of installed plug-ins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sim import plugins
from sim.base.errors import PluginError
from sim.metrics.causes import CAUSES
from sim.metrics.declared import OURS, QUANTILES
from sim.metrics.metric import Metric, MetricValue, Ratio
from sim.metrics.recorded import COUNTED, declared_metrics

__all__ = [
    "CAUSES",
    "COUNTED",
    "METRICS",
    "OURS",
    "QUANTILES",
    "Metric",
    "MetricValue",
    "Ratio",
    "declared_metrics",
    "own_names",
]


class _Metrics(Mapping[str, Metric]):
    """The built-in metrics, then those of installed plug-ins, which are loaded on demand."""

    def __getitem__(self, name: str) -> Metric:
        return OURS[name] if name in OURS else _declared(name)

    def __iter__(self) -> Iterator[str]:
        yield from OURS
        yield from own_names()

    def __len__(self) -> int:
        return len(OURS) + len(own_names())

    def __contains__(self, name: object) -> bool:
        return name in OURS or name in own_names()


METRICS: Mapping[str, Metric] = _Metrics()

_TAKEN = {"run", "point", "variant", "replication", "seed", "workload", "order", "notes"}
_TAKEN |= {"start", "end", "seconds", "host", "horizon", "warm_up", "window"}
"""Columns of the tables of runs that are not metrics, including keys that may be swept."""


def own_names() -> list[str]:
    """The names of the users' own metrics that are installed, sorted; names of built-in metrics are reserved."""
    return [name for name in plugins.names("metric") if name not in OURS]


def _declared(name: str) -> Metric:
    """The declaration of a plug-in's metric. Raises KeyError where it does not exist, PluginError where its name differs."""
    if name not in plugins.names("metric"):
        raise KeyError(name)
    kind = plugins.load("metric", name)
    metric = getattr(kind, "metric", None)
    if not isinstance(metric, Metric) or metric.name != name:
        raise PluginError(f"{plugins.described(kind)}: expected metric = Metric({name!r}, …), found {metric!r}")
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in _TAKEN:
        raise PluginError(
            f"{plugins.described(kind)}: a metric cannot be called {name!r} (allowed: a-z, 0-9 and _, but no column of runs.parquet)"
        )
    return metric
