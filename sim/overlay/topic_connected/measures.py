"""Measures of an overlay: whether every topic is connected, degrees, and the diameters of the topics' sub-overlays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.overlay.topic_connected.design import node_degrees
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.overlay.topic_connected.measure_kernels import are_connected, topic_spans


@dataclass(frozen=True)
class Measures:
    """Degrees over all nodes; diameters over topics with at least two subscribers, 0 where there are none."""

    average_degree: float
    maximum_degree: int
    diameter: int
    mean_topic_diameter: float


def measure(interests: BrokerInterests, edges: NDArray[np.int32]) -> Measures:
    """The measures of a topic-connected overlay with these edges (m, 2). Raises ValueError where a topic is not connected."""
    spans = topic_diameters(interests, edges)
    if (spans < 0).any():
        raise ValueError(f"topic {np.argmax(spans < 0)} is not connected")
    degrees = node_degrees(interests.nodes, edges)
    shared = spans[interests.sizes >= 2]
    return Measures(
        average_degree=2 * len(edges) / interests.nodes if interests.nodes else 0.0,
        maximum_degree=int(degrees.max(initial=0)),
        diameter=int(shared.max(initial=0)),
        mean_topic_diameter=float(shared.mean()) if len(shared) else 0.0,
    )


def topic_diameters(interests: BrokerInterests, edges: NDArray[np.int32]) -> NDArray[np.int64]:
    """The diameter of each topic's own sub-overlay (topics): 0 below two subscribers, -1 where it is not connected."""
    return topic_spans(*interests.by_topic, *adjacency(interests.nodes, edges))


def connected_topics(interests: BrokerInterests, edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each topic's subscribers (topics) are connected among themselves."""
    return are_connected(*interests.by_topic, *adjacency(interests.nodes, edges))


def adjacency(nodes: int, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The links as CSR, both ways: those of node v lead to `neighbours[first[v]:first[v + 1]]`, ascending."""
    number = np.sort(np.concatenate([edge_numbers(nodes, edges), edge_numbers(nodes, edges[:, ::-1])]))
    first = np.searchsorted(number, nodes * np.arange(nodes + 1))
    return first, (number % max(nodes, 1)).astype(np.int32)


def edge_numbers(nodes: int, edges: NDArray[np.int32]) -> NDArray[np.int64]:
    """A number for each edge (m, 2), ordered like (u, v)."""
    return edges[:, 0] * np.int64(nodes) + edges[:, 1]
