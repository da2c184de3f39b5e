"""The offloading service: observes publications, and decides which topics the back end keeps and which are offloaded (ODS)."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, fields

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.errors import PluginError
from sim.base.randomness_kernels import keyed_subkey
from sim.brokers.control.offloaded_topics import OffloadedTopics
from sim.brokers.control.protocol import ReconfigurationProtocol
from sim.brokers.control.trees import TreeControl
from sim.brokers.fabric.clock import OFFLOADING
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.satisfaction import Outcome
from sim.brokers.users.subscriptions import SplitSubscriptions, Subscriptions
from sim.brokers.users.users import HostedUsers
from sim.policies.offloading import problem as offloading
from sim.policies.offloading.bounds import upper_bounds
from sim.policies.offloading.outcome import OffloadingOutcome as Expected
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import OffloadingPolicy, OffloadingProblem
from sim.policies.offloading.process import OffloadingParameters

EVERYWHERE = -1  # the broker of a decision for all of them


@dataclass(frozen=True, eq=False)
class OffloadingSetting:
    """The policy that decides which topics the back end keeps, the parameters of the service, and the key of its draws.

    Without a policy the back end keeps all topics, and it is measured whom that satisfies.
    """

    policy: OffloadingPolicy | None
    parameters: OffloadingParameters
    key: int


@dataclass
class OffloadingRecord:
    """What was decided: how many topics the back end keeps, and their cost, in the notifications per period that are expected.

    Where there is a choice: the capacity, the value of the policy's objective at the expected rates, and the best proven bound of it.
    `churn`: topics with subscribers that were offloaded or taken back; `messages` informed brokers of it.
    """

    time: float
    topics: int
    cost: float
    capacity: float | None = None
    value: float | None = None
    bound: float | None = None
    churn: int = 0
    messages: int = 0


class OffloadingService:
    """The offloading service. `published(start, end)`: publications per topic from one time to another.

    At the start of each period but the first, it weighs the last one's publications with those before and asks the policy, once or for
    each broker. Brokers that want a topic which has changed are informed by a message each; the change holds at once. While brokers
    move to other nodes nothing is decided; one decision follows when they have.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        control: TreeControl,
        users: HostedUsers,
        subscriptions: Subscriptions,
        protocol: ReconfigurationProtocol | None,
        published: Callable[[float, float], NDArray[np.int64]],
        setting: OffloadingSetting,
    ) -> None:
        assert recorder.satisfaction is not None
        self._fabric, self._recorder, self._control, self._users = fabric, recorder, control, users
        self._subscriptions, self._protocol, self._satisfaction = subscriptions, protocol, recorder.satisfaction
        self._published, self._setting = published, setting
        self._rates: NDArray[np.float64] | None = None  # publications per topic and period
        self._former: dict[int, offloading.Decision] = {}
        self._period = 0
        self._late = False
        self.decisions: dict[int, OffloadingRecord] = {}  # by period

    def start(self) -> None:
        """Start the periodic decisions."""
        self._fabric.clock.process(self._run())

    def _run(self) -> Generator[simpy.Event, object, None]:
        clock, period = self._fabric.clock, self._setting.parameters.period
        while True:
            yield clock.until((self._period + 1) * period, OFFLOADING)
            self._period += 1
            self._watch()
            if self._protocol is None or not self._protocol.running:
                self._decide()
            elif not self._late:
                self._late = True
                self._protocol.when_over(self._make_up)

    def _make_up(self) -> None:
        self._late = False
        self._decide()

    def _watch(self) -> None:
        """Weigh the publications of the period that has ended with those before."""
        parameters, number = self._setting.parameters, self._period
        seen = self._published((number - 1) * parameters.period, number * parameters.period).astype(np.float64)
        # in this form rates that stay the same are the same to the last bit
        self._rates = seen if self._rates is None else self._rates + parameters.smoothing * (seen - self._rates)

    # -- deciding

    def _decide(self) -> None:
        """Ask the policy, and enact its decision."""
        policy, offloaded, now = self._setting.policy, self._control.offloaded, self._fabric.clock.now
        if policy is None or offloaded is None:
            self.decisions[self._period] = self._all_kept()
            return
        kept = np.zeros_like(offloaded.kept)
        topics, cost, capacity, value, bound = 0, 0.0, 0.0, 0.0, 0.0
        for broker, problem in self._problems():
            chosen = policy.decide(problem, self._former.get(broker))
            self._former[broker] = chosen
            result = self._checked(problem, chosen)
            kept[chosen.topics, slice(None) if broker == EVERYWHERE else broker] = True
            topics += len(chosen.topics)
            cost += result.cost
            capacity += problem.capacity
            value += result.value_of(policy.objective)
            bound += min(upper_bounds(problem, policy.objective, chosen.topics).values())
        churn, messages = self._enact(offloaded, kept)
        self.decisions[self._period] = OffloadingRecord(now, topics, cost, capacity, value, bound, churn, messages)
        self._recorder.count("offload_churn", now, churn)
        self._recorder.count("offload_messages", now, messages)

    def _all_kept(self) -> OffloadingRecord:
        assert self._rates is not None
        cost = self._rates * self._subscriptions.users_wanting
        return OffloadingRecord(self._fabric.clock.now, int(np.count_nonzero(cost)), math.fsum(cost))

    def _problems(self) -> Iterator[tuple[int, OffloadingProblem]]:
        """The problems to decide: one for all brokers together, or one for each broker that has users."""
        interests = self._users.interests.all()
        if self._setting.parameters.scope == "network":
            yield EVERYWHERE, self._problem(EVERYWHERE, interests.indptr, interests.indices)
            return
        sizes, host = np.diff(interests.indptr), self._users.host
        for broker in np.unique(host[host >= 0]).tolist():  # absent users are at none
            here = host == broker
            indptr = np.concatenate([[0], np.cumsum(sizes[here])])
            yield broker, self._problem(broker, indptr, interests.indices[np.repeat(here, sizes)])

    def _problem(self, broker: int, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> OffloadingProblem:
        parameters, key = self._setting.parameters, keyed_subkey(self._setting.key, self._period, broker + 1)
        assert self._rates is not None
        problem = OffloadingProblem.of(indptr, indices, self._rates, 0.0, parameters.tau, key=key)
        # Of 100 % all fit, however fractions are rounded in a sum
        slack = problem.topics * 2.0**-52 if problem.scale > 1 else 0.0
        return problem.with_capacity(parameters.capacity.of(math.fsum(problem.cost) * (1 + slack)))

    def _checked(self, problem: OffloadingProblem, decision: offloading.Decision) -> Expected:
        """Evaluate a decision. Raises PluginError where it is invalid."""
        topics, name = decision.topics, type(self._setting.policy).__name__
        if len(np.unique(topics)) < len(topics) or (
            len(topics) and not 0 <= topics.min() <= topics.max() < problem.topics
        ):
            raise PluginError(f"offloading policy {name}: expected topics from 0 to {problem.topics - 1}, each once")
        result = outcome(problem, topics)
        if result.cost > problem.capacity:
            raise PluginError(
                f"offloading policy {name}: topics that cost {result.cost:g} are more than the capacity, {problem.capacity:g}"
            )
        return result

    # -- enacting

    def _enact(self, offloaded: OffloadedTopics, kept: NDArray[np.bool_]) -> tuple[int, int]:
        """Offload topics and take others back; returns how many with subscribers, and the messages that inform brokers."""
        subscriptions = self._subscriptions
        assert isinstance(subscriptions, SplitSubscriptions)
        moved = kept != offloaded.kept
        topics = np.flatnonzero(moved.any(axis=1))
        if not len(topics):
            return 0, 0
        self._control.before_change()
        offloaded.kept[:] = kept
        offloaded.moves += moved
        for topic in topics.tolist():
            subscriptions.split(topic)
        self._control.follow(moved, subscriptions.all_serving())
        self._control.changed()
        informed = moved & (subscriptions.wanted.dense() > 0)
        messages = int(np.count_nonzero(informed))
        alone = self._setting.parameters.scope == "broker"
        return messages if alone else int(np.count_nonzero(informed.any(axis=1))), messages

    # -- what came out

    def close(self) -> None:
        """Count decisions in the windows in which they were made, and periods in those in which they began."""
        count, period = self._recorder.count, self._setting.parameters.period
        for decision in self.decisions.values():
            count("decisions", decision.time)
            count("backend_load_sum", decision.time, decision.cost)
        for number, measured in self._satisfaction.outcomes.items():
            if measured.subscribers:  # else nothing was due to anybody
                count("periods", number * period)
                count("satisfied_subscribers_sum", number * period, measured.satisfied)
                count("satisfaction_sum", number * period, measured.satisfaction / measured.subscribers)

    def measured_decisions(self) -> list[OffloadingRecord]:
        """The decisions after the warm-up."""
        return [decision for decision in self.decisions.values() if decision.time >= self._recorder.warm_up]

    def table(self) -> Columns:
        """A row for each period that began: what was decided in it, and whom the back end satisfied."""
        period, horizon = self._setting.parameters.period, self._recorder.horizon
        numbers = range(math.ceil(horizon / period))
        decisions = [self.decisions.get(number) for number in numbers]
        measured = [self._satisfaction.outcomes.get(number) for number in numbers]
        return {
            "start": [number * period for number in numbers],
            **{
                field.name: [getattr(decision, field.name, None) for decision in decisions]
                for field in fields(OffloadingRecord)
            },
            **{name: [getattr(each, name, None) for each in measured] for name in Outcome._fields},
        }


def capacity_metrics(service: OffloadingService | None) -> dict[str, float | None]:
    """Means over the decisions after the warm-up that had a choice; None where there are none, or no service."""
    made = [] if service is None else service.measured_decisions()
    return {
        "backend_capacity": _mean([decision.capacity for decision in made if decision.capacity is not None]),
        "approximation_ratio": _mean([d.value / d.bound for d in made if d.value is not None and d.bound]),
    }


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
