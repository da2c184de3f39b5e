"""What modules of this package a text imports."""

from __future__ import annotations

import ast
from pathlib import Path

import sim
from sim.base.imports import own_imports

TEXT = """
from typing import TYPE_CHECKING
import simpy
from sim.metrics import (
    METRICS,  # all of them
    ledger as book,
)
if TYPE_CHECKING:
    from sim.cli import run

    import sim.cli.app
def f():
    try:
        from sim.overlay import chord
    except ImportError: import sim.spark as spark, sim.files.toml
    if TYPE_CHECKING:
        from sim.studies import tune
    from sim.plugins import load; load()
"""


def test_imports_are_found_anywhere_but_not_those_for_type_checkers() -> None:
    assert own_imports(TEXT) - {"sim.metrics."} == {
        *("sim.metrics", "sim.metrics.METRICS", "sim.metrics.ledger"),
        *("sim.overlay", "sim.overlay.chord", "sim.spark", "sim.files.toml", "sim.plugins", "sim.plugins.load"),
    }


def test_no_import_of_our_own_is_missed() -> None:
    assert sim.__file__ is not None
    for path in Path(sim.__file__).parent.rglob("*.py"):
        text = path.read_text()
        found = own_imports(text)
        for statement in ast.walk(ast.parse(text)):
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "sim":
                names = {f"{statement.module}.{alias.name}" for alias in statement.names}
                assert names <= found or "TYPE_CHECKING" in text, (path, names - found)
