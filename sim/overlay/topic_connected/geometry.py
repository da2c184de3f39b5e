"""Topic-connected overlays as a geometry: links that follow the interests of brokers, publications that follow the links."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim.base.units import FactorAboveOne, Period
from sim.overlay.cuts import Cuts, hung_elsewhere, no_cuts, way_beside
from sim.overlay.floods import FloodParameters, flood_tree
from sim.overlay.geometry import EMPTY_TREE, GeometrySetting, TopicTree
from sim.overlay.healing import Repair
from sim.overlay.source_trees import PublisherTrees
from sim.overlay.topic_connected.beside_cuts import links_beside_cuts
from sim.overlay.topic_connected.design import DEFAULT_K, Algorithm, GreedyAlgorithm, design
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.overlay.topic_connected.measure_kernels import is_in_one_part
from sim.overlay.topic_connected.measures import adjacency, edge_numbers, topic_diameters
from sim.overlay.topic_connected.repair import Dcbm, RepairedOverlay
from sim.overlay.tree_kernels import breadth_first_tree


class TopicConnected(PublisherTrees):
    """An overlay in which the brokers that want a topic are connected among themselves, so that publications pass through no others.

    A publication starts from its publisher's broker; where that does not want the topic itself, it goes first to the nearest broker
    that does, by round-trip time, the lowest on ties. From there it takes the paths with the fewest hops, or is flooded. Every link
    that is set up or taken down costs messages, by default a request and its answer.
    """

    class Parameters(FloodParameters):
        design: Literal[Algorithm, "dcb-m"] = "low-oda"
        """The algorithm that chooses the links; "dcb-m" runs `parts_design` within parts of the brokers and then between them."""
        k: FactorAboveOne = DEFAULT_K
        """Low-ODA: how many times heavier a link must be to justify a higher maximum degree; 1.5 or "3/2"."""
        strict: bool = False
        """Low-ODA: prefer the lighter link only if k times its weight is larger, not if it is equal."""
        parts: int = Field(10, ge=1, lt=2**31)
        """DCB-M: the number of parts to which brokers are randomly assigned for the whole run."""
        parts_design: GreedyAlgorithm = "gm"
        """DCB-M: the design of parts and of the links between them: GM has few links and short ways, MinMax-ODA low maximum degrees."""
        on_change: Literal["repair", "rebuild", "break", "periodic"] = "repair"
        """What happens when interests change: links are repaired; or redesigned (as stars always are) at once, when a topic has
        become disconnected, or every `period`, with disconnected topics served in part meanwhile. DCB-M redesigns only the parts
        with a changed broker, except with "rebuild"."""
        period: Period = 3600.0
        """Time between periodic designs."""
        messages_per_link: int = Field(2, ge=1, lt=2**31)
        """Messages to set up or take down a link: a request and its answer; 1 counts links."""
        check: int = Field(100, ge=1, lt=2**31)
        """Number of repairs after which a new design is tried; it is taken if it needs less than 1 / 1.05 of the links."""

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        super().__init__(setting.nodes)
        assert setting.round_trips is not None
        self.floods = parameters.floods
        self.period = parameters.period if parameters.on_change == "periodic" else None
        self._parameters, self._topics, self._key = parameters, setting.topics, setting.key
        self._times = setting.round_trips
        self._designed: RepairedOverlay | Dcbm | NDArray[np.int32] | None = None
        # Node → topics that it has joined or left since the links were last updated
        self._changed: dict[int, set[int]] = {}
        # Topics that have changed since their connectedness was last checked
        self._unchecked: set[int] = set()
        self._links = np.empty((0, 2), np.int32)  # u < v
        self._first, self._neighbours = adjacency(self.nodes, self._links)
        self._messages = 0
        self._around, self._cuts, self._cut_anew = np.zeros(self.nodes, np.bool_), no_cuts(self.nodes), False

    @property
    def interests(self) -> BrokerInterests:
        """The topics that each node has joined."""
        wanted = np.zeros((self.nodes, self._topics), np.bool_)
        for topic, joined in self._joined.items():
            wanted[:, topic] = joined
        return BrokerInterests.where(wanted)

    def edges(self) -> NDArray[np.int32]:
        """The links (m, 2), in both directions, ascending."""
        self._keep_up()
        return np.stack([np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(self._first)), self._neighbours], 1)

    def topic_diameters(self) -> NDArray[np.int64]:
        """The diameter of each topic's own links, over topics with at least two subscribers that are connected."""
        self._keep_up()
        spans = topic_diameters(self.interests, self._links)
        return spans[spans > 0]

    def tree_state(self) -> None:
        """None: a tree follows from the links and the subscribers."""

    # -- joining

    def join(self, topic: int, node: int) -> None:
        """Subscribe the node. Raises ValueError where it subscribes already."""
        super().join(topic, node)
        self._note(topic, node)

    def leave(self, topic: int, node: int) -> None:
        """Unsubscribe the node. Raises ValueError where it does not subscribe."""
        super().leave(topic, node)
        self._note(topic, node)

    def _note(self, topic: int, node: int) -> None:
        if self._designed is not None:  # before the first design, everything is new
            self._changed.setdefault(node, set()).symmetric_difference_update({topic})
            self._unchecked.add(topic)

    def control_hops(self, topic: int, node: int) -> int:
        """None: `adjust` returns what links cost."""
        return 0

    def control_requests(self, topic: int, node: int) -> int:
        """None: `adjust` returns what links cost."""
        return 0

    def adjust(self) -> int:
        """Design the links, or update them after changes; returns the messages for all links set up or taken down."""
        self._follow()
        messages, self._messages = self._messages, 0
        return messages

    def _keep_up(self) -> None:
        """Update the links, unless they are only updated at fixed times."""
        if self.period is None:
            self._follow()

    def _follow(self) -> None:
        """Update the links if the interests require it; changes since the last update are one batch."""
        topics, self._unchecked = self._unchecked, set()
        waits = self._parameters.on_change == "break"
        if self._designed is None or (self._changed and (not waits or any(map(self._is_apart, topics)))):
            links = self._links_anew()
        elif not self._cut_anew:
            return
        else:
            links = self._beside_cuts()
            if waits and self._changed and not self._connects(links):  # what stood in for cut links is gone
                links = self._links_anew()
        self._cut_anew = False
        before, after = (edge_numbers(self.nodes, edges) for edges in (self._links, links))
        changed = np.setxor1d(before, after, assume_unique=True)
        if len(changed):
            self._messages += self._parameters.messages_per_link * len(changed)
            self._links = links
            self._first, self._neighbours = adjacency(self.nodes, links)
            u, v = np.divmod(changed, self.nodes)
            for topic in [t for t in self._snapshots if (self._joined[t][u] & self._joined[t][v]).any()]:
                self._forget(topic)

    def _links_anew(self) -> NDArray[np.int32]:
        self._designed, self._changed = self._redesigned(), {}
        return self._beside_cuts()

    def _beside_cuts(self) -> NDArray[np.int32]:
        """The links (m, 2) as designed, with others in the place of those that are cut."""
        assert self._designed is not None
        links = self._designed if isinstance(self._designed, np.ndarray) else self._designed.edges
        if not self._cuts.any():
            return links
        members = [self._joined[topic] for topic in sorted(self._joined)]
        return links_beside_cuts(links, members, self._cuts)

    def _connects(self, links: NDArray[np.int32]) -> bool:
        """Whether links (m, 2) connect the nodes that want each topic."""
        ways = adjacency(self.nodes, links)
        return all(is_in_one_part(joined, *ways) for joined in self._joined.values())

    def _redesigned(self) -> RepairedOverlay | Dcbm | NDArray[np.int32]:
        """The overlay after the changes: the former one repaired, or a new one."""
        chosen, former = self._parameters, self._designed
        if isinstance(former, RepairedOverlay):
            for node, topics in sorted(self._changed.items()):
                if topics:  # empty where it has joined and left again
                    joined = {topic for topic in topics if self._joined[topic][node]}
                    former.change(node, add=joined, drop=topics - joined)
            return former
        if isinstance(former, Dcbm) and chosen.on_change != "rebuild":
            former.change(self.interests)
            return former
        if chosen.design == "dcb-m":
            generator = np.random.default_rng(self._key)
            return Dcbm(self.interests, chosen.parts, generator, chosen.parts_design, chosen.k, chosen.strict)
        if chosen.on_change == "repair" and chosen.design in ("gm", "minmax-oda", "low-oda"):
            return RepairedOverlay(self.interests, chosen.design, chosen.k, chosen.strict, check=chosen.check)
        return design(self.interests, chosen.design, chosen.k, chosen.strict)

    def _is_apart(self, topic: int) -> bool:
        """Whether the nodes that want a topic are disconnected."""
        return not is_in_one_part(self._joined[topic], self._first, self._neighbours)

    # -- healing

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A heartbeat from each node to each neighbour."""
        return int(np.count_nonzero(~down[self.edges()[:, 0]]))

    def heal(self, down: NDArray[np.bool_], absent: NDArray[np.bool_], cuts: Cuts | None = None) -> Repair:
        """Let nodes that are down leave all topics, and links that are not cut take the place of those that are.

        Periodic links follow when they are next updated.
        """
        if down.all():
            return Repair(self._around, 0)
        cuts = no_cuts(self.nodes) if cuts is None else cuts
        self._cut_anew |= not cuts.same(self._cuts)
        self._cuts = cuts
        for node in np.flatnonzero(down & ~self._around).tolist():
            for topic in [topic for topic, joined in self._joined.items() if joined[node]]:
                self.leave(topic, node)
        self._around = down.copy()
        return Repair(self._around, self.adjust() if self.period is None and self._designed is not None else 0)

    def routes_from(self, topic: int, node: int) -> NDArray[np.int32]:
        """Over the topic's own links; directly to nodes that these do not lead to, as they no longer want the topic or are apart."""
        self._keep_up()
        before, joined = np.full(self.nodes, node, np.int32), self._joined[topic]
        before[node] = -1
        if joined.any():
            entry = self._gateway(topic, node)
            nodes, parents, _, _ = breadth_first_tree(node, entry, joined, self._first, self._neighbours)
            before[nodes[1:]] = nodes[parents[1:]]
        return hung_elsewhere(before, node, self._around, self._cuts) if self._cuts.any() else before

    # -- publishing

    def _gateway(self, topic: int, node: int) -> int:
        """The node itself where it wants the topic or nobody does; else the nearest one that does, by a link that is not cut if any."""
        joined = self._joined.get(topic)
        if joined is None or joined[node] or not joined.any():
            return node
        if self._cuts.any():
            members = np.flatnonzero(joined)
            linked = members[[not self._cuts.cut(node, member) for member in members.tolist()]]
            members = linked if linked.size else members
            return int(members[np.argmin(self._times[node, members])])
        return int(np.argmin(np.where(joined, self._times[node], np.inf)))

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The source, then the nearest node that wants the topic where the source does not; over others where that link is cut."""
        gateway = self._gateway(topic, source)
        if gateway == source:
            return np.array([source], np.int32)
        return way_beside(source, gateway, self._around, self._cuts)

    def tree(self, topic: int, root: int) -> TopicTree:
        """The breadth-first tree of the topic's own links from the root; the same object while the topic stays as it is.

        A root that no longer wants the topic hands publications on to the nearest node that does. Where links are updated
        periodically, nodes that are not connected to the root are not on the tree.
        """
        self._keep_up()
        return super().tree(topic, root)

    def grown(self, topic: int, root: int) -> TopicTree:
        """The tree of a topic that some node has joined at some time, as it stands now."""
        joined = self._joined[topic]
        if not joined.any():
            return EMPTY_TREE
        entry = self._gateway(topic, root)
        links = joined, self._first, self._neighbours
        if self.floods:
            return flood_tree(root, entry, *links, self._parameters.hop_limit)
        return TopicTree(*breadth_first_tree(root, entry, *links))
