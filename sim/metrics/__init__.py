"""All metrics by name: those that are declared here (`declared.py`), and those of plug-ins that are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sim import plugins
from sim.base.errors import PluginError
from sim.metrics.declared import CAUSES, COUNTED, OURS, QUANTILES, declared_metrics
from sim.metrics.metric import Metric, MetricValue, Ratio

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
    """Ours, then those of plug-ins that are installed, which are loaded when they are asked for."""

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
"""Columns of the tables of runs that are no metrics, keys that may be swept among them."""


def own_names() -> list[str]:
    """The names of the metrics of a user's own that are installed, sorted; those of ours are no other's."""
    return [name for name in plugins.names("metric") if name not in OURS]


def _declared(name: str) -> Metric:
    """What a plug-in declares. Raises KeyError where there is none, PluginError where it declares no metric of its name."""
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
