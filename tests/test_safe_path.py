"""Folders named like our packages, on PYTHONPATH or in the current folder, don't replace the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import brokersim

COMMAND = "import sys; sys.argv[0] = 'brokersim'; from brokersim import main; main()"
TINY = """\
horizon = "3h"
replications = 2
workload = { kind = "poisson", users = 10, topics = 6, topics_per_user = 2 }
network = { brokers = 2, geometry = { kind = "star" } }
selection = { kind = "nearby" }
"""
POLICY = '''\
"""A plug-in beside a folder that is named as one of our packages."""
from sim.policies.selection.fixed import StaticSelection


class Nearby(StaticSelection):
    pass
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with packages and modules of our names, and a plug-in of the user's own."""
    for name in ("sim", "analysis"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("print('taken over')")
    (tmp_path / "scenarios.py").write_text("print('taken over')")
    (tmp_path / "nearby.py").write_text(POLICY)
    info = tmp_path / "nearby-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nearby\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[brokersim.selection]\nnearby = nearby:Nearby\n")
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


@pytest.mark.parametrize(("python_path", "jobs"), [("{place}", "2"), (":", "1")])
def test_a_sim_folder_does_not_take_over_and_plug_ins_beside_it_are_found(
    place: Path, python_path: str, jobs: str
) -> None:
    command = [sys.executable, "-c", COMMAND, "run", "tiny.toml", "--jobs", jobs, "--out", "results"]
    environment = os.environ | {"PYTHONPATH": python_path.format(place=place)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    assert (done.returncode, "taken over" in done.stdout + done.stderr) == (0, False), done.stderr
    assert "Results: results" in done.stdout


def test_only_folders_with_our_names_are_searched_later(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    home, other = "/opt/brokersim", str(tmp_path_factory.mktemp("other"))
    path = [str(place), other, home, "/usr/lib"]
    brokersim.make_safe(path, home)
    assert path == [other, home, "/usr/lib", str(place)]
    path = [str(place), other]  # found by an import hook
    brokersim.make_safe(path, home)
    assert path == [other, home, str(place)]
