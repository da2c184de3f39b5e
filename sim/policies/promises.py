"""The contracts of policies, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

import numpy as np

from sim.plugins import Found, Promises, promise
from sim.policies.offloading import problem as offloading
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationPolicy, ReconfigurationProblem
from sim.policies.reconfiguration.process import ProcessParameters
from sim.policies.sharing.view import SharingPolicy, SharingView
from sim.policies.views import Selection, SelectionPolicy, SelectionView, SelectionViews, SelectsMany, selects_many

REACTIONS = frozenset({"subscription", "movement"})


class SelectionPromises(Promises):
    """The contract of a selection policy."""

    group, protocol, optional = "selection", SelectionPolicy, SelectsMany

    @classmethod
    def offers(cls, kind: type, member: str) -> bool:
        """Whether a class has an optional member; a `select_all` that does not match its `select` is ignored."""
        return hasattr(kind, member) and selects_many(kind)

    @promise("reacts_to")
    def reactions(self, found: Found) -> Iterator[str]:
        """`reacts_to` is a set of "subscription" and "movement"."""
        if not found <= REACTIONS:
            yield f"reacts_to is {sorted(found)}, allowed: {sorted(REACTIONS)}"

    @promise("exchange")
    def exchanges(self, found: Found) -> Iterator[str]:
        """`exchange` is None, or an Exchange with a finite period above 0 and an integer for each broker."""
        if found is None:
            return
        if not 0 < found.period < np.inf:
            yield f"exchange.period is {found.period} s, expected a finite time above 0"
        cluster = found.cluster
        if cluster.shape != (self.setting.brokers,) or cluster.dtype.kind not in "iu":
            yield f"exchange.cluster is {cluster.dtype}{cluster.shape}, expected an integer for each broker"

    @promise("select")
    def known_broker(self, found: Found, view: SelectionView) -> Iterator[str]:
        """`select` returns a Selection of a broker of the network."""
        broker = found.broker if isinstance(found, Selection) else None
        if not isinstance(broker, int) or isinstance(broker, bool):
            yield f"select returned {found!r}, expected Selection(an int)"
        elif not 0 <= broker < self.setting.brokers:
            where = f"for user {view.user} at {view.time:g} s"
            yield f"select chose broker {broker} of {self.setting.brokers}, {where}"

    @promise("select_all")
    def known_brokers(self, found: Found, views: SelectionViews) -> Iterator[str]:
        """`select_all`, if present, returns an array of integers: a broker of the network for each view."""
        if found.shape != (len(views),) or found.dtype.kind not in "iu":
            yield f"select_all returned {found.dtype}{found.shape}, expected an integer for each of {len(views)} views"
        wrong = np.flatnonzero((found < 0) | (found >= self.setting.brokers)).tolist()
        if wrong:
            where = f"for user {views.user[wrong[0]]} at {views.time[wrong[0]]:g} s"
            yield f"select_all chose broker {found[wrong[0]]} of {self.setting.brokers}, {where}"

    @promise("select_all", costly=True)
    def as_one_by_one(self, found: Found, views: SelectionViews) -> Iterator[str]:
        """`select_all` returns the same brokers as `select` does, view by view."""
        for number, broker in enumerate(found.tolist()):
            alone = self.plugin.select(views[number]).broker
            if broker != alone:
                yield f"select_all chose broker {broker} where select chooses {alone}, for user {views.user[number]}"


class ReconfigurationPromises(Promises):
    """The contract of a reconfiguration policy."""

    group, protocol, parameters = "reconfiguration", ReconfigurationPolicy, ProcessParameters

    @promise("reconfigure")
    def permutation(self, found: Found, problem: ReconfigurationProblem) -> Iterator[str]:
        """`reconfigure` returns a Reconfiguration with each broker on a node of its own."""
        if not isinstance(found, Reconfiguration):
            yield f"reconfigure returned {found!r}, expected a Reconfiguration"
        node_of, brokers = np.asarray(found.node_of), len(problem.node_of)
        if node_of.dtype.kind not in "iu" or not np.array_equal(np.sort(node_of), np.arange(brokers)):
            yield f"reconfigure chose nodes {node_of.tolist()}, expected each of 0 to {brokers - 1} once"

    @promise("reconfigure", costly=True)
    def swaps(self, found: Reconfiguration, problem: ReconfigurationProblem) -> Iterator[str]:
        """The swaps of a Reconfiguration, if any, lead to its nodes, and their costs are those after each swap."""
        brokers, objective = len(problem.node_of), CostModel(problem)
        for swap in found.swaps:
            if not (0 <= swap.broker < brokers and 0 <= swap.partner < brokers):
                yield f"{swap} names a broker that does not exist (there are {brokers})"
            objective.swap(swap.broker, swap.partner)
            if not math.isclose(swap.cost, objective.cost, rel_tol=1e-9):
                yield f"the cost after {swap} is {objective.cost}"
        if found.swaps and not np.array_equal(objective.node_of, found.node_of):
            decided = np.asarray(found.node_of).tolist()
            yield f"its swaps lead to nodes {objective.node_of.tolist()}, but it chose {decided}"


class OffloadingPromises(Promises):
    """The contract of an offloading policy."""

    group, protocol, parameters = "offloading", offloading.OffloadingPolicy, OffloadingParameters

    @promise("objective")
    def known_objective(self, found: Found) -> Iterator[str]:
        """`objective` is "satisfied" or "satisfaction"."""
        if found not in (allowed := get_args(offloading.Objective)):
            yield f"its objective is {found!r}, allowed: {', '.join(allowed)}"

    @promise("decide")
    def known_topics(self, found: Found, problem: offloading.OffloadingProblem, *_: Found) -> Iterator[str]:
        """`decide` returns a Decision with topics of the problem, each once."""
        if not isinstance(found, offloading.Decision):
            yield f"decide returned {found!r}, expected a Decision"
        topics = np.asarray(found.topics)
        if topics.dtype.kind not in "iu" or len(set(topics.tolist()) & set(range(problem.topics))) != len(topics):
            yield f"decide kept topics {topics.tolist()}, expected some of the {problem.topics}, each once"

    @promise("decide")
    def affordable(self, found: offloading.Decision, problem: offloading.OffloadingProblem, *_: Found) -> Iterator[str]:
        """The topics of a Decision cost no more than the capacity."""
        cost = float(problem.cost[found.topics].sum())
        if cost > problem.capacity * (1 + 1e-9):
            yield f"decide kept topics that cost {cost:g}, more than the capacity of {problem.capacity:g}"


class SharingPromises(Promises):
    """The contract of a sharing policy."""

    group, protocol = "sharing", SharingPolicy

    @promise("observes")
    def known_observations(self, found: Found) -> Iterator[str]:
        """`observes` is a set of "load", or empty."""
        if not found <= {"load"}:
            yield f"observes is {sorted(found)}, allowed: load"

    @promise("choose")
    def known_member(self, found: Found, view: SharingView) -> Iterator[str]:
        """`choose` returns the position of one of the members."""
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < len(view.members):
            yield f"choose returned {found!r}, expected an int from 0 to {len(view.members) - 1}"
