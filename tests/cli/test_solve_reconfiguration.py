"""`brokersim solve reconfiguration`: the whole text, JSON for one instance and for lists, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from oracles import chord
from oracles import ssbr as oracle

Brokersim = Callable[..., tuple[int, str, str]]

# DYNATOPS, figure 2: 8 brokers, evenly placed, two topics hashed to 1 and 4, each broker wants one of the two
FIGURE_2 = {
    "bits": 3,
    "node_ids": [0, 1, 2, 3, 4, 5, 6, 7],
    "topic_hashes": [1, 4],
    "subscriptions": [[0], [1], [0], [1], [0], [1], [0], [1]],
    "publications": [3, 2],
    "mapping": [0, 1, 2, 3, 4, 5, 6, 7],
    "delay_weight": 1,
}


@pytest.fixture(autouse=True)
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "i.json"
    path.write_text(json.dumps(FIGURE_2))
    return path


GOLDEN = """
i.json: ssbr-greedy

                       cost    cost
  brokers   topics   before   after    change   external   internal   delay   moved   swaps
 ───────────────────────────────────────────────────────────────────────────────────────────
        8        2       55      17   -69.1 %          0         15      17       6       3

Node ids of brokers 0 to 7: 3, 6, 2, 0, 5, 4, 1, 7
Swaps of brokers, with the cost after each: 0 with 3 (35), 6 with 1 (22), 4 with 5 (17)
"""


def test_the_whole_text(brokersim: Brokersim) -> None:
    status, out, err = brokersim("solve", "reconfiguration", "i.json", "--policy", "ssbr-greedy")
    assert (status, err) == (0, "")
    assert "\n".join(line.rstrip() for line in out.splitlines()).strip() == dedent(GOLDEN).strip()


AS_IT_IS = {
    "mapping": [0, 1, 2, 3, 4, 5, 6, 7],
    "cost_before": 55,
    "cost_after": 55,
    "external": 15,
    "internal": 20,
    "delay": 40,
    "moved": 0,
    "swaps": [],
    "trees": [
        [[1, 2], [1, 3], [1, 5], [3, 4], [5, 6], [5, 7], [7, 0]],
        [[4, 0], [4, 5], [4, 6], [0, 1], [0, 2], [6, 7], [2, 3]],
    ],
}
BEST_TREES = [[[1, 2], [1, 3], [1, 5]], [[4, 0], [4, 6], [6, 7]]]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("none", AS_IT_IS),
        (
            "ssbr-greedy",
            {
                "mapping": [3, 6, 2, 0, 5, 4, 1, 7],
                "cost_before": 55,
                "cost_after": 17,
                "external": 0,
                "internal": 15,
                "delay": 17,
                "moved": 6,
                "swaps": [[0, 3, 35], [6, 1, 22], [4, 5, 17]],
                "trees": BEST_TREES,
            },
        ),
        ("dynatops-greedy", AS_IT_IS),  # a gain of 38 is not worth 8 + 6 (3² + 2 · 3) messages
        (
            "lsap",
            {
                "mapping": [1, 4, 2, 0, 3, 6, 5, 7],
                "cost_before": 55,
                "cost_after": 17,
                "external": 0,
                "internal": 15,
                "delay": 17,
                "moved": 6,
                "swaps": [],
                "trees": BEST_TREES,
            },
        ),
    ],
)
def test_one_object_as_json(brokersim: Brokersim, policy: str, expected: dict[str, Any]) -> None:
    status, out, err = brokersim("solve", "reconfiguration", "i.json", "--policy", policy, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == expected
    assert list(json.loads(out)) == list(expected)


def test_what_moving_costs_decides_how_far_to_go(brokersim: Brokersim, instance: Path) -> None:
    swaps = [[0, 3, 35], [6, 1, 22], [4, 5, 17]]
    # gains of 20, 33 and 38 for 2, 4 and 6 brokers moved, log2 8 = 3
    for constants, made in {
        (0, 0, 0): 3,
        (0, 0, 1): 2,
        (2, 0, 0.5): 2,
        (0, 0, 1.2): 1,
        (60, 0, 0): 0,
        (1, 1, 1): 0,
    }.items():
        instance.write_text(json.dumps({**FIGURE_2, "move_cost": {"constants": constants}}))
        _, out, _ = brokersim("solve", "reconfiguration", "i.json", "--policy", "dynatops-greedy", "--json")
        assert json.loads(out)["swaps"] == swaps[:made], constants
    instance.write_text(json.dumps({**FIGURE_2, "move_cost": None}))
    assert (
        json.loads(brokersim("solve", "reconfiguration", "i.json", "--policy", "dynatops-greedy", "--json")[1])["swaps"]
        == swaps
    )


def written(seed: int) -> dict[str, Any]:
    """A problem with ids in any order; every second one lacks the optional keys."""
    rng = random.Random(seed)
    n, topics = rng.randint(1, 12), rng.randint(0, 9)
    ids = rng.sample(range(256), n)
    found = {
        "bits": 8,
        "node_ids": ids,
        "topic_hashes": [rng.choice([rng.randrange(256), rng.choice(ids)]) for _ in range(topics)],
        "subscriptions": [rng.choices(range(topics), k=rng.randint(0, 3)) if topics else [] for _ in range(n)],
        "publications": [rng.randint(0, 30) for _ in range(topics)],
        "mapping": rng.sample(ids, n),
        "delay_weight": rng.choice([0, 1, 2, 0.5]),
    }
    if seed % 2:
        found["rtt"] = [[rng.random() for _ in range(n)] for _ in range(n)]
        found["count_rendezvous"] = rng.random() < 0.5
        found["seed"] = seed
        found["move_cost"] = rng.choice([None, {"constants": [0.1, 0.2, 0.3]}])
    return found


def literal(given: dict[str, Any], mapping: list[int]) -> oracle.Case:
    """The same problem as the oracle takes it, with nodes numbered as in the file."""
    ring, number = sorted(given["node_ids"]), given["node_ids"].index
    routes = {(u, v): chord.route(ring, given["bits"], u, v) for u in ring for v in ring}
    return oracle.Case(
        [[number(routes[u, v][-2]) if u != v else -1 for v in given["node_ids"]] for u in given["node_ids"]],
        [number(chord.responsible(ring, point)) for point in given["topic_hashes"]],
        [set(topics) for topics in given["subscriptions"]],
        given["publications"],
        [number(node) for node in mapping],
        given["delay_weight"],
        given.get("rtt"),
        given.get("count_rendezvous", False),
    )


@pytest.mark.parametrize("policy", ["none", "ssbr-greedy", "dynatops-greedy", "lsap"])
def test_a_list_gives_a_list_of_what_sets_of_routes_say(brokersim: Brokersim, instance: Path, policy: str) -> None:
    given = [written(seed) for seed in range(12)]
    instance.write_text(json.dumps(given))
    status, out, err = brokersim("solve", "reconfiguration", "i.json", "--policy", policy, "--json")
    assert (status, err) == (0, "")
    for problem, found in zip(given, json.loads(out), strict=True):
        before, after = literal(problem, problem["mapping"]), literal(problem, found["mapping"])
        assert found["cost_before"] == pytest.approx(oracle.cost(before), rel=1e-12)
        assert found["cost_after"] == pytest.approx(oracle.cost(after), rel=1e-12)
        assert (found["external"], found["internal"]) == (oracle.external(after), oracle.internal(after))
        assert found["delay"] == pytest.approx(oracle.total_delay(after), rel=1e-12)
        assert found["moved"] == oracle.moved(before, after)
        for topic, links in enumerate(found["trees"]):
            named = {(problem["node_ids"][u], problem["node_ids"][v]) for u, v in oracle.tree(after, topic)}
            assert {(u, v) for u, v in links} == named
            assert len(links) == len(named)
        if policy.endswith("greedy"):
            walked = before
            for broker, partner, cost in found["swaps"]:
                walked = walked.swapped(broker, partner)
                assert cost == pytest.approx(oracle.cost(walked), rel=1e-12)
            assert list(walked.node_of) == after.node_of
    assert brokersim("solve", "reconfiguration", "i.json", "--policy", policy, "--json")[1] == out
    assert len(brokersim("solve", "reconfiguration", "i.json", "--policy", policy)[1].splitlines()) == 18


def test_a_row_of_numbers_of_all_kinds(brokersim: Brokersim, instance: Path) -> None:
    far = [[4000.0 if i != j else 0.0 for i in range(8)] for j in range(8)]
    near = [[0.0625 for _ in range(8)] for _ in range(8)]
    for rtt, row in {
        json.dumps(far): "8 2 160,015 160,015 +0.0 % 15 20 160,000 0 0",
        json.dumps(near): "8 2 17.50 17.50 +0.0 % 15 20 2.50 0 0",
    }.items():
        instance.write_text(json.dumps({**FIGURE_2, "rtt": json.loads(rtt)}))
        _, out, _ = brokersim("solve", "reconfiguration", "i.json", "--policy", "none")
        assert " ".join(out.splitlines()[5].split()) == row


def test_lists_of_one_and_of_none(brokersim: Brokersim, instance: Path) -> None:
    instance.write_text(json.dumps([FIGURE_2]))
    assert json.loads(brokersim("solve", "reconfiguration", "i.json", "--policy", "none", "--json")[1]) == [AS_IT_IS]
    instance.write_text("[]")
    assert brokersim("solve", "reconfiguration", "i.json", "--policy", "none", "--json")[1] == "[]\n"


def but(**more: Any) -> dict[str, Any]:
    return {**FIGURE_2, **more}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            7,
            "expected an object with the keys bits, node_ids, topic_hashes, subscriptions, publications, mapping, "
            "delay_weight (found 7)",
        ),
        ({}, "bits: missing"),
        (
            but(delay_wieght=2),
            "delay_wieght: unknown key, did you mean 'delay_weight'? (allowed: bits, node_ids, topic_hashes, subscriptions, "
            "publications, mapping, delay_weight, rtt, count_rendezvous, seed, move_cost) (found 2)",
        ),
        (but(bits=63), "bits: expected a value less than or equal to 62 (found 63)"),
        (but(bits="3"), "bits: expected a valid integer (found '3')"),
        (but(bits=2), "node_ids[4]: expected a value below 2^2, as bits is 2 (found 4)"),
        (but(node_ids=[0, 1, 2, 3, 4, 5, 6, 1]), "node_ids[7]: expected distinct ids (found 1 again)"),
        (but(node_ids=[]), "node_ids: expected at least one (found none)"),
        (but(topic_hashes=[1, 8]), "topic_hashes[1]: expected a value below 2^3, as bits is 3 (found 8)"),
        (but(topic_hashes=[1, -1]), "topic_hashes[1]: expected a value greater than or equal to 0 (found -1)"),
        (but(subscriptions=[[0]] * 7), "subscriptions: expected 8 entries, as many as node_ids has (found 7)"),
        (but(subscriptions=[[0]] * 7 + [[1, 2]]), "subscriptions[7][1]: expected a topic from 0 to 1 (found 2)"),
        (but(subscriptions=[[0]] * 7 + [[-1]]), "subscriptions[7][0]: expected a topic from 0 to 1 (found -1)"),
        (but(subscriptions=[[0]] * 7 + [1]), "subscriptions[7]: expected a valid list (found 1)"),
        (but(subscriptions=[[0]] * 7 + [[1.0]]), "subscriptions[7][0]: expected a valid integer (found 1.0)"),
        (but(publications=[1]), "publications: expected 2 entries, as many as topic_hashes has (found 1)"),
        (but(publications=[1, -2]), "publications[1]: expected a value greater than or equal to 0 (found -2)"),
        (but(publications=[True, 1]), "publications[0]: expected a valid number (found true)"),
        (but(publications=[1, float("nan")]), "publications[1]: expected a finite number (found NaN)"),
        (but(publications=[1e16, 1]), "publications[0]: expected a value less than or equal to 9007199254740992 (found 1e+16)"),
        (but(mapping=[0, 1, 2, 3, 4, 5, 6, 8]), "mapping[7]: expected one of node_ids (found 8)"),
        (but(mapping=[0, 1, 2, 3, 4, 5, 6, 6]), "mapping[7]: expected distinct ids (found 6 again)"),
        (but(mapping=[0]), "mapping: expected 8 entries, as many as node_ids has (found 1)"),
        (but(delay_weight=-1), "delay_weight: expected a value greater than or equal to 0 (found -1)"),
        (but(rtt=[[0] * 8] * 7), "rtt: expected 8 entries, as many as node_ids has (found 7)"),
        (but(rtt=[[0] * 8] * 7 + [[0] * 9]), "rtt[7]: expected 8 entries, as many as node_ids has (found 9)"),
        (but(rtt=[[0] * 8] * 7 + [[0] * 7 + [None]]), "rtt[7][7]: expected a valid number (found null)"),
        (but(count_rendezvous=1), "count_rendezvous: expected a valid boolean (found 1)"),
        (but(seed=-1), "seed: expected a value greater than or equal to 0 (found -1)"),
        (but(move_cost={}), "move_cost.constants: missing"),
        (but(move_cost={"constants": [1, 1]}), "move_cost.constants: expected 3 entries, one for each term of eq. 11 (found 2)"),
        (
            but(publications=[2**50, 0], delay_weight=2**20),
            "costs may reach 2.83e+22, allowed: below 2^63; give publications or the delay weight in larger units",
        ),
    ],
)  # fmt: skip
def test_a_file_that_says_something_else(check_refused: Callable[..., None], content: Any, message: str) -> None:
    check_refused("reconfiguration i.json --policy ssbr-greedy", FIGURE_2, content, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.json", "--policy", "none"], "no.json: cannot be read (No such file or directory)"),
        (["bad.json", "--policy", "none"], "bad.json: not valid JSON (Expecting value: line 1 column 2 (char 1))"),
    ],
)
def test_what_is_refused(brokersim: Brokersim, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "bad.json").write_text("[")
    assert brokersim("solve", "reconfiguration", *arguments) == (2, "", f"brokersim: error: {message}\n")


def test_a_policy_that_nobody_knows(brokersim: Brokersim) -> None:
    status, out, err = brokersim("solve", "reconfiguration", "i.json", "--policy", "ssbr-gredy")
    assert (status, out) == (2, "")
    assert "--policy: unknown reconfiguration policy 'ssbr-gredy', did you mean 'ssbr-greedy'? (allowed: " in err
    assert "none" in err
