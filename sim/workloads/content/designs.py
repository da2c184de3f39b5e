"""Content-based subscriptions designed so that publications can match exactly the chosen targets.

"Generating Subscriptions and Publications", sections 5 to 7, with a private predicate for every subscription, which no other has: a
publication that carries all predicates of a target, and elsewhere values that no subscription requires, matches nothing else. So
every set of subscriptions without contradictions is a target; for members of one subset this is known beforehand.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.csr import row_starts
from sim.base.errors import WorkloadError
from sim.content.conjunctions import Conjunctions
from sim.workloads.content import diversity
from sim.workloads.content.kernels import chain_subsets, fill_publications, grid_rows, grid_targets, subset_targets
from sim.workloads.content.sizes import Sizes

Likely = Literal["subsets", "targets"]
"""What is uniformly distributed when targets are drawn: the subset that they are drawn from, or the targets."""

_TRIED = 1_000_000
"""The most subscriptions designed only to find how many are possible."""


@dataclass(frozen=True, eq=False)
class Design(ABC):
    """Subscriptions, and their known targets.

    Field f has predicates with its lowest `used[f]` values. `clamped` sizes were cut down to the fields still available.
    """

    conjunctions: Conjunctions
    used: NDArray[np.int32]
    clamped: int

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest number of subscriptions that a target of the design has."""

    @abstractmethod
    def alpha(self, match: int) -> int:
        """The number of targets of `match` (at least 1) subscriptions."""

    @abstractmethod
    def disjoint_targets(self, match: int) -> NDArray[np.int32]:
        """A maximum set of pairwise disjoint targets, one per row."""

    def beta(self, match: int) -> int:
        """The number of pairwise disjoint targets."""
        return len(self.disjoint_targets(match))

    @abstractmethod
    def _draw(self, match: int, count: int, likely: Likely, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw `count` targets, shape (count, match)."""

    def targets(
        self,
        match: int,
        count: int,
        generator: np.random.Generator,
        *,
        likely: Likely = "subsets",
        repeat: float = 0.0,
    ) -> NDArray[np.int32]:
        """Targets of `count` successive publications, shape (count, match), subscriptions ascending in each.

        A publication has the target of the one before with probability `repeat`: 0 gives random targets, 1 the same for all, values
        in between a mixture (section 5.1). Raises WorkloadError where no target has that many.
        """
        if not 0 <= match <= self.most:
            raise WorkloadError(f"match is {match}, but no target has more than {self.most} subscriptions")
        new = generator.random(count) >= repeat
        new[:1] = True
        which = np.cumsum(new) - 1
        different = int(which[-1]) + 1 if count else 0
        drawn = self._draw(match, different, likely, generator) if match else np.empty((different, 0), np.int32)
        drawn.sort(axis=1)
        targets: NDArray[np.int32] = drawn[which]
        return targets

    def publish(
        self, targets: Sequence[Sequence[int]] | NDArray[np.int32], generator: np.random.Generator
    ) -> NDArray[np.int32]:
        """Publications, shape (publications, fields), each of which matches the subscriptions of its target, and no others.

        Raises WorkloadError where subscriptions of a target contradict one another, or do not exist.
        """
        wanted = self.conjunctions
        indptr = row_starts([len(target) for target in targets])
        if isinstance(targets, np.ndarray):
            flat = targets.ravel().astype(np.int32)
        else:
            flat = np.array([subscription for target in targets for subscription in target], np.int32)
        if flat.size and (flat.min() < 0 or flat.max() >= len(wanted)):
            raise WorkloadError(f"targets are subscriptions 0 to {len(wanted) - 1}, found {flat.min()} to {flat.max()}")
        values, wrong = fill_publications(
            indptr, flat, wanted.indptr, wanted.field, wanted.value, self.used, wanted.values, generator
        )
        if wrong >= 0:
            listed = ", ".join(map(str, flat[indptr[wrong] : indptr[wrong + 1]].tolist()))
            raise WorkloadError(f"target {wrong} (subscriptions {listed}): they require different values of one field")
        return values


@dataclass(frozen=True, eq=False)
class Subsets(Design):
    """Perfectly compatible subsets: any members of one subset are a target.

    Subset j has `members[indptr[j]:indptr[j + 1]]`, the first `carried[j]` of which are also in the previous subset, and in no third.
    """

    indptr: NDArray[np.int64]
    members: NDArray[np.int32]
    carried: NDArray[np.int32]

    @cached_property
    def _kinds(self) -> tuple[list[tuple[int, int]], NDArray[np.int64], NDArray[np.int64]]:
        """The distinct pairs (members, carried), the index of each subset's pair, and the number of subsets with each."""
        pairs = np.stack([np.diff(self.indptr), self.carried], axis=1)
        kinds, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        return [(int(size), int(carried)) for size, carried in kinds], which.ravel(), counts

    @property
    def most(self) -> int:
        return int(np.diff(self.indptr).max(initial=0))

    def alpha(self, match: int) -> int:
        kinds, _, counts = self._kinds
        return sum(
            (math.comb(size, match) - math.comb(carried, match)) * int(count)
            for (size, carried), count in zip(kinds, counts, strict=True)
        )

    def disjoint_targets(self, match: int) -> NDArray[np.int32]:
        bounds, members, carried = self.indptr.tolist(), self.members.tolist(), self.carried.tolist()
        counts = diversity.dealt(np.diff(self.indptr).tolist(), carried, match)
        targets: list[list[int]] = []
        taken = np.zeros(len(self.conjunctions), np.bool_)
        for subset, count in enumerate(counts):
            stop = bounds[subset + 1]
            shared = members[stop : stop + carried[subset + 1]] if subset + 1 < len(counts) else []
            own = [member for member in members[bounds[subset] : stop] if not taken[member] and member not in shared]
            own = (own + shared)[:count]
            taken[own] = True
            targets += [own[start : start + match] for start in range(0, count - match + 1, match)]
        return np.sort(np.array(targets, np.int32).reshape(-1, match), axis=1)

    def _draw(self, match: int, count: int, likely: Likely, generator: np.random.Generator) -> NDArray[np.int32]:
        kinds, which, _ = self._kinds
        if likely == "subsets":
            weights = [int(size >= match) for size, _ in kinds]
        else:
            weights = [math.comb(size, match) - math.comb(carried, match) for size, carried in kinds]
        known = self.carried if likely == "targets" else np.zeros_like(self.carried)
        most = max(weights)
        reached = np.cumsum(np.array([weight / most for weight in weights])[which])
        return subset_targets(self.indptr, self.members, known, reached, match, count, generator)


@dataclass(frozen=True, eq=False)
class Grid(Design):
    """One pool of predicates for all: the private predicate of subscription i is in the (i mod `places`)-th of the other fields.

    Any subscriptions with different private fields are a target.
    """

    places: int

    @cached_property
    def rows(self) -> list[int]:
        """The number of subscriptions with their private predicate in each place."""
        return [len(range(place, len(self.conjunctions), self.places)) for place in range(self.places)]

    @property
    def most(self) -> int:
        return min(self.places, len(self.conjunctions))

    def alpha(self, match: int) -> int:
        return diversity.transversals(self.rows, match)[0][match]

    def disjoint_targets(self, match: int) -> NDArray[np.int32]:
        count = len(self.conjunctions) // match if match <= self.most else 0
        # Neighbours have different private fields
        return np.arange(count * match, dtype=np.int32).reshape(count, match)

    def _draw(self, match: int, count: int, likely: Likely, generator: np.random.Generator) -> NDArray[np.int32]:
        weights = self.rows if likely == "targets" else [min(row, 1) for row in self.rows]
        left = diversity.transversals(weights, match)
        take = np.zeros((self.places, match + 1))
        for place, weight in enumerate(weights):
            for k in range(1, match + 1):
                if left[place][k]:
                    take[place, k] = weight * left[place + 1][k - 1] / left[place][k]
        return grid_targets(take, len(self.conjunctions), match, count, generator)


def design_subsets(
    subscriptions: int, fields: int, values: int, sizes: Sizes, generator: np.random.Generator, overlap: int = 0
) -> Subsets:
    """Design subscriptions in perfectly compatible subsets, each of which has up to `overlap` members of the previous one.

    Every field takes `values` values. Subscriptions have the sizes drawn, in that order, and an owner each. Raises WorkloadError
    where that many are not possible.
    """
    most = fields * (values - 1)  # the number of possible private predicates
    if subscriptions > most > _TRIED:
        raise WorkloadError(_no_room(subscriptions, most, fields, values, "fewer than "))
    drawn = _drawn(sizes, generator, min(subscriptions, most + 1))
    chain = chain_subsets(drawn, fields, values, overlap, generator)
    if len(chain.indptr) <= subscriptions:
        raise WorkloadError(_no_room(subscriptions, len(chain.indptr) - 1, fields, values))
    owner = np.arange(subscriptions, dtype=np.int32)
    wanted = Conjunctions(chain.indptr, chain.field, chain.value, owner, fields, values)
    return Subsets(wanted, chain.used, chain.clamped, chain.subsets, chain.members, chain.carried)


def design_grid(subscriptions: int, fields: int, values: int, sizes: Sizes, generator: np.random.Generator) -> Grid:
    """Design subscriptions over one pool of predicates, which is as large as the longest of them needs.

    Raises WorkloadError where that many are not possible.
    """
    most = fields * (values - 1)
    drawn = _drawn(sizes, generator, min(subscriptions, most + 1))
    longest = int(min(drawn.max(initial=1), fields))
    clamped = int((drawn > fields).sum())
    pooled, places = longest - 1, fields - longest + 1
    if subscriptions > places * (values - 1):
        raise WorkloadError(
            f"subscriptions is {subscriptions:,}, but a grid has room for {places * (values - 1):,}: the longest has {longest} "
            f"predicates, so {places} of {fields} fields are left for private ones, with {values} - 1 values each"
        )
    order = generator.permutation(fields).astype(np.int32)
    indptr, field, value = grid_rows(np.minimum(drawn, fields), order, pooled, generator)
    used = np.ones(fields, np.int32)
    used[order[pooled:]] = [len(range(place, subscriptions, places)) for place in range(places)]
    owner = np.arange(subscriptions, dtype=np.int32)
    return Grid(Conjunctions(indptr, field, value, owner, fields, values), used, clamped, places)


def _drawn(sizes: Sizes, generator: np.random.Generator, count: int) -> NDArray[np.int32]:
    drawn = np.asarray(sizes(generator, count))
    if drawn.shape != (count,) or drawn.dtype.kind not in "iu" or (drawn < 1).any():
        raise WorkloadError(f"sizes: expected {count} whole numbers above 0, found {drawn!r:.60}")
    return np.minimum(drawn, np.iinfo(np.int32).max).astype(np.int32)


def _no_room(subscriptions: int, capacity: int, fields: int, values: int, about: str = "") -> str:
    return (
        f"subscriptions is {subscriptions:,}, but {fields} fields of {values:,} values have room for {about}{capacity:,} of these: "
        f"one value of each field is kept for publications, so full disjoint subsets of subscriptions with m predicates hold "
        f"(values - 1) (fields - m + 1)"
    )
