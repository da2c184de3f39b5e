"""`brokersim best` as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_results import grid, write_results, write_sweep

Brokersim = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    points = grid(network__brokers=[10, 20, 50], selection__cluster_size=[2, 5])
    return write_sweep(tmp_path_factory.mktemp("best") / "r", points, variants=("static", "similarity"), detailed=())


@pytest.fixture(autouse=True)
def here(results: Path, tmp_path: Path) -> None:
    (tmp_path / "r").symlink_to(results)


def test_the_best_points_and_how_to_run_the_first(brokersim: Brokersim) -> None:
    limits = ("--subject-to", "load_stddev < 0.5", "--subject-to", "notification_overhead <= 6000")
    status, out, err = brokersim("best", "r", "--minimise", "notification_delay", *limits, "--top", "3")
    assert (status, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == BEST.splitlines()


def test_none_meets_the_limits(brokersim: Brokersim) -> None:
    limits = ("--subject-to", "load_stddev < 0.25", "--subject-to", "notification_delay < 60ms")
    assert brokersim("best", "r", "--maximise", "load_jain", *limits) == (
        1,
        "",
        "brokersim: none of 12 points and variants meets all limits: load_stddev < 0.25 (none meets it, the lowest mean is "
        "0.2843), notification_delay < 60 ms (4 do not meet it)\n",
    )


def test_one_point_meets_limits_or_does_not(brokersim: Brokersim) -> None:
    _, out, _ = brokersim("best", "r", "--minimise", "notification_delay", "--top", "12", "--json")
    means = [candidate["mean"] for candidate in json.loads(out)["best"]]
    for limit, said in (
        (f"< {means[-1]}", "11 of 12 meet the limits: 1 does not meet notification_delay"),
        (f"<= {means[0]}", "1 of 12 meets the limits: 11 do not meet notification_delay"),
    ):
        _, out, _ = brokersim(
            "best", "r", "--minimise", "notification_delay", "--subject-to", f"notification_delay {limit}"
        )
        assert f"\n{said}" in out


def test_json_says_all_of_it(brokersim: Brokersim) -> None:
    status, out, _ = brokersim(
        "best", "r", "--minimise", "notification_delay", "--subject-to", "load_stddev < 0.5", "--json"
    )
    told = json.loads(out)
    assert status == 0
    assert {key: told[key] for key in ("count", "meeting", "missing", "tied")} == {
        "count": 12, "meeting": 6, "missing": {"load_stddev < 0.5": 6}, "tied": 0
    }  # fmt: skip
    first, second = told["best"][:2]
    assert (first["point"], first["variant"], first["difference"]) == (0, "similarity", None)
    assert first["set"] == ["network.brokers=10", "selection.cluster_size=2"]
    assert first["limits"]["load_stddev < 0.5"]["holds"] == "surely"
    assert second["difference"]["low"] > 0
    assert not second["tied"]


def test_the_best_for_each_value_of_a_key(brokersim: Brokersim) -> None:
    status, out, err = brokersim(
        "best", "r", "--minimise", "notification_delay", "--for-each", "selection.cluster_size", "--top", "2"
    )
    assert (status, err) == (0, "")
    rows = [[cell.strip() for cell in line.split("│")[1:4]] for line in out.splitlines() if line.startswith("│")]
    assert rows == [["1", "2", "10"], ["2", "2", "20"], ["1", "5", "10"], ["2", "5", "20"]]
    two, five = out.split("\nselection.cluster_size = ")[1:]
    assert two.endswith("\nThe best: static with --set network.brokers=10 --set selection.cluster_size=2\n")
    assert five.startswith("5\n")
    assert five.endswith("\nThe best: static with --set network.brokers=10 --set selection.cluster_size=5\n")


def test_json_has_a_ranking_for_each_value(brokersim: Brokersim) -> None:
    keys = ("--for-each", "network.brokers", "--for-each", "selection.cluster_size")
    status, out, _ = brokersim("best", "r", "--minimise", "notification_delay", *keys, "--json")
    told = json.loads(out)
    assert (status, told["for_each"]) == (0, ["network.brokers", "selection.cluster_size"])
    assert [one["for"] for one in told["rankings"]] == grid(
        network__brokers=[10, 20, 50], selection__cluster_size=[2, 5]
    )
    assert {(one["count"], one["best"][0]["variant"], len(one["best"])) for one in told["rankings"]} == {
        (2, "static", 2)
    }


def test_a_value_at_which_none_meets_the_limits(brokersim: Brokersim) -> None:
    arguments = ("best", "r", "--minimise", "load_stddev", "--for-each", "network.brokers")
    status, out, err = brokersim(*arguments, "--subject-to", "notification_delay < 36ms")
    assert status == 1
    assert "network.brokers = 20" in out
    assert "\nnetwork.brokers = 50" not in out
    assert err.startswith(
        "brokersim: network.brokers = 50: none of 4 points and variants meets all limits: notification"
    )


def test_of_few_replications_it_is_said_what_that_means(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "few", variants=("static", "similarity"), replications=3)
    status, out, _ = brokersim("best", "few", "--maximise", "load_jain")
    assert status == 0
    assert "\nThe best: similarity\nNote: 3 replications are few: " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of --minimise METRIC and --maximise METRIC"),
        (["--minimise", "lost", "--maximise", "due"], "give one of --minimise METRIC and --maximise METRIC"),
        (["--minimise", "notification_dlay"], "unknown metric 'notification_dlay', did you mean 'notification_delay'?"),
        (["--minimise", "queue_wait"], "metric 'queue_wait' is undefined in all runs of r"),
        (
            ["--minimise", "lost", "--for-each", "network.broker"],
            "for each network.broker: unknown swept key 'network.broker', did you mean 'network.brokers'? (allowed: ",
        ),
        (["--minimise", "lost", "--subject-to", "load_stdev < 1"], "'load_stdev < 1': unknown metric 'load_stdev'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(brokersim: Brokersim, arguments: list[str], said: str) -> None:
    status, out, err = brokersim("best", "r", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"brokersim: error: {said}")
    assert len(err.splitlines()) == 1


BEST = """\
Three ways to choose a broker
┏━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━┳━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━┓
┃   ┃ network. ┃ selection.   ┃            ┃   ┃ notification delay ┃                     ┃   load_stddev ┃ notification_overhead ┃
┃   ┃ brokers  ┃ cluster_size ┃ variant    ┃ n ┃               (ms) ┃         to the best ┃         < 0.5 ┃               <= 6000 ┃
┡━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━╇━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━┩
│ 1 │ 10       │ 2            │ similarity │ 5 │        52 [43, 60] │                     │ 0.2843 surely │ 4,817 messages surely │
│ 2 │ 20       │ 2            │ similarity │ 5 │        59 [49, 68] │   +7.1 [+5.9, +8.3] │ 0.2843 surely │ 4,778 messages surely │
│ 3 │ 10       │ 5            │ similarity │ 5 │        62 [52, 72] │ +10.5 [+8.8, +12.2] │ 0.2843 surely │ 4,788 messages surely │
└───┴──────────┴──────────────┴────────────┴───┴────────────────────┴─────────────────────┴───────────────┴───────────────────────┘
6 of 12 meet the limits: 6 do not meet load_stddev < 0.5, 3 do not meet notification_overhead <= 6000.
A limit holds on average if the mean is within it, surely if its whole 95 % confidence interval is.
The 95 % confidence intervals of all differences to the best exclude 0.
The best: similarity with --set network.brokers=10 --set selection.cluster_size=2
"""
