"""`brokersim solve overlay`: which nodes to link so that the subscribers of each topic are connected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import sim
from sim.api.problems import MOST_FOR_OPTIMUM, check_design, interests_of
from sim.base.errors import InputError
from sim.cli import terminal
from sim.cli.instances import few, print_solutions, read_instances
from sim.cli.options import argument, option

if TYPE_CHECKING:
    import networkx as nx

    from sim.api.problems import DesignedOverlay


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
        option(
            "--bounds",
            f"Also compute lower bounds of the number of edges; the optimum for up to {MOST_FOR_OPTIMUM} nodes.",
        ),
    ] = False,
    json_: Annotated[bool, option("--json", "Print edges and measures as JSON.")] = False,
    graphml: Annotated[Path | None, option("OUT", "Also write the overlay as a graph.")] = None,
) -> None:
    """Design a topic-connected overlay.

    In it, the subscribers of each topic are connected among themselves. The nodes of a workload are its users, with their interests
    at its start.
    """
    check_design(algorithm, k, strict)
    instances, listed = _read(source)
    if graphml is not None and len(instances) != 1:
        raise InputError(f"--graphml writes one graph: {source} has a list of {len(instances)}")
    try:
        solutions = [sim.solve_overlay(wanted, algorithm, k, strict, bounds) for wanted in instances]
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    if graphml is not None:
        _write_graph(graphml, solutions[0].graph())
    if json_:
        print_solutions([solution.as_json() for solution in solutions], listed)
    else:
        _show(f"{source}: {algorithm}", solutions)


def _read(source: Path) -> tuple[list[list[list[int]]], bool]:
    """The topics of each node, for each instance, and whether these came as a list."""
    from sim.workloads.synthetic.interests import interest_rows

    if source.is_dir():
        return [interests_of(source)], False
    instances, listed = read_instances(source)
    try:
        return [interest_rows(instance, f"[{i}]" if listed else "") for i, instance in enumerate(instances)], listed
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None


def _write_graph(path: Path, graph: nx.Graph) -> None:
    """Write GraphML, which has no lists as attributes: a node's topics are separated by spaces."""
    import networkx as nx

    from sim.files.atomic import whole_file

    for _, data in graph.nodes(data=True):
        data["topics"] = " ".join(map(str, data["topics"]))
    with whole_file(path) as unfinished:
        nx.write_graphml(graph, unfinished)


def _show(title: str, solutions: list[DesignedOverlay]) -> None:
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


def _notes(solution: DesignedOverlay) -> Iterator[str]:
    """The bounds, and the edges in the order added, if few."""
    if solution.bounds:
        bounds = [f"{name.replace('_', ' ')} {value:,}" for name, value in solution.bounds.items()]
        yield f"No overlay has fewer edges than: {', '.join(bounds)}."
    if len(solution.edges):
        edges = (f"{u}–{v}" for u, v in solution.edges.tolist())
        yield f"Edges, in the order added: {few(edges, len(solution.edges))}"
