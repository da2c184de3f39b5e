"""The conformance check passes the project's own policies and finds each way of breaking the interface."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from sim import plugins
from sim.base.errors import InputError
from sim.policies.conformance import NotConforming, check_offloading, check_reconfiguration, check_selection
from sim.policies.offloading.controls import Loudest
from sim.policies.offloading.problem import Decision
from sim.policies.offloading.problem import Problem as OffloadingProblem
from sim.policies.reconfiguration.greedy import SsbrGreedy
from sim.policies.reconfiguration.problem import Problem, Reconfiguration, Swap
from sim.policies.selection.fixed import StaticSelection
from sim.policies.views import Exchange, Selection, SelectionSetting, SelectionView


@pytest.mark.parametrize("name", plugins.names("selection"))
@pytest.mark.parametrize("seed", [1, 2])
def test_own_policies_conform(name: str, seed: int) -> None:
    check_selection(plugins.load("selection", name), seed=seed)


@pytest.mark.parametrize("parameters", [{"similarity": "jaccard"}, {"similarity": "mean-user", "cluster_size": 3}])
def test_parameters_are_handed_on(parameters: dict[str, Any]) -> None:
    check_selection(plugins.load("selection", "similarity"), parameters)


def test_static_in_order_conforms() -> None:
    check_selection(StaticSelection, {"assign": "in-order"})


class Loose(StaticSelection.Parameters, extra="ignore"):
    pass


class NoParameters(StaticSelection):
    Parameters = None  # type: ignore[assignment, misc]


class LooseParameters(StaticSelection):
    Parameters = Loose  # type: ignore[assignment, misc]


class Beyond(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return Selection(self._brokers)


class Nowhere(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return Selection(view.current)


class Unfinished(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return None  # type: ignore[return-value]


class Meddling(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        view.exchanged.load[0] = 0
        return super().select(view)


class Moody(StaticSelection):
    asked = 0

    def select(self, view: SelectionView) -> Selection:
        self.asked += 1
        return Selection(self.asked % self._brokers)


class OrderBound(StaticSelection):
    """Remembers what it said of each user, but what it says first depends on who asks first."""

    def __init__(self, parameters: StaticSelection.Parameters, setting: SelectionSetting) -> None:
        super().__init__(parameters, setting)
        self.said: dict[tuple[int, int], int] = {}

    def select(self, view: SelectionView) -> Selection:
        return Selection(self.said.setdefault((view.user, view.current), len(self.said) % self._brokers))


class Global(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        random.random()
        return super().select(view)


class GlobalNumpy(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        np.random.random()  # noqa: NPY002
        return super().select(view)


class Deaf(StaticSelection):
    reacts_to = frozenset({"moving"})


class Restless(StaticSelection):
    exchange = Exchange(0.0, np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("policy", "breach"),
    [
        (NoParameters, "no nested class Parameters"),
        (LooseParameters, "take keys that they do not know"),
        (Beyond, "decided for broker 12 of 12"),
        (Nowhere, "decided for broker -1"),
        (Unfinished, r"expected Selection\(an int\)"),
        (Meddling, "read-only"),
        (Moody, "when it is asked the same again"),
        (OrderBound, "in another order"),
        (Global, "global random state"),
        (GlobalNumpy, "global random state"),
        (Deaf, r"reacts_to is \['moving'\]"),
        (Restless, "exchange.period is 0.0 s"),
        (Restless, r"exchange.cluster is int32\(3,\)"),
    ],
)
def test_each_breach_is_found(policy: Any, breach: str) -> None:
    with pytest.raises(NotConforming, match=breach):
        check_selection(policy)


@pytest.mark.parametrize("name", plugins.names("reconfiguration"))
@pytest.mark.parametrize("seed", [1, 2])
def test_own_reconfiguration_policies_conform(name: str, seed: int) -> None:
    check_reconfiguration(plugins.load("reconfiguration", name), seed=seed)


class OtherParameters(SsbrGreedy):
    class Parameters(plugins.Parameters):  # type: ignore[assignment]
        pass


class Reconfigures(SsbrGreedy):
    """Decides as `decide` says, from where brokers stand."""

    def decide(self, node_of: Any) -> Any:
        raise NotImplementedError

    def reconfigure(self, problem: Problem) -> Reconfiguration:
        decided = self.decide(problem.node_of)
        return decided if isinstance(decided, Reconfiguration) else Reconfiguration(decided)


class Crowded(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        return np.zeros_like(node_of)


class Fractional(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        return node_of.astype(float)


class Forgetful(Reconfigures):
    def reconfigure(self, problem: Problem) -> Reconfiguration:
        return None  # type: ignore[return-value]


class Overwriting(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        node_of.sort()
        return node_of


class Misleading(Reconfigures):
    """Tells swaps that led elsewhere."""

    def reconfigure(self, problem: Problem) -> Reconfiguration:
        found = super(Reconfigures, self).reconfigure(problem)
        return Reconfiguration(problem.node_of, found.swaps)


class Boasting(Reconfigures):
    def reconfigure(self, problem: Problem) -> Reconfiguration:
        found = super(Reconfigures, self).reconfigure(problem)
        return Reconfiguration(found.node_of, tuple(swap._replace(cost=0) for swap in found.swaps))


class Inventing(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        return Reconfiguration(node_of, (Swap(0, len(node_of), 0),))


class Wavering(Reconfigures):
    asked = 0

    def decide(self, node_of: Any) -> Any:
        self.asked += 1
        return np.roll(node_of, self.asked)


class GlobalReconfiguration(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        random.random()
        return node_of


class Refusing(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        raise InputError(f"{len(node_of)} brokers are too many")


@pytest.mark.parametrize(
    ("policy", "breach"),
    [
        (OtherParameters, r"no nested class Parameters\(sim.policies.reconfiguration.process.ProcessParameters\)"),
        (Crowded, r"decided for nodes \[0, 0, .*\], expected each of 0 to 9 once"),
        (Fractional, "expected each of 0 to 9 once"),
        (Forgetful, "returned None, expected a Reconfiguration"),
        (Overwriting, "read-only"),
        (Misleading, "its swaps lead to nodes"),
        (Boasting, r"the cost after Swap\(.* is [1-9]"),
        (Inventing, r"names a broker that does not exist \(there are 10\)"),
        (Wavering, "when asked again"),
        (GlobalReconfiguration, "global random state"),
        (Refusing, "decides no problem"),
    ],
)
def test_each_breach_of_a_reconfiguration_policy_is_found(policy: Any, breach: str) -> None:
    with pytest.raises(NotConforming, match=breach):
        check_reconfiguration(policy)


@pytest.mark.parametrize("name", plugins.names("offloading"))
@pytest.mark.parametrize("seed", [1, 2])
def test_own_offloading_policies_conform(name: str, seed: int) -> None:
    check_offloading(plugins.load("offloading", name), seed=seed)


class Aimless(Loudest):
    objective = "fame"  # type: ignore[assignment]


class Keeps(Loudest):
    """Keeps what `keep` says."""

    def keep(self, problem: OffloadingProblem) -> Any:
        raise NotImplementedError

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        kept = self.keep(problem)
        return Decision(np.array(kept, np.int32)) if isinstance(kept, list) else kept


class Greedless(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        return None


class BeyondTopics(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        return [problem.topics]


class Twice(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        return [0, 0]


class Generous(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        return list(range(problem.topics))


class Deafening(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        problem.event_rate[:] = problem.cost[:] = 0
        return []


class Drifting(Keeps):
    asked = 0

    def keep(self, problem: OffloadingProblem) -> Any:
        self.asked += 1
        return [self.asked % problem.topics] if problem.capacity > problem.cost.max() else []


class GlobalOffloading(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        random.random()
        return []


class TooMuch(Keeps):
    def keep(self, problem: OffloadingProblem) -> Any:
        raise InputError(f"{problem.topics} topics are too many")


class Sticky(Loudest):
    """Sticks to what was before, whatever it costs now."""

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        return super().decide(problem) if previous is None else previous


@pytest.mark.parametrize(
    ("policy", "breach"),
    [
        (StaticSelection, r"no nested class Parameters\(sim.policies.offloading.process.OffloadingParameters\)"),
        (Aimless, "its objective is 'fame', allowed are satisfied, satisfaction"),
        (Greedless, "returned None, expected a Decision"),
        (BeyondTopics, r"kept topics \[12\], expected some of the 12, each once"),
        (Twice, r"kept topics \[0, 0\]"),
        (Generous, "one threshold: .* more than the capacity of"),
        (Deafening, "read-only"),
        (Drifting, "when asked again"),
        (GlobalOffloading, "global random state"),
        (TooMuch, "decides no problem"),
        (Sticky, "less capacity than before: .* more than the capacity"),
    ],
)
def test_each_breach_of_an_offloading_policy_is_found(policy: Any, breach: str) -> None:
    with pytest.raises(NotConforming, match=breach):
        check_offloading(policy)
