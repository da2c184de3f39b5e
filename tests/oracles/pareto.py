"""The Pareto front by its definition."""

from __future__ import annotations

from collections.abc import Sequence


def front(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Which rows no other row dominates; less is better in every column, NaN is undefined."""
    defined = [all(cost == cost for cost in row) for row in costs]
    return [
        defined[i] and not any(defined[j] and dominates(costs[j], costs[i]) for j in range(len(costs)))
        for i in range(len(costs))
    ]


def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether a is at least as good as b in all columns, and better in one."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))
