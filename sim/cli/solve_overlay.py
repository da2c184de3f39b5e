"""`brokersim solve overlay`: which nodes to link so that the subscribers of each topic are connected."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sim.base.errors import InputError, unknown
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.instances import few, print_solutions, read_instances
from sim.cli.options import argument, option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sim.overlay.topic_connected.design import Algorithm
    from sim.overlay.topic_connected.interests import BrokerInterests
    from sim.overlay.topic_connected.measures import Measures

SMALL = 12
"""The most nodes for which the optimum is computed as well."""


def overlay(
    source: Annotated[
        Path,
        argument(
            "FILE|WORKLOAD",
            'JSON, {"interests": [[topic, …] per node]} or a list of such objects; or a workload\'s folder.',
        ),
    ],
    algorithm: Annotated[str, option("NAME", "gm, minmax-oda, low-oda, cd-oda, cd-oda-i or cd-oda-ii.")],
    k: Annotated[
        str | None,
        option(
            "K",
            "low-oda: how many times heavier a link must be to raise the maximum degree; at least 1; 1.5 by default.",
        ),
    ] = None,
    strict: Annotated[bool, option("--strict", "low-oda: compare with > as in the paper's text, not ≥.")] = False,
    bounds: Annotated[
        bool,
        option("--bounds", f"Also compute lower bounds of the number of edges; the optimum for up to {SMALL} nodes."),
    ] = False,
    json_: Annotated[bool, option("--json", "Print edges and measures as JSON.")] = False,
    graphml: Annotated[Path | None, option("OUT", "Also write the overlay as a graph.")] = None,
) -> None:
    """Design a topic-connected overlay.

    In it, the subscribers of each topic are connected among themselves. The nodes of a workload are its users, with their interests
    at its start.
    """
    from sim.overlay.topic_connected.design import ALGORITHMS

    chosen = next((name for name in ALGORITHMS if name == algorithm), None)
    if chosen is None:
        raise InputError(f"--algorithm: {unknown('design', algorithm, ALGORITHMS)}")
    for name, given in (("--k", k is not None), ("--strict", strict)):
        if given and algorithm != "low-oda":
            raise InputError(f"{name} is only for low-oda (got --algorithm {algorithm})")
    factor = None if k is None else _factor(k)
    instances, listed = _read(source)
    if graphml is not None and len(instances) != 1:
        raise InputError(f"--graphml writes one graph: {source} has a list of {len(instances)}")
    try:
        solutions = [_solve(wanted, chosen, factor, strict, bounds) for wanted in instances]
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    if graphml is not None:
        _write_graph(graphml, instances[0], solutions[0].edges)
    if json_:
        print_solutions([solution.as_json() for solution in solutions], listed)
    else:
        _show(f"{source}: {algorithm}", solutions)


@dataclass(frozen=True)
class _Solution:
    interests: BrokerInterests
    edges: NDArray[np.int32]
    measures: Measures
    bounds: dict[str, int]

    def as_json(self) -> Raw:
        return {"edges": self.edges.tolist(), **asdict(self.measures), "lower_bounds": self.bounds}


def _factor(text: str) -> Fraction:
    from sim.base.units import parse_fraction

    try:
        value = parse_fraction(text)
    except ValueError as error:
        raise InputError(f"--k: {error}") from None
    if value < 1:
        raise InputError(f"--k: expected at least 1, found {text!r}")
    return value


def _read(source: Path) -> tuple[list[list[list[int]]], bool]:
    """The topics of each node, for each instance, and whether these came as a list."""
    from sim.workloads.synthetic.interests import interest_rows

    if source.is_dir():
        from sim.workloads.format.folder import load_workload

        interests = load_workload(source).interests
        bounds, topics = interests.indptr.tolist(), interests.indices.tolist()
        return [[topics[start:stop] for start, stop in itertools.pairwise(bounds)]], False
    instances, listed = read_instances(source)
    try:
        return [interest_rows(instance, f"[{i}]" if listed else "") for i, instance in enumerate(instances)], listed
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None


def _solve(wanted: list[list[int]], algorithm: Algorithm, k: Fraction | None, strict: bool, bounds: bool) -> _Solution:
    from sim.overlay.topic_connected.design import DEFAULT_K, design
    from sim.overlay.topic_connected.interests import BrokerInterests
    from sim.overlay.topic_connected.measures import measure

    interests = BrokerInterests.of(wanted)
    edges = design(interests, algorithm, DEFAULT_K if k is None else k, strict)
    return _Solution(interests, edges, measure(interests, edges), _bounds(interests) if bounds else {})


def _bounds(interests: BrokerInterests) -> dict[str, int]:
    from sim.overlay.topic_connected.bounds import lower_bounds, optimum

    found = lower_bounds(interests)
    return found | {"optimum": len(optimum(interests))} if interests.nodes <= SMALL else found


def _write_graph(path: Path, wanted: list[list[int]], edges: NDArray[np.int32]) -> None:
    """Write GraphML, which has no lists as attributes: a node's topics are separated by spaces."""
    import networkx as nx

    from sim.files.atomic import whole_file
    from sim.overlay.topic_connected.graphs import to_graph

    graph = to_graph(wanted, edges)
    for _, data in graph.nodes(data=True):
        data["topics"] = " ".join(map(str, data["topics"]))
    with whole_file(path) as unfinished:
        nx.write_graphml(graph, unfinished)


def _show(title: str, solutions: list[_Solution]) -> None:
    columns = ["nodes", "topics", "edges", "average\ndegree", "maximum\ndegree", "largest\ndiameter", "mean\ndiameter"]
    bounded = any(solution.bounds for solution in solutions)
    if bounded:
        columns.insert(3, "at least")
    rows = [
        (
            f"{solution.interests.nodes:,}",
            f"{solution.interests.topics:,}",
            f"{len(solution.edges):,}",
            *([f"{max(solution.bounds.values()):,}"] if bounded else []),
            f"{solution.measures.average_degree:.2f}",
            f"{solution.measures.maximum_degree:,}",
            f"{solution.measures.diameter:,}",
            f"{solution.measures.mean_topic_diameter:.2f}",
        )
        for solution in solutions
    ]
    console = terminal.console()
    console.print(title, style="bold")
    console.print(terminal.plain_table(columns, rows))
    if len(solutions) == 1:
        for line in _notes(solutions[0]):
            console.print(line)


def _notes(solution: _Solution) -> Iterator[str]:
    """The bounds, and the edges in the order added, if few."""
    if solution.bounds:
        bounds = [f"{name.replace('_', ' ')} {value:,}" for name, value in solution.bounds.items()]
        yield f"No overlay has fewer edges than: {', '.join(bounds)}."
    if len(solution.edges):
        edges = (f"{u}–{v}" for u, v in solution.edges.tolist())
        yield f"Edges, in the order added: {few(edges, len(solution.edges))}"
