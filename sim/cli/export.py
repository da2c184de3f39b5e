"""`brokersim export`: an overlay, or a topic's tree, as a graph for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import sim
from sim.base.errors import InputError
from sim.cli.options import Overrides, ScenarioFile, grouped, option


@grouped
def export(
    scenario: ScenarioFile,
    graphml: Annotated[Path, option("FILE.graphml", "The file to write.")],
    *,
    variant: Annotated[str | None, option("NAME", "A variant; the first by default.")] = None,
    replication: Annotated[int, option("N", "The replication, counted from 0.", min=0)] = 0,
    topic: Annotated[str | None, option("NAME", "Write the tree of this topic instead of the overlay.")] = None,
    from_: Annotated[
        str | None,
        option(
            "--from BROKER",
            "The publisher's broker, where trees are rooted at publishers; the first broker by default.",
        ),
    ] = None,
    overrides: Overrides,
) -> None:
    r"""Write a scenario's overlay, or a topic's tree, as GraphML.

    It is the state once all users have joined. Nodes have their broker's number, name and position, edges their round-trip time.
    Characters that XML cannot hold are escaped as in JSON, such as \u001b.
    """
    if os.path.isdir(graphml):
        raise InputError(f"--graphml: expected a file to write, '{graphml}' is a folder")
    if not os.path.isdir(graphml.parent):
        raise InputError(f"--graphml: no such folder: {graphml.parent}")
    graph = sim.export(scenario, variant, replication, topic, from_, overrides.workload, overrides.texts)
    sim.write_graphml(graph, graphml)
    what = "overlay" if topic is None else f"tree of {topic}"
    print(f"{graphml}: {what}, {graph.number_of_nodes():,} nodes, {graph.number_of_edges():,} edges")
