"""Somebody who reads the pages: types commands in a folder like the project's, where the demo has been run once."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from typer.testing import CliRunner

from sim.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
DEMO = "./brokersim demo"
PREPARE = "./brokersim prepare "
ONCE = re.compile(r"\./brokersim (demo|prepare checkins [^\n]*)")
"""What takes long and is on several pages, so that one run serves them all."""


class Reader:
    """Types commands in `folder`, where Spark is running already, and fails where one does; `demo` is what the demo printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "scenarios").symlink_to(ROOT / "scenarios")
        (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
        shutil.copytree(ROOT / "docs" / "example-plugin", folder / "docs" / "example-plugin")
        script = folder / "brokersim"  # the start script without its set-up; `test` would run this very test again
        script.write_text('#!/bin/sh\n[ "${1-}" = test ] || exec .venv/bin/brokersim "$@"\n')
        script.chmod(0o755)
        plugins = folder / "plugins"
        self.environment = os.environ | {
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(plugins),
            "PIP_TARGET": str(plugins),  # `pip install` must not touch the environment that runs the tests
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # "0" is how pip spells --no-build-isolation here
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        self.printed: dict[str, str] = {}
        self.demo = self.type(DEMO, "demo")

    def type(self, command: str, place: str) -> str:
        """What the command prints, on both streams."""
        if command in self.printed:
            return self.printed[command]
        if command.startswith(PREPARE):
            output = self.prepare(command, place)
        else:
            output = self.run(["bash", "-euo", "pipefail", "-c", command], command, place)
        if ONCE.fullmatch(command):
            self.printed[command] = output
        return output

    def prepare(self, command: str, place: str) -> str:
        """Here, where the session of all tests runs: starting Spark takes longer than all else on a page."""
        arguments = shlex.split(command.replace("\\\n", " "))[1:]
        with chdir(self.folder):
            done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, f"{place}: {command!r} ended with status {done.exit_code}:\n{done.output}"
        return done.output

    def run(self, arguments: list[str], shown: str, place: str) -> str:
        done = subprocess.run(
            arguments,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{place}: {shown!r} ended with status {done.returncode}:\n{done.stdout}"
        return done.stdout
