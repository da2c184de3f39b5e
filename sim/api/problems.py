"""Single design problems, solved without a simulation."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

# Any: policies of any group.
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown
from sim.base.memory import need
from sim.base.naming import Keys, Raw

if TYPE_CHECKING:
    from collections.abc import Callable

    import networkx as nx
    import numpy as np
    from numpy.typing import NDArray

    from sim.overlay.topic_connected.design import Algorithm
    from sim.overlay.topic_connected.interests import BrokerInterests
    from sim.overlay.topic_connected.measures import Measures
    from sim.policies.offloading.problem import OffloadingPolicy, OffloadingProblem

    Tell = Callable[[str, str], None]

MOST_FOR_OPTIMUM = 12
"""The most nodes for which the optimum is computed as well."""
LONG = 1_000_000
"""The number of interests from which on progress is shown."""


@dataclass(frozen=True)
class DesignedOverlay:
    """A topic-connected overlay: its `edges` (m, 2) in the order added, its measures, and lower bounds of its number of edges.

    Examples:
        >>> sim.solve_overlay([[0], [0, 1], [1]], "gm").measures.maximum_degree
        2
    """

    wanted: Sequence[Sequence[int]]
    interests: BrokerInterests
    edges: NDArray[np.int32]
    measures: Measures
    bounds: dict[str, int]

    def graph(self) -> nx.Graph:
        """The overlay as a networkx graph, whose nodes have their `topics`.

        Examples:
            >>> sim.solve_overlay([[0], [0, 1], [1]], "gm").graph().number_of_edges()
            2
        """
        from sim.overlay.topic_connected.graphs import to_graph

        return to_graph([list(row) for row in self.wanted], self.edges)

    def as_json(self) -> Raw:
        """The edges and measures, as `brokersim solve overlay --json` prints them.

        Examples:
            >>> sim.solve_overlay([[0], [0, 1], [1]], "gm").as_json()["edges"]
            [[0, 1], [1, 2]]
        """
        return {"edges": self.edges.tolist(), **asdict(self.measures), "lower_bounds": self.bounds}


def solve_overlay(
    interests: Sequence[Sequence[int]] | str | Path,
    algorithm: str,
    k: str | float | None = None,
    strict: bool = False,
    bounds: bool = False,
) -> DesignedOverlay:
    """Design a topic-connected overlay: the subscribers of each topic are connected among themselves.

    Args:
        interests: the topics of each node, by number from 0; or a workload's folder, whose nodes are its users, with their
            interests at its start.
        algorithm: "gm", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i" or "cd-oda-ii".
        k: low-oda: how many times heavier a link must be to raise the maximum degree; at least 1; 1.5 by default.
        strict: low-oda: compare with > as in the paper's text, not ≥.
        bounds: also compute lower bounds of the number of edges; the optimum for up to 12 nodes.

    Returns:
        The overlay, with its `edges` and `measures`.

    Raises:
        InputError: where there is no such algorithm, or an argument is not allowed.

    Examples:
        >>> sim.solve_overlay([[0], [0, 1], [1]], "gm").edges.tolist()
        [[0, 1], [1, 2]]
    """
    from sim.overlay.topic_connected.bounds import lower_bounds, optimum
    from sim.overlay.topic_connected.design import design
    from sim.overlay.topic_connected.interests import BrokerInterests
    from sim.overlay.topic_connected.measures import measure

    chosen, factor = check_design(algorithm, k, strict)
    rows = interests_of(interests) if isinstance(interests, str | Path) else [list(row) for row in interests]
    wanted = BrokerInterests.of(rows)
    edges = design(wanted, chosen, factor, strict)
    found: dict[str, int] = {}
    if bounds:
        found = dict(lower_bounds(wanted))
        if wanted.nodes <= MOST_FOR_OPTIMUM:
            found["optimum"] = len(optimum(wanted))
    return DesignedOverlay(rows, wanted, edges, measure(wanted, edges), found)


def check_design(algorithm: str, k: str | float | None = None, strict: bool = False) -> tuple[Algorithm, Fraction]:
    """The algorithm and the factor of `solve_overlay`. Raises InputError where an argument is not allowed."""
    from sim.overlay.topic_connected.design import ALGORITHMS, DEFAULT_K

    chosen = next((name for name in ALGORITHMS if name == algorithm), None)
    if chosen is None:
        raise InputError(f"--algorithm: {unknown('design', algorithm, ALGORITHMS)}")
    for name, given in (("--k", k is not None), ("--strict", strict)):
        if given and algorithm != "low-oda":
            raise InputError(f"{name} is only for low-oda (found --algorithm {algorithm})")
    return chosen, DEFAULT_K if k is None else _factor(str(k))


def interests_of(folder: str | Path) -> list[list[int]]:
    """The topics of each user of a workload, at its start."""
    from sim.workloads.format.folder import load_workload
    from sim.workloads.models.live_filters import with_topics_of_filters

    interests = with_topics_of_filters(load_workload(Path(folder))).interests
    bounds, topics = interests.indptr.tolist(), interests.indices.tolist()
    return [topics[start:stop] for start, stop in itertools.pairwise(bounds)]


def solve_reconfiguration(problem: Raw, policy: str, place: Keys = ()) -> Raw:
    """Find places for brokers on a Chord ring, with less overhead and delay, at the costs of DYNATOPS.

    Args:
        problem: "bits", "node_ids", "topic_hashes", "subscriptions" (topics by broker), "publications" (by topic), "mapping" (node id
            by broker), "delay_weight"; and, with defaults, "rtt", "count_rendezvous", "move_cost" and "seed".
        policy: a reconfiguration policy by its name, or "none" to evaluate the mapping as it is.
        place: where the problem is in a file, for messages.

    Returns:
        Mapping, costs, swaps and trees, as `brokersim solve reconfiguration --json` prints them.

    Raises:
        InputError: where there is no such policy, or a key is missing or wrong.

    Examples:
        >>> ring = {"bits": 4, "node_ids": [0, 4, 8, 12], "topic_hashes": [9], "mapping": [0, 4, 8, 12], "delay_weight": 1}
        >>> wanted = {"subscriptions": [[0], [], [], []], "publications": [10]}
        >>> solved = sim.solve_reconfiguration({**ring, **wanted}, "lsap")
        >>> solved["cost_after"] <= solved["cost_before"]
        True
    """
    from sim.api.reconfiguration_problems import RingProblem
    from sim.base.validation import dotted
    from sim.policies.reconfiguration.problem import Reconfiguration

    chosen = check_reconfiguration(policy)
    instance = RingProblem.read(problem, place)
    ring = instance.problem()
    try:
        return instance.solution(ring, chosen.reconfigure(ring) if chosen else Reconfiguration(ring.node_of))
    except InputError as error:
        raise InputError(f"{dotted(place)}: {error}" if place else str(error)) from None


def check_reconfiguration(policy: str) -> Any:
    """The policy of this name, None for "none". Raises InputError where there is none."""
    from sim.policies.promises import ReconfigurationPromises

    return policy_of(ReconfigurationPromises, policy)


def solve_offloading(
    problem: Raw | str | Path,
    policy: str,
    capacity: str | float | None = None,
    tau: str | float | None = None,
    seed: int | None = None,
    *,
    bounds: bool = False,
    steps: int = 0,
    place: Keys = (),
    tell: Tell | None = None,
) -> Raw:
    """Choose the topics that a back end of limited capacity keeps.

    A subscriber is satisfied by tau events per period, or by all events of its topics if these are fewer.

    Args:
        problem: "interests" (topics by subscriber), "event_rate" (by topic), "capacity" and "tau", and perhaps "cost" (by topic) and
            "seed"; or a workload's folder, with its interests at its start and its rates per period.
        policy: an offloading policy by its name, or "none" to keep all topics.
        capacity: the maximum cost of the kept topics: a number, or a share of all topics' cost, such as "10%".
        tau: events per period that satisfy a subscriber.
        seed: the seed of random draws.
        bounds: also compute upper bounds, which no choice of topics exceeds.
        steps: also decide at this many smaller capacities, at equal distances from 0.
        place: where the problem is in a file, for messages.
        tell: called with each step and its details.

    Returns:
        The topics and their values, as `brokersim solve offloading --json` prints them.

    Raises:
        InputError: where there is no such policy, or a key is missing or wrong.

    Examples:
        >>> problem = {"interests": [[0], [0, 1]], "event_rate": [5, 3], "capacity": 10, "tau": 4}
        >>> sim.solve_offloading(problem, "b3m")["topics"]
        [1]
    """
    from sim.api.offloading_problems import read_problem
    from sim.base.validation import dotted

    chosen, given, say = _offloading_policy(policy), _given(capacity, tau, seed), tell or _quiet
    if isinstance(problem, str | Path):
        asked, where = _of_folder(Path(problem), given, say), str(problem)
    else:
        asked = read_problem({**problem, **given} if isinstance(problem, dict) else problem, place)
        where = dotted(place)
    try:
        return _decided(chosen, asked, bounds, steps, say if len(asked.indices) >= LONG else _quiet)
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


def check_offloading(policy: str, capacity: str | float | None = None, tau: str | float | None = None) -> str:
    """What the policy maximises, "satisfied" or "satisfaction". Raises InputError where an argument is not allowed."""
    _given(capacity, tau, None)
    return str(_offloading_policy(policy).objective)


def _offloading_policy(name: str) -> OffloadingPolicy:
    from sim.api.offloading_problems import KeepAll
    from sim.policies.promises import OffloadingPromises

    return policy_of(OffloadingPromises, name) or KeepAll()


def _decided(policy: OffloadingPolicy, problem: OffloadingProblem, bounds: bool, steps: int, tell: Tell) -> Raw:
    """The decision as JSON; with `steps` also those at smaller capacities, without their topics, as its curve."""
    from sim.api.offloading_problems import solution
    from sim.policies.offloading.curve import decisions

    tell("deciding", "")
    started = time.process_time()
    decision = policy.decide(problem)
    seconds = time.process_time() - started
    if bounds:
        tell("computing upper bounds", "")
    found = {**solution(problem, decision, policy.objective, bounds), "seconds": seconds}
    if not steps:
        return found
    points = [_point(found)]
    for smaller, taken in decisions(policy, problem, steps):
        tell(f"capacity {smaller.capacity:g}: {len(points)} of {steps}", "")
        points.append(_point(solution(smaller, taken, policy.objective, bounds)))
    return {**found, "curve": points[::-1]}


def _point(found: Raw) -> Raw:
    """A decision as a point of a curve: the number of topics replaces the topics."""
    rest = {key: value for key, value in found.items() if key not in ("topics", "capacity", "seconds")}
    return {"capacity": found["capacity"], "kept": len(found["topics"]), **rest}


def policy_of(promises: Any, name: str) -> Any:
    """The policy of this name in the promises' group, with its default parameters; None for "none".

    Raises InputError where there is none.
    """
    from sim import plugins

    group, names = promises.group, plugins.names(promises.group)
    if name == "none":
        return None
    if name not in names:
        raise InputError(f"--policy: {unknown(f'{group} policy', name, [*names, 'none'])}")
    return plugins.make(promises, name, plugins.load(group, name).Parameters())


def _factor(text: str) -> Fraction:
    from sim.base.units import parse_fraction

    try:
        value = parse_fraction(text)
    except ValueError as error:
        raise InputError(f"--k: {error}") from None
    if value < 1:
        raise InputError(f"--k: expected at least 1, found {text!r}")
    return value


def _given(capacity: str | float | None, tau: str | float | None, seed: int | None) -> Raw:
    """The values given beside the problem, by its keys."""
    from sim.policies.offloading.process import parse_capacity

    given: Raw = {}
    if capacity is not None:
        try:
            given["capacity"] = parse_capacity(str(capacity))
        except ValueError as error:
            raise InputError(f"--capacity: {error}") from None
    if tau is not None:
        try:
            given["tau"] = float(tau)
        except ValueError:
            given["tau"] = -1.0
        if not 0 <= given["tau"] <= 2**53:
            raise InputError(f"--tau: expected a number of events per period (0 or more), found {tau!r}")
    return given if seed is None else {**given, "seed": seed}


def _of_folder(source: Path, given: Raw, tell: Tell) -> OffloadingProblem:
    from sim.api.offloading_problems import bytes_needed
    from sim.policies.offloading.process import make_problem
    from sim.workloads.format.demand import load_demand

    for key in ("capacity", "tau"):
        if key not in given:
            raise InputError(f"--{key} is needed: a workload does not contain it")

    def fits(users: int, topics: int, interests: int) -> None:
        what = f"{interests:,} interests of {users:,} users in {topics:,} topics"
        need(bytes_needed(users, topics, interests), f"{source}: {what}")
        if interests >= LONG:
            tell(f"reading {what}", "")

    demand = load_demand(source, fits)
    if len(demand.indices) and not demand.event_rate.any():
        raise InputError(f"{source}: its topics have no event rates (all are 0), so there is nothing to deliver")
    return make_problem(demand.indptr, demand.indices, demand.event_rate, **given)


def _quiet(step: str, detail: str) -> None:
    """Say nothing."""
