"""Prefix routing, as shared by Tapestry and GeoPS: ids as digits, and routing tables with an entry for each level and digit."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from sim.overlay.healing import HealingTrees
from sim.overlay.pair_times import PairTimes
from sim.overlay.prefix_kernels import backed_up, nearest_candidates, prefix_last_hops, prefix_next_hops
from sim.overlay.trees import TreeState, ascending_links


def digits_of(ids: NDArray[np.int64], levels: int, base: int) -> NDArray[np.int64]:
    """The digits of each id (n, levels), the highest first."""
    return ids[:, None] // base ** np.arange(levels - 1, -1, -1, dtype=np.int64) % base


class Prefixes:
    """Nodes with distinct ids of `levels` digits, and the candidates for each entry of their routing tables.

    Candidates for digit d of node x at level l agree with x in the first l digits and have d next.
    """

    def __init__(self, ids: NDArray[np.int64], levels: int, base: int) -> None:
        self.ids, self.levels, self.base = ids, levels, base
        self.digits = digits_of(ids, levels, base)
        self._order = np.argsort(ids).astype(np.int32)
        width = base ** np.arange(levels - 1, -1, -1, dtype=np.int64)
        first = ids[:, None] // width // base * width * base  # the lowest id with the same digits above this level
        ends = first[:, :, None] + width[:, None] * np.arange(base + 1)
        self._bounds = np.searchsorted(ids[self._order], ends)

    def drawn(self, generator: np.random.Generator) -> NDArray[np.int32]:
        """A routing table (n, levels, base) of candidates drawn at random for each node; -1 where there are none."""
        lower, sizes = self._bounds[:, :, :-1], np.diff(self._bounds)
        places = lower + (generator.random(sizes.shape) * sizes).astype(np.int64)
        table = self._order[np.minimum(places, len(self.ids) - 1)]
        return self._with_selves(np.where(sizes > 0, table, np.int32(-1)))

    def nearest(self, times: NDArray[np.float64] | PairTimes) -> NDArray[np.int32]:
        """A routing table of each node's nearest candidates by `times` (n, n), the lowest on ties."""
        return self._with_selves(nearest_candidates(self._order, self._bounds, PairTimes.of(times).record))

    def leading(self, distance: NDArray[np.float64]) -> NDArray[np.int32]:
        """A routing table in which all nodes know the same candidate: the one of least `distance` (n, levels), the lowest on ties.

        `distance[v, l]` is compared among the nodes with the same first l + 1 digits as v.
        """
        table = np.empty((len(self.ids), self.levels, self.base), np.int32)
        for level in range(self.levels):
            lower, upper = self._bounds[:, level, :-1], self._bounds[:, level, 1:]
            prefix = self.ids // self.base ** (self.levels - 1 - level)
            by_rank = np.lexsort((np.arange(len(self.ids)), distance[:, level], prefix)).astype(np.int32)
            table[:, level] = np.where(upper > lower, by_rank[np.minimum(lower, len(self.ids) - 1)], -1)
        return self._with_selves(table)

    def backed_up(self, table: NDArray[np.int32], away: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The table with entries that are `away` (n) replaced by the next candidates in the order of ids, cyclically."""
        return backed_up(table, self._order, self._bounds, away) if away.any() else table

    def _with_selves(self, table: NDArray[np.int32]) -> NDArray[np.int32]:
        np.put_along_axis(table, self.digits[:, :, None], np.arange(len(table), dtype=np.int32)[:, None, None], axis=2)
        return table


class PrefixTrees(HealingTrees):
    """Rendezvous trees over the routes of prefix routing, by the nodes' digits and routing tables.

    Where a node is down, the next candidate for an entry of a table backs it up.
    """

    def __init__(
        self, roots: NDArray[np.int32], prefixes: Prefixes, table: NDArray[np.int32], state: TreeState = "children"
    ) -> None:
        super().__init__(roots, len(table), state)
        self.prefixes, self.table, self._whole = prefixes, table, table

    def next_hops(self, target: int) -> NDArray[np.int32]:
        """Route by the first digit in which a node differs from the target."""
        return prefix_next_hops(self.prefixes.digits, self.table, target)

    def last_hops(self, source: int) -> NDArray[np.int32]:
        """Route by the same rule."""
        return prefix_last_hops(self.prefixes.digits, self.table, source, self.around)

    def edges(self) -> NDArray[np.int32]:
        """The links from every node to all others in its routing table."""
        node = np.broadcast_to(np.arange(self.nodes)[:, None, None], self.table.shape)
        known = (self.table >= 0) & (self.table != node) & ~self.around[:, None, None]
        return ascending_links(node[known], self.table[known])

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A message from each node to each other one in its routing table, and its answer."""
        return 2 * int(np.count_nonzero(~down[self.edges()[:, 0]]))

    def route_around(self, nodes: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Take the back-ups of entries that are routed around."""
        self.table = self.prefixes.backed_up(self._whole, nodes)
        return self.roots_among(np.flatnonzero(~nodes))

    @abstractmethod
    def roots_among(self, live: NDArray[np.int64]) -> NDArray[np.int32]:
        """The root of each topic (topics), with the present table and these nodes."""
