"""`brokersim tune` and `brokersim capacity`: searches, their output, and resuming."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from depth import DEEP
from sweeping import contents

from sim.experiments.results import load_results

Command = Callable[..., tuple[int, str, str]]

SCENARIO = """\
title = "Tiny"
replications = 4
warm_up = "1h"
horizon = "3h"
workload = { kind = "poisson", users = 12, topics = 6, topics_per_user = 2, change_rate = 0.5 }
network.brokers = 6

[[variant]]
name = "static"

[[variant]]
name = "by likeness"
selection = { kind = "similarity", update_period = "1h", cluster_size = 3 }

[tune]
minimise = "broker_subscription_changes"
trials = 3
"selection.cluster_size" = { from = 1, to = 6 }
selection.similarity = ["overlap", "jaccard"]
"""
TUNE = ("tune", "s.toml", "--variant", "by likeness", "--jobs", "1")
CAPACITY = ("capacity", "s.toml", "--vary", "network.brokers", "--jobs", "1")


@pytest.fixture(autouse=True)
def scenario(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)


def test_tune_finds_a_point_that_run_takes(brokersim: Command, tmp_path: Path) -> None:
    status, out, err = brokersim(*TUNE)
    assert status == 0
    assert err.splitlines()[2].startswith("brokersim: trial 3 of 3: ")
    assert "3 trials: " in out
    status, out, err = brokersim(*TUNE, "--trials", "5", "--json", "--quiet")
    assert (status, err) == (0, "")
    told = json.loads(out)
    trials = told["trials"]
    assert [trial["trial"] for trial in trials] == [1, 2, 3, 4, 5]
    assert (trials[0]["selection.cluster_size"], trials[0]["selection.similarity"]) == (3, "overlap"), "as in the file"
    complete = {
        trial["trial"]: trial["broker_subscription_changes"] for trial in trials if trial["state"] == "complete"
    }
    (best,) = told["best"]
    assert complete[best["trial"]] == min(complete.values())
    results = load_results(tmp_path / told["results"])
    assert results.manifest["parameters"][0] == 'variant."by likeness".selection.cluster_size'
    assert len(results.points) == len(complete)
    assert results.runs.groupby("point")["broker_subscription_changes"].mean().tolist() == list(complete.values())
    # what the best point says is the run that was found best
    status, out, err = brokersim("run", "s.toml", "--jobs", "1", "--quiet", "--json", *shlex.split(best["set"]))
    means = {
        row["variant"]: row["mean"]
        for row in json.loads(out)["metrics"]
        if row["metric"] == "broker_subscription_changes"
    }
    assert means["by likeness"] == min(complete.values())


def test_tune_tries_fractions_between_0_and_1_where_the_key_takes_them(brokersim: Command, tmp_path: Path) -> None:
    vary = ("--vary", "selection.hysteresis=0..1", "--vary", "selection.load_weight=1..100:log")
    status, out, _ = brokersim(*TUNE, *vary, "--json", "--quiet")
    assert status == 0
    trials = json.loads(out)["trials"]
    assert any(0 < trial["selection.hysteresis"] < 1 for trial in trials)
    assert any(trial["selection.load_weight"] % 1 for trial in trials)
    assert all(trial["selection.cluster_size"] % 1 == 0 for trial in trials)


def test_capacity_steps_by_hundredths_between_0_and_1_where_the_key_takes_fractions(brokersim: Command) -> None:
    key = ("--variant", "by likeness", "--vary", "selection.hysteresis", "--from", "0", "--to", "1")
    status, out, _ = brokersim(
        *CAPACITY,
        *key,
        "--until",
        "broker_subscription_changes > -1e9",
        "--largest",
        "--max-replications",
        "2",
        "--json",
    )
    assert status == 0
    tried = [one["value"] for one in json.loads(out)["tried"]]
    assert tried[:3] == [0, 0.01, 0.02]
    assert json.loads(out)["answer"] == 1


def test_searches_give_durations_their_unit(brokersim: Command) -> None:
    service = ("--set", "brokers.service.kind=exponential", "--set", "brokers.service.time=1ms", "--jobs", "1")
    key = ("--vary", "brokers.service.time", "--from", "0.001", "--to", "0.003", "--step", "0.001")
    until = ("--until", "queue_wait < 900", "--largest", "--max-replications", "3")
    status, out, err = brokersim("capacity", "s.toml", *service, *key, *until)
    assert status == 0
    assert "brokersim: brokers.service.time = 2 ms: queue_wait < 15 min met\n" in err
    assert "brokers.service.time = 3 ms is the largest value from 1 ms to 3 ms at which queue_wait < 15 min." in out
    assert [row.split("│")[1].strip() for row in out.splitlines() if "│ met" in row] == ["1 ms", "2 ms", "3 ms"]
    vary = ("--vary", "brokers.service.time=0.001..0.002", "--trials", "1", "--subject-to", "queue_wait < 900")
    _, out, _ = brokersim(*TUNE, *service[:4], *vary, "-q")
    assert re.search(r"brokers.service.time=1(\.\d+)?ms", out)


def test_tune_says_that_limits_are_not_kept(brokersim: Command) -> None:
    status, out, _ = brokersim(*TUNE, "--subject-to", "load_jain > 2", "-q")
    assert status == 1
    assert "No trial was completed within the limits (load_jain > 2)." in out


def test_failing_trials_are_told_and_others_go_on(brokersim: Command) -> None:
    moving = "--set", 'workload={ kind = "mobility", users = 12 }'  # whose cells are drawn
    status, out, _ = brokersim(*TUNE, *moving, "--vary", "network.brokers=6,999", "--trials", "4", "-q")
    assert status == 0
    assert re.search(r"[1-4] failed\.", out)
    assert "Failed: network.brokers: 999 brokers, but the workload has only" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--vary", "selection.cluster_sise=1..3"],
            "error: selection.cluster_sise cannot be 1: variant.by likeness.selection.cluster_sise: unknown key",
        ),
        (
            ["--vary", "selection.cluster_size=0..3"],
            "selection.cluster_size: expected a value greater than or equal to 1",
        ),
        (
            ["--vary", "network.brokers=6,cells"],
            'network.brokers cannot be cells: variant.by likeness.network.brokers: "cells" needs topics with places',
        ),
        (["--vary", "seed=1..3"], "seed: cannot vary"),
        (["--variant", "likeness"], "--variant: unknown variant 'likeness', did you mean 'by likeness'?"),
        (["--minimise", "handover"], "--minimise: unknown metric, did you mean 'handovers'?"),
        (["--set", "sweep.window=[1, 2]"], "s.toml: sweep: a search chooses points itself"),
        (["--set", "warm_up=detect"], "s.toml: warm_up: a search needs a fixed warm-up"),
        (["--set", "tune.trials=0"], "tune.trials: expected a value greater than or equal to 1"),
        (["--engine", "cluster"], "unknown engine 'cluster'"),
    ],
)
def test_what_cannot_be_tuned_is_told(brokersim: Command, arguments: list[str], message: str) -> None:
    status, out, err = brokersim(*TUNE, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_capacity_tells_the_smallest_value_and_what_it_saw(brokersim: Command, tmp_path: Path) -> None:
    status, out, err = brokersim(
        *CAPACITY, "--until", "tree_hops > 1", "--to", "12", "--max-replications", "6", "--json"
    )
    told = json.loads(out)
    verdicts = {one["value"]: one["verdict"] for one in told["tried"]}
    assert status == 0
    assert verdicts[told["answer"]] == "met"
    assert verdicts[told["answer"] - 1] != "met"
    assert len(err.splitlines()) == len(told["tried"])
    assert (
        told["notes"][0]
        == f"network.brokers = {told['answer']} is the smallest value from 1 to 12 at which tree_hops > 1."
    )
    results = load_results(tmp_path / told["results"])
    assert results.points["network.brokers"].tolist() == list(verdicts)


def test_capacity_says_that_no_value_will_do(brokersim: Command) -> None:
    status, out, _ = brokersim(*CAPACITY, "--until", "tree_hops > 99", "--to", "4", "--max-replications", "3", "-q")
    assert status == 1
    assert "tree_hops > 99 holds at no value of network.brokers that was tried, from 1 to 4." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--until", "tree_hops"], "'tree_hops': expected a metric and its limit"),
        (["--until", "tree_hops > 1", "--from", "x"], "--from: expected a number"),
        (["--until", "tree_hops > 1", "--from", "0"], "network.brokers: expected a number of brokers (1 or more)"),
        (["--until", "tree_hops > 1", "--step", "0.5"], "--step 0.5: expected an integer"),
        (["--until", "tree_hops > 1", "--confidence", "1"], "--confidence 1: expected a number between 0 and 1"),
    ],
)
def test_what_has_no_capacity_is_told(brokersim: Command, arguments: list[str], message: str) -> None:
    status, out, err = brokersim(*CAPACITY, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def command(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own."""
    code = [sys.executable, "-c", "from sim.cli.app import main; main()", *arguments]
    return subprocess.Popen(code, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.long
def test_a_search_leaves_the_results_of_another_question_as_they_are(brokersim: Command, tmp_path: Path) -> None:
    other = "r: contains the results of another question, which differs in workload.users; give another folder, or remove this one"
    until = ("--until", "load_stddev < 9", "--from", "2", "--to", "4")
    for search in (TUNE, (*CAPACITY, *until)):
        for command in (("run", "s.toml", "--set", "replications=1", "--jobs", "1"), search):
            assert brokersim(*command, "--out", "r", "-q")[0] == 0
            before = contents(tmp_path / "r")
            refused = (2, "", f"brokersim: error: {other}\n")
            assert brokersim(*search, "--out", "r", "--set", "workload.users=13") == refused
            assert contents(tmp_path / "r") == before
        assert brokersim(*search, "--out", "r", "-q")[0] == 0


def test_each_question_has_a_default_folder_of_its_own(brokersim: Command, tmp_path: Path) -> None:
    for options in ((), ("--set", "replications=3"), ("--set", "workload.users=13"), ("--variant", "by likeness")):
        until = ("--until", "load_stddev < 9", "--from", "2", "--to", "4")
        assert brokersim(*CAPACITY, *until, *options, "-q")[0] == 0
    first, *others = sorted(folder.name for folder in (tmp_path / "results").iterdir())
    assert first == "s-capacity"
    assert [re.sub("[0-9a-f]", "x", name.removeprefix("s-capacity-")) for name in others] == ["xxxxxxxx"] * 2


@pytest.mark.parametrize(
    ("trials", "replications", "most"),
    [(6, 5, 3) if DEEP else (3, 2, 1), pytest.param(30, 12, 20, marks=pytest.mark.long)],
)
def test_a_search_that_is_killed_again_and_again_comes_to_the_same_files(
    tmp_path: Path, trials: int, replications: int, most: int
) -> None:
    """It is killed soon after one of its remaining runs, drawn at random, has finished."""
    more = (
        "--trials",
        f"{trials}",
        "--set",
        f"replications={replications}",
        "--vary",
        "selection.load_weight=0.1..10:log",
    )
    tune = (*TUNE[:-1], "2", *more, "--quiet", "--out")
    assert command(tmp_path, *tune, "whole").communicate()[1] == b""
    draw, kills, searches = random.Random(8), 0, 0

    def finished(folder: str) -> int:
        return len(list((tmp_path / folder / "runs").glob("[0-9a-f]*")))

    while kills < most:
        searches += 1
        pieces = f"pieces{searches}"
        while True:
            until = draw.randint(finished(pieces) + 1, finished("whole") + 1)
            process = command(tmp_path, *tune, pieces)
            while process.poll() is None and finished(pieces) < until:
                time.sleep(0.01)
            try:
                out, err = process.communicate(timeout=draw.uniform(0, 0.2) if kills < most else None)
                break
            except subprocess.TimeoutExpired:
                process.kill() if draw.random() < 0.5 else os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                kills += 1
        assert (process.returncode, err) == (0, b""), out
        found, wanted = contents(tmp_path / pieces), contents(tmp_path / "whole")
        assert found.keys() == wanted.keys()
        differing = {name for name in wanted if found[name] != wanted[name]}
        assert differing <= {"trials.journal"}  # Optuna notes times and processes in it
    print(f"{kills} kills in {searches} searches")
