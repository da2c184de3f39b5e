"""Content-based subscriptions and publications designed per second of CPU, and the number of missed targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, cpu_seconds
from sim.workloads.content.designs import Design, design_grid, design_subsets
from sim.workloads.content.sizes import constant, poisson

SUBSCRIPTIONS, FIELDS, VALUES = 1_000_000, 20, 100_000
PUBLICATIONS, MATCH = 500_000, 3
SEEDS, EACH = 200, 30
Make = Callable[[int, np.random.Generator], Design]


def _subsets(overlap: int) -> Make:
    return lambda subscriptions, generator: design_subsets(
        subscriptions, FIELDS, VALUES, poisson(4), generator, overlap
    )


LAYOUTS: dict[str, Make] = {
    "disjoint": _subsets(0),
    "overlap 2": _subsets(2),
    "grid": lambda subscriptions, generator: design_grid(subscriptions, FIELDS, VALUES, constant(4), generator),
}


def figures() -> Iterator[Figure]:
    """Speed of subscriptions and of publications, targets chosen among them, in each layout; then wrong targets."""
    generator = np.random.default_rng(1)
    for layout, make in LAYOUTS.items():
        _publish(make(1_000, generator), 10, generator)  # compiles the kernels
        rate = SUBSCRIPTIONS / min(cpu_seconds(partial(make, SUBSCRIPTIONS, generator)) for _ in range(3))
        yield Figure(f"{layout}, {FIELDS} fields: subscriptions/s", f"{rate:,.0f}", "≥ 1,000,000", rate >= 1e6)
        for subscriptions in (10_000, SUBSCRIPTIONS):
            work = partial(_publish, make(subscriptions, generator), PUBLICATIONS, generator)
            rate = PUBLICATIONS / min(cpu_seconds(work) for _ in range(3))
            name = f"{layout}, {subscriptions:,} subscriptions, {MATCH} of them matched: publications/s"
            yield Figure(name, f"{rate:,.0f}", "≥ 500,000", rate >= 5e5)
    yield _wrong()


def _publish(design: Design, count: int, generator: np.random.Generator) -> NDArray[np.int32]:
    return design.publish(design.targets(MATCH, count, generator), generator)


def _wrong() -> Figure:
    """Publications whose matches, among all subscriptions, are not the chosen ones."""
    wrong = publications = 0
    for seed in range(SEEDS):
        generator = np.random.default_rng(seed)
        designs: list[Design] = [
            *(design_subsets(100, 11, 40, poisson(4), generator, v) for v in range(4)),
            *(design_subsets(100, 11, 20, constant(4), generator, v) for v in range(5)),
            design_grid(100, 11, 20, constant(4), generator),
        ]
        for design in designs:
            targets = design.targets(MATCH, EACH, generator)
            wanted = design.conjunctions
            hits = design.publish(targets, generator)[:, wanted.field] == wanted.value
            matched = np.logical_and.reduceat(hits, wanted.indptr[:-1], axis=1)
            chosen = np.zeros_like(matched)
            np.put_along_axis(chosen, targets, True, axis=1)
            wrong += int((matched != chosen).any(axis=1).sum())
            publications += EACH
    text = f"{wrong} of {publications:,} publications"
    return Figure(f"{SEEDS} seeds, disjoint, overlap 1 to 4, grid: wrong targets", text, "0", wrong == 0)
