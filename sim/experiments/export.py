"""The overlay of a scenario, or a topic's tree on it, as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import InputError, ScenarioError, unknown, unknown_of_many
from sim.base.escaping import xml_text
from sim.base.naming import Raw
from sim.experiments.run import naming, prepared_folder
from sim.files.atomic import whole_file
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario
from sim.simulation import broker_sites, build, prepare_workload
from sim.workloads.format.folder import load_workload

if TYPE_CHECKING:
    import networkx as nx

    from sim.brokers.network import Network
    from sim.scenario.model import Scenario


def write_graphml(graph: nx.DiGraph, path: str | Path) -> None:
    r"""Write a graph of `export` as GraphML; characters that XML cannot hold are escaped as in JSON, such as \u001b.

    Args:
        graph: the graph.
        path: the file to write, which appears once it is complete.

    Raises:
        InputError: where the file cannot be written.

    Examples:
        >>> sim.write_graphml(sim.export(sim.example()), "ring.graphml")
    """
    import networkx as nx

    plain = graph.copy()
    for _, about in plain.nodes(data=True):
        about.update((key, xml_text(value)) for key, value in about.items() if isinstance(value, str))
    with whole_file(Path(path)) as unfinished:
        nx.write_graphml_xml(plain, unfinished)


def export(
    source: str | Path | Raw | Experiment,
    variant: str | None = None,
    replication: int = 0,
    topic: str | None = None,
    publisher: str | None = None,
    workload: str | Path | None = None,
    overrides: Sequence[str] = (),
) -> nx.DiGraph:
    """The overlay of a scenario's variant, or a topic's tree on it, as a graph, once all users have joined.

    Args:
        source: a scenario file, its content, or a loaded one.
        variant: the variant; the first by default.
        replication: the replication, counted from 0.
        topic: the topic whose tree to return instead of the overlay.
        publisher: the name of the broker whose publications use the tree (the first by default), for trees that are rooted at the
            publisher's broker.
        workload: a workload folder, instead of the one named in the scenario.
        overrides: texts `key.path=value` that override keys.

    Returns:
        A `networkx.DiGraph` whose nodes and edges are those of `sim.overlay.export.PlacedOverlay`.

    Raises:
        InputError: where something does not exist.

    Examples:
        >>> sorted(degree for _, degree in sim.export(sim.example(), variant="star").out_degree())
        [1, 1, 1, 3]
    """
    experiment = source if isinstance(source, Experiment) else load_scenario(source, overrides, workload)
    name = next(iter(experiment.variants)) if variant is None else variant
    if name not in experiment.variants:
        raise ScenarioError(unknown("variant", name, experiment.variants))
    if replication < 0:
        raise InputError(f"replication: expected 0 or more (found {replication})")
    scenario = experiment.variants[name]
    folder = prepared_folder(experiment, scenario)
    with naming(experiment):
        world = prepare_workload(scenario, replication, None if folder is None else load_workload(folder))
        network = build(scenario, world, replication)
        network.users.join_all()
        if topic is None and publisher is not None:
            raise InputError("a publisher only applies to a topic's tree: name a topic too")
        return network_graph(network, scenario, topic, publisher)


def network_graph(network: Network, scenario: Scenario, topic: str | None, publisher: str | None) -> nx.DiGraph:
    """The overlay as it is now, or a topic's tree, as in `export`."""
    from sim.overlay.export import PlacedOverlay
    from sim.overlay.pair_times import PairTimes

    overlay, hops = network.setting.overlay, PairTimes.of(network.setting.hop_delay)
    sites, _ = broker_sites(scenario, network.workload)
    placement = PlacedOverlay(
        overlay, network.broker_of, sites, hops if scenario.network.hop_cost == "rtt" else hops.times(2)
    )
    if topic is None:
        if not hasattr(overlay, "edges"):
            kind = scenario.network.geometry.kind
            raise ScenarioError(f"network.geometry: kind '{kind}' does not report its links (allowed: a topic's tree)")
        return placement.overlay_graph()
    if publisher is not None and publisher not in sites.names:
        raise InputError(unknown_of_many("broker", publisher, sites.names))
    names = network.workload.topics.names.to_pylist()
    if topic not in names:
        raise InputError(unknown_of_many("topic", topic, names))
    number = names.index(topic)
    broker = 0 if publisher is None else sites.names.index(publisher)
    root = int(overlay.uplink(number, int(network.node_of[broker]))[-1])
    tree = overlay.tree(number, root)
    if not len(tree):
        raise InputError(f"topic '{topic}': no broker subscribes to it once all users have joined, so it has no tree")
    return placement.tree_graph(tree, network.subscriptions.wanted.row(number) > 0)
