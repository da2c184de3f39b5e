"""A graph of brokers from a file: publications take the fastest paths from the publisher's broker."""

from __future__ import annotations

from collections.abc import Sequence

# Any: round trips are an array, or what is asked for like one.
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import ScenarioError, unknown_of_many
from sim.files.inputs import File, InputFile
from sim.overlay.edges import Edge, read_edges
from sim.overlay.floods import FloodParameters
from sim.overlay.geometry import GeometrySetting
from sim.overlay.path_kernels import shortest_paths
from sim.overlay.source_trees import SourceTrees


class Graph(SourceTrees):
    """Links between brokers from a file; a publication takes the fastest paths from its publisher's broker, or is flooded over them.

    Among equally fast paths the one with the fewest hops is taken; among these, the one with the lowest last broker but one.
    """

    class Parameters(FloodParameters):
        file: Annotated[File[tuple[Edge, ...]], InputFile(read_edges)]
        """Edge list (CSV with the columns source, target and optionally rtt_ms) or GraphML, by names of brokers. A link's own time
        replaces the latency model's."""

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where the links do not connect all brokers."""
        super().__init__(setting.nodes, parameters)
        assert setting.sites is not None
        assert setting.round_trips is not None
        times: Any = setting.round_trips
        edges, names = parameters.file.content, setting.sites.names
        where = f"network.geometry.file: {parameters.file.name}"
        ends = _resolved(edges, names, where)
        source, target = np.concatenate([ends, ends[:, ::-1]]).T
        self._links = np.stack([source, target], axis=1)[np.lexsort((target, source))]
        if any(edge.round_trip is not None for edge in edges):
            own = np.array([np.nan if edge.round_trip is None else edge.round_trip for edge in edges])
            timed = ~np.isnan(own)
            self.round_trips = times = np.array(times)
            for here, there in (ends.T, ends.T[::-1]):
                times[here[timed], there[timed]] = own[timed]
        starts = np.searchsorted(self._links[:, 0], np.arange(setting.nodes + 1))
        neighbours = self._links[:, 1].astype(np.int64)
        self._parent = shortest_paths(starts, neighbours, times[self._links[:, 0], neighbours])
        apart = np.flatnonzero(self._parent[0, 1:] < 0) + 1
        if apart.size:
            raise ScenarioError(f"{where}: no path between brokers '{names[0]}' and '{names[apart[0]]}'")

    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """The node before each one (nodes) on the fastest path from the source."""
        row: NDArray[np.int32] = self._parent[source]
        return row

    def edges(self) -> NDArray[np.int32]:
        """The file's links (m, 2), in both directions, ascending."""
        return self._links


def _resolved(edges: Sequence[Edge], names: Sequence[str], where: str) -> NDArray[np.int32]:
    """The numbers of both brokers of each link (m, 2). Raises ScenarioError where a broker is unknown or has no link."""
    number = {name: broker for broker, name in enumerate(names)}
    for edge in edges:
        for name in (edge.source, edge.target):
            if name not in number:
                raise ScenarioError(f"{where}, {edge.place}: {unknown_of_many('broker', name, names)}")
    ends = np.array([(number[edge.source], number[edge.target]) for edge in edges], np.int32).reshape(-1, 2)
    alone = np.setdiff1d(np.arange(len(names)), ends)
    if alone.size and len(names) > 1:
        others = f" and {alone.size - 1} more" if alone.size > 1 else ""
        raise ScenarioError(f"{where}: no link to broker '{names[alone[0]]}'{others}")
    return ends
