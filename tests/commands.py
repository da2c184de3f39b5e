"""Run commands in this process, where everything is imported and Spark is already running."""

from __future__ import annotations

import os
import sys
from functools import cache
from unittest.mock import patch

import pytest
import typer.main

from sim.cli.app import main

COMMANDS = cache(typer.main.get_command)
"""The tree of commands, which is built for each command, and takes longer than most of them."""


def status_of(*arguments: str) -> int:
    """The exit status of `brokersim ARGUMENTS` on a machine of one core: a pool is only started if requested."""
    with (
        patch.object(sys, "argv", ["brokersim", *arguments]),
        patch.object(sys, "excepthook", sys.excepthook),
        patch.object(typer.main, "get_command", COMMANDS),
        patch.object(os, "sched_getaffinity", lambda _: {0}, create=True),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return int(end.value.code or 0)
