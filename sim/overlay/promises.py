"""The contracts of geometries and latency models, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.overlay.geometry import NO_HOP_LIMIT, Dissemination, GeometrySetting, TopicTree
from sim.overlay.healing import Healing, Repair
from sim.overlay.latency import LatencyModel
from sim.plugins import BrokenPromise, Found, Promises, promise


def _round_trip_breaches(times: object, brokers: int) -> Iterator[str]:
    found = np.asarray(times)
    if found.shape != (brokers, brokers) or found.dtype.kind not in "fiu":
        yield f"round_trips are {found.dtype}{found.shape}, expected a number of seconds for each pair of {brokers} brokers"
        return
    wrong = ~(np.isfinite(found) & (found >= 0))
    for a, b in np.argwhere(wrong):
        yield f"round_trips from broker {a} to {b} are {found[a, b]} s, allowed: finite and at least 0"
    for a in np.flatnonzero(np.diagonal(found)):
        yield f"round_trips from broker {a} to itself are {found[a, a]} s, expected 0"
    for a, b in np.argwhere(found != found.T):
        times_of_both = f"{found[a, b]} s and {found[b, a]} s"
        yield f"round_trips between brokers {a} and {b} are {times_of_both}, expected the same in both directions"


class LatencyPromises(Promises):
    """The contract of a latency model."""

    group, protocol = "latency", LatencyModel

    @promise("round_trips")
    def times(self, found: Found) -> Iterator[str]:
        """`round_trips` are finite seconds of 0 or more for each pair of brokers, symmetric, 0 from each to itself."""
        yield from _round_trip_breaches(found, len(self.setting.sites))

    @promise("jitter")
    def spread(self, found: Found) -> Iterator[str]:
        """`jitter` is finite and at least 0."""
        if not 0 <= found < np.inf:
            yield f"jitter is {found}, allowed: finite and at least 0"

    @promise("notes")
    def sentences(self, found: Found) -> Iterator[str]:
        """`notes` are a tuple of sentences."""
        if not isinstance(found, tuple) or not all(isinstance(note, str) for note in found):
            yield f"notes are {found!r}, expected a tuple of sentences"


class GeometryPromises(Promises):
    """The contract of a geometry.

    In a run each tree is checked once, and links are read again if one is missing.
    """

    group, protocol, optional = "geometry", Dissemination, Healing
    plugin: Dissemination

    def __init__(self, kind: type, parameters: Found, setting: GeometrySetting, *, costly: bool = False) -> None:
        self._links = np.zeros((setting.nodes, setting.nodes), np.bool_)
        self._members: dict[int, set[int]] = {}
        self._roots: dict[int, int] = {}
        self._around: set[int] = set()
        self._beside_cuts = False
        self._trees: dict[tuple[int, ...], object] = {}
        super().__init__(kind, parameters, setting, costly=costly)

    def breaches(self, member: str, found: Found, *arguments: Found) -> Iterator[BrokenPromise]:
        """As for all plug-ins; keeps track of the nodes that have joined and of the trees that were checked."""
        if member == "join":
            self._members.setdefault(arguments[0], set()).add(arguments[1])
        elif member == "leave":
            self._members.get(arguments[0], set()).discard(arguments[1])
        elif member == "tree":
            if found is not None and self._trees.get(arguments) is found:
                return
            self._trees[arguments] = found
        elif member == "heal" and isinstance(found, Repair):
            self._around = set(np.flatnonzero(found.around).tolist())
            self._beside_cuts = len(arguments) > 2 and bool(arguments[2].any())
            for members in self._members.values():
                members -= self._around
            self._roots, self._trees = {}, {}
        yield from super().breaches(member, found, *arguments)

    @promise("nodes_are_brokers", "single_root", "floods")
    def flags(self, found: Found) -> Iterator[str]:
        """`nodes_are_brokers`, `single_root` and `floods` are True or False."""
        if not isinstance(found, (bool, np.bool_)):
            yield f"{self.member} is {found!r}, allowed: True, False"

    @promise("positions")
    def ring(self, found: Found) -> Iterator[str]:
        """`positions` are None, or a number of at least 0 and below 1 for each node."""
        if found is not None:
            if np.shape(found) != (self.setting.nodes,):
                yield f"positions are of shape {np.shape(found)}, expected one for each of {self.setting.nodes} nodes"
            for node in np.flatnonzero(~((found >= 0) & (found < 1))):
                yield f"positions are {found[node]} of node {node}, allowed: at least 0 and below 1"

    @promise("round_trips")
    def times(self, found: Found) -> Iterator[str]:
        """`round_trips` are None, or like those of a latency model."""
        if found is not None:
            yield from _round_trip_breaches(found, self.setting.nodes)

    @promise("period")
    def rhythm(self, found: Found) -> Iterator[str]:
        """`period` is None, or a finite time above 0."""
        if not (found is None or 0 < found < np.inf):
            yield f"period is {found} s, allowed: None, or finite and above 0"

    @promise("edges")
    def pairs(self, found: Found) -> Iterator[str]:
        """`edges` have two nodes in each row."""
        edges = np.asarray(found)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            yield f"edges are {edges.dtype}{edges.shape}, expected two nodes in each row"
        yield from self._strangers("edges", edges)
        self._links[:] = False
        self._links[edges[:, 0], edges[:, 1]] = True

    @promise("uplink")
    def way_up(self, found: Found, topic: int, source: int) -> Iterator[str]:
        """`uplink` goes from the source to a root without cycles; with a `single_root`, along links to the one root of the topic."""
        what = f"the uplink of topic {topic} from node {source}"
        yield from self._detours(what, found, source)
        if len(np.unique(found)) != len(found):
            yield f"{what} is {np.asarray(found).tolist()}, which passes a node twice"
        root, end = self._roots.setdefault(topic, int(found[-1])), int(found[-1])
        if self.plugin.single_root and root != end:
            yield f"{what} leads to {end}, but another one to {root} (the topic has a single root)"

    @promise("control_path")
    def there_and_back(self, found: Found, topic: int, node: int) -> Iterator[str]:
        """`control_path` goes along links from the node to the root and back to the node."""
        what = f"the control path of topic {topic} from node {node}"
        yield from self._detours(what, found, node)
        if found[-1] != node:
            yield f"{what} ends at {found[-1]}, not where it began"
        if self._roots.get(topic, found[0]) not in found:
            yield f"{what} does not pass {self._roots[topic]}, the root"

    @promise("tree")
    def on_nodes(self, found: Found, topic: int, root: int) -> Iterator[str]:
        """`tree` is a TopicTree of nodes, the root first and each once."""
        if not isinstance(found, TopicTree):
            yield f"{_tree(topic, root)} is {found!r}, expected a TopicTree"
        nodes = np.asarray(found.nodes)
        if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
            yield f"{_tree(topic, root)} has nodes {nodes.dtype}{nodes.shape}, expected their numbers"
        yield from self._strangers(_tree(topic, root), nodes)
        if nodes.size and (nodes[0] != root or len(np.unique(nodes)) != nodes.size):
            yield f"{_tree(topic, root)} has nodes {nodes.tolist()}, expected the root first and each once"

    @promise("tree")
    def top_down(self, found: Found, topic: int, root: int) -> Iterator[str]:
        """The `parents` of a tree are earlier positions, ascending; `depth` and `first_child` follow from them."""
        parents, depth, first = (np.asarray(values) for values in (found.parents, found.depth, found.first_child))
        size = len(found.nodes)
        what = _tree(topic, root)
        for name, values in (("parents", parents), ("depth", depth), ("first_child", first)):
            if values.shape != (size + (name == "first_child"),) or values.dtype.kind not in "iu":
                yield f"{what} has {name} {values.dtype}{values.shape} for {size} nodes, expected integers"
        if not size:
            return
        above = parents[1:]
        if parents[0] != -1 or ((above < 0) | (above >= np.arange(1, size))).any() or (np.diff(above) < 0).any():
            yield f"{what} has parents {parents.tolist()}, expected -1 and then earlier positions, ascending"
        if depth[0] != 0 or (depth[1:] != depth[above] + 1).any():
            yield f"{what} has depths {depth.tolist()}, expected one more than the parent's"
        if not np.array_equal(first, np.searchsorted(above, np.arange(size + 1)) + 1):
            yield f"{what} has first_child {first.tolist()}, which differs from what its parents imply"

    @promise("tree")
    def along_links(self, found: Found, topic: int, root: int) -> Iterator[str]:
        """The edges of a tree are links, unless cuts are avoided, except from a root that wants no topic without `single_root`."""
        children = np.arange(1, len(found.nodes))
        if not self.plugin.single_root and root not in self._members.get(topic, ()):
            children = children[found.parents[1:] > 0]
        yield from self._jumps(_tree(topic, root), found.nodes[found.parents[children]], found.nodes[children])

    @promise("tree")
    def all_members(self, found: Found, topic: int, root: int) -> Iterator[str]:
        """All members of a topic are on its tree, unless links follow only every `period`, or a flood heals without a path to them."""
        left = self._members.get(topic, set()).difference(np.asarray(found.nodes).tolist())
        if left and self.plugin.period is None and not (self.plugin.floods and self._around):
            yield f"{_tree(topic, root)} lacks node {min(left)}, which has joined"

    @promise("tree")
    def flooded(self, found: Found, topic: int, root: int) -> Iterator[str]:
        """Where topics are flooded, a tree has the `neighbours` of each of its nodes, including its children, and a `hop_limit`."""
        if not self.plugin.floods:
            return
        size, around = len(found.nodes), found.neighbours
        if len(around) != size or not set(chain.from_iterable(around)) <= set(range(size)):
            yield f"{_tree(topic, root)} has neighbours {around!r}, expected positions below {size} for each node"
        for place in range(1, size):
            if place not in around[found.parents[place]]:
                yield f"{_tree(topic, root)} has position {place} below {found.parents[place]}, which is not its neighbour"
        if not 1 <= found.hop_limit <= NO_HOP_LIMIT:
            yield f"{_tree(topic, root)} has a hop_limit of {found.hop_limit!r}, allowed: from 1 to {NO_HOP_LIMIT}"

    @promise("heal")
    def repairs(self, found: Found, down: NDArray[np.bool_], absent: NDArray[np.bool_], *_: Found) -> Iterator[str]:
        """`heal`, if present, returns a Repair: a number of messages, and the nodes routed around, all down, with all absent ones."""
        if not isinstance(found, Repair):
            yield f"heal returned {found!r}, expected a Repair"
        if not isinstance(found.messages, (int, np.integer)) or found.messages < 0:
            yield f"heal took {found.messages!r} messages, expected a whole number of 0 or more"
        if found.around.shape != down.shape or found.around.dtype != np.bool_:
            yield f"heal routes around {found.around.dtype}{found.around.shape}, expected a bool for each node"
        for node in np.flatnonzero(found.around & ~down):
            yield f"heal routes around node {node}, which is not down"
        if not down.all():
            for node in np.flatnonzero(absent & ~found.around):
                yield f"heal does not route around node {node}, which is absent"

    @promise("control_hops", "control_requests", "adjust", "tree_state", "maintenance")
    def numbers(self, found: Found, *_: Found) -> Iterator[str]:
        """Members that count messages return a whole number of 0 or more; `tree_state` None or a number of entries."""
        none = self.member == "tree_state" and found is None
        if not (none or (isinstance(found, (int, np.integer)) and found >= 0)):
            yield f"{self.member} is {found!r}, expected a whole number of 0 or more"

    @promise("topic_diameters")
    def spans(self, found: Found) -> Iterator[str]:
        """`topic_diameters` returns None or a number of hops for each of some topics."""
        if found is not None and (np.asarray(found).dtype.kind not in "iu" or np.ndim(found) != 1 or np.any(found < 0)):
            yield f"topic_diameters are {found!r}, expected None or a number of hops for each of some topics"

    @promise("join", "leave", costly=True)
    def once(self, _: None, topic: int, node: int) -> Iterator[str]:
        """`join` raises a ValueError where the node has joined the topic already, and `leave` where it has not."""
        member = self.member
        try:
            getattr(type(self.plugin), member)(self.plugin, topic, node)
        except ValueError:
            return
        yield f"a second {member} of topic {topic} by node {node} raises no ValueError"

    def _strangers(self, what: str, nodes: Integers) -> Iterator[str]:
        for node in nodes[(nodes < 0) | (nodes >= self.setting.nodes)]:
            yield f"{what}: node {node} of {self.setting.nodes}"

    def _detours(self, what: str, path: object, source: int) -> Iterator[str]:
        nodes = np.asarray(path)
        if nodes.ndim != 1 or not nodes.size or nodes.dtype.kind not in "iu":
            yield f"{what} is {path!r}, expected the numbers of nodes"
        yield from self._strangers(what, nodes)
        if nodes[0] != source:
            yield f"{what} begins at {nodes[0]}"
        if self.plugin.single_root:  # otherwise a node that is not on the tree may reach it directly
            yield from self._jumps(what, nodes[:-1], nodes[1:])

    def _jumps(self, what: str, senders: Integers, receivers: Integers) -> Iterator[str]:
        if not self._beside_cuts and not self._links[senders, receivers].all():
            self.plugin.edges()
            for a, b in zip(senders, receivers, strict=True):
                if not self._links[a, b]:
                    yield f"{what} goes from node {a} to {b}, which are not linked"


def _tree(topic: int, root: int) -> str:
    return f"the tree of topic {topic} from node {root}"
