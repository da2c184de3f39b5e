"""The input and the decision of reconfiguration policies: which broker stands on which overlay node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ReconfigurationProblem:
    """Structure and subscription aware reconfiguration, SSBR (DYNATOPS III.C), for n brokers on n nodes and t topics.

    `parent` (n, n): parent[r, v] is the node before v on the route from root r, as in `sim.overlay.trees.RendezvousTrees`; `hops`
    (n, n): hops from r to v; `roots` (t): the rendezvous node of each topic. `wanted` (t, n): whether a broker subscribes to a
    topic. `publications` (t): expected in the period ahead; integers stay integers. `node_of` (n): the present node of each broker.
    `delay_weight`: the weight of a unit of delay, relative to a message to an unrelated relay (w_d of eq. 6). `round_trips` (n, n)
    between brokers, in units of delay; None: a hop is one unit. `count_rendezvous`: a rendezvous broker that does not subscribe
    counts as a relay. `constants`: the weights of the three terms of eq. 11, the cost of moving; None: moving is free. `key`: for
    random draws.
    """

    parent: NDArray[np.int32]
    hops: NDArray[np.int32]
    roots: NDArray[np.int32]
    wanted: NDArray[np.bool_]
    publications: NDArray[np.int64] | NDArray[np.float64]
    node_of: NDArray[np.int32]
    delay_weight: float = 1.0
    round_trips: NDArray[np.float64] | None = None
    count_rendezvous: bool = False
    constants: tuple[float, float, float] | None = (1.0, 1.0, 1.0)
    key: int = 0


class Swap(NamedTuple):
    """A swap of two brokers' nodes, and the cost (eq. 6) after it."""

    broker: int
    partner: int
    cost: float


@dataclass(frozen=True, eq=False)
class Reconfiguration:
    """The decision: the new node of each broker (n).

    `swaps` lead there, for policies that swap brokers. `optimal`: whether it is proven that no configuration costs less.
    """

    node_of: NDArray[np.int32]
    swaps: tuple[Swap, ...] = ()
    optimal: bool = False


class ReconfigurationPolicy(Protocol):
    """Which broker stands on which node: a pure function of the problem. Plug-in group `brokersim.reconfiguration`.

    The class has a nested `Parameters` that extends `sim.policies.reconfiguration.process.ProcessParameters`, and is created by
    `Policy(parameters)`.
    """

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """Decide once."""
