"""What geometries and latency models from elsewhere promise, checked as they are used: the part that costs little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PluginError
from sim.overlay.geometry import GeometrySetting, TopicTree
from sim.plugins import described

if TYPE_CHECKING:
    from sim.overlay.latency import LatencyModel


def check_round_trips(maker: object, times: object, brokers: int) -> None:
    """Raises PluginError where the times between brokers, of a latency model or a geometry, are none."""
    found = np.asarray(times)
    if found.shape != (brokers, brokers) or found.dtype.kind not in "fiu":
        wrong = f"are {found.dtype}{found.shape}, expected a number of seconds for each two of {brokers} brokers"
    elif not (np.isfinite(found) & (found >= 0)).all():
        a, b = np.argwhere(~(np.isfinite(found) & (found >= 0)))[0]
        wrong = f"from broker {a} to {b} are {found[a, b]} s, allowed: finite and at least 0"
    elif np.diagonal(found).any():
        a = int(np.diagonal(found).argmax())
        wrong = f"from broker {a} to itself are {found[a, a]} s, expected 0"
    elif (found != found.T).any():
        a, b = np.argwhere(found != found.T)[0]
        wrong = f"between brokers {a} and {b} are {found[a, b]} s and {found[b, a]} s, expected the same to and fro"
    else:
        return
    raise PluginError(f"{described(type(maker))}: its round_trips {wrong}")


def check_latency(model: LatencyModel, brokers: int) -> None:
    """Raises PluginError where times, jitter or notes are not what a LatencyModel has."""
    check_round_trips(model, model.round_trips, brokers)
    if not 0 <= model.jitter < np.inf:
        raise PluginError(f"{described(type(model))}: its jitter is {model.jitter}, allowed: finite and at least 0")
    if isinstance(model.notes, str) or not all(isinstance(note, str) for note in model.notes):
        raise PluginError(f"{described(type(model))}: its notes are {model.notes!r}, expected a tuple of sentences")


if TYPE_CHECKING:
    _Kind: Any
else:
    _Kind = object


class WatchedGeometry(_Kind):  # type: ignore[misc]
    """Stands before a geometry's class and raises PluginError for paths and trees that cannot be: off the links, or incomplete.

    A tree that was seen is not looked at again, and links are read again where one is missing.
    """

    def __init__(self, parameters: Any, setting: GeometrySetting) -> None:
        self._watched_nodes = setting.nodes
        self._watched_links = np.zeros((setting.nodes, setting.nodes), np.bool_)
        self._watched_members: dict[int, set[int]] = {}
        self._watched_roots: dict[int, int] = {}
        self._watched_trees: dict[tuple[int, int], TopicTree] = {}
        super().__init__(parameters, setting)

    def check_promises(self) -> None:
        """Raises PluginError where what stays the same is not as it should be."""
        if (times := self.round_trips) is not None:
            check_round_trips(self, times, self._watched_nodes)
        nodes = self._watched_nodes
        if (positions := self.positions) is not None and np.shape(positions) != (nodes,):
            self._refuse(f"its positions are of shape {np.shape(positions)}, expected one for each of {nodes} nodes")
        if not (self.period is None or 0 < self.period < np.inf):
            self._refuse(f"its period is {self.period} s, allowed: None, or finite and above 0")

    def _refuse(self, wrong: str) -> NoReturn:
        raise PluginError(f"{described(type(self))}: {wrong}")

    def edges(self) -> NDArray[np.int32]:
        edges: NDArray[np.int32] = super().edges()
        found = np.asarray(edges)
        if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
            self._refuse(f"edges are {found.dtype}{found.shape}, expected two nodes in each row")
        self._check_nodes("edges", found)
        return edges

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        path: NDArray[np.int32] = super().uplink(topic, source)
        what = f"the uplink of topic {topic} from node {source}"
        self._check_path(what, path, source)
        root = int(path[-1])
        if self.rendezvous and self._watched_roots.setdefault(topic, root) != root:
            self._refuse(f"{what} leads to {root}, and another one to {self._watched_roots[topic]}, the root of all")
        return path

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        path: NDArray[np.int32] = super().control_path(topic, node)
        what = f"the control path of topic {topic} from node {node}"
        self._check_path(what, path, node)
        if path[-1] != node:
            self._refuse(f"{what} ends at {path[-1]}, not where it began")
        return path

    def tree(self, topic: int, root: int) -> TopicTree:
        tree: TopicTree = super().tree(topic, root)
        if self._watched_trees.get((topic, root)) is not tree:
            self._check_tree(f"the tree of topic {topic} from node {root}", tree, topic, root)
            self._watched_trees[topic, root] = tree
        return tree

    def join(self, topic: int, node: int) -> None:
        super().join(topic, node)
        self._watched_members.setdefault(topic, set()).add(node)

    def leave(self, topic: int, node: int) -> None:
        super().leave(topic, node)
        self._watched_members.get(topic, set()).discard(node)

    def control_hops(self, topic: int, node: int) -> int:
        return self._count("control_hops", super().control_hops(topic, node))

    def control_requests(self, topic: int, node: int) -> int:
        return self._count("control_requests", super().control_requests(topic, node))

    def adjust(self) -> int:
        return self._count("adjust", super().adjust())

    def _count(self, name: str, found: Any) -> int:
        if not isinstance(found, (int, np.integer)) or found < 0:
            self._refuse(f"{name} is {found!r}, expected a whole number of messages")
        return int(found)

    def _check_nodes(self, what: str, nodes: NDArray[Any]) -> None:
        outside = nodes[(nodes < 0) | (nodes >= self._watched_nodes)]
        if outside.size:
            self._refuse(f"{what}: node {outside.flat[0]} of {self._watched_nodes}")

    def _check_path(self, what: str, path: object, source: int) -> None:
        nodes = np.asarray(path)
        if nodes.ndim != 1 or not nodes.size or nodes.dtype.kind not in "iu":
            self._refuse(f"{what} is {path!r}, expected the numbers of nodes")
        self._check_nodes(what, nodes)
        if nodes[0] != source:
            self._refuse(f"{what} begins at {nodes[0]}")
        if self.rendezvous:  # else whoever is not on the tree may reach it otherwise
            self._check_links(what, nodes[:-1], nodes[1:])

    def _check_links(self, what: str, senders: NDArray[Any], receivers: NDArray[Any]) -> None:
        if not self._watched_links[senders, receivers].all():
            edges = np.asarray(self.edges())
            self._watched_links[edges[:, 0], edges[:, 1]] = True
            missing = np.flatnonzero(~self._watched_links[senders, receivers])
            if missing.size:
                a, b = senders[missing[0]], receivers[missing[0]]
                self._refuse(f"{what} goes from node {a} to {b}, and there is no such link")

    def _check_tree(self, what: str, tree: object, topic: int, root: int) -> None:
        if not isinstance(tree, TopicTree):
            self._refuse(f"{what} is {tree!r}, expected a TopicTree")
        nodes, parents, depth = (np.asarray(values) for values in (tree.nodes, tree.parents, tree.depth))
        size = len(nodes)
        if size:
            self._check_nodes(what, nodes)
            places = np.arange(size)
            if nodes[0] != root or len(np.unique(nodes)) != size:
                self._refuse(f"{what} has nodes {nodes.tolist()}, expected the root first and each once")
            if parents.shape != (size,) or parents[0] != -1 or ((parents < 0) | (parents >= places))[1:].any():
                self._refuse(f"{what} has parents {parents.tolist()}, expected -1 and then places above each")
            if depth.shape != (size,) or depth[0] != 0 or (depth[1:] != depth[parents[1:]] + 1).any():
                self._refuse(f"{what} has depths {depth.tolist()}, expected a hop more than the parent's")
            first = np.searchsorted(parents[1:], np.arange(size + 1)) + 1
            if (np.diff(parents[1:]) < 0).any() or not np.array_equal(tree.first_child, first):
                self._refuse(
                    f"{what} has first_child {np.asarray(tree.first_child).tolist()}, which parents do not say"
                )
            self._check_links(what, nodes[parents[1:]], nodes[1:])
        if self.period is None and (left := self._watched_members.get(topic, set()).difference(nodes.tolist())):
            self._refuse(f"{what} lacks node {min(left)}, which has joined")
