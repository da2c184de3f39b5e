"""`brokersim solve overlay`: the whole text, JSON for one instance and for lists, workloads, graphs, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import networkx as nx
import pytest
from oracles import topic_connected as oracle

from sim.base.randomness import Streams
from sim.workloads.format.folder import write_workload
from sim.workloads.synthetic.poisson import PoissonWorkload

Brokersim = Callable[..., tuple[int, str, str]]

ROWS = [[1, 2], [2, 3, 3], [1, 3], [], [9, 1], [-5]]


@pytest.fixture(autouse=True)
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "i.json"
    path.write_text(json.dumps({"interests": ROWS, "comment": "two of the nodes have nobody to talk to"}))
    return path


GOLDEN = """
i.json: gm

                                      average   maximum    largest       mean
  nodes   topics   edges   at least    degree    degree   diameter   diameter
 ─────────────────────────────────────────────────────────────────────────────
      6        5       4          4      1.33         3          2       1.33

No overlay has fewer edges than: largest topic 2, spanning forest 3, heaviest pairs 4, optimum 4.
Edges, in the order added: 0–1, 0–2, 0–4, 1–2
"""


def test_the_whole_text(brokersim: Brokersim) -> None:
    status, out, err = brokersim("solve", "overlay", "i.json", "--algorithm", "gm", "--bounds")
    assert (status, err) == (0, "")
    assert "\n".join(line.rstrip() for line in out.splitlines()).strip() == dedent(GOLDEN).strip()


@pytest.mark.parametrize("algorithm", ["gm", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i", "cd-oda-ii"])
def test_one_object_as_json(brokersim: Brokersim, algorithm: str) -> None:
    status, out, err = brokersim("solve", "overlay", "i.json", "--algorithm", algorithm, "--json", "--bounds")
    assert (status, err) == (0, "")
    rows = [set(row) for row in ROWS]
    edges = [tuple(edge) for edge in json.loads(out)["edges"]]
    greedy = algorithm in ("gm", "minmax-oda", "low-oda")
    assert edges == (oracle.greedy if greedy else oracle.constant_diameter)(rows, algorithm)
    spans = oracle.topic_diameters(rows, edges).values()
    assert json.loads(out) == {
        "edges": [list(edge) for edge in edges],
        "average_degree": 2 * len(edges) / 6,
        "maximum_degree": max(oracle.degrees(6, edges)),
        "diameter": max(spans),
        "mean_topic_diameter": sum(spans) / len(spans),
        "lower_bounds": {"largest_topic": 2, "spanning_forest": 3, "heaviest_pairs": 4, "optimum": 4},
    }


def test_k_and_strict(brokersim: Brokersim, tmp_path: Path) -> None:
    """The second edge is (3, 4), weight 2 and gentle, or (1, 2), weight 3, as k · 2 is at least, or above, 3."""
    rows = [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7], [5, 6, 7], [8, 9], [8, 9]]
    (tmp_path / "i.json").write_text(json.dumps({"interests": rows}))
    for options, second in {
        (): [3, 4],
        ("--k", "3/2"): [3, 4],
        ("--k", "1.5", "--strict"): [1, 2],
        ("--k", "1.51", "--strict"): [3, 4],
        ("--k", "1.49"): [1, 2],
    }.items():
        status, out, _ = brokersim("solve", "overlay", "i.json", "--algorithm", "low-oda", "--json", *options)
        assert (status, json.loads(out)["edges"][1]) == (0, second), options


def test_a_list_gives_a_list(brokersim: Brokersim, tmp_path: Path) -> None:
    many = [{"interests": [[1], [1]]}, {"interests": []}, {"interests": [[4, 5]] * 3}]
    (tmp_path / "i.json").write_text(json.dumps(many))
    status, out, _ = brokersim("solve", "overlay", "i.json", "--algorithm", "cd-oda-ii", "--json")
    assert status == 0
    assert [found["edges"] for found in json.loads(out)] == [[[0, 1]], [], [[0, 1], [0, 2]]]
    assert json.loads(out)[1] == {
        "edges": [],
        "average_degree": 0.0,
        "maximum_degree": 0,
        "diameter": 0,
        "mean_topic_diameter": 0.0,
        "lower_bounds": {},
    }
    _, out, _ = brokersim("solve", "overlay", "i.json", "--algorithm", "cd-oda-ii")
    assert [line.split()[:3] for line in out.splitlines()[-4:-1]] == [["2", "1", "1"], ["0", "0", "0"], ["3", "2", "2"]]
    (tmp_path / "i.json").write_text("[]")
    assert brokersim("solve", "overlay", "i.json", "--algorithm", "gm", "--json")[1] == "[]\n"


def test_the_users_of_a_workload(brokersim: Brokersim, tmp_path: Path) -> None:
    workload = PoissonWorkload(PoissonWorkload.Parameters(users=40, topics=12, horizon="1h")).generate(Streams(2))
    write_workload(workload, tmp_path / "w")
    status, out, _ = brokersim("solve", "overlay", "w", "--algorithm", "low-oda", "--json")
    bounds, topics = workload.interests.indptr, workload.interests.indices
    rows = [set(topics[bounds[user] : bounds[user + 1]].tolist()) for user in range(40)]
    graph = nx.Graph(json.loads(out)["edges"])
    assert status == 0
    assert all(nx.is_connected(graph.subgraph(oracle.subscribers(rows, topic))) for topic in range(12))
    _, out, _ = brokersim("solve", "overlay", "w", "--algorithm", "low-oda")
    assert "more (all of them: --json)" in out
    (tmp_path / "w" / "manifest.json").unlink()
    assert brokersim("solve", "overlay", "w", "--algorithm", "gm")[::2] == (
        2,
        "brokersim: error: w: not a workload folder, or an unfinished one (it has no manifest.json)\n",
    )


def test_the_graph_for_other_tools(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, _ = brokersim("solve", "overlay", "i.json", "--algorithm", "gm", "--json", "--graphml", "o.graphml")
    graph = nx.read_graphml(tmp_path / "o.graphml", node_type=int)
    edges = sorted(graph.edges(data="order"), key=lambda edge: edge[2])
    assert status == 0
    assert [[u, v] for u, v, _ in edges] == json.loads(out)["edges"]
    assert [data for _, data in graph.nodes(data="topics")][:5] == ["1 2", "2 3", "1 3", "", "1 9"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i.json", "o.graphml"]


OBJECT = 'expected {"interests": [[topic, …] per node]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ('{"interest": []}', f'the file is not an object with a key "interests" (keys interest); {OBJECT}'),
        ("7", f'the file is not an object with a key "interests" (7); {OBJECT}'),
        ('[{"interests": []}, []]', f'[1] is not an object with a key "interests" ([]); {OBJECT}'),
        ('{"interests": {"a": 1}}', 'interests is {"a": 1}, expected a list with a list of topics per node'),
        ('{"interests": [[1], 2]}', "interests[1] is 2, expected a list of topics"),
        ('{"interests": [[1], [2, 1.0]]}', "interests[1][1] is 1.0, expected an integer, a topic"),
        ('{"interests": [["jazz"]]}', 'interests[0][0] is "jazz", expected an integer, a topic'),
        ('[{"interests": [[true]]}]', "[0].interests[0][0] is true, expected an integer, a topic"),
        ('{"interests": [[null]]}', "interests[0][0] is null, expected an integer, a topic"),
    ],
)
def test_a_file_that_says_something_else(brokersim: Brokersim, instance: Path, text: str, message: str) -> None:
    instance.write_text(text)
    status, out, err = brokersim("solve", "overlay", "i.json", "--algorithm", "gm", "--json")
    assert (status, out, err) == (2, "", f"brokersim: error: i.json: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.json", "--algorithm", "gm"], "no.json: cannot be read (No such file or directory)"),
        (
            ["i.json", "--algorithm", "lowoda"],
            "--algorithm: unknown design 'lowoda', did you mean 'low-oda'? "
            "(allowed: cd-oda, cd-oda-i, cd-oda-ii, gm, low-oda, minmax-oda)",
        ),
        (["i.json", "--algorithm", "low-oda", "--k", "0.99"], "--k: expected at least 1, found '0.99'"),
        (
            ["i.json", "--algorithm", "low-oda", "--k", "much"],
            "--k: expected a number such as 1.5 or '3/2', found 'much'",
        ),
        (
            ["i.json", "--algorithm", "low-oda", "--k", "1/0"],
            "--k: expected a number such as 1.5 or '3/2', found '1/0'",
        ),
        (["i.json", "--algorithm", "gm", "--k", "2"], "--k is only for low-oda (found --algorithm gm)"),
        (["i.json", "--algorithm", "cd-oda", "--strict"], "--strict is only for low-oda (found --algorithm cd-oda)"),
        (["l.json", "--algorithm", "gm", "--graphml", "o"], "--graphml writes one graph: l.json has a list of 2"),
        (
            ["i.json", "--algorithm", "gm", "--graphml", "no/o"],
            "no/o: cannot be written (No such file or directory)",
        ),
        (
            ["crowd.json", "--algorithm", "gm"],
            "crowd.json: 200,000 nodes have 19,999,900,000 pairs, too many for a greedy design, which needs 20.0 GB "
            "(allowed: up to 8 GB; the CD-ODA family needs no pairs)",
        ),
    ],
)
def test_what_is_refused(brokersim: Brokersim, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "l.json").write_text('[{"interests": []}, {"interests": []}]')
    if arguments[0] == "crowd.json":
        (tmp_path / "crowd.json").write_text(json.dumps({"interests": [[0]] * 200_000}))
    status, out, err = brokersim("solve", "overlay", *arguments)
    assert (status, out, err) == (2, "", f"brokersim: error: {message}\n")
