"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import typer.main

from sim.cli.app import main

COMMANDS = cache(typer.main.get_command)
"""The tree of commands, which is made anew for each command that somebody types, and takes longer than most of them."""


@pytest.fixture
def brokersim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in an empty folder, `tmp_path`; gives its exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(typer.main, "get_command", COMMANDS)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["brokersim", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command
