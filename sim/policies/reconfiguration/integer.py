"""The least SSBR cost as an integer linear programme: DYNATOPS, eq. 16, with 16e and 16f corrected, and with delay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from sim.base.errors import InputError
from sim.base.units import PositiveDuration
from sim.policies.reconfiguration.assignment import delay_costs
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem
from sim.policies.reconfiguration.process import ProcessParameters

MOST_VARIABLES = 600
"""Programmes of this size take seconds: 12 brokers and 20 topics have 384 variables, 14 and 28 have 588."""


class Programme(NamedTuple):
    """Minimise `costs` · z, with `least` ≤ `rows` · z ≤ `most`, 0 ≤ z ≤ 1, the first `places` of z integral."""

    costs: NDArray[np.float64]
    rows: sparse.csr_array
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    places: int


def programme(problem: ReconfigurationProblem) -> Programme:
    """The programme whose minimum is the least cost of the problem with delay in hops.

    z is x (n, n), whether a broker stands on a node, then y (t, n), whether a node is on a topic's tree. S, whether the broker on a
    node subscribes, is the sum of x over the topic's brokers (16d). 16e and 16f are corrected to: y ≥ S, as a subscriber's node is
    on the tree, and y of the node above ≥ y, as the path to it is. Minimising holds y down to the largest S at or below its node,
    so that it needs no integrality constraint. (As printed, 16e and 16f include an edge only if all nodes behind it subscribe.)

    External overhead is y - S at each node, weighted by publications; at the root only where it counts as a relay, which 16a, a sum
    over edges, leaves open. Delay is that of the assignment in appendix A.
    """
    topics, n = problem.wanted.shape
    places = n * n
    weights = np.repeat(problem.publications.astype(np.float64)[:, None], n, axis=1)
    if not problem.count_rendezvous:
        weights[np.arange(topics), problem.roots] = 0
    standing = problem.delay_weight * delay_costs(problem) - problem.wanted.T @ weights
    ones = np.ones((1, n))
    each = sparse.eye_array(n)
    assigned = sparse.vstack([sparse.kron(each, ones), sparse.kron(ones, each)])
    subscribed = sparse.kron(problem.wanted.astype(np.float64), each)
    topic, below = np.nonzero(np.arange(n) != problem.roots[:, None])
    above = problem.parent[problem.roots[topic], below]
    links = np.arange(len(below))
    ways = sparse.coo_array(
        (np.repeat((1.0, -1.0), len(below)), (np.tile(links, 2), np.r_[topic * n + above, topic * n + below])),
        (len(below), topics * n),
    )
    rows = sparse.block_array(
        [[assigned, None], [-subscribed, sparse.eye_array(topics * n)], [None, ways]], format="csr"
    )
    least = np.zeros(rows.shape[0])
    most = np.full(rows.shape[0], np.inf)
    least[: 2 * n] = most[: 2 * n] = 1  # 16b and 16c
    return Programme(np.r_[standing.ravel(), weights.ravel()], rows, least, most, places)


class Ilp:
    """The proven minimum cost, by branch and bound (HiGHS), for small networks with delay in hops; for others see `anneal`."""

    class Parameters(ProcessParameters):
        time_limit: PositiveDuration = 60.0
        """Wall-clock time limit; the best configuration found by then is taken, which is unproven and depends on the machine."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The nodes with the least cost (the present ones if they have it), and whether it is proven.

        Raises InputError where the programme is too large, or where delay is not in hops.
        """
        if problem.round_trips is not None:
            raise InputError(
                "policy ilp: delay in round-trip times is not a linear function of the brokers' nodes (allowed: delay in hops)"
            )
        topics, n = problem.wanted.shape
        if (variables := n * (n + topics)) > MOST_VARIABLES:
            raise InputError(
                f"policy ilp: {n:,} brokers and {topics:,} topics give n (n + t) = {variables:,} variables, "
                f"allowed: up to {MOST_VARIABLES}, as 12 brokers and 20 topics have (policy anneal takes any number)"
            )
        given = programme(problem)
        found = milp(
            given.costs,
            integrality=(np.arange(len(given.costs)) < given.places).astype(np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(given.rows, given.least, given.most),
            options={"time_limit": self._parameters.time_limit, "mip_rel_gap": 0.0},
        )
        objective = CostModel(problem)
        staying = objective.cost
        if found.x is not None:
            objective.place(found.x[: given.places].reshape(n, n).argmax(axis=1).astype(np.int32))
        better = objective.cost < staying - objective.tolerance
        return Reconfiguration(objective.node_of if better else problem.node_of, optimal=found.status == 0)
