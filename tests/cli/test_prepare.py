"""`brokersim prepare checkins`: its output, its files, and its independence of other files."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sim.base.errors import InputError
from sim.cli.prepare import app
from sim.workloads.format.folder import load_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMAND = [sys.executable, "-c", "from sim.cli.app import main; main()", "prepare", "checkins"]
# Six users; each checks in ten times, and after every second time goes to the next of three cells.
ROWS = "".join(
    f"{n % 6}\t2010-03-0{1 + n // 12}T{n % 24:02}:00:00Z\t{48 + n % 2}.5\t{2 + n // 12 % 3}.5\t{n}\n" for n in range(60)
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "checkins.tsv"
    path.write_text(ROWS + "0\tyesterday\t48.5\t2.5\t1\n" + ROWS.splitlines(keepends=True)[0])
    return path


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def prepare(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["checkins", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_it_says_what_became_of_the_rows_without_java_and_without_noise(
    spark: SparkSession, trace: Path, tmp_path: Path
) -> None:
    tools, home = tmp_path / "bin", tmp_path / "home"
    for folder in (tools, home):
        folder.mkdir()
    for directory in os.defpath.split(os.pathsep):
        for tool in Path(directory).iterdir() if Path(directory).is_dir() else ():
            if tool.name != "java" and not os.path.lexists(tools / tool.name):  # some lead nowhere
                (tools / tool.name).symlink_to(tool)
    options = [trace, "--format", "gowalla", "--cell", "0.5", "--friends", "2", "--out"]
    near = tmp_path / "near"
    with subprocess.Popen(
        [*COMMAND, *options, "far", "--master", "local[1]", "--partitions", "3"],
        env={"PATH": str(tools), "HOME": str(home)},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as far:
        said = prepare(*options, near, "--quiet")  # meanwhile, in this process, on two cores
        out, err = far.communicate()
    summary = (
        "62 rows read, 60 kept, 2 quarantined (bad_time 1, duplicate 1); 6 cells, 6 users, 30 visits, 30 publications\n"
    )
    assert (far.returncode, out) == (0, f"far: {summary}")
    assert err.splitlines() == [
        "brokersim: starting Spark (local[1])",
        f"brokersim: reading check-ins ({trace.stat().st_size / 2**20:.1f} MiB) by Arrow kernels",
        "brokersim: looking for duplicates in 62 rows",
        "brokersim: finding visits",
        f"brokersim: writing {home / 'far'}",
    ]
    assert sorted(path.name for path in home.iterdir()) == [".cache", "far"]
    assert said == f"{near}: {summary}"
    assert contents(near) == contents(home / "far")


def test_a_killed_command_leaves_nothing_that_looks_like_a_workload(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "w"
    command = [*COMMAND, trace, "--format", "gowalla", "--out", out]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert any("looking for duplicates" in line for line in running.stderr)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    assert not out.exists()
    assert all(entry.name.startswith(".w.") for entry in out.parent.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "gowala"], "--format: unknown layout 'gowala', did you mean 'gowalla'? (allowed: csv,"),
        (["--bounding-box", "us-papers"], "expected S,W,N,E in degrees or a name (us-paper)"),
        (["--bounding-box", "30,-126,50"], "expected S,W,N,E in degrees or a name (us-paper)"),
        (
            ["--bounding-box", "50,-126,30,-66"],
            "--bounding-box 50,-126,30,-66: expected S,W,N,E in degrees, -90 <= S < N <= 90",
        ),
        (["--from", "2010"], "--from '2010': expected an ISO date or time, such as 2009-03-01"),
        (["--to", "2010-02-30"], "--to '2010-02-30': expected an ISO date or time"),
        (["--from", "2010-03-01", "--to", "2010-03-01"], "the first must be before the second"),
        (["--sample", "0"], "--sample is 0, allowed: above 0 and up to 1"),
        (
            ["--columns", "user,tme,latitude,longitude"],
            "no time, did 'tme' mean it? (check-ins need user, time, latitude,",
        ),
        (["--format", "foursquare-tist"], "places without positions; --places FILE gives their positions"),
        (["--places-columns", "place"], "--places-columns: describes the files of --places, which is not given"),
        (["--driver-memory", "much"], "--driver-memory 'much': expected a size of 512m or more"),
        (["--master", "spark"], "--master 'spark': expected local[N]"),
        (["no-such-file.tsv"], "no-such-file.tsv: no such file"),
        (["--out", "/dev/null"], "/dev/null: is a file"),
    ],
)
def test_what_was_typed_wrong_is_told_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, trace: Path, arguments: list[str], message: str
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(InputError) as raised:
        prepare(trace, "--out", trace.with_name("w"), "--format", "gowalla", *arguments)
    assert message in str(raised.value)


def test_without_spark_the_workload_is_the_same_or_the_sentence_says_why_not(
    spark: SparkSession, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, _, said = prepare(trace, "--format", "gowalla", "--out", tmp_path / "spark").partition("\n")
    assert "starting Spark" in start
    assert "reading check-ins (0.0 MiB) by Arrow kernels" in said
    monkeypatch.setitem(sys.modules, "pyspark", None)
    alone = ["--engine", "in-process", "--out", tmp_path / "alone"]
    assert prepare(trace, "--format", "gowalla", *alone).replace("alone", "spark") == said
    assert contents(tmp_path / "alone") == contents(tmp_path / "spark")

    with pytest.raises(InputError) as raised:
        prepare(trace, "--columns", "user,time,latitude,longitude,_", "--time-format", "hh:mm a yyyy-MM-dd", *alone)
    assert str(raised.value) == (
        f"{trace}: times in the format 'hh:mm a yyyy-MM-dd' are not read by Arrow kernels; give --engine spark, which reads them"
    )


def test_box_and_times_leave_rows_out(spark: SparkSession, trace: Path, tmp_path: Path) -> None:
    limits = ["--bounding-box", "48,2,49,5", "--from", "2010-03-01T09:00+09:00", "--to", "2010-03-03T12:00"]
    said = prepare(trace, "--format", "gowalla", "--out", tmp_path / "w", "--publications", "per-check-in", *limits)
    assert "quarantined (bad_time 1, outside_box 30, outside_window" in said
    assert load_workload(tmp_path / "w").generator["window"] == ["2010-03-01T00:00:00Z", "2010-03-03T12:00:00Z"]
