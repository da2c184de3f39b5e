"""Publications per second matched against random subscriptions by the counting index, against numpy comparing all predicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim.content.conjunctions import Conjunctions
from sim.content.matching import MatchingIndex

FIELDS, VALUES, MEAN = 20, 100, 4
BARS = {10_000: 300_000, 100_000: 40_000, 1_000_000: 3_000}
PUBLICATIONS = {10_000: 50_000, 100_000: 10_000, 1_000_000: 1_000}
COMPARED, TIMES = 500, 50


def random_subscriptions(count: int, generator: np.random.Generator) -> Conjunctions:
    """As many conjunctions of a number of predicates that is Poisson, 0 left out, on fields and values drawn at random."""
    sizes = generator.poisson(MEAN, 2 * count)
    sizes = sizes[(sizes > 0) & (sizes <= FIELDS)][:count]
    taken = generator.random((count, FIELDS)).argsort(axis=1) < sizes[:, None]
    field = np.nonzero(taken)[1].astype(np.int32)
    value = generator.integers(0, VALUES, len(field), dtype=np.int32)
    return Conjunctions(
        np.concatenate([[0], np.cumsum(sizes)]), field, value, np.arange(count, dtype=np.int32), FIELDS, VALUES
    )


def _dense(conjunctions: Conjunctions) -> NDArray[np.int32]:
    """A row for each subscription, -1 where it does not require the field."""
    wanted = np.full((len(conjunctions), FIELDS), -1, np.int32)
    subscription = np.repeat(np.arange(len(conjunctions)), np.diff(conjunctions.indptr))
    wanted[subscription, conjunctions.field] = conjunctions.value
    return wanted


def _by_numpy(wanted: NDArray[np.int32], published: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of matching subscriptions of each publication, in plain numpy."""
    anything = wanted < 0
    return np.array([np.count_nonzero(((wanted == row) | anything).all(axis=1)) for row in published])


def figures() -> Iterator[Figure]:
    """Publications/s on one core against three numbers of subscriptions, and numpy beside the smallest."""
    generator = np.random.default_rng(1)
    for count, bar in BARS.items():
        subscriptions = random_subscriptions(count, generator)
        published = generator.integers(0, VALUES, (PUBLICATIONS[count], FIELDS), dtype=np.int32)
        index = MatchingIndex(subscriptions)
        index.match_all(published[:1])  # compiles the kernels
        rate = median(_rate(index.match_all, published) for _ in range(5))
        name = f"matching against {count:,} subscriptions: publications/s"
        yield Figure(name, f"{rate:,.0f}", f"≥ {bar:,}", rate >= bar)
        if count == min(BARS):
            yield _beside_numpy(subscriptions, published, index)


def _rate(match: Callable[[NDArray[np.int32]], object], published: NDArray[np.int32]) -> float:
    return len(published) / cpu_seconds(lambda: match(published))


def _beside_numpy(subscriptions: Conjunctions, published: NDArray[np.int32], index: MatchingIndex) -> Figure:
    by_numpy, some = partial(_by_numpy, _dense(subscriptions)), published[:COMPARED]
    assert np.array_equal(np.diff(index.match_all(some).indptr), by_numpy(some))
    _, theirs, ratio = alternate(lambda: _rate(index.match_all, published), lambda: _rate(by_numpy, some))
    text = f"{ratio:,.0f} × ({theirs:,.0f}/s)"
    return Figure("the same, of numpy's that compares all predicates", text, f"≥ {TIMES} ×", ratio >= TIMES)
