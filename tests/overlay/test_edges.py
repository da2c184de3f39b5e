"""Edge lists in CSV and GraphML: the same links from both, and messages about invalid ones."""

from __future__ import annotations

import networkx as nx
import pytest

from sim.overlay.edges import Edge, read_edges


def graphml(graph: nx.Graph) -> str:
    return "\n".join(nx.generate_graphml(graph))


def links(text: str) -> list[tuple[str, str, float | None]]:
    return [(edge.source, edge.target, edge.round_trip) for edge in read_edges(text)]


def test_a_csv_has_names_and_maybe_times() -> None:
    assert links("source,target\na,b\n\nb,c\n") == [("a", "b", None), ("b", "c", None)]
    assert read_edges('rtt_ms,target,source\n12.5,b,"40,-74"\n,c,b\n') == (
        Edge("40,-74", "b", 0.0125, "line 2"),
        Edge("b", "c", None, "line 3"),
    )


def test_graphml_names_brokers_by_name_or_label_or_id() -> None:
    graph = nx.Graph([(0, 1, {"rtt_ms": 12.5}), (1, 2)])
    assert links('<?xml version="1.0" encoding="utf-8"?>\n' + graphml(graph)) == [("0", "1", 0.0125), ("1", "2", None)]
    nx.set_node_attributes(graph, {0: "København", 1: "b", 2: "c"}, "label")
    assert links(graphml(graph))[0] == ("København", "b", 0.0125)
    nx.set_node_attributes(graph, {0: "x", 1: "y"}, "name")  # not all have one
    assert links(graphml(graph))[0][0] == "København"
    nx.set_node_attributes(graph, {2: "z"}, "name")
    assert links(graphml(graph)) == [("x", "y", 0.0125), ("y", "z", None)]


def test_directed_edges_to_and_fro_are_one_link() -> None:
    assert links(graphml(nx.DiGraph([("a", "b", {"rtt_ms": 3}), ("b", "a", {"rtt_ms": 3}), ("c", "a")]))) == [
        ("a", "b", 0.003),
        ("c", "a", None),
    ]
    with pytest.raises(
        ValueError, match="edge from 'b' to 'a': rtt_ms: differs from that of the edge in the other direction"
    ):
        read_edges(graphml(nx.DiGraph([("a", "b", {"rtt_ms": 3}), ("b", "a", {"rtt_ms": 4})])))


def test_a_default_time_holds_where_an_edge_says_none() -> None:
    text = graphml(nx.Graph([("a", "b", {"rtt_ms": 3.0}), ("b", "c")]))
    text = text.replace('attr.type="double" />', 'attr.type="double"><default>7</default></key>')
    assert links(text) == [("a", "b", 0.003), ("b", "c", 0.007)]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("a,a,1", "line 2: 'a' is linked to itself"),
        ("a,b,1\nb,a,1", r"line 3: the link between 'b' and 'a' appears twice \(first: line 2\)"),
        ("a,b,-1", "line 2: rtt_ms: expected a number from 0, found '-1'"),
        ("a,b,nan", "line 2: rtt_ms: expected a number from 0, found 'nan'"),
        ("a,b,quick", "line 2: rtt_ms: expected a number from 0, found 'quick'"),
        ("a,,1", "line 2: target: missing"),
    ],
)
def test_rows_that_are_no_links(rows: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_edges("source,target,rtt_ms\n" + rows)


@pytest.mark.parametrize(
    ("graph", "complaint"),
    [
        (nx.Graph([("a", "b"), ("b", "b")]), "edge from 'b' to 'b': 'b' is linked to itself"),
        (nx.DiGraph([("a", "a")]), "edge from 'a' to 'a': 'a' is linked to itself"),
        (nx.MultiGraph([("a", "b"), ("a", "b")]), "the link between 'a' and 'b' appears twice"),
        (
            nx.Graph([("a", "b", {"rtt_ms": -0.5})]),
            "edge from 'a' to 'b': rtt_ms: expected a number from 0, found -0.5",
        ),
        (
            nx.Graph([("a", "b", {"rtt_ms": "slow"})]),
            "edge from 'a' to 'b': rtt_ms: expected a number from 0, found 'slow'",
        ),
        (nx.disjoint_union(nx.path_graph(2), nx.path_graph(1)), "node '2' has no edge"),
    ],
)
def test_graphs_that_cannot_be_used(graph: nx.Graph, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_edges(graphml(graph))


def test_two_nodes_of_one_name() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "a", 1: "b", 2: "a"}, "name")
    with pytest.raises(ValueError, match="nodes '0' and '2' are both called 'a'"):
        read_edges(graphml(graph))


def test_a_type_that_graphml_does_not_have() -> None:
    text = "".join(nx.generate_graphml(nx.Graph([("a", "b", {"rtt_ms": 1.5})]))).replace('"double"', '"quick"')
    with pytest.raises(ValueError, match="not valid GraphML: 'quick' is not a type"):
        read_edges(text)


@pytest.mark.parametrize("text", ["<graphml", "<html></html>", "<a>&b;</a>"])
def test_xml_that_is_no_graph(text: str) -> None:
    with pytest.raises(ValueError, match="not valid GraphML: "):
        read_edges(text)
