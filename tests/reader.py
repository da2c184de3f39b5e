"""A reader of the pages, who types commands in a folder like the project's, where the demo has been run once."""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

from commands import status_of

from sim import plugins

ROOT = Path(__file__).resolve().parents[1]
DEMO = "./brokersim demo"
ONCE = re.compile(r"\./brokersim (demo|prepare checkins [^\n]*)")
"""What takes long and is on several pages, so that one run serves them all."""
PLAIN = re.compile(r"\./brokersim (?!test\b)[^|&;<>$\n]*(\\\n[^|&;<>$\n]*)*")
"""A command of ours, and nothing for a shell to do."""


def look_anew() -> None:
    """Make this process look for modules and entry points as if for the first time."""
    importlib.invalidate_caches()
    plugins._entries.cache_clear()
    plugins.load.cache_clear()


class Reader:
    """Types commands in `folder`, where Spark is running already, and fails where one does.

    What a shell has a part in runs in processes of its own, all else here: starting Python, and Spark at that, takes longer than
    most of what is shown.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.plugins = folder, folder / "plugins"
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "scenarios").symlink_to(ROOT / "scenarios")
        (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
        shutil.copytree(ROOT / "docs" / "example-plugin", folder / "docs" / "example-plugin")
        script = folder / "brokersim"  # the start script without its set-up; `test` would run this very test again
        script.write_text('#!/bin/sh\n[ "${1-}" = test ] || exec .venv/bin/brokersim "$@"\n')
        script.chmod(0o755)
        self.environment = {
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(self.plugins),
            "PIP_TARGET": str(self.plugins),  # `pip install` must not touch the environment that runs the tests
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # "0" is how pip spells --no-build-isolation here
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        self.printed: dict[str, str] = {}

    @cached_property
    def demo(self) -> str:
        """The output of the demo, which runs on first use."""
        return self.type(DEMO, "demo")

    def type(self, command: str, place: str) -> str:
        """Type a command; returns what it prints on both streams."""
        if command in self.printed:
            return self.printed[command]
        if PLAIN.fullmatch(command):
            arguments = shlex.split(command.replace("\\\n", " "))[1:]
            output = self.here(lambda: status_of(*arguments), command, place)
        else:
            output = self.start(["bash", "-euo", "pipefail", "-c", command], command, place)
        if ONCE.fullmatch(command):
            self.printed[command] = output
        return output

    def here(self, work: Callable[[], int | None], shown: str, place: str) -> str:
        """Run work in this process, which returns an exit status or None; returns what it prints."""
        printed = io.StringIO()
        environment = patch.dict(os.environ, self.environment)
        with chdir(self.folder), environment, self.installed(), redirect_stdout(printed), redirect_stderr(printed):
            status = work()
        assert not status, f"{place}: {shown!r} ended with status {status}:\n{printed.getvalue()}"
        return printed.getvalue()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Has this process find what was installed, as one would that starts now, and then forget it."""
        before = set(sys.modules)
        try:
            registered = patch.dict(plugins._registered)
            with patch.object(sys, "path", [str(self.plugins), *sys.path]), registered:
                look_anew()
                yield
        finally:
            for name in sys.modules.keys() - before:
                if str(self.plugins) in str(getattr(sys.modules[name], "__file__", None)):
                    del sys.modules[name]
            look_anew()

    def forget_plugins(self) -> None:
        """Uninstall what was installed."""
        shutil.rmtree(self.plugins, ignore_errors=True)

    def start(self, arguments: list[str], shown: str, place: str) -> str:
        done = subprocess.run(
            arguments,
            cwd=self.folder,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{place}: {shown!r} ended with status {done.returncode}:\n{done.stdout}"
        return done.stdout
