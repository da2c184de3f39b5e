"""The identity of a run depends on the code that simulates it, and on no other code."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sim.experiments import code
from sim.experiments.plan import plan
from sim.scenario.reader import load_scenario

ROOT = Path(__file__).resolve().parents[2]
Changed = Callable[[str], bool]


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Changed]:
    """Whether one more line in a file of a copy of the package makes a run of the default scenario another one."""
    shutil.copytree(ROOT / "sim", tmp_path / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "sim")
    experiment = load_scenario({"selection": {"kind": "similarity"}})

    def identity() -> str:
        code.version.cache_clear()
        return plan(experiment, {})[0].hash

    def check(name: str) -> bool:
        before = identity()
        with (tmp_path / "sim" / name).open("a") as file:
            file.write("# another line\n")
        return identity() != before

    yield check
    code.version.cache_clear()


def test_the_command_line_and_the_store_may_change_and_runs_stay(changed: Changed) -> None:
    assert not any(map(changed, ("cli/run.py", "cli/options.py", "studies/tune.py", "experiments/store.py")))


def test_a_kernel_makes_other_runs(changed: Changed) -> None:
    assert changed("brokers/data/rule_kernels.py")
    assert changed("base/randomness_kernels.py")


def test_so_does_what_a_policy_of_the_scenario_imports_and_no_other(changed: Changed) -> None:
    assert changed("policies/selection/similarity.py")
    assert changed("policies/selection/kernels.py")
    assert changed("overlay/chord.py")
    assert not changed("overlay/tapestry.py")
    assert not changed("policies/reconfiguration/greedy.py")
