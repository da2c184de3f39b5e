"""`brokersim solve offloading`: the whole text, JSON for files and workloads, the value of each capacity, and what is refused."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import tiny
from oracles.offloading import Case

from sim import plugins
from sim.api import problems
from sim.base import memory
from sim.base.randomness import Streams
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.poisson import PoissonWorkload

Brokersim = Callable[..., tuple[int, str, str]]

# Somebody wants nothing. Topic 2 is 8 notifications, topic 3 has nobody.
SMALL = {
    "interests": [[0, 1], [1, 2], [2], [0], [], [2, 4], [4, 2, 4]],
    "event_rate": [3, 5, 2, 7, 1],
    "capacity": 14,
    "tau": 3,
}


@pytest.fixture(autouse=True)
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "i.json"
    path.write_text(json.dumps(SMALL))
    return path


def but(**more: Any) -> dict[str, Any]:
    return {**SMALL, **more}


def assert_text(found: tuple[int, str, str], expected: str) -> None:
    status, out, err = found
    assert (status, err) == (0, "")
    assert "\n".join(line.rstrip() for line in out.splitlines()).strip() == dedent(expected).strip()


GOLDEN = """
i.json: b3m

                      topics                of all    satis-
  capacity     used     kept   satisfied   in need   faction
 ────────────────────────────────────────────────────────────
        14   71.4 %        2           3    50.0 %    0.6111

1 of 7 subscribers need nothing; they are not counted above.
Topics, in the order picked: 2, 4
"""


def test_the_whole_text(brokersim: Brokersim) -> None:
    assert_text(brokersim("solve", "offloading", "i.json", "--policy", "b3m"), GOLDEN)


BOUNDED = """
i.json: fb3m

                                                       sum of
                       topics                of all    satis-
  capacity      used     kept   satisfied   in need   faction   at most    ratio
 ────────────────────────────────────────────────────────────────────────────────
        14   100.0 %        2           3    50.0 %         5         5   1.0000

1 of 7 subscribers need nothing; they are not counted above.
Upper bounds of the sum of satisfaction: threshold 5, hull 5, data-dependent 6, lp-dual 5.
Topics, in the order picked: 2, 0
"""


def test_the_whole_text_with_bounds(brokersim: Brokersim) -> None:
    assert_text(brokersim("solve", "offloading", "i.json", "--policy", "fb3m", "--bounds"), BOUNDED)


OVER = """
i.json: none

                       topics                of all    satis-
  capacity      used     kept   satisfied   in need   faction
 ─────────────────────────────────────────────────────────────
        14   185.7 %        5           6   100.0 %    1.0000

1 of 7 subscribers need nothing; they are not counted above.
Over capacity: these topics cost 26, and the policy ignores the capacity.
Topics, in the order picked: 0, 1, 2, 3, 4
"""


def test_what_no_limit_would_give_may_be_over_capacity(brokersim: Brokersim) -> None:
    assert_text(brokersim("solve", "offloading", "i.json", "--policy", "none"), OVER)


@pytest.mark.parametrize(
    ("policy", "topics", "cost", "satisfied", "satisfaction", "value"),
    [
        (
            "b3m",
            [2, 4],
            10,
            3,
            11 / 18,
            3,
        ),  # 3 / 8 a notification for topic 2, and then 1 for topic 4; the others do not fit
        ("fb3m", [2, 0], 14, 3, 5 / 6, 5),  # type G: 3 for topic 2, then 2 for topic 0
        ("fb3m-slow", [2, 0], 14, 3, 5 / 6, 5),
        ("partial-enumeration", [2, 0], 14, 3, 5 / 6, 5),
        ("popular", [2, 0], 14, 3, 5 / 6, 3),
        ("loudest", [1, 4], 12, 2, 4 / 9, 2),
        ("none", [0, 1, 2, 3, 4], 26, 6, 1, 6),
    ],
)
def test_one_object_as_json(
    brokersim: Brokersim, policy: str, topics: list[int], cost: int, satisfied: int, satisfaction: float, value: float
) -> None:
    status, out, err = brokersim("solve", "offloading", "i.json", "--policy", policy, "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found.pop("seconds") >= 0
    assert found == {
        "topics": topics,
        "capacity": 14,
        "cost": cost,
        "satisfied": satisfied,
        "subscribers": 7,
        "free": 1,
        "satisfaction": pytest.approx(satisfaction, rel=1e-15),
        "value": value,
        "upper_bounds": {},
    }


def written(seed: int) -> dict[str, Any]:
    """A problem in whole numbers; every second one lacks the optional keys."""
    rng = random.Random(seed)
    topics, subscribers = rng.randint(0, 9), rng.randint(0, 12)
    found: dict[str, Any] = {
        "interests": [rng.choices(range(topics), k=rng.randint(0, 5)) if topics else [] for _ in range(subscribers)],
        "event_rate": [rng.randint(0, 20) for _ in range(topics)],
        "capacity": rng.choice([0, 30, 100, "25%", "100%"]),
        "tau": rng.choice([0, 5, 60]),
    }
    if seed % 2:
        found["tau"] = [rng.randint(0, 30) for _ in range(subscribers)]
        found["cost"] = rng.choice([None, [rng.randint(1, 50) for _ in range(topics)]])
        found["seed"] = seed
    return found


def literal(given: dict[str, Any]) -> Case:
    """The same problem as the oracle takes it."""
    interests, rates = [sorted(set(row)) for row in given["interests"]], given["event_rate"]
    counts = [sum(topic in row for row in interests) for topic in range(len(rates))]
    cost = given.get("cost") or [rate * count for rate, count in zip(rates, counts, strict=True)]
    tau = given["tau"] if isinstance(given["tau"], list) else [given["tau"]] * len(interests)
    capacity = given["capacity"]
    if isinstance(capacity, str):
        capacity = int(capacity[:-1]) * sum(c for c, count in zip(cost, counts, strict=True) if count) / 100
    return Case(interests, rates, cost, capacity, tau)


POLICIES = [name for name in (*plugins.names("offloading"), "none") if name != "partial-enumeration"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_list_gives_a_list_of_what_is_so_word_for_word(brokersim: Brokersim, instance: Path, policy: str) -> None:
    given = [written(seed) for seed in range(40)]
    instance.write_text(json.dumps(given))
    status, out, err = brokersim("solve", "offloading", "i.json", "--policy", policy, "--json")
    assert (status, err) == (0, "")
    for problem, found in zip(given, json.loads(out), strict=True):
        case, topics = literal(problem), found["topics"]
        n = len(case.interests)
        needy = [v for v in range(n) if case.need(v) > 0]
        summed = case.satisfaction(topics)
        assert len(set(topics)) == len(topics)
        assert (found["subscribers"], found["free"]) == (n, n - len(needy))
        assert (found["capacity"], found["cost"]) == (case.capacity, sum(case.cost[topic] for topic in topics))
        assert policy == "none" or found["cost"] <= case.capacity
        assert found["satisfied"] == case.satisfied(topics)
        assert found["satisfaction"] == (float(summed / len(needy)) if needy else None)
        assert found["value"] == (float(summed) if policy.startswith("fb3m") else found["satisfied"])
        assert found["upper_bounds"] == {}
    lines = brokersim("solve", "offloading", "i.json", "--policy", policy)[1].splitlines()
    assert len(lines) == 40 + (7 if policy.startswith("fb3m") else 6)


def test_lists_of_one_and_of_none(brokersim: Brokersim, instance: Path) -> None:
    instance.write_text(json.dumps([SMALL]))
    assert json.loads(brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--json")[1])[0]["topics"] == [2, 4]
    instance.write_text("[]")
    assert brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--json")[1] == "[]\n"
    assert brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--curve")[0] == 0


def test_the_command_s_capacity_tau_and_seed_in_place_of_the_file_s(brokersim: Brokersim, instance: Path) -> None:
    def topics(*more: str, policy: str = "b3m") -> list[int]:
        status, out, _ = brokersim("solve", "offloading", "i.json", "--policy", policy, "--json", *more)
        assert status == 0
        found: list[int] = json.loads(out)["topics"]
        return found

    assert topics("--capacity", "100%") == [2, 4, 0, 1]  # which is enough for all
    assert topics("--capacity", "6") == [0]
    assert topics("--tau", "2") == [2, 0]
    assert topics("--tau", "0") == []
    orders = {tuple(topics("--capacity", "26", "--seed", str(seed), policy="random")) for seed in range(12)}
    assert len(orders) > 6
    assert all(sorted(order) == [0, 1, 2, 4] for order in orders)
    instance.write_text(json.dumps(but(seed=5)))
    assert topics("--capacity", "26", policy="random") == topics("--capacity", "26", "--seed", "5", policy="random")
    instance.write_text(json.dumps({key: SMALL[key] for key in ("interests", "event_rate")}))
    assert topics("--capacity", "14", "--tau", "3") == [2, 4]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (but(capacity=0), {"topics": [], "cost": 0, "satisfied": 0, "satisfaction": 0.0}),
        (but(capacity="0%"), {"topics": [], "capacity": 0}),
        (but(capacity=1), {"topics": [], "capacity": 1}),
        (but(capacity=1e18), {"topics": [2, 4, 0, 1], "capacity": 1e18}),
        (but(capacity="1e18%"), {"topics": [2, 4, 0, 1], "capacity": 2.6e17}),
        (but(interests=[]), {"topics": [], "subscribers": 0, "satisfied": 0, "satisfaction": None, "value": 0}),
        (but(interests=[[], []], event_rate=[]), {"topics": [], "subscribers": 2, "free": 2, "satisfaction": None}),
        (but(event_rate=[0] * 5), {"topics": [], "free": 7, "satisfied": 0, "satisfaction": None}),
        (but(tau=0), {"topics": [], "free": 7, "satisfaction": None}),
        (but(tau=[0, 0, 0, 3, 3, 0, 0]), {"topics": [0], "free": 6, "satisfied": 1, "satisfaction": 1.0}),
        (but(tau=2**53, capacity="100%"), {"topics": [4, 2, 0, 1], "satisfied": 6}),
        (but(cost=[1, 1, 1, 0, 1], capacity=1), {"topics": [2], "cost": 1}),
        (but(cost=[0.5, 4.5, 1.25, 9, 3], capacity="50%"), {"topics": [0, 2], "capacity": 4.625, "cost": 1.75}),
        (but(event_rate=[0.3, 0.5, 0.2, 0.7, 0.1], tau=0.3, capacity=1.4), {"topics": [2, 4], "cost": 1.0}),
        (but(event_rate=[1e-9, 1, 1, 1, 1], interests=[[0]], tau=1, capacity=1), {"topics": [0], "cost": 0.001}),
    ],
)
def test_problems_at_the_edge(
    brokersim: Brokersim, instance: Path, content: dict[str, Any], expected: dict[str, Any]
) -> None:
    instance.write_text(json.dumps(content))
    status, out, err = brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--json")
    assert (status, err) == (0, "")
    assert {key: json.loads(out)[key] for key in expected} == expected
    assert brokersim("solve", "offloading", "i.json", "--policy", "b3m")[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (7, "expected an object with the keys interests, event_rate, capacity, tau (found 7)"),
        ({}, "interests: missing"),
        ({key: SMALL[key] for key in ("interests", "event_rate", "capacity")}, "tau: missing"),
        ({key: SMALL[key] for key in ("interests", "event_rate", "tau")}, "capacity: missing"),
        (
            but(event_rates=[1]),
            "event_rates: unknown key, did you mean 'event_rate'? (allowed: interests, event_rate, cost, capacity, tau, seed) "
            "(found [1])",
        ),
        (but(interests=[[0], [5]]), "interests[1][0]: expected a topic from 0 to 4 (found 5)"),
        (but(interests=[[0], [1, -1]]), "interests[1][1]: expected a topic from 0 to 4 (found -1)"),
        (but(interests=[[0]], event_rate=[]), "interests[0][0]: expected none, as there are no topics (found 0)"),
        (but(interests=[[0], 1]), "interests[1]: expected a valid list (found 1)"),
        (but(interests=[[1.0]]), "interests[0][0]: expected a valid integer (found 1.0)"),
        (but(interests=[[None]]), "interests[0][0]: expected a valid integer (found null)"),
        (but(interests={}), "interests: expected a valid list (found {})"),
        (but(event_rate=[1, 2, float("nan"), 0, 0]), "event_rate[2]: expected a finite number (found NaN)"),
        (but(event_rate=[1, float("inf"), 0, 0, 0]), "event_rate[1]: expected a finite number (found Infinity)"),
        (but(event_rate=[-1, 1, 1, 1, 1]), "event_rate[0]: expected a value greater than or equal to 0 (found -1)"),
        (but(event_rate=[1, 1, 1, 1, 1e16]), "event_rate[4]: expected a value less than or equal to 9007199254740992 (found 1e+16)"),
        (but(event_rate=["3", 5, 2, 7, 1]), "event_rate[0]: expected a valid number (found '3')"),
        (but(cost=[1, 2]), "cost: expected 5 entries, as many as event_rate has (found 2)"),
        (but(cost=[1, 0, 1, 1, 1]), "cost[1]: expected a value greater than 0, as the topic has subscribers and events (found 0)"),
        (but(cost=[1, -2, 1, 1, 1]), "cost[1]: expected a value greater than or equal to 0 (found -2)"),
        (but(cost=[1, 1, 1, 1, float("nan")]), "cost[4]: expected a finite number (found NaN)"),
        (but(cost=3), "cost: expected a valid list (found 3)"),
        (but(tau=-1), "tau: expected a value greater than or equal to 0 (found -1)"),
        (but(tau=[3, 3, 3, 3, 3, 3, -2]), "tau[6]: expected a value greater than or equal to 0 (found -2)"),
        (but(tau=[3, 3]), "tau: expected 7 entries, as many as interests has (found 2)"),
        (but(tau=[float("nan")] * 7), "tau[0]: expected a finite number (found NaN)"),
        (but(tau=float("inf")), "tau: expected a finite number (found Infinity)"),
        (but(tau="27"), "tau: expected a valid number (found '27')"),
        (but(tau=None), "tau: expected a valid number (found null)"),
        (
            but(capacity="ten"),
            "capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found 'ten'",
        ),
        (
            but(capacity=-1),
            "capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found -1",
        ),
        (
            but(capacity=float("nan")),
            "capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found nan",
        ),
        (
            but(capacity=float("inf")),
            "capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found inf",
        ),
        (
            but(capacity="1e300%"),
            "capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found '1e300%'",
        ),
        (but(seed=-1), "seed: expected a value greater than or equal to 0 (found -1)"),
        (
            but(event_rate=[2**53] * 5, interests=[[0, 1, 2, 3, 4]] * 3, tau=0.5),
            "event rates: 9.0072e+15 is too large for a subscriber to 5 topics (the product must be below 4.6e+15)",
        ),
    ],
)  # fmt: skip
def test_a_file_that_says_something_else(check_refused: Callable[..., None], content: Any, message: str) -> None:
    check_refused("offloading i.json --policy b3m", SMALL, content, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.json"], "no.json: cannot be read (No such file or directory)"),
        (["bad.json"], "bad.json: not valid JSON (Expecting value: line 1 column 2 (char 1))"),
        (
            ["i.json", "--capacity", "-3"],
            "--capacity: expected a number of notifications per period (0 to 1e18) or a share such as '10%', found '-3'",
        ),
        (["i.json", "--tau", "nan"], "--tau: expected a number of events per period (0 or more), found 'nan'"),
        (["i.json", "--tau", "[1, 2]"], "--tau: expected a number of events per period (0 or more), found '[1, 2]'"),
        (["i.json", "--tau", "-1"], "--tau: expected a number of events per period (0 or more), found '-1'"),
        (["i.json", "--steps", "4"], "--steps is for the curve (give --curve too)"),
        (["i.json", "--out", "c.csv"], "--out is for the curve (give --curve too)"),
        (["i.json", "--plot", "c.svg"], "--plot is for the curve (give --curve too)"),
        (["i.json", "--curve", "--out", "c.json"], "--out c.json: the curve is written as .csv (as JSON: --json)"),
        (["i.json", "--curve", "--plot", "c.gif"], "c.gif: a chart is written as .svg, .png, .pdf or .html"),
        (["l.json", "--curve", "--out", "c.csv"], "--out is for one curve: l.json has a list of 2"),
        (["l.json", "--curve", "--plot", "c.png"], "--plot is for one curve: l.json has a list of 2"),
        (["i.json", "--names", "--json"], "--names is for the JSON of a workload (give --json and a workload's folder)"),
        (["w", "--capacity", "10%"], "--tau is needed: a workload does not contain it"),
        (["w", "--tau", "27"], "--capacity is needed: a workload does not contain it"),
        (["w", "--tau", "2", "--names"], "--names is for the JSON of a workload (give --json and a workload's folder)"),
        (["."  , "--tau", "27", "--capacity", "1"], ".: not a workload folder, or an unfinished one (it has no manifest.json)"),
    ],
)  # fmt: skip
def test_what_is_refused(brokersim: Brokersim, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "bad.json").write_text("[")
    (tmp_path / "l.json").write_text(json.dumps([SMALL, SMALL]))
    (tmp_path / "w").mkdir()
    before = sorted(tmp_path.iterdir())
    found = brokersim("solve", "offloading", *arguments, "--policy", "b3m")
    assert found == (2, "", f"brokersim: error: {message}\n")
    assert sorted(tmp_path.iterdir()) == before


def test_a_policy_that_is_for_few_topics(brokersim: Brokersim, instance: Path) -> None:
    many = {"interests": [[topic] for topic in range(41)], "event_rate": [1] * 41, "capacity": 9, "tau": 1}
    for content, place in ((many, ""), ([SMALL, many], "[1]: ")):
        instance.write_text(json.dumps(content))
        assert brokersim("solve", "offloading", "i.json", "--policy", "partial-enumeration") == (
            2,
            "",
            f"brokersim: error: i.json: {place}policy partial-enumeration: 41 topics that fit give 11,522 sets to start from, "
            "allowed: up to 40 topics (policy fb3m takes any number)\n",
        )


def test_a_policy_that_nobody_knows(brokersim: Brokersim) -> None:
    status, out, err = brokersim("solve", "offloading", "i.json", "--policy", "popullar")
    assert (status, out) == (2, "")
    assert "--policy: unknown offloading policy 'popullar', did you mean 'popular'? (allowed: " in err
    assert "none" in err


def with_rates(workload: Workload, rates: list[float]) -> Workload:
    return replace(workload, topics=replace(workload.topics, event_rate=np.array(rates, float)))


def test_a_workload_is_a_file_of_its_users(brokersim: Brokersim, tmp_path: Path, instance: Path) -> None:
    made = PoissonWorkload(PoissonWorkload.Parameters(users=60, topics=25, horizon="1h")).generate(Streams(4))
    rates = np.random.default_rng(1).lognormal(3, 2, 25).tolist()
    write_workload(with_rates(made, rates), tmp_path / "w")
    bounds = made.interests.indptr
    rows = [made.interests.indices[bounds[u] : bounds[u + 1]].tolist() for u in range(60)]
    instance.write_text(json.dumps({"interests": rows, "event_rate": rates}))
    for policy in POLICIES:
        options = ("--policy", policy, "--capacity", "20%", "--tau", "12.5", "--json")
        status, out, err = brokersim("solve", "offloading", "w", *options, "--names")
        assert (status, err) == (0, "")
        found, expected = json.loads(out), json.loads(brokersim("solve", "offloading", "i.json", *options)[1])
        assert found.pop("names") == [str(topic) for topic in found["topics"]]
        assert {**found, "seconds": 0} == {**expected, "seconds": 0}
        assert policy == "none" or 0 < found["satisfied"] < 60
        out = brokersim("solve", "offloading", "w", *options[:-1])[1]
        assert out.startswith(f"w: {policy}, per 1 d\n")


def test_a_workload_whose_subscriptions_change_says_that_later_ones_do_not_count(
    brokersim: Brokersim, tmp_path: Path
) -> None:
    later = tiny.workload([[], [0]], events=[(1.0, 0, 0, 1), (2.0, 1, 0, -1)])
    write_workload(with_rates(later, [5]), tmp_path / "w")
    arguments = ("solve", "offloading", "w", "--policy", "b3m", "--capacity", "100%", "--tau", "3")
    status, out, _ = brokersim(*arguments)
    assert status == 0
    assert "1 of 2 subscribers need nothing" in out
    assert out.endswith("Interests are those at the start; 2 later changes of subscriptions are ignored.\n")
    assert set(json.loads(brokersim(*arguments, "--json")[1])) >= {"topics", "satisfied"}


def test_workloads_that_ask_for_nothing(brokersim: Brokersim, tmp_path: Path) -> None:
    options = ("--policy", "b3m", "--capacity", "10%", "--tau", "3")
    write_workload(with_rates(tiny.workload([[0], [0, 1]], topics=2), [0, 0]), tmp_path / "silent")
    assert brokersim("solve", "offloading", "silent", *options) == (
        2,
        "",
        "brokersim: error: silent: its topics have no event rates (all are 0), so there is nothing to deliver\n",
    )
    write_workload(with_rates(tiny.workload([[], []], topics=2), [0, 0]), tmp_path / "idle")
    assert json.loads(brokersim("solve", "offloading", "idle", *options, "--json")[1])["free"] == 2
    (tmp_path / "idle" / "topics.parquet").unlink()
    assert brokersim("solve", "offloading", "idle", *options)[::2] == (
        2,
        "brokersim: error: idle/topics.parquet: missing file\n",
    )


def test_what_does_not_fit_in_memory(brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 100.0)
    write_workload(tiny.workload([[0], [0, 1]], topics=2), tmp_path / "w")
    options = ("--policy", "b3m", "--capacity", "10%", "--tau", "3")
    assert brokersim("solve", "offloading", "w", *options)[::2] == (
        2,
        "brokersim: error: w: 3 interests of 2 users in 2 topics: this needs about 0 MB of memory, available: 0 MB\n",
    )
    assert brokersim("solve", "offloading", "i.json", *options)[::2] == (
        2,
        "brokersim: error: i.json: this needs about 0 MB of memory, available: 0 MB\n",
    )


def test_what_takes_long_tells_how_far_it_is(
    brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "LONG", 3)
    write_workload(with_rates(tiny.workload([[0], [0, 1]], topics=2), [2, 1]), tmp_path / "w")
    options = ("w", "--policy", "b3m", "--capacity", "4", "--tau", "3", "--curve", "--steps", "2")
    assert brokersim("solve", "offloading", *options)[2] == (
        "brokersim: reading 3 interests of 2 users in 2 topics\nbrokersim: deciding\n"
        "brokersim: capacity 2: 1 of 2\nbrokersim: capacity 0: 2 of 2\n"
    )
    assert brokersim("solve", "offloading", *options, "--quiet")[2] == ""


CURVE = """
i.json: b3m, by capacity

             topics                of all    satis-
  capacity     kept   satisfied   in need   faction   gained
 ────────────────────────────────────────────────────────────
         0        0           0     0.0 %    0.0000
         7        1           2    33.3 %    0.3333        2
        14        2           3    50.0 %    0.6111        1

1 of 7 subscribers need nothing; they are not counted above.
Topics, in the order picked: 2, 4
"""


def test_the_whole_text_of_a_curve(brokersim: Brokersim) -> None:
    assert_text(brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--curve", "--steps", "2"), CURVE)


@pytest.mark.parametrize("policy", POLICIES)
def test_each_point_of_a_curve_is_what_is_decided_at_its_capacity(
    brokersim: Brokersim, instance: Path, policy: str
) -> None:
    rng = random.Random(7)
    rows = [sorted(rng.sample(range(40), rng.randint(1, 8))) for _ in range(150)]
    problem = {"interests": rows, "event_rate": [rng.randint(1, 300) for _ in range(40)], "tau": 90}
    instance.write_text(json.dumps({**problem, "capacity": "60%"}))
    steps = ("--policy", policy, "--curve", "--steps", "12", "--json")
    found = json.loads(brokersim("solve", "offloading", "i.json", *steps)[1])
    capacities = [point["capacity"] for point in found["curve"]]
    assert capacities == pytest.approx([found["capacity"] * i / 12 for i in range(13)], rel=1e-15)
    instance.write_text(json.dumps([{**problem, "capacity": capacity} for capacity in capacities]))
    alone = json.loads(brokersim("solve", "offloading", "i.json", "--policy", policy, "--json")[1])
    for point, one in zip(found["curve"], alone, strict=True):
        assert point.pop("kept") == len(one["topics"])
        assert point == {key: one[key] for key in point}
    assert found["topics"] == alone[-1]["topics"]
    assert policy == "none" or len({one["satisfied"] for one in alone}) > 5


def test_a_curve_as_a_table_and_as_a_picture(brokersim: Brokersim, tmp_path: Path) -> None:
    arguments = ("solve", "offloading", "i.json", "--policy", "fb3m", "--curve", "--steps", "4", "--json")
    status, out, err = brokersim(*arguments, "--out", "c.csv", "--plot", "c.svg")
    assert (status, err) == (0, "")
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    points = json.loads(out)["curve"]
    assert list(rows[0]) == [
        "capacity",
        "kept",
        "cost",
        "satisfied",
        "subscribers",
        "free",
        "satisfaction",
        "value",
        "upper_bound",
    ]
    for key in ("capacity", "kept", "cost", "satisfied", "satisfaction", "value"):
        assert [float(row[key]) for row in rows] == [point[key] for point in points]
    assert {row["upper_bound"] for row in rows} == {""}
    assert "Value of capacity (fb3m)" in (tmp_path / "c.svg").read_text()
    for name, begins in {"c.png": b"\x89PNG", "c.html": b"<!DOCTYPE html>"}.items():
        assert brokersim(*arguments, "--plot", name)[0] == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.csv", "c.html", "c.png", "c.svg", "i.json"]


def test_what_cannot_be_written_is_told_after_the_decision(brokersim: Brokersim, tmp_path: Path) -> None:
    arguments = ("solve", "offloading", "i.json", "--policy", "b3m", "--curve", "--json")
    for option, name in (("--out", "i.json/c.csv"), ("--plot", "i.json/c.svg")):
        status, out, err = brokersim(*arguments, option, name)
        assert (status, err) == (2, f"brokersim: error: {name}: cannot be written (Not a directory)\n")
        assert json.loads(out)["topics"], "what took its time to decide is not lost"
    assert brokersim(*arguments, "--out", "new/c.csv", "--plot", "new/c.svg")[0] == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["c.csv", "c.svg"]


@pytest.mark.parametrize("policy", ["b3m", "fb3m", "random", "none"])
def test_bounds_are_above_what_is_reached_and_are_told(brokersim: Brokersim, instance: Path, policy: str) -> None:
    instance.write_text(json.dumps([written(seed) for seed in range(12)]))
    arguments = ("solve", "offloading", "i.json", "--policy", policy, "--bounds")
    status, out, err = brokersim(*arguments, "--json")
    assert (status, err) == (0, "")
    for found in json.loads(out):
        assert "lp-dual" in found["upper_bounds"]
        assert policy == "none" or min(found["upper_bounds"].values()) >= found["value"] - 1e-9
    assert "at most    ratio" in brokersim(*arguments)[1]
    instance.write_text(json.dumps(SMALL))
    points = json.loads(brokersim(*arguments, "--curve", "--steps", "3", "--json", "--out", "c.csv")[1])["curve"]
    bounds = [min(point["upper_bounds"].values()) for point in points]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0
    with (instance.parent / "c.csv").open(newline="") as file:
        assert [float(row["upper_bound"]) for row in csv.DictReader(file)] == bounds


def test_curves_of_a_list(brokersim: Brokersim, instance: Path) -> None:
    instance.write_text(json.dumps([SMALL, but(capacity=0)]))
    status, out, _ = brokersim("solve", "offloading", "i.json", "--policy", "b3m", "--curve", "--steps", "1")
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("i.json")] == [
        "i.json [0]: b3m, by capacity",
        "i.json [1]: b3m, by capacity",
    ]
