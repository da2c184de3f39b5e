"""The SSBR cost (DYNATOPS, eq. 1 to 11): the cost of notifications in a configuration of brokers, and that of moving brokers."""

from __future__ import annotations

import math

# Any: costs are whole numbers or floats, which their inputs decide.
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError
from sim.overlay.tree_kernels import compact_tree
from sim.policies.reconfiguration import kernels
from sim.policies.reconfiguration.kernels import CostState, Numbers
from sim.policies.reconfiguration.problem import ReconfigurationProblem

_ROUNDING = 1e-12
"""The tolerance for sums of float64, relative to the largest possible cost: after swaps, a cost of 0 may not be exactly 0."""


class CostModel:
    """The cost that reconfiguration policies minimise, for the current configuration, updated with each swap.

    Overhead and delay are weighted by publications. With delay in hops and whole numbers for publications and delay weight, all is
    int64 and exact; otherwise float64. Policies that search in compiled code pass `state` to
    `sim.policies.reconfiguration.kernels`.

    >>> import numpy as np
    >>> from sim.overlay.chord import chord_routes
    >>> from sim.policies.reconfiguration.problem import ReconfigurationProblem
    >>> routes = chord_routes(np.arange(4), np.array([0, 0]), bits=2)
    >>> wanted = np.array([[0, 0, 0, 1], [0, 0, 0, 1]], bool)  # the last broker wants both topics, two hops from their root
    >>> problem = ReconfigurationProblem(routes.parent, routes.hops, routes.roots, wanted, np.array([5, 1]), np.arange(4))
    >>> objective = CostModel(problem)
    >>> objective.external, objective.internal, objective.delay, objective.cost
    (6, 6, 12, 18)
    >>> objective.swap_change(0, 3)
    -18
    >>> objective.swap(0, 3)
    >>> objective.cost, objective.node_of
    (0, array([3, 1, 2, 0], dtype=int32))
    """

    def __init__(self, problem: ReconfigurationProblem) -> None:
        self.problem = problem
        topics, n = problem.wanted.shape
        whole = np.issubdtype(problem.publications.dtype, np.integer) and float(problem.delay_weight).is_integer()
        exact = whole and problem.round_trips is None
        number: Any = np.int64 if exact else np.float64
        hop = 1 if problem.round_trips is None else float(problem.round_trips.max())
        weight = int(problem.delay_weight) if exact else float(problem.delay_weight)
        most = sum(problem.publications.tolist()) * n * (1 + weight * hop * int(problem.hops.max()))
        if exact and most >= 2**63:
            raise InputError(
                f"costs may reach {most:.3g}, allowed: below 2^63; give publications or the delay weight in larger units"
            )
        self.tolerance: int | float = 0 if exact else _ROUNDING * most
        """The difference up to which costs are taken as equal: 0 for whole numbers, otherwise more than the rounding error."""
        of_broker, wants = np.nonzero(problem.wanted.T)
        trips = np.zeros((0, 0), number) if problem.round_trips is None else _own(problem.round_trips, number)
        first_link, links = _links(problem) if len(trips) else (np.zeros(n + 1, np.int64), np.zeros(0, np.int32))
        self.state = CostState(
            parent=_own(problem.parent, np.int32),
            hops=_own(problem.hops, np.int32),
            roots=_own(problem.roots, np.int32),
            wanted=_own(problem.wanted, np.bool_),
            publications=_own(problem.publications, number),
            first_topic=np.searchsorted(of_broker, np.arange(n + 1)),
            topics=wants.astype(np.int32),
            delay_weight=weight,
            count_rendezvous=bool(problem.count_rendezvous),
            round_trips=trips,
            trips_back=_own(trips.T, number),
            first_link=first_link,
            links=links,
            flows=np.zeros((2, len(links)), number),
            node_of=np.empty(n, np.int32),
            broker_at=np.empty(n, np.int32),
            counts=np.empty((topics, n), np.int32),
            totals=np.empty(2, number),
            scratch=np.empty(topics, np.int32),
        )
        self.place(problem.node_of)

    def place(self, node_of: NDArray[np.int32]) -> None:
        """Put all brokers on the given nodes (n), and recount everything. Raises ValueError where they are not a permutation."""
        n = len(self.state.node_of)
        if node_of.shape != (n,) or not np.array_equal(np.sort(node_of), np.arange(n)):
            raise ValueError(f"node_of is not a permutation of {n} nodes")
        self.state.node_of[:] = node_of
        self.state.broker_at[node_of] = np.arange(n)
        kernels.place(self.state)

    @property
    def node_of(self) -> NDArray[np.int32]:
        """The present node of each broker (n); a copy."""
        return self.state.node_of.copy()

    @property
    def external(self) -> int | float:
        """Messages to brokers that only relay (eq. 4)."""
        external: int | float = self.state.totals[0].item()
        return external

    @property
    def internal(self) -> int | float:
        """Messages to brokers that subscribe."""
        state = self.state
        at_root = state.wanted[np.arange(len(state.roots)), state.broker_at[state.roots]]
        internal: int | float = (state.publications * (state.wanted.sum(axis=1) - at_root)).sum().item()
        return internal

    @property
    def delay(self) -> int | float:
        """Delay from the root to each broker that subscribes, in hops or round-trip times (eq. 5)."""
        delay: int | float = self.state.totals[1].item()
        return delay

    @property
    def cost(self) -> int | float:
        """External overhead and weighted delay (eq. 6)."""
        return self.external + self.state.delay_weight * self.delay

    @property
    def broker_costs(self) -> Numbers:
        """The costs of the brokers (n), which add up to the cost (eq. 9)."""
        return kernels.broker_costs(self.state)

    def swap_change(self, first: int, second: int) -> int | float:
        """The change of the cost if two brokers swap nodes. Raises IndexError where there is no such broker."""
        self._check(first, second)
        external, delay = kernels.swap_change(self.state, first, second)
        return external + self.state.delay_weight * delay

    def swap(self, first: int, second: int) -> None:
        """Swap the nodes of two brokers. Raises IndexError where there is no such broker."""
        self._check(first, second)
        kernels.swap(self.state, first, second, kernels.swap_change(self.state, first, second))

    def best_partner(self, broker: int) -> int | None:
        """The partner whose swap with the broker lowers the cost most, the lowest on ties; None where none lowers it."""
        self._check(broker)
        partner = kernels.best_partner(self.state, broker, self.tolerance)
        return partner if partner >= 0 else None

    def _check(self, *brokers: int) -> None:
        n = len(self.state.node_of)
        if not all(0 <= broker < n for broker in brokers):
            raise IndexError(f"brokers {brokers}: expected numbers from 0 to {n - 1}")

    @property
    def moved(self) -> int:
        """The brokers that are not on their initial nodes (gamma)."""
        return int(np.count_nonzero(self.state.node_of != self.problem.node_of))

    @property
    def relocation_cost(self) -> float:
        """The cost that each moved broker adds to a reconfiguration (eq. 11)."""
        if self.problem.constants is None:
            return 0.0
        topics, n = self.problem.wanted.shape
        _, rejoin, trees = self.problem.constants
        log = math.log2(n)
        relocation_cost: float = rejoin * log * log + trees * topics * log
        return relocation_cost

    def move_cost(self, moved: int) -> float:
        """The cost in messages of a reconfiguration that moves this number of brokers (eq. 11)."""
        if not moved or self.problem.constants is None:
            return 0.0
        return self.problem.constants[0] * len(self.problem.node_of) + self.relocation_cost * moved

    @property
    def max_move_cost(self) -> float:
        """The cost of a reconfiguration that moves all brokers."""
        return self.move_cost(len(self.state.node_of))

    def trees(self) -> list[NDArray[np.int32]]:
        """The tree of each topic as links (m, 2) from node to node, breadth first."""
        found = []
        for counts, root in zip(self.state.counts, self.state.roots.tolist(), strict=True):
            nodes, parents, _, _ = compact_tree(counts, self.state.parent[root], root)
            found.append(np.stack([nodes[parents[1:]], nodes[1:]], axis=1))
        return found


def _own(array: NDArray[Any], number: Any) -> Any:
    """The array in the form that kernels are compiled for: of this type, C-contiguous and writable."""
    return np.require(array, number, ("C", "W"))


def _links(problem: ReconfigurationProblem) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nodes that each node may have above or below itself in a tree, ascending: (n + 1) and (m)."""
    n = len(problem.node_of)
    linked = np.zeros((n, n), np.bool_)
    for root in np.unique(problem.roots):
        below = np.flatnonzero(problem.parent[root] >= 0)
        linked[problem.parent[root, below], below] = True
    ends, others = np.nonzero(linked | linked.T)
    return np.searchsorted(ends, np.arange(n + 1)), others.astype(np.int32)
