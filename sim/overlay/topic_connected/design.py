"""The designs of topic-connected overlays: GM, MinMax-ODA, Low-ODA and the CD-ODA family (Onus & Richa)."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.errors import InputError
from sim.overlay.topic_connected.greedy_kernels import count_common, greedy
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.overlay.topic_connected.star_kernels import DENSITY, NEIGHBOURS, WEIGHTED, stars

GreedyAlgorithm = Literal["gm", "minmax-oda", "low-oda"]
Algorithm = Literal["gm", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i", "cd-oda-ii"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
DEFAULT_K = Fraction(3, 2)

_STARS = {"cd-oda": NEIGHBOURS, "cd-oda-i": WEIGHTED, "cd-oda-ii": DENSITY}
_MOST_BYTES = 8e9


def design(
    interests: BrokerInterests, algorithm: Algorithm = "low-oda", k: Fraction = DEFAULT_K, strict: bool = False
) -> NDArray[np.int32]:
    """A topic-connected overlay: its edges (m, 2), u < v, in the order in which they are added (stars: by star, then by node).

    `k` (at least 1) and `strict` are those of Low-ODA: it prefers an edge e1 that leaves the maximum degree as it is to a heavier
    one e2 if k · w(e1) ≥ w(e2), or > if strict. Useless edges are never added; ties go to the lowest (u, v). The CD-ODA family
    makes stars, so that every topic has diameter 2 at most. Raises InputError where k is below 1 or there are too many pairs of nodes.
    """
    if algorithm in _STARS:
        return stars(interests.indptr, interests.indices, *interests.by_topic, _STARS[algorithm])
    return extend(interests, np.empty((0, 2), np.int32), algorithm, k, strict)  # type: ignore[arg-type]


def extend(
    interests: BrokerInterests,
    kept: NDArray[np.int32],
    algorithm: GreedyAlgorithm = "gm",
    k: Fraction = DEFAULT_K,
    strict: bool = False,
    degrees: NDArray[np.int64] | None = None,
    highest: int = 0,
) -> NDArray[np.int32]:
    """The edges that GM, MinMax-ODA or Low-ODA adds, in order, to the existing edges `kept` (m, 2).

    `degrees` (nodes) and `highest`, the maximum degree of a larger overlay, are given where nodes have other links too; otherwise
    they are counted. Errors as for `design`.
    """
    if k < 1:
        raise InputError(f"k is {k}, allowed: at least 1")
    if degrees is None:
        degrees = node_degrees(interests.nodes, kept)
        highest = int(degrees.max(initial=0))
    common = common_topics(interests)
    least = _least(algorithm, k, strict, int(common.max(initial=0)))
    merges = interests.merges
    return greedy(interests.indptr, interests.indices, kept, degrees.copy(), highest, least, merges, common)


def _least(algorithm: GreedyAlgorithm, k: Fraction, strict: bool, heaviest: int) -> NDArray[np.int64]:
    """The least weight with which e1 is taken, for each weight of e2 from 0 to `heaviest`."""
    weights = range(heaviest + 1)
    if algorithm == "gm":
        found = [w + 1 for w in weights]
    elif algorithm == "minmax-oda":
        found = [1 for w in weights]
    else:
        found = [w // k + 1 if strict else -(-w // k) for w in weights]
    return np.array(found, np.int64)


def common_topics(interests: BrokerInterests) -> Integers:
    """The number of topics that both nodes of each pair want: (n (n - 1) / 2) in the order (0, 1), (0, 2), …, as small integers."""
    nodes = interests.nodes
    wanted = np.sort(np.diff(interests.indptr))
    # A pair has at most as many topics in common as the node with the second most topics has
    kind = np.min_scalar_type(int(wanted[-2]) if nodes > 1 else 0)
    pairs = nodes * (nodes - 1) // 2
    if pairs * kind.itemsize > _MOST_BYTES:
        raise InputError(
            f"{nodes:,} nodes have {pairs:,} pairs, too many for a greedy design, which needs {pairs * kind.itemsize / 1e9:,.1f} GB "
            f"(allowed: up to {_MOST_BYTES / 1e9:g} GB; the CD-ODA family needs no pairs)"
        )
    common = np.zeros(pairs, kind)
    count_common(interests.indptr, interests.indices, *interests.by_topic, common)
    return common


def node_degrees(nodes: int, edges: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of links of each node."""
    return np.bincount(edges.ravel(), minlength=nodes)
