"""Plug-ins that break their promises are refused in one sentence that names their class, and never give plausible numbers."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sim
from sim import plugins
from sim.base.errors import InputError, PluginError
from sim.cli.app import app
from sim.overlay.broadcast import Broadcast
from sim.overlay.chord import Chord
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting, TopicTree
from sim.overlay.graph import Graph
from sim.overlay.latency import UnitLatency
from sim.overlay.owner_shard import OwnerShard
from sim.overlay.promises import GeometryPromises
from sim.overlay.star import Star
from sim.overlay.tapestry import Tapestry
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.policies.offloading.controls import Random
from sim.policies.reconfiguration.greedy import SsbrGreedy
from sim.policies.selection.fixed import StaticSelection
from sim.policies.views import Exchange, Selection
from sim.workloads.synthetic.poisson import PoissonWorkload

SCENARIO: dict[str, Any] = {
    "horizon": "10h",
    "workload": {"kind": "poisson", "users": 30, "topics": 12, "change_rate": 0.2},
    "network": {"brokers": 8},
}
OF_GROUP = {"geometry": "network", "latency": "network"}


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[..., str]:
    """Run a scenario with a plug-in class as if it were a third-party one; returns the sentence that refuses it."""

    def run(group: str, kind: Any, **more: Any) -> str:
        known = plugins._entries
        entry = EntryPoint("broken", f"{__name__}:{kind.__name__}", f"brokersim.{group}")
        monkeypatch.setattr(
            plugins, "_entries", lambda asked: known(asked) | ({"broken": entry} if asked == group else {})
        )
        plugins.load.cache_clear()
        monkeypatch.setattr(kind, "__module__", "elsewhere")
        module = ModuleType("elsewhere")
        module.__file__ = None
        monkeypatch.setitem(sys.modules, "elsewhere", module)
        table = {"kind": "broken", **more}
        scenario = (
            {**SCENARIO, "network": {**SCENARIO["network"], group: table}}
            if group in OF_GROUP
            else {**SCENARIO, group: {**SCENARIO.get(group, {}), **table}}
        )
        with pytest.raises(PluginError) as error:
            sim.run(scenario, tmp_path / "r")
        plugins.load.cache_clear()
        said = str(error.value)
        assert f"plug-in {kind.__name__} (elsewhere)" in said or "cannot be loaded" in said
        return said

    return run


class SkipsLinks(Chord):
    """A geometry whose root sends to all nodes itself, whatever links there are."""

    def tree(self, topic: int, root: int) -> TopicTree:
        tree = super().tree(topic, root)
        size = len(tree)
        parents = np.append(-1, np.zeros(size - 1)).astype(np.int32)
        return replace(
            tree,
            parents=parents,
            first_child=np.array([1, *[size] * size], np.int32),
            depth=np.minimum(np.arange(size), 1).astype(np.int32),
        )


class ShortCut(Chord):
    def uplink(self, topic: int, source: int) -> Any:
        return super().uplink(topic, source)[[0, -1]]


class Forgets(Chord):
    def tree(self, topic: int, root: int) -> TopicTree:
        one = np.zeros(1, np.int32)
        return TopicTree(np.array([root], np.int32), one - 1, np.array([1, 1], np.int32), one)


class NoTree(Chord):
    def tree(self, topic: int, root: int) -> Any:
        return None


class WrongDepth(Chord):
    def tree(self, topic: int, root: int) -> TopicTree:
        tree = super().tree(topic, root)
        return replace(tree, depth=tree.depth * 2)


class ManyRoots(Star):
    def uplink(self, topic: int, source: int) -> Any:
        return np.array([source], np.int32)


class Paid(Chord):
    def control_hops(self, topic: int, node: int) -> int:
        return -3


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (SkipsLinks, "the tree of topic 7 from node 0 goes from node 0 to 3, which are not linked"),
        (ShortCut, "the uplink of topic"),
        (Forgets, "which has joined"),
        (NoTree, "the tree of topic [0-9]+ from node [0-9]+ is None, expected a TopicTree"),
        (WrongDepth, "expected one more than the parent's"),
        (
            ManyRoots,
            "expected the root first and each once|another one to [0-9]+ .the topic has a single root",
        ),  # whichever is seen first
        (Paid, "control_hops is -3, expected a whole number of 0 or more"),
    ],
)
@pytest.mark.parametrize("plane", ["events", "auto"])
def test_a_geometry_whose_paths_and_trees_cannot_be(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, kind: Any, wrong: str, plane: str
) -> None:
    monkeypatch.setitem(SCENARIO, "network", {"brokers": 8, "data_plane": plane})
    assert re.search(wrong, refused("geometry", kind))


def test_a_rendezvous_with_a_root_for_each_publisher() -> None:
    class Anywhere(Chord):
        def uplink(self, topic: int, source: int) -> Any:
            return np.array([source], np.int32)

    watched = GeometryPromises(Anywhere, Chord.Parameters(), GeometrySetting(4, 2, 0)).plugin
    watched.uplink(0, 1)
    watched.uplink(1, 2)
    with pytest.raises(PluginError, match="the uplink of topic 0 from node 3 leads to 3, but another one to 1"):
        watched.uplink(0, 3)


class Dense(UnitLatency):
    """Has a matrix of times, to be broken."""

    round_trips: Any

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips = np.array(self.round_trips)


class Negative(Dense):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips[1, 2] = self.round_trips[2, 1] = -1.0


class NotANumber(Dense):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips[3, 2] = np.nan


class OneWay(Dense):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips[3, 2] = 7.0


class Small(Dense):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.round_trips = self.round_trips[:3, :3]


class Mumbles(UnitLatency):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.notes: Any = ("a sentence", 7)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Negative, "from broker 1 to 2 are -1.0 s, allowed: finite and at least 0"),
        (NotANumber, "from broker 3 to 2 are nan s"),
        (OneWay, "between brokers 2 and 3 are 1.0 s and 7.0 s, expected the same in both directions"),
        (Mumbles, "notes are ('a sentence', 7), expected a tuple of sentences"),
        (Small, "expected a number of seconds for each pair of 8 brokers"),
    ],
)
def test_a_latency_model_whose_times_are_none(refused: Callable[..., str], kind: Any, wrong: str) -> None:
    assert wrong in refused("latency", kind)


class Unsorted(PoissonWorkload):
    def generate(self, streams: Any) -> Any:
        workload = super().generate(streams)
        late = replace(workload.publications, time=workload.publications.time[::-1])
        return replace(workload, publications=late)


class Nothing(PoissonWorkload):
    def generate(self, streams: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("kind", "wrong"), [(Unsorted, "rows must be sorted by time"), (Nothing, "expected a Workload")]
)
def test_a_generator_whose_workload_is_none(refused: Callable[..., str], kind: Any, wrong: str) -> None:
    assert wrong in refused("workload", kind)


class Beyond(StaticSelection):
    def select(self, view: Any) -> Selection:
        return Selection(-1)


class Restless(StaticSelection):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.exchange = Exchange(0.0, np.zeros(8, np.int32))


class Silent(SsbrGreedy):
    def reconfigure(self, problem: Any) -> Any:
        return None


class Mute(Random):
    def decide(self, problem: Any, previous: Any = None) -> Any:
        return [0]


@pytest.mark.parametrize(
    ("group", "kind", "wrong", "more"),
    [
        ("selection", Beyond, "select chose broker -1 of 8, for user 0 at 0 s", {}),
        ("selection", Restless, "exchange.period is 0.0 s, expected a finite time above 0", {}),
        ("reconfiguration", Silent, "reconfigure returned None, expected a Reconfiguration", {"period": "1h"}),
        ("offloading", Mute, "decide returned [0], expected a Decision", {"period": "1h", "capacity": "50%", "tau": 1}),
    ],
)
def test_a_policy_that_decides_nothing_that_can_be(
    refused: Callable[..., str], group: str, kind: Any, wrong: str, more: dict[str, Any]
) -> None:
    assert wrong in refused(group, kind, **more)


class HalfWritten:
    """A geometry with only parameters, flags, and a method or two."""

    class Parameters(plugins.Parameters):
        pass

    nodes_are_brokers = single_root = True
    floods = False

    def __init__(self, parameters: Any, setting: Any) -> None:
        self.positions = None

    def uplink(self, topic: int, source: int) -> Any:
        return np.array([source])


class WithoutSetting(StaticSelection):
    def __init__(self, parameters: Any) -> None:
        pass


class WithoutView(StaticSelection):
    def select(self) -> Selection:  # type: ignore[override]
        return Selection(0)


class Forgotten(StaticSelection):
    def select(self, view: Any) -> Selection:
        raise NotImplementedError("to be written")


class NoProcess(SsbrGreedy):
    class Parameters(plugins.Parameters):  # type: ignore[assignment]
        pass


class NoService(Random):
    class Parameters(plugins.Parameters):  # type: ignore[assignment]
        pass


def test_a_class_that_is_half_written(refused: Callable[..., str]) -> None:
    assert refused("geometry", HalfWritten) == (
        "plug-in HalfWritten (elsewhere): it lacks adjust, control_hops, control_path, control_requests, edges, join, "
        "leave, period, round_trips, topic_diameters, tree, tree_state of Dissemination"
    )
    assert "cannot be made of" in refused("selection", WithoutSetting)
    assert "select cannot take (view): too many positional arguments" in refused("selection", WithoutView)
    assert "select raised NotImplementedError: to be written (test_broken_plugins.py, line" in refused(
        "selection", Forgotten
    )
    for group, kind, base in (
        ("reconfiguration", NoProcess, "reconfiguration.process.ProcessParameters"),
        ("offloading", NoService, "offloading.process.OffloadingParameters"),
    ):
        assert f"it has no nested class Parameters(sim.policies.{base})" in refused(group, kind)


def test_the_sentence_crosses_to_other_processes() -> None:
    with pytest.raises(PluginError) as error:
        GeometryPromises(HalfWritten, HalfWritten.Parameters(), GeometrySetting(4, 2, 0))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("command", ["solve reconfiguration figure.json --policy broken", "generate broken --out w"])
def test_commands_without_a_run_refuse_broken_plugins_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "figure.json").write_text(
        '{"bits": 3, "node_ids": [0, 4], "topic_hashes": [1], "subscriptions": [[0], []], "publications": [3], '
        '"mapping": [0, 4], "delay_weight": 1}'
    )
    entries = {
        group: {"broken": EntryPoint("broken", f"{__name__}:{kind.__name__}", group)}
        for group, kind in (("reconfiguration", Silent), ("workload", Nothing))
    }
    monkeypatch.setattr(plugins, "_entries", entries.__getitem__)
    plugins.load.cache_clear()
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, InputError)
    assert re.search(r"plug-in \w+ \(test_broken_plugins\): \w+ returned None, expected a", str(done.exception))
    plugins.load.cache_clear()


def test_a_module_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("gone", "no_such_module:Policy", "brokersim.selection")
    monkeypatch.setattr(plugins, "_entries", lambda _: {"gone": entry})
    with pytest.raises(
        PluginError, match=r"brokersim.selection:gone \(no_such_module:Policy\) cannot be loaded \(ModuleNot"
    ):
        plugins.load("selection", "gone")


@pytest.mark.parametrize("kind", [Chord, Star, FullMesh, Broadcast, OwnerShard, Tapestry, TopicConnected])
def test_what_keeps_its_promises_is_let_through_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, kind: type
) -> None:
    name = next(name for name in plugins.names("geometry") if plugins.load("geometry", name) is kind)
    scenario = {**SCENARIO, "network": {"brokers": 8, "geometry": {"kind": name}}}
    plain = sim.run(scenario, tmp_path / "plain").runs
    monkeypatch.setattr(plugins, "are_ours", lambda found: found is not kind)
    seen: list[str] = []
    look = GeometryPromises.breaches
    monkeypatch.setattr(
        GeometryPromises, "breaches", lambda self, member, *rest: (seen.append(member), look(self, member, *rest))[1]
    )
    watched = sim.run(scenario, tmp_path / "watched").runs
    assert {"tree", "uplink", "join", "positions"} <= set(seen)
    assert watched.drop(columns="run").equals(plain.drop(columns="run"))


def test_graphs_of_links_are_let_through(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "links.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 8}\n" for i in range(8)))
    scenario = {
        **SCENARIO,
        "network": {"brokers": 8, "geometry": {"kind": "graph", "file": str(tmp_path / "links.csv")}},
    }
    monkeypatch.setattr(plugins, "are_ours", lambda found: found is not Graph)
    assert len(sim.run(scenario, tmp_path / "r").runs) == 1
