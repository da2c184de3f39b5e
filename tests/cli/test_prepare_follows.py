"""`brokersim prepare follows`: files in, a workload and one line of counts out, and mistakes reported before Spark starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sim.workloads.format.folder import load_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Brokersim = Callable[..., tuple[int, str, str]]

OPTIONS = (
    *("--follows", "f.csv", "--events", "e.csv", "--follows-columns", "user=who,topic=whom"),
    *("--events-columns", "topic=whom,time=at,publisher=whom", "--header", "--delimiter", ";"),
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("who;whom\nann;bob\nann;cy\nann;cy\n")
    (tmp_path / "e.csv").write_text("at;whom\n9/03/2026;bob\n9/04/2026;dee\n9/05/2026;bob\nMay;dee\n")
    (tmp_path / "trusts.txt").write_text("1,2,1\n")
    (tmp_path / "movie-ratings.txt").write_text("2,3,4,5,5,2000-07-12")


def test_months_with_words_of_their_own(brokersim: Brokersim, tmp_path: Path, spark: SparkSession) -> None:
    time = ("--time-format", "d/MM/yyyy", "--time-zone", "Asia/Tokyo", "--spread", "month", "--period", "30d")
    status, out, err = brokersim("prepare", "follows", "--out", "w", *OPTIONS, *time, "--to", "2026-05-01")
    assert (status, out) == (
        0,
        "w: 7 rows read, 4 kept, 3 quarantined (bad_time 1, outside_window 1, duplicate 1); 3 users, 3 topics, 2 interests, "
        "0 changes, 2 publications (1 on topics that nobody follows)\n",
    )
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        "brokersim: starting Spark",
        "brokersim: reading f.csv",
        "brokersim: reading e.csv",
        "brokersim: joining follows of 5 rows",
        f"brokersim: writing {tmp_path / 'w'}",
    ]
    workload = load_workload(tmp_path / "w")
    assert (workload.kind, workload.period, workload.seed) == ("follows", 30 * 86400, 1)
    assert workload.users.names.to_pylist() == ["ann", "bob", "dee"]
    status, out, _ = brokersim("prepare", "follows", ".", "--format", "ciaodvd", "--out", "w", "--quiet")
    assert (status, out) == (
        0,
        "w: 2 rows read, 2 kept, 0 quarantined; 2 users, 2 topics, 1 interests, 1 changes, 2 publications\n",
    )


FREE = OPTIONS[:4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--follows is needed, or a folder and its --format (lastfm-hetrec, ciaodvd, lastfm-1k)"),
        (OPTIONS[:2], "--events is needed, or a folder and its --format"),
        (FREE, "--follows-columns is needed to know the fields of f.csv"),
        ((*FREE, "--follows-columns", "user,topic"), "--events-columns is needed to know the fields of e.csv"),
        ((*FREE, "--follows-columns", "user,,topic"), "--follows-columns 'user,,topic': an empty name"),
        ((*FREE, "--format", "lastfm"), "--format: unknown layout 'lastfm', did you mean 'lastfm-1k'?"),
        ((*FREE, "--format", "ciaodvd"), "--format ciaodvd needs the folder of its files"),
        ((".",), "--format (lastfm-hetrec, ciaodvd, lastfm-1k) is needed: which data set is in the folder ."),
        ((".", "--format", "ciao"), "--format: unknown data set 'ciao', did you mean 'ciaodvd'?"),
        ((".", "--format", "lastfm-1k"), ".: no userid-timestamp-artid-artname-traid-traname.tsv in it, plain or compressed"),
        (
            (".", "--format", "ciaodvd", *FREE),
            "--follows: has no effect with --format ciaodvd, which defines the contents of its files",
        ),
        ((".", "--format", "ciaodvd", "--no-header"), "--header: has no effect with --format ciaodvd"),
        ((*OPTIONS, "--period", "1 fortnight"), "--period: expected a duration such as '90s', '10h' or '7d'"),
        ((*OPTIONS, "--period", "0"), "--period is 0 s, allowed: above 0"),
        ((*OPTIONS, "--sample", "0"), "--sample is 0, allowed: above 0 and up to 1"),
        ((*OPTIONS, "--spread", "year"), "--spread"),
    ],
)  # fmt: skip
def test_what_was_typed_wrong_is_told_before_spark_starts(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("sim.spark.spark_session", lambda *_: pytest.fail("Spark was started"))
    status, out, err = brokersim("prepare", "follows", "--out", "w", *arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())
