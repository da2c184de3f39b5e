"""Sweeps: from the [sweep] table of a scenario to the overrides at each of its points.

Each swept key is an axis; zipped keys share a dimension. A grid has all combinations of the dimensions, samples are drawn from
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from sim.base.installed import need_extra
from sim.base.naming import Keys, Raw, RawValue
from sim.base.randomness import Streams
from sim.files import toml
from sim.scenario.expressions import Expression

GRID, LATIN_HYPERCUBE, SALTELLI = SAMPLES = ("grid", "latin-hypercube", "saltelli")
OPTIONS = ("zip", "where", "sample", "samples")
"""Keys of the table that are not key paths."""
RANGE = ("from", "to", "steps", "scale")
SCALES = ("linear", "log")
MOST = 100_000
"""The most points of a sweep; each takes 5 kB of memory."""


@dataclass(frozen=True)
class Override:
    """One value of a swept key. `place` is its place as keys from the [sweep] table; `text` is how it is shown."""

    keys: Keys
    value: RawValue
    place: Keys
    text: str


@dataclass(frozen=True)
class SweptRange:
    """Evenly spaced numbers between two, both included; integer ends give integers. `steps` is None where samples are drawn."""

    start: float
    stop: float
    steps: int | None
    log: bool

    def at(self, part: float) -> int | float:
        """The number at a fraction, 0 to 1, of the range."""
        if part in (0.0, 1.0):
            return self.stop if part else self.start
        way = part * (math.log(self.stop / self.start) if self.log else self.stop - self.start)
        value = self.start * math.exp(way) if self.log else self.start + way
        value = float(f"{value:.15g}")  # 0.3, not 0.30000000000000004
        value = min(max(value, min(self.start, self.stop)), max(self.start, self.stop))  # exactly, despite rounding
        return round(value) if self.whole else value

    def values(self) -> list[int | float]:
        """The steps, each number once."""
        assert self.steps is not None
        return list(dict.fromkeys(self.at(step / (self.steps - 1)) for step in range(self.steps)))

    @property
    def whole(self) -> bool:
        return isinstance(self.start, int) and isinstance(self.stop, int)


@dataclass(frozen=True, eq=False)
class SweptAxis:
    """A swept key: its path, its place in the table and what is written there, and its values or, for samples, their range."""

    keys: Keys
    place: Keys
    said: RawValue
    values: tuple[Override, ...] = ()
    range: SweptRange | None = None

    @property
    def name(self) -> str:
        """The key path as people write it."""
        return toml.join(self.keys)

    def at(self, part: float) -> Override:
        """The value at a fraction, from 0 to below 1, of the axis; lists are divided evenly."""
        if self.range is None:
            return self.values[min(int(part * len(self.values)), len(self.values) - 1)]
        value = self.range.at(part)
        return Override(self.keys, value, self.place, str(value))


@dataclass(frozen=True)
class ParsedSweep:
    """A parsed [sweep] table. Axes in one dimension advance together."""

    dimensions: tuple[tuple[SweptAxis, ...], ...] = ()
    where: Expression | None = None
    sample: str = GRID
    samples: int = 0

    @property
    def axes(self) -> list[SweptAxis]:
        """All axes, dimension by dimension."""
        return [axis for dimension in self.dimensions for axis in dimension]

    @property
    def count(self) -> int:
        """The number of points, before `where` excludes any and equal ones are merged."""
        if self.sample == GRID:
            return math.prod(len(dimension[0].values) for dimension in self.dimensions)
        return self.samples * (2 * len(self.dimensions) + 2 if self.sample == SALTELLI else 1)

    def points(self, seed: int) -> Iterator[tuple[Override, ...]]:
        """The overrides at each point, the last key advancing fastest; samples are determined by the scenario's seed.

        Saltelli's points are in the order that a Sobol analysis needs: blocks of 2 D + 2 for D dimensions.
        """
        if self.sample == GRID:
            rows = (zip(*(axis.values for axis in dimension), strict=True) for dimension in self.dimensions)
            yield from (tuple(laid for row in point for laid in row) for point in product(*rows))
        else:
            for parts in self._sampled(seed):
                pairs = zip(self.dimensions, parts, strict=True)
                yield tuple(axis.at(part) for dimension, part in pairs for axis in dimension)

    def one_at_a_time(self) -> Iterator[tuple[Override, ...]]:
        """The first value of every axis, then each other value of one dimension at a time, so that each value occurs."""
        first = {axis.keys: axis.at(0.0) for axis in self.axes}
        yield tuple(first.values())
        for dimension in self.dimensions:
            for row in zip(*(axis.values[1:] for axis in dimension), strict=False):
                yield tuple((first | {laid.keys: laid for laid in row}).values())

    def _sampled(self, seed: int) -> list[list[float]]:
        """The position of each point in each dimension, from 0 to 1 (points, dimensions)."""
        generator = Streams(seed).generator("sweep")
        count = len(self.dimensions)
        if self.sample == LATIN_HYPERCUBE:
            from scipy.stats import qmc

            return qmc.LatinHypercube(count, rng=generator).random(self.samples).tolist()
        need_extra("sensitivity", "Saltelli's sample", f" (sample = '{LATIN_HYPERCUBE}' does without)")
        from SALib.sample import sobol

        problem = {"num_vars": count, "names": [str(i) for i in range(count)], "bounds": [[0, 1]] * count}
        sampled: list[list[float]] = sobol.sample(problem, self.samples, seed=generator).tolist()
        return sampled

    def table(self) -> Raw:
        """The complete table by key paths, with files by name."""
        zipped = [[axis.name for axis in dimension] for dimension in self.dimensions if len(dimension) > 1]
        options: Raw = {"zip": zipped, "where": self.where.text if self.where else "", "sample": self.sample}
        options |= {"samples": self.samples} if self.samples else {}
        return {axis.name: axis.said for axis in self.axes} | {key: value for key, value in options.items() if value}
