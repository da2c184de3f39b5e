"""Graphs of brokers in files: edge lists in CSV, and GraphML."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from sim.base.errors import cut
from sim.base.naming import RawValue
from sim.files.inputs import csv_rows

if TYPE_CHECKING:
    import networkx as nx

TIME = "rtt_ms"


@dataclass(frozen=True)
class Edge:
    """A link between two brokers, by name: its round-trip time (s; None where the file gives none), and its place in the file."""

    source: str
    target: str
    round_trip: float | None
    place: str


def read_edges(text: str) -> tuple[Edge, ...]:
    """Read the links of a graph, each pair of brokers once: CSV with the columns source, target and optionally rtt_ms, or GraphML.

    Times are in milliseconds, and may be empty. In GraphML brokers are named by the attribute `name` of nodes, or else `label`, where
    all nodes have it, or else by the nodes' ids; edges may have an attribute `rtt_ms`; directed edges in both directions are one
    link. Raises ValueError, with the line or the edge, where a node is linked to itself, a link appears twice, or a time is not a
    number of 0 or more.
    """
    first: dict[frozenset[str], Edge] = {}
    for edge in _graphml(text) if text.lstrip().startswith("<") else _csv(text):
        if edge.source == edge.target:
            raise ValueError(f"{edge.place}: '{edge.source}' is linked to itself")
        before = first.setdefault(frozenset((edge.source, edge.target)), edge)
        if before is not edge:
            both = f"'{edge.source}' and '{edge.target}'"
            raise ValueError(f"{edge.place}: the link between {both} appears twice (first: {before.place})")
    return tuple(first.values())


def _csv(text: str) -> Iterator[Edge]:
    for row in csv_rows(text, ["source", "target"], [TIME]):
        time = row.number(TIME, least=0) / 1000 if row.fields.get(TIME) else None
        yield Edge(row.text("source"), row.text("target"), time, f"line {row.line}")


def _graphml(text: str) -> Iterator[Edge]:
    import networkx as nx

    try:
        graph = nx.parse_graphml(text)
    except KeyError as error:
        raise ValueError(f"not valid GraphML: {error} is not a type, or not a value of its attribute's type") from None
    except (ParseError, nx.NetworkXError, ValueError) as error:
        raise ValueError(f"not valid GraphML: {error}") from None
    names = _names(graph)
    alone = next(nx.isolates(graph), None)
    if alone is not None:
        raise ValueError(f"node '{names[alone]}' has no edge")
    seen: dict[tuple[Hashable, Hashable], float | None] = {}
    for source, target, data in graph.edges(data=True):
        place = f"edge from '{names[source]}' to '{names[target]}'"
        time = _time(data.get(TIME, graph.graph["edge_default"].get(TIME)), place)
        if graph.is_directed() and (target, source) in seen and source != target:
            if seen[target, source] != time:
                raise ValueError(
                    f"{place}: {TIME}: differs from that of the edge in the other direction (a link has one)"
                )
            continue
        seen[source, target] = time
        yield Edge(names[source], names[target], time, place)


def _names(graph: nx.Graph) -> dict[Hashable, str]:
    """The brokers' names at the nodes of a graph."""
    for key in ("name", "label"):
        named = {node: str(name) for node, name in graph.nodes(data=key) if name is not None}
        if len(named) == len(graph):
            break
    else:
        named = {node: str(node) for node in graph}
    owner: dict[str, Hashable] = {}
    for node, name in named.items():
        if owner.setdefault(name, node) != node:
            raise ValueError(f"nodes '{owner[name]}' and '{node}' are both called '{name}'")
    return named


def _time(value: RawValue, place: str) -> float | None:
    if value is None:
        return None
    try:
        time = float(value)
    except ValueError:
        time = math.nan
    if not (math.isfinite(time) and time >= 0):
        raise ValueError(f"{place}: {TIME}: expected a number from 0, found {cut(repr(value))}")
    return time / 1000
