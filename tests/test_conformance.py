"""Conformance of plug-ins of all groups: built-in ones keep every promise, and each broken promise is reported in one sentence."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_broken_plugins as broken
import test_own_metrics as metrics

from sim import plugins
from sim.base.errors import InputError, ScenarioError
from sim.conformance import PROMISES, assert_conforms, check
from sim.overlay.chord import Chord
from sim.overlay.full_mesh import FullMesh
from sim.overlay.latency import UnitLatency
from sim.overlay.source_trees import SourceTrees
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.policies.offloading.controls import Loudest
from sim.policies.offloading.problem import Decision
from sim.policies.offloading.problem import OffloadingProblem as OffloadingProblem
from sim.policies.reconfiguration.greedy import SsbrGreedy
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem, Swap
from sim.policies.selection.fixed import StaticSelection
from sim.policies.sharing.strategies import RandomMember
from sim.policies.sharing.view import SharingView
from sim.policies.views import Exchange, Selection, SelectionSetting, SelectionView, SelectionViews, selects_many
from sim.workloads.faults.fault import BrokenLink, Drain, FaultSetting, Losses, Outage, Partition, Slowdown
from sim.workloads.synthetic.interests import InterestsWorkload

RING = "source,target\n" + "".join(f"{broker},{(broker + 1) % 7}\n" for broker in range(7))
SQUARE = "\n".join(" ".join(str(abs(a - b)) for b in range(9)) for a in range(9))
SMALL: dict[str, dict[str, Any]] = {
    "graph": {"file": RING},
    "matrix": {"file": SQUARE},
    "regions": {"round_trips": {"eu": {"eu": "2ms", "us": "85ms"}, "us": {"us": "3ms"}}},
    "anneal": {"proposals": 2},
    "crash": {"brokers": 0, "at": ["1min", 90.5], "for": "20s"},
    "lifetimes": {"up": {"mean": "10min"}, "down": {"mean": "1min"}},
    "trace": {"file": "broker,down_from,up_at,other\n0,60,90,\n0,70,80,1\n"},
    "cut": {"links": [[0, 1]], "at": 60},
    "partition": {"brokers": 0, "at": 60, "for": "10min"},
    "loss": {"probability": 0.5, "at": 60},
    "slow": {"brokers": 0, "factor": 3, "at": 60},
    "manager": {"at": 60, "for": "10min"},
    "drain": {"brokers": [0, 1], "at": 60, "rate": 0.5, "for": "1min"},
    "leave": {"brokers": [0, 1], "at": 60, "rate": 0.5},
    "join": {"brokers": [0, 1], "at": 60, "users": "share"},
    "poisson": {"users": 40, "topics": 12, "horizon": "10h"},
    "interests": {"users": 40, "change_rate": 0.1, "publication_rate": 0.2},
    "mobility": {"users": 20},
    "content": {"subscriptions": 20, "publications": 30},
    "spotify-dense": {"scale": 0.0001},
    "spotify-sparse": {"scale": 0.00001},
    "spotify-sessions": {"users": 50, "playlists": 20, "artists": 10},
}
OWN = [(group, name, SMALL.get(name, {})) for group in PROMISES for name in plugins.names(group)]


def test_there_are_promises_for_each_group_about_what_its_plugins_have() -> None:
    assert list(PROMISES) == list(plugins.GROUPS)
    for promises in PROMISES.values():
        known = {*vars(promises.protocol), *promises.protocol.__annotations__, *vars(promises.optional)}
        assert {member for promise in promises.listed() for member in promise.members} <= known


@pytest.mark.parametrize(
    ("group", "name", "parameters"),
    [
        *OWN,
        ("selection", "static", {"assign": "in-order"}),
        ("selection", "similarity", {"similarity": "jaccard"}),
        ("selection", "similarity", {"similarity": "mean-user", "cluster_size": 3}),
        ("geometry", "topic-connected", {"dissemination": "flood"}),
        ("geometry", "full-mesh", {"dissemination": "flood", "hops": 2}),
        ("geometry", "graph", {**SMALL["graph"], "dissemination": "flood"}),
        ("geometry", "topic-connected", {"on_change": "periodic"}),
        ("geometry", "tapestry", {"pns": True}),
    ],
)
def test_our_own_keep_all_promises(tmp_path: Path, group: str, name: str, parameters: dict[str, Any]) -> None:
    if "file" in parameters:
        (tmp_path / "file.csv").write_text(parameters["file"])
        parameters = {**parameters, "file": str(tmp_path / "file.csv")}
    assert_conforms(group, plugins.load(group, name), parameters)


def test_other_seeds_draw_other_cases() -> None:
    for seed in (2, 3):
        assert_conforms("reconfiguration", SsbrGreedy, seed=seed)


def test_a_group_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="unknown group of plug-ins 'selecton', did you mean 'selection'"):
        check("selecton", StaticSelection)


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
    reacts_to = frozenset({"waking"})
    exchange = Exchange(0.0, np.zeros(3, np.int32))


class Lopsided(StaticSelection):
    exchange = Exchange(1.0, np.zeros(3, np.int32))


class OtherParameters(SsbrGreedy):
    class Parameters(plugins.Parameters):  # type: ignore[assignment]
        pass


class Reconfigures(SsbrGreedy):
    """Decides as `decide` says, from where brokers stand."""

    def decide(self, node_of: Any) -> Any:
        raise NotImplementedError

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        decided = self.decide(problem.node_of)
        return decided if isinstance(decided, Reconfiguration) else Reconfiguration(decided)


class Crowded(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        return np.zeros_like(node_of)


class Fractional(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        return node_of.astype(float)


class Forgetful(Reconfigures):
    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        return None  # type: ignore[return-value]


class Overwriting(Reconfigures):
    def decide(self, node_of: Any) -> Any:
        node_of.sort()
        return node_of


class Misleading(Reconfigures):
    """Tells swaps that led elsewhere."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        found = super(Reconfigures, self).reconfigure(problem)
        return Reconfiguration(problem.node_of, found.swaps)


class Boasting(Reconfigures):
    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
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


class Ring(Chord):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.positions = np.arange(len(self.positions), dtype=float)


class Undecided(Chord):
    floods: Any = "perhaps"


class OwnTimes(FullMesh):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips = np.ones((self.nodes, self.nodes))


class Timeless(FullMesh):
    period = float("nan")


class Flat(Chord):
    def edges(self) -> Any:
        return super().edges().ravel()


class Abroad(Chord):
    def edges(self) -> Any:
        return super().edges() + 1


class Circling(Chord):
    def uplink(self, topic: int, source: int) -> Any:
        path = super().uplink(topic, source)
        return np.append(path, path[:1]) if len(path) > 1 else path


class OneWayOnly(Chord):
    def control_path(self, topic: int, node: int) -> Any:
        return self.uplink(topic, node)


class Decimal(Chord):
    def tree(self, topic: int, root: int) -> Any:
        tree = super().tree(topic, root)
        return replace(tree, nodes=tree.nodes.astype(float))


class Deafened(TopicConnected):
    """Floods, but its trees have no neighbours."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.floods = True

    def tree(self, topic: int, root: int) -> Any:
        return replace(super().tree(topic, root), neighbours=())


class Motionless(FullMesh):
    """Floods, but its copies may take no hop."""

    def __init__(self, parameters: FullMesh.Parameters, *rest: Any) -> None:
        super().__init__(parameters.model_copy(update={"dissemination": "flood"}), *rest)

    def tree(self, topic: int, root: int) -> Any:
        return replace(super().tree(topic, root), hop_limit=0)


class Overzealous(Chord):
    def heal(self, down: Any, absent: Any, cuts: Any = None) -> Any:
        return replace(super().heal(down, absent, cuts), around=np.ones(self.nodes, np.bool_))


class Verbose(Chord):
    def topic_diameters(self) -> Any:
        return "long"


class Tolerant(Chord):
    def join(self, topic: int, node: int) -> None:
        if not self.joined(node)[topic]:
            super().join(topic, node)

    def leave(self, topic: int, node: int) -> None:
        if self.joined(node)[topic]:
            super().leave(topic, node)


class Unbounded(Chord):
    def tree_state(self) -> Any:
        return 0.5


class SharedTrees(SourceTrees):
    """Writes every tree into the same array."""

    class Parameters(plugins.Parameters):
        pass

    kept: Any = None

    def __init__(self, _parameters: Parameters, setting: Any) -> None:
        super().__init__(setting.nodes)

    parents, edges = FullMesh.parents, FullMesh.edges

    def uplink(self, topic: int, source: int) -> Any:
        self.kept = np.zeros(1, np.int32) if self.kept is None else self.kept
        self.kept[0] = source
        return self.kept


class Jittery(UnitLatency):
    jitter = -1.0


class Noisy(UnitLatency):
    made = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        Noisy.made += 1
        self.round_trips = self.round_trips.times(Noisy.made)


class Generates(InterestsWorkload):
    """Makes what `other` makes of a workload."""

    def other(self, workload: Any, streams: Any) -> Any:
        raise NotImplementedError

    def generate(self, streams: Any) -> Any:
        return self.other(super().generate(streams), streams)


class LateWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        return replace(workload, horizon=workload.horizon / 2)


class NarrowWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        late = replace(workload.publications, time=workload.publications.time.astype(np.float32))
        return replace(workload, publications=late)


class ListedWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        return replace(workload, publications=replace(workload.publications, size=workload.publications.size.tolist()))


class GappyWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        return replace(workload, interests=replace(workload.interests, indptr=workload.interests.indptr[:-1]))


class NanWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        time = workload.publications.time.copy()
        time[-1] = np.nan
        return replace(workload, publications=replace(workload.publications, time=time))


class StrangerWorkload(Generates):
    def other(self, workload: Any, streams: Any) -> Any:
        strangers = replace(workload.publications, publisher=workload.publications.publisher + 1000)
        return replace(workload, publications=strangers)


class MoodyWorkload(Generates):
    made = 0

    def other(self, workload: Any, streams: Any) -> Any:
        self.made += 1
        return replace(workload, horizon=workload.horizon + self.made)


class Raising(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        raise KeyError("broker")


class Partial(StaticSelection):
    def select(self) -> Selection:  # type: ignore[override]
        return Selection(0)


class Together(StaticSelection):
    """Decides for many users at once as its base does."""

    def select_all(self, views: SelectionViews) -> Any:
        return super().select_all(views)


class BeyondTogether(Together):
    def select_all(self, views: SelectionViews) -> Any:
        return super().select_all(views) + self._brokers


class ShortTogether(Together):
    def select_all(self, views: SelectionViews) -> Any:
        return super().select_all(views)[1:]


class Otherwise(Together):
    def select_all(self, views: SelectionViews) -> Any:
        return (super().select_all(views) + 1) % self._brokers


class LeftBehind(Together):
    """Has a `select` of its own, with which the `select_all` of its base does not go."""

    def select(self, view: SelectionView) -> Selection:
        return Selection(view.user % self._brokers)


class Picky(StaticSelection):
    def __init__(self, parameters: Any, setting: SelectionSetting) -> None:
        raise ScenarioError("never good enough")


class Hoarding(StaticSelection):
    """Takes over the capacities that it is made with."""

    def __init__(self, parameters: Any, setting: SelectionSetting) -> None:
        super().__init__(parameters, setting)
        setting.capacity.flags.writeable = True
        setting.capacity[:] *= 2


class Listed(StaticSelection):
    reacts_to: Any = ("movement",)


class Curious(RandomMember):
    observes: Any = frozenset({"mood"})


class BeyondGroup(RandomMember):
    def choose(self, view: SharingView) -> int:
        return len(view.members)


class Fails:
    """Says that `what` fails, which is nothing that fails."""

    class Parameters(plugins.Parameters):
        pass

    what: Any = None

    def __init__(self, parameters: Parameters) -> None:
        pass

    def faults(self, setting: FaultSetting) -> Any:
        return self.what


class Untyped(Fails):
    what = ("crash",)


class Early(Fails):
    what = (Outage(-1.0, 5.0, 0),)


class TooLate(Fails):
    what = (Outage(3600.0, 5000.0, 0),)


class Backwards(Fails):
    what = (Outage(5.0, 5.0, 0),)


class Unknown(Fails):
    what = (Outage(1.0, 5.0, 9),)


class ToItself(Fails):
    what = (BrokenLink(1.0, 5.0, 0, 0),)


class Onesided(Fails):
    what = (Partition(1.0, 5.0, frozenset()),)


class Certain(Fails):
    what = (Losses(1.0, 5.0, 1.5),)


class Endless(Fails):
    what = (Slowdown(1.0, 5.0, 0, float("inf")),)


class Backwater(Fails):
    what = (Drain(1.0, float("inf"), (0, 9), None, 0.0, 1.0),)


class Standing(Fails):
    what = (Drain(1.0, float("inf"), (0,), 0.0, 0.0, 1.0),)


class DrawnFaults(Fails):
    def faults(self, setting: FaultSetting) -> Any:
        return [Outage(np.random.random(), 5.0, 0)]  # noqa: NPY002


class Nameless(metrics.Late):
    """Declares no metric."""

    metric = "late"  # type: ignore[assignment]


class Drawn(metrics.Busiest):
    """Draws its number."""

    def compute(self, tables: Any) -> Any:
        return np.random.random()  # noqa: NPY002


BREACHES: list[tuple[str, Any, str, str]] = [
    ("metric", Nameless, "declared", "metric is 'late', expected a Metric"),
    ("metric", metrics.Text, "number", "compute returned 'many', expected a finite number or None"),
    ("metric", metrics.Short, "per_window", "expected a finite number for each of 6 windows"),
    ("metric", metrics.Undefined, "per_window", "expected a finite number for each of 6 windows"),
    ("metric", metrics.Taken, "columns", "the time series already has a column 'due'"),
    ("metric", metrics.Nowhere, "columns", "the time series has no column 'deliverd'"),
    ("metric", metrics.Writes, "unchanged", "assignment destination is read-only"),
    ("metric", metrics.Raises, "refusing", "compute raised KeyError"),
    ("metric", Drawn, "same", r"compute returns something else when called again \(tables: a run\)"),
    ("selection", NoParameters, "complete", r"it has no nested class Parameters\(sim.plugins.Parameters\)"),
    (
        "selection",
        broken.WithoutSetting,
        "complete",
        r"it cannot be made of StaticSelection.Parameters, SelectionSetting: too",
    ),
    ("selection", Partial, "complete", r"select cannot take \(view\): too many positional arguments"),
    ("geometry", broken.HalfWritten, "complete", "it lacks adjust, control_hops, .*, tree_state of Dissemination"),
    ("selection", Raising, "refusing", r"select raised KeyError: 'broker' \(test_conformance.py, line \d+\)"),
    ("selection", Picky, "refusing", "it refuses all cases: never good enough"),
    ("selection", LooseParameters, "strict", "its Parameters accept unknown keys"),
    ("selection", Meddling, "unchanged", "select raised ValueError: assignment destination is read-only"),
    ("selection", Hoarding, "unchanged", "it modifies the setting that it is created with"),
    ("geometry", SharedTrees, "lasting", "what uplink returned changes later"),
    ("selection", Moody, "same", "select returns something else when called"),
    ("selection", OrderBound, "same", "select returns something else when called in another order"),
    ("latency", Noisy, "same", "round_trips differs between two instances with the same arguments"),
    ("workload", MoodyWorkload, "same", r"generate returns something else when called again \(seed: 1\)"),
    ("selection", Global, "independent", "it uses the global random state"),
    ("selection", GlobalNumpy, "independent", "it uses the global random state"),
    ("selection", Beyond, "known_broker", r"chose broker 12 of 12, .* \(brokers that are cells: user 0 at brok"),
    ("selection", Nowhere, "known_broker", "chose broker -1"),
    ("selection", Unfinished, "known_broker", r"expected Selection\(an int\)"),
    ("selection", BeyondTogether, "known_brokers", r"select_all chose broker \d+ of 12, for user \d+ at"),
    ("selection", ShortTogether, "known_brokers", r"returned int32\(59,\), expected an integer for each of 60 views"),
    ("selection", Otherwise, "as_one_by_one", r"select_all chose broker \d+ where select chooses \d+"),
    ("selection", Deaf, "reactions", r"reacts_to is \['moving'\]"),
    (
        "selection",
        Listed,
        "reactions",
        r"reacts_to is \('movement',\) \(TypeError: .*promised: `reacts_to` is a set of",
    ),
    ("selection", Restless, "exchanges", "exchange.period is 0.0 s"),
    ("selection", Lopsided, "exchanges", r"exchange.cluster is int32\(3,\)"),
    ("reconfiguration", OtherParameters, "complete", r"Parameters\(sim.policies.reconfiguration.process.ProcessPara"),
    ("reconfiguration", Crowded, "permutation", r"chose nodes \[0, 0, .*\], expected each of 0 to 9 once"),
    ("reconfiguration", Fractional, "permutation", "expected each of 0 to 9 once"),
    ("reconfiguration", Forgetful, "permutation", "returned None, expected a Reconfiguration"),
    ("reconfiguration", Overwriting, "unchanged", "read-only"),
    ("reconfiguration", Misleading, "swaps", "its swaps lead to nodes"),
    ("reconfiguration", Boasting, "swaps", r"the cost after Swap\(.* is [1-9]"),
    ("reconfiguration", Inventing, "swaps", r"names a broker that does not exist \(there are 10\)"),
    ("reconfiguration", Wavering, "same", "when called again"),
    ("reconfiguration", GlobalReconfiguration, "independent", "global random state"),
    ("reconfiguration", Refusing, "refusing", "it refuses all cases: 1 brokers are too many"),
    ("offloading", StaticSelection, "complete", r"Parameters\(sim.policies.offloading.process.OffloadingParameters\)"),
    ("offloading", Aimless, "known_objective", "its objective is 'fame', allowed: satisfied, satisfaction"),
    ("offloading", Greedless, "known_topics", "returned None, expected a Decision"),
    ("offloading", BeyondTopics, "known_topics", r"kept topics \[12\], expected some of the 12, each once"),
    ("offloading", Twice, "known_topics", r"kept topics \[0, 0\]"),
    ("offloading", Generous, "affordable", r"more than the capacity of .* \(problem: one threshold\)"),
    (
        "offloading",
        Sticky,
        "affordable",
        r"more than the capacity of .* \(problem: less capacity than the previous decision had\)",
    ),
    ("offloading", Deafening, "unchanged", "read-only"),
    ("offloading", Drifting, "same", "when called again"),
    ("offloading", GlobalOffloading, "independent", "global random state"),
    ("offloading", TooMuch, "refusing", "it refuses all cases"),
    ("latency", broken.Negative, "times", "from broker 1 to 2 are -1.0 s"),
    ("latency", broken.NotANumber, "times", "from broker 3 to 2 are nan s"),
    ("latency", broken.OneWay, "times", "expected the same in both directions"),
    ("latency", broken.Small, "times", "expected a number of seconds for each pair of 9 brokers"),
    ("latency", Jittery, "spread", "jitter is -1.0, allowed: finite and at least 0"),
    ("latency", broken.Mumbles, "sentences", "expected a tuple of sentences"),
    ("geometry", Undecided, "flags", "floods is 'perhaps', allowed: True, False"),
    ("geometry", Ring, "ring", "positions are 1.0 of node 1, allowed: at least 0 and below 1"),
    ("geometry", OwnTimes, "times", "from broker 0 to itself are 1.0 s"),
    ("geometry", Timeless, "rhythm", "period is nan s"),
    ("geometry", Flat, "pairs", "expected two nodes in each row"),
    ("geometry", Abroad, "pairs", "edges: node 9 of 9"),
    ("geometry", broken.ShortCut, "way_up", "which are not linked"),
    ("geometry", Circling, "way_up", "which passes a node twice"),
    ("geometry", OneWayOnly, "there_and_back", r"ends at \d, not where it began"),
    ("geometry", Decimal, "on_nodes", r"has nodes float64\(\d,\), expected their numbers"),
    ("geometry", broken.ManyRoots, "on_nodes", "expected the root first and each once"),
    ("geometry", broken.WrongDepth, "top_down", "expected one more than the parent's"),
    ("geometry", broken.SkipsLinks, "along_links", "which are not linked"),
    ("geometry", broken.Forgets, "all_members", "which has joined"),
    ("geometry", Motionless, "flooded", "has a hop_limit of 0, allowed: from 1"),
    ("geometry", Deafened, "flooded", "has neighbours .*, expected positions below"),
    ("geometry", broken.Paid, "numbers", "control_hops is -3, expected a whole number of 0 or more"),
    ("geometry", Unbounded, "numbers", "tree_state is 0.5, expected a whole number of 0 or more"),
    ("geometry", Overzealous, "repairs", r"heal routes around node \d, which is not down"),
    ("geometry", Verbose, "spans", "topic_diameters are 'long'"),
    ("geometry", Tolerant, "once", "a second join of topic . by node . raises no ValueError"),
    ("sharing", Curious, "known_observations", r"observes is \['mood'\], allowed: load"),
    ("sharing", BeyondGroup, "known_member", r"choose returned \d+, expected an int from 0 to \d+"),
    ("faults", Fails, "typed", "faults returned None, expected a list of faults"),
    ("faults", Untyped, "typed", "faults returned a list with 'crash', expected Outage, BrokenLink, Partition, Losses"),
    ("faults", Early, "in_time", r"does not begin in \[0, 3600\) and end later"),
    ("faults", TooLate, "in_time", r"does not begin in \[0, 3600\) and end later"),
    ("faults", Backwards, "in_time", r"does not begin in \[0, 3600\) and end later"),
    ("faults", Unknown, "known", r"Outage\(start=1.0, end=5.0, broker=9, .*\) is not of brokers 0 to 8"),
    ("faults", ToItself, "known", "is a link from a broker to itself"),
    ("faults", Onesided, "known", "has all brokers on the same side"),
    ("faults", Certain, "valued", r"has no probability in \[0, 1\]"),
    ("faults", Endless, "valued", "has no finite factor above 0"),
    ("faults", Backwater, "known", r"Drain\(.*\) is not of brokers 0 to 8"),
    ("faults", Standing, "valued", "has no finite rate above 0, finite grace of 0 or more and time down above 0"),
    ("faults", DrawnFaults, "same", "faults returns something else when called again"),
    ("workload", broken.Nothing, "arrays", "returned None, expected a Workload"),
    ("workload", NarrowWorkload, "arrays", r"publications.time is float32\(\d+,\), expected an array of one double"),
    ("workload", ListedWorkload, "arrays", r"publications.size is list\(\d+,\), expected an array of one int32"),
    ("workload", GappyWorkload, "arrays", "expected int64 rising from 0 to their number"),
    ("workload", broken.Unsorted, "well_formed", "rows must be sorted by time"),
    ("workload", LateWorkload, "well_formed", r"allowed: 0..\d+ s \(the horizon\)"),
    ("workload", NanWorkload, "well_formed", "time is nan s"),
    ("workload", StrangerWorkload, "well_formed", r"publisher is \d+, allowed: -1..39"),
]


@pytest.mark.parametrize(("group", "kind", "promise", "wrong"), BREACHES)
def test_a_broken_promise_is_told_in_a_sentence_with_the_class(group: str, kind: Any, promise: str, wrong: str) -> None:
    parameters = {"publication_rate": 0.2, "users": 40} if issubclass(kind, InterestsWorkload) else {}
    told = [sentence for sentence in check(group, kind, parameters) if re.search(wrong, sentence)]
    assert len(told) == 1
    assert told[0].startswith(f"plug-in {kind.__name__} ({kind.__module__}): ")
    assert "\n" not in told[0]
    assert isinstance(getattr(PROMISES[group], promise), plugins.Promise)


def test_every_promise_is_broken_by_some_class_above() -> None:
    for group, promises in PROMISES.items():
        general = {name for name, value in vars(plugins.Promises).items() if isinstance(value, plugins.Promise)}
        named = {name for name in dir(promises) if isinstance(getattr(promises, name), plugins.Promise)}
        assert named - general == {name for of, _, name, _ in BREACHES if of == group} - general
        assert general <= {name for _, _, name, _ in BREACHES}


@pytest.mark.parametrize("kind", [metrics.Late, metrics.Busiest, metrics.Sent, metrics.Spread])
def test_metrics_of_a_users_own_that_keep_their_promises_are_told_nothing(kind: type) -> None:
    assert check("metric", kind) == []


def test_a_policy_is_not_asked_for_many_by_a_method_that_its_own_decision_has_left_behind() -> None:
    assert check("selection", LeftBehind) == []
    assert selects_many(Together)
    assert not selects_many(LeftBehind)


def test_pytest_shows_all_broken_promises() -> None:
    with pytest.raises(AssertionError) as error:
        assert_conforms("selection", Restless)
    told = str(error.value).splitlines()[1:]
    assert [sentence.split(": ")[0] for sentence in told] == ["plug-in Restless (test_conformance)"] * 2


def test_the_page_on_plugins_lists_all_promises() -> None:
    general = plugins.Promises.listed()
    lists = {"every group": general}
    lists |= {group: promises.listed()[len(general) :] for group, promises in PROMISES.items()}
    expected = "".join(
        f"\nPromises of {group}:\n\n"
        + "".join(f"- *{one.sentence}*\n" if one.costly else f"- {one.sentence}\n" for one in promises)
        for group, promises in lists.items()
    )
    assert expected in (Path(__file__).parents[1] / "docs" / "policies.md").read_text()
