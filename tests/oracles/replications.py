"""Statistics of replications, the slow way: from the definitions, with scipy.stats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from scipy import stats


def holm(p_values: Sequence[float]) -> list[float]:
    """By closed testing: a hypothesis falls only if every set that it is in falls to Bonferroni's test."""
    numbers = range(len(p_values))
    sets = [chosen for size in numbers for chosen in itertools.combinations(numbers, size + 1)]
    return [
        max(min(1.0, len(chosen) * min(p_values[j] for j in chosen)) for chosen in sets if i in chosen) for i in numbers
    ]


def replications_needed(values: Sequence[float], relative: float, confidence: float) -> int:
    """The least number of replications, from the present one to twice as many, whose interval would be narrow enough."""
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1))
    for n in range(len(values), 2 * len(values)):
        half = stats.t.ppf((1 + confidence) / 2, n - 1) * deviation / math.sqrt(n)
        worst = max(half / abs(abs(mean) - half), half / (abs(mean) + half)) if abs(mean) > half else math.inf
        if worst <= relative:  # |mean − μ| / |μ|, whichever end of the interval μ is at
            return n
    return 2 * len(values)


def mser5(series: Sequence[float]) -> int | None:
    """White's rule on batches of five, minimum by minimum."""
    batches = [math.fsum(series[i : i + 5]) / 5 for i in range(0, len(series) - 4, 5)]
    if len(series) < 100:
        return None
    best, cut = math.inf, 0
    for d in range(len(batches) - 5):
        rest = batches[d:]
        mean = math.fsum(rest) / len(rest)
        error = math.fsum((y - mean) ** 2 for y in rest) / len(rest) ** 2
        if error < best:
            best, cut = error, d
    return 5 * cut if cut <= len(batches) / 2 else None
