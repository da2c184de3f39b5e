"""`brokersim generate content`: a workload whose publications have the targets listed beside it in JSON lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import targets as oracle

from sim import plugins
from sim.workloads.format.folder import load_workload

Brokersim = Callable[..., tuple[int, str, str]]
OPTIONS = "--subscriptions 100 --fields 11 --values 20 --size 4 --overlap 2 --publications 1000 --match 3 --seed 1"
WANTED = OPTIONS.split()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--per-owner", "3", "--repeat=0.5", "--likely", "targets"],
        ["--layout", "grid", "--overlap", "0", "--sizes", "constant"],
        ["--sizes", "[0, 1, 2, 1]", "--match", "0"],
    ],
)
def test_all_that_match_are_those_that_were_chosen(brokersim: Brokersim, tmp_path: Path, more: list[str]) -> None:
    wanted = WANTED if "[0, 1, 2, 1]" not in more else [w for w in WANTED if w not in {"--size", "4"}]
    status, out, err = brokersim("generate", "content", *wanted, *more, "--out", "w")
    owners = 34 if "--per-owner" in more else 100
    assert (status, err) == (0, "")
    assert re.match(
        rf"w: {owners} users, \d+ topics, .*1,000 publications, 100 subscriptions, 11 fields, 20 values\n", out
    )
    subscriptions, publications = lines(tmp_path / "w/subscriptions.jsonl"), lines(tmp_path / "w/publications.jsonl")
    assert [one["subscription"] for one in subscriptions] == list(range(100))
    assert [one["publication"] for one in publications] == list(range(1000))
    assert max(Counter(one["owner"] for one in subscriptions).values()) == (3 if "--per-owner" in more else 1)
    predicates = [{int(field): value for field, value in one["predicates"].items()} for one in subscriptions]
    values = np.array([[one["values"][str(field)] for field in range(11)] for one in publications])
    assert set(values.ravel().tolist()) <= set(range(20))
    match = 0 if "[0, 1, 2, 1]" in more else 3
    assert all(len(one["targets"]) == match for one in publications)
    assert oracle.matches(predicates, values) == [one["targets"] for one in publications]
    content = load_workload(tmp_path / "w").content
    assert content is not None
    assert content.values.tolist() == values.tolist()
    wants = content.conjunctions
    assert oracle.rows(wants.indptr, wants.field, wants.value) == predicates
    assert wants.owner.tolist() == [one["owner"] for one in subscriptions]


def test_same_seed_same_bytes(brokersim: Brokersim, tmp_path: Path) -> None:
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert brokersim("generate", "content", *WANTED, "--out", folder, "--seed", seed)[0] == 0
    a, b, c = ((tmp_path / folder / "manifest.json").read_text() for folder in "abc")
    assert a == b  # it holds the SHA-256 of every other file
    assert a != c
    assert {"subscriptions.jsonl", "publications.jsonl"} <= set(json.loads(a)["files"])
    assert brokersim("generate", "content", "--match", "2", "--out", "a")[0] == 0  # one that is there is replaced


def test_sizes_that_had_to_be_cut_down_are_counted(brokersim: Brokersim) -> None:
    status, out, _ = brokersim("generate", "content", "--fields", "4", "--size", "4", "--match", "1", "--out", "w")
    assert status == 0
    clamped = int(re.search(r"\nw: (\d+) subscriptions have fewer predicates than drawn", out)[1])  # type: ignore[index]
    assert 20 < clamped < 60  # of 100; with mean 4 three or four in ten are above


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--subscriptions 200 --values 20 --sizes constant",
            "subscriptions is 200, but 11 fields of 20 values have room for 152 of these: one value of each field is kept for "
            "publications, so full disjoint subsets of subscriptions with m predicates hold (values - 1) (fields - m + 1)",
        ),
        (
            "--subscriptions 200 --values 20 --sizes constant --layout grid",
            "subscriptions is 200, but a grid has room for 152: the longest has 4 predicates, so 8 of 11 fields are left for "
            "private ones, with 20 - 1 values each",
        ),
        ("--match 12", "match is 12, but no target has more than 7 subscriptions"),
        ("--subscription 5", "--subscription: unknown key, did you mean 'subscriptions'?"),
        ("--values 1", "--values: expected a value greater than 1 (found 1)"),
        ("--set values=1 --set repeat=2", "--set values: expected a value greater than 1 (found 1)\n--set repeat:"),
        ("--per-owner", "--per-owner: expected a value after it"),
        ("5", "unexpected argument '5': parameters are given as --KEY VALUE, after the kind"),
        ("--layout grid --overlap 1", "overlap applies to subsets, a grid has none"),
        ("--sizes [1,2] --size 3", "sizes gives the weight of every size, so size must not be set too"),
        ("--sizes [0,0]", "sizes has no weight above 0"),
        (
            "--sizes [1,-1]",
            "--sizes: expected 'poisson', 'constant', 'uniform' or a list of weights from 0 to 1e+100, found [1, -1]\n",
        ),
        (
            "--sizes poison",
            "--sizes: expected 'poisson', 'constant', 'uniform' or a list of weights from 0 to 1e+100, found",
        ),
        ("--sizes [1e308,1e308]", "--sizes: expected"),
        ("--sizes true", "--sizes: expected"),
        ("--fields 1000000", "--fields: expected a value less than or equal to 100000 (found 1000000)"),
        ("--overlap 99999999999999999999", "--overlap: expected a value less than 2147483648"),
        ("--per-owner 99999999999999999999", "--per-owner: expected a value less than 2147483648"),
        ("--sizes constant --size 2.5", 'size is 2.5, but "constant" sizes need a whole number'),
        ("--sizes uniform --size 7", "fields is 11, but subscriptions have 13 predicates"),
        ("--sizes constant --overlap 5", "overlap is 5, allowed: at most half of a subset, which has 8 members"),
        ("--publications 2000000000", "publications and fields give 2.2e+10 values, allowed: fewer than 1e+09"),
    ],
)
def test_one_message_tells_what_is_wrong(brokersim: Brokersim, tmp_path: Path, arguments: str, message: str) -> None:
    status, out, err = brokersim("generate", "content", *arguments.split(), "--out", "w")
    assert (status, out) == (2, "")
    assert err.startswith(f"brokersim: error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_help_tells_the_options_of_the_kind(brokersim: Brokersim) -> None:
    for kind in plugins.names("workload"):
        status, out, _ = brokersim("generate", kind, "--help")
        told = " ".join(out.split())
        assert status == 0
        for key, field in plugins.load("workload", kind).Parameters.model_fields.items():
            assert f" --{key.replace('_', '-')} VALUE " in told
            assert " ".join(str(field.description).split()[:4]) in told
    assert "content, interests, mobility, poisson" in " ".join(brokersim("generate", "--help")[1].split())


def test_options_are_settings(brokersim: Brokersim, tmp_path: Path) -> None:
    brokersim("generate", "poisson", "--users", "7", "--topics-per-user=2", "--out", "a")
    brokersim("generate", "poisson", "--set", "users=7", "--set", "topics_per_user=2", "--out", "b")
    a, b = ((tmp_path / folder / "manifest.json").read_text() for folder in "ab")
    assert a == b
