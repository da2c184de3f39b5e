"""Interests: the input of every topic-connected overlay, and random interests as used in papers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sim.base.csr import row_starts, transpose


@dataclass(frozen=True, eq=False)
class BrokerInterests:
    """The interest function I(v, t) as CSR: node v wants `indices[indptr[v]:indptr[v + 1]]`, ascending and distinct.

    Topics are numbered from 0 to `topics` - 1; a node may want none, a topic may have no subscriber.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    topics: int

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> BrokerInterests:
        """Create interests from each node's topics: any integers, renumbered in ascending order; repeated topics count once."""
        wanted = [sorted(set(row)) for row in rows]
        number = {topic: i for i, topic in enumerate(sorted({topic for row in wanted for topic in row}))}
        indptr = row_starts([len(row) for row in wanted])
        return cls(indptr, np.array([number[topic] for row in wanted for topic in row], np.int32), len(number))

    @classmethod
    def where(cls, wanted: NDArray[np.bool_]) -> BrokerInterests:
        """Create interests from a boolean matrix (nodes, topics)."""
        return cls(row_starts(wanted.sum(axis=1)), np.nonzero(wanted)[1].astype(np.int32), wanted.shape[1])

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.indptr) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of subscribers of each topic."""
        return np.diff(self.by_topic[0])

    @cached_property
    def by_topic(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The subscribers by topic, as CSR: those of topic t are `members[starts[t]:starts[t + 1]]`, ascending."""
        return transpose(self.indptr, self.indices, self.topics)

    @property
    def merges(self) -> int:
        """C_start - C_end: how many times two components of a topic must be joined until every topic is connected."""
        return int(np.maximum(self.sizes - 1, 0).sum())

    def row(self, node: int) -> NDArray[np.int32]:
        """The topics of a node, ascending."""
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def among(self, nodes: NDArray[np.int64]) -> BrokerInterests:
        """The interests of some of the nodes, renumbered in this order."""
        rows = [self.row(node) for node in nodes.tolist()]
        indptr = row_starts([len(row) for row in rows])
        return BrokerInterests(indptr, np.concatenate([self.indices[:0], *rows]), self.topics)

    def only(self, topics: NDArray[np.bool_]) -> BrokerInterests:
        """The interests in some of the topics, which keep their numbers."""
        kept = topics[self.indices]
        before = np.concatenate([[0], np.cumsum(kept)])
        return BrokerInterests(before[self.indptr], self.indices[kept], self.topics)


def coin_flips(nodes: int, topics: int, mean: float, generator: np.random.Generator) -> BrokerInterests:
    """Every node wants every topic with probability `mean` / `topics`, independently (this reproduces the paper's figures)."""
    return BrokerInterests.where(generator.random((nodes, topics)) < mean / topics)


def exactly(
    nodes: int, topics: int, count: int, generator: np.random.Generator, exponent: float = 0.0
) -> BrokerInterests:
    """Every node wants exactly `count` distinct topics, drawn without replacement with Zipf weights (i + 1)^-`exponent`."""
    # the largest values of log-weight + Gumbel noise are a draw without replacement (Vieira 2014)
    keys = generator.gumbel(size=(nodes, topics)) - exponent * np.log(np.arange(1, topics + 1))
    wanted = np.zeros((nodes, topics), np.bool_)
    np.put_along_axis(wanted, np.argpartition(-keys, count - 1, axis=1)[:, :count], True, axis=1)
    return BrokerInterests.where(wanted)
