"""Compiled kernels of GM, MinMax-ODA and Low-ODA. Slow twins: tests/oracles/topic_connected.py.

A topic's components are labels on incidences, the pairs (node, topic) in the order of the interests' CSR; the incidences of
one component form a circular list, so that two are joined by swapping two links of it. Weights of the pairs of nodes lie in a
triangular array, row u holding the pairs (u, v) with v > u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.compiled import kernel


@kernel
def row_base(u: int, nodes: int) -> int:
    """The index of column 0 of row u, so that the pair (u, v) is v further on."""
    return u * (nodes - 1) - u * (u - 1) // 2 - u - 1


@kernel
def count_common(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    weights: Integers,
) -> None:
    """Fill the weight of each pair (n (n - 1) / 2, initially zeros) with the number of topics that both want."""
    n = indptr.size - 1
    for u in range(n):
        base = row_base(u, n)
        for i in range(indptr[u], indptr[u + 1]):
            m = starts[indices[i] + 1] - 1
            while members[m] > u:
                weights[base + members[m]] += 1
                m -= 1


class Components(NamedTuple):
    """The interests as CSR; of each incidence its node (`owner`), component (`label`) and the `following` one there; sizes by label."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    owner: NDArray[np.int32]
    label: NDArray[np.int32]
    following: NDArray[np.int32]
    size: NDArray[np.int32]


@kernel
def _join(u: int, v: int, components: Components, weights: Integers) -> int:
    """Link two nodes: join their components of each topic that both want, and count how many were joined.

    The weight of pairs across two joined components is reduced by that topic; the smaller component is relabelled.
    """
    indptr, indices, owner, label, following, size = components
    n = indptr.size - 1
    joined = 0
    i, j = indptr[u], indptr[v]
    while i < indptr[u + 1] and j < indptr[v + 1]:
        if indices[i] < indices[j]:
            i += 1
        elif indices[i] > indices[j]:
            j += 1
        else:
            if label[i] != label[j]:
                small, large = (i, j) if size[label[i]] <= size[label[j]] else (j, i)
                size[label[large]] += size[label[small]]
                a = small
                while True:
                    x, base, b = owner[a], row_base(owner[a], n), large
                    while True:
                        y = owner[b]
                        weights[base + y if x < y else row_base(y, n) + x] -= 1
                        b = following[b]
                        if b == large:
                            break
                    label[a] = label[large]
                    a = following[a]
                    if a == small:
                        break
                following[small], following[large] = following[large], following[small]
                joined += 1
            i += 1
            j += 1
    return joined


@kernel
def _next_pair(
    level: int,
    u: int,
    v: int,
    lowest: int,
    below: int,
    degree: NDArray[np.int64],
    weights: Integers,
    bound: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Move the pointer (u, v) on, at this level and then at lower ones, to a pair of that weight with both degrees under `below`.

    Weights only fall and degrees only rise, so pairs that were passed need not be checked again. The level is `lowest` - 1 where
    there is none. `bound` holds an upper bound on the weights of each row.
    """
    n = degree.size
    while level >= lowest:
        while u < n - 1:
            if degree[u] < below and bound[u] >= level:
                base = row_base(u, n)
                if v == u + 1:
                    most = weights[base + v]
                    for p in range(base + v, base + n):
                        most = max(most, weights[p])
                    bound[u] = most
                if bound[u] >= level:
                    while v < n:
                        if weights[base + v] == level and degree[v] < below:
                            return level, u, v
                        v += 1
            u += 1
            v = u + 1
        level -= 1
        u, v = 0, 1
    return lowest - 1, 0, 1


@kernel
def greedy(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    kept: NDArray[np.int32],
    degree: NDArray[np.int64],
    highest: int,
    least: NDArray[np.int64],
    merges: int,
    weights: Integers,
) -> NDArray[np.int32]:
    """Add pairs until every topic is connected, starting from the `kept` ones (m, 2); the added ones (·, 2), u < v, in order.

    `degree` (n, changed) and `highest` are the degrees at the start; `weights` (changed) the common topics of each pair, and
    `merges` how many joins of components remain without kept links. At each step e2 is the pair of maximum weight, e1 that among
    the pairs that do not raise the maximum degree; e1 is taken where its weight is at least `least[w(e2)]`, otherwise e2. Where
    every useful pair raises the maximum degree, e1 is e2. Ties go to the lowest (u, v).
    """
    n = indptr.size - 1
    owner = np.empty(indices.size, np.int32)
    for u in range(n):
        owner[indptr[u] : indptr[u + 1]] = u
    label = np.arange(indices.size).astype(np.int32)
    components = Components(indptr, indices, owner, label, label.copy(), np.ones(indices.size, np.int32))
    for e in range(kept.shape[0]):
        merges -= _join(kept[e, 0], kept[e, 1], components, weights)
    added = np.empty((merges, 2), np.int32)
    count = 0
    bound = np.full(n, least.size - 1)
    level, u, v = least.size - 1, 0, 1
    gentle_level, gentle_u, gentle_v = level, 0, 1
    while merges > 0:
        level, u, v = _next_pair(level, u, v, 1, highest + 1, degree, weights, bound)
        a, b = u, v
        if gentle_level > level:
            gentle_level, gentle_u, gentle_v = level, 0, 1
        if gentle_level >= least[level]:
            at, x, y = _next_pair(gentle_level, gentle_u, gentle_v, least[level], highest, degree, weights, bound)
            gentle_level, gentle_u, gentle_v = at, x, y
            if at >= least[level]:
                a, b = x, y
        merges -= _join(a, b, components, weights)
        added[count, 0], added[count, 1] = a, b
        count += 1
        degree[a] += 1
        degree[b] += 1
        if max(degree[a], degree[b]) > highest:
            highest += 1
            gentle_level, gentle_u, gentle_v = level, 0, 1
    return added[:count].copy()
