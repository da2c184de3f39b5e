"""A graph of brokers from a file: publications take the fastest paths from the publisher's broker."""

from __future__ import annotations

from collections.abc import Sequence

# Any: round trips are an array, or what is asked for like one.
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sim.base.errors import refuse, unknown_of_many
from sim.files.inputs import File, InputFile
from sim.overlay.edges import Edge, read_edges
from sim.overlay.floods import FloodParameters
from sim.overlay.geometry import GeometrySetting
from sim.overlay.path_kernels import fastest_paths
from sim.overlay.sites import Sites
from sim.overlay.source_trees import HealingSourceTrees


class Graph(HealingSourceTrees):
    """Links between brokers from a file; a publication takes the fastest paths from its publisher's broker, or is flooded over them.

    Among equally fast paths the one with the fewest hops is taken; among these, the one with the lowest second-to-last broker.
    Where brokers that are down and cut links leave no path, the old one remains, on which publications are lost.
    """

    class Parameters(FloodParameters):
        file: Annotated[File[tuple[Edge, ...]], InputFile(read_edges)]
        """Edge list (CSV with the columns source, target and optionally rtt_ms) or GraphML, by names of brokers. A link's own time
        replaces the latency model's."""

        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            if sites is None:
                return None
            wrong = _unlinked(self.file.content, sites.names)
            return None if wrong is None else f"network.geometry.file: {self.file.name}{wrong}"

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where the links do not connect all brokers."""
        refuse(parameters.unfit(setting.nodes, setting.sites))
        super().__init__(setting.nodes, parameters)
        assert setting.sites is not None
        assert setting.round_trips is not None
        times: Any = setting.round_trips
        edges, names = parameters.file.content, setting.sites.names
        ends = _resolved(edges, names)
        source, target = np.concatenate([ends, ends[:, ::-1]]).T
        self._links = np.stack([source, target], axis=1)[np.lexsort((target, source))]
        if any(edge.round_trip is not None for edge in edges):
            own = np.array([np.nan if edge.round_trip is None else edge.round_trip for edge in edges])
            timed = ~np.isnan(own)
            self.round_trips = times = np.array(times)
            for here, there in (ends.T, ends.T[::-1]):
                times[here[timed], there[timed]] = own[timed]
        self._starts = np.searchsorted(self._links[:, 0], np.arange(setting.nodes + 1))
        self._neighbours = self._links[:, 1].astype(np.int64)
        self._times = times[self._links[:, 0], self._neighbours]
        self._barred = np.zeros(len(self._links), np.bool_)
        self._paths: dict[int, NDArray[np.int32]] = {}  # by source

    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """The node before each one (nodes) on the fastest path from the source."""
        if source not in self._paths:
            self._paths[source] = fastest_paths(source, self._starts, self._neighbours, self._times, self._barred)
        row: NDArray[np.int32] = self._paths[source]
        return row

    def edges(self) -> NDArray[np.int32]:
        """The file's links (m, 2), in both directions, ascending."""
        return self._links

    def route_around(self, nodes: NDArray[np.bool_], failed: int, back: int, apart: int) -> int:
        """Find other paths; each change is announced over all links that are left, in both directions."""
        here, there = self._links.astype(np.int64).T
        cut = (self.cuts.sides[here] != self.cuts.sides[there]) | np.isin(here * self.nodes + there, self.cuts.links)
        self._barred = nodes[self._links].any(axis=1) | cut
        self._paths.clear()
        return (failed + back + apart) * int(np.count_nonzero(~self._barred))


def _resolved(edges: Sequence[Edge], names: Sequence[str]) -> NDArray[np.int32]:
    """The numbers of both brokers of each link (m, 2)."""
    number = {name: broker for broker, name in enumerate(names)}
    return np.array([(number[edge.source], number[edge.target]) for edge in edges], np.int32).reshape(-1, 2)


def _unlinked(edges: Sequence[Edge], names: Sequence[str]) -> str | None:
    """Which broker is unknown, has no link, or is on no path to the first one."""
    known = set(names)
    for edge in edges:
        for name in (edge.source, edge.target):
            if name not in known:
                return f", {edge.place}: {unknown_of_many('broker', name, names)}"
    ends = _resolved(edges, names)
    alone = np.setdiff1d(np.arange(len(names)), ends)
    if alone.size and len(names) > 1:
        others = f" and {alone.size - 1} more" if alone.size > 1 else ""
        return f": no link to broker '{names[alone[0]]}'{others}"
    links = coo_array((np.ones(len(ends), np.bool_), ends.T), (len(names), len(names)))
    part = connected_components(links, directed=False)[1]
    apart = np.flatnonzero(part != part[0])
    return f": no path between brokers '{names[0]}' and '{names[apart[0]]}'" if apart.size else None
