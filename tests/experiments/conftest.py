"""Fixtures of the tests of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweeping import SWEEP, Spy

from sim.experiments import perform


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The file of the small sweep."""
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """A spy that counts the runs which are simulated."""
    made = Spy()
    monkeypatch.setattr(perform, "simulate", made)
    return made
