"""`brokersim generate`: workloads and raw check-ins, and messages about wrong parameters."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.workloads.format.folder import load_workload

Brokersim = Callable[..., tuple[int, str, str]]
SMALL = ("--set", "users=20", "--set", "horizon=5d")


def test_a_workload_is_made_by_its_parameters_and_seed(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, err = brokersim("generate", "poisson", "--out", "w", "--seed", "3", "--set", "users=7")
    made = load_workload(tmp_path / "w")
    assert (status, err) == (0, "")
    assert out == (
        f"w: 7 users, 100 topics, 35 interests, {len(made.subscription_events)} subscription changes, "
        f"{len(made.publications):,} publications\n"
    )
    assert (made.kind, made.seed) == ("poisson", 3)
    assert made.generator == {
        "name": "poisson",
        "users": 7,
        "topics": 100,
        "topics_per_user": 5,
        "pattern": "uniform",
        "exponent": 1.0,
        "mode_size": 10,
        "change_rate": 0.1,
        "change": "replace",
        "publication_rate": 1.0,
        "horizon": 360000.0,
        "size": 100,
        "replication": 0,
    }


def test_check_ins_and_the_workload_made_of_them(brokersim: Brokersim, tmp_path: Path) -> None:
    both = brokersim("generate", "mobility", *SMALL, "--out", "w", "--checkins", "raw/c.tsv.gz", "--dirt", "0.1")
    lines = gzip.decompress((tmp_path / "raw" / "c.tsv.gz").read_bytes()).decode().splitlines()
    assert both[0] == 0
    assert both[1].startswith(
        f"raw/c.tsv.gz: {len(lines)} check-ins, {round(len(lines) * 0.1)} of them unusable\nw: 20 users,"
    )
    assert load_workload(tmp_path / "w").kind == "location"
    status, out, _ = brokersim("generate", "mobility", *SMALL, "--checkins", "clean.tsv")
    good = len((tmp_path / "clean.tsv").read_text().splitlines())
    assert (status, out) == (0, f"clean.tsv: {good} check-ins, 0 of them unusable\n")
    assert good == len(lines) - round(len(lines) * 0.1)


def test_same_seed_same_bytes_other_replication_others(brokersim: Brokersim, tmp_path: Path) -> None:
    for folder, replication in (("a", "0"), ("b", "0"), ("c", "1")):
        brokersim("generate", "mobility", *SMALL, "--out", folder, "--replication", replication)
    a, b, c = ((tmp_path / folder / "manifest.json").read_text() for folder in "abc")
    assert a == b  # it holds the SHA-256 of every other file
    assert a != c


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("poison", "--out", "w"),
            "unknown workload kind 'poison', did you mean 'poisson'? "
            "(allowed: content, interests, mobility, poisson, spotify-dense, spotify-sessions, spotify-sparse)",
        ),
        (
            ("poisson", "--out", "w", "--set", "user=5", "--set", "change_rate=-1"),
            "--set change_rate: expected a value greater than or equal to 0 (found -1)\n"
            "--set user: unknown key, did you mean 'users'? (allowed: users, topics, topics_per_user, pattern, "
            "exponent, mode_size, change_rate, change, publication_rate, horizon, size, group_size) (found 5)",
        ),
        (
            ("poisson", "--out", "w", "--set", "publication_rate=nan"),
            "--set publication_rate: expected a finite number (found NaN)",
        ),
        (
            ("mobility", "--out", "w", "--set", "box=[30, 'x', 50, -66]"),
            "--set box[1]: expected a valid number (found 'x')",
        ),
        (
            ("poisson", "--out", "w", "--set", "users=many"),
            "--set users: expected a valid integer (found 'many')",
        ),
        (
            ("poisson", "--out", "w", "--set", "topics=5"),
            "topics is 5, but users want 5 and change to others",
        ),
        (
            ("mobility", "--out", "w", "--set", "gap=soon"),
            "--set gap: expected a duration such as '90s', '10h' or '7d' (units: us, ms, s, min, h, d, w), found 'soon'",
        ),
        (
            ("mobility", "--out", "w", "--set", "box=[50, -126, 30, -66]"),
            "--set box: expected south, west, north, east in degrees, south < north, west < east, without a pole",
        ),
        (("poisson", "--out", "w", "--set", "users"), "--set users: expected KEY=VALUE, such as users=200"),
        (("poisson",), "nothing to write: give --out WORKLOAD, --checkins FILE or both"),
        (("poisson", "--checkins", "c"), "--checkins: a poisson workload has no check-ins (allowed: mobility)"),
        (("mobility", "--out", "w", "--dirt", "0.1"), "--dirt spoils rows of the raw file: give --checkins FILE too"),
    ],
)
def test_one_message_tells_what_is_wrong(
    brokersim: Brokersim, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert brokersim("generate", *arguments) == (2, "", f"brokersim: error: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_others_is_overwritten(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    status, _, err = brokersim("generate", "poisson", "--out", ".")
    assert status == 2
    assert (
        err
        == "brokersim: error: .: contains 'thesis.tex', which is not part of a workload; give an empty or new folder\n"
    )
