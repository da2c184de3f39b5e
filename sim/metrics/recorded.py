"""What a run has to record of the declared metrics: columns by name, and a value of each at the end."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sim.base.errors import MetricError
from sim.metrics.declared import OURS
from sim.metrics.metric import MetricValue

PARTS: dict[str, type[int] | type[Fraction]] = {
    "drain_time_sum": Fraction,
    "decisions": int,
    "backend_load_sum": Fraction,
    "periods": int,
    "satisfied_subscribers_sum": int,
    "satisfaction_sum": Fraction,
    "ssbr_cost_sum": Fraction,
    "ssbr_cost_count": int,
}
"""Further columns of the time series that are recorded by name: parts of ratios, not metrics."""

COUNTED = {m.name: int if m.integer else Fraction for m in OURS.values() if m.counted} | PARTS
"""All columns recorded by name when events happen, as whole numbers or exact sums."""


def declared_metrics(found: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    """The metrics of a run in the order of their declarations. Raises MetricError where one is missing or undeclared."""
    wrong = (found.keys() - OURS, "computed, but not declared"), (OURS.keys() - found, "declared, but not computed")
    for names, what in wrong:
        if names:
            raise MetricError(f"sim/metrics/declared.py: {', '.join(sorted(names))}: {what}")
    return {name: found[name] for name in OURS}
