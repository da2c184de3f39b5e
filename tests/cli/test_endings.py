"""Commands that are interrupted, or for which the machine is too small, end with one sentence and no traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import sim
from sim.base.errors import ResultsError
from sim.workloads.synthetic.poisson import PoissonWorkload

Brokersim = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "brokersim: interrupted\n"),
        (MemoryError("1 TiB"), 2, "brokersim: error: not enough memory (1 TiB)\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "brokersim: error: No space left on device\n"),
        (OSError(errno.EACCES, "Permission denied", "w"), 2, "brokersim: error: w: Permission denied\n"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "w"), 2, "brokersim: error: w: File name too long\n"),
    ],
)
def test_what_is_no_fault_of_ours_ends_in_a_sentence(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int, said: str
) -> None:
    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr(PoissonWorkload, "generate", fails)
    assert brokersim("generate", "poisson", "--out", "w") == (status, "", said)


def test_any_other_error_is_a_fault_and_keeps_its_traceback(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(PoissonWorkload, "generate", fails)
    with pytest.raises(OSError, match="Bad file descriptor"):
        brokersim("generate", "poisson", "--out", "w")


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "poisson", "--out"],
        ["run", "s.toml", "--out"],
        ["tune", "s.toml", "--out"],
        ["report", "r", "--figures"],
        ["compare", "r", "--export"],
        ["prune"],
    ],
)
def test_a_path_that_is_no_text_ends_in_a_sentence_before_anything_is_done(
    brokersim: Brokersim, tmp_path: Path, command: list[str]
) -> None:
    said = "brokersim: error: 'out-\\xff': not valid UTF-8; name files and folders in UTF-8\n"
    assert brokersim(*command, os.fsdecode(b"out-\xff")) == (2, "", said)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_text_is_refused_in_python_too(tmp_path: Path) -> None:
    source = {"horizon": "1h", "workload": {"kind": "poisson", "users": 2}, "network": {"brokers": 1}}
    with pytest.raises(ResultsError, match=r"out-.xff': not valid UTF-8"):
        sim.run(source, tmp_path / os.fsdecode(b"out-\xff"))


def test_commands_work_in_a_folder_whose_own_name_is_no_text(
    brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / os.fsdecode(b"here-\xff")
    here.mkdir()
    (here / "s.toml").write_text('horizon = "1h"\nworkload = { kind = "poisson", users = 2 }\nnetwork.brokers = 1\n')
    monkeypatch.chdir(here)
    for command in (
        ["generate", "poisson", "--users", "2", "--out", "w"],
        ["run", "s.toml", "--quiet", "--jobs", "1"],
        ["report", "results/s"],
        ["compare", "results/s", "--export", "c.parquet", "--export", "c.csv", "--out", "c.html"],
    ):
        assert brokersim(*command)[0] == 0
    assert {"w", "results", "c.parquet", "c.csv", "c.html"} < {entry.name for entry in here.iterdir()}
