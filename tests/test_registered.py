"""Plug-ins of this process, as a notebook has them: scenarios name them, and changed code makes runs of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import sim
from sim import plugins
from sim.policies.views import Selection, SelectionSetting, SelectionView

CELL = """
STEP = {step}

def broker_of(user, brokers):
    return STEP * user % brokers

class InTurn:
    class Parameters(plugins.Parameters):
        first: int = 0

    reacts_to = frozenset()
    exchange = None

    def __init__(self, parameters, setting):
        self.first, self.brokers = parameters.first, setting.brokers

    def select(self, view):
        if view.current >= 0:
            return Selection(view.current)
        return Selection((self.first + broker_of(view.user, self.brokers)) % self.brokers)
"""


def cell(step: int) -> type:
    """The class that a notebook has once such a cell has been run."""
    names = {"plugins": plugins, "Selection": Selection, "__name__": "notebook"}
    exec(CELL.format(step=step), names)
    kind = names["InTurn"]
    assert isinstance(kind, type)
    return kind


@pytest.fixture(autouse=True)
def no_others() -> Iterator[None]:
    with patch.dict(plugins._registered, clear=True):
        yield
    plugins.load.cache_clear()


def scenario(**parameters: int) -> sim.Scenario:
    return sim.Scenario({**sim.example(), "selection": {"kind": "in-turn", **parameters}})


def test_runs_follow_the_code_of_the_class_and_what_it_calls(tmp_path: Path) -> None:
    """The same code again finds its runs; a constant that a function beside the class uses makes others."""
    kept = []
    for step in (1, 1, 3):
        sim.register("selection", "in-turn", cell(step))
        results = sim.run(scenario(), tmp_path)
        kept.append(sorted(run.name for run in (tmp_path / "runs").iterdir()))
        users = results.tables("brokers").query("variant == 'ring' and replication == 0")["users"]
        assert users.round(9).tolist() == [5, 5, 5, 5]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 4
    assert len(kept[2]) == 8


def test_it_is_a_plugin_like_any_other(tmp_path: Path) -> None:
    sim.register("selection", "in-turn", cell(1))
    assert "in-turn" in plugins.names("selection")
    with pytest.raises(sim.InputError, match=r"selection.frist: unknown key, did you mean 'first'"):
        sim.load_scenario(scenario(frist=1))

    class Broken(cell(1)):  # type: ignore[misc]
        def select(self, view: SelectionView) -> Selection:
            return Selection(99)

    sim.register("selection", "in-turn", Broken)
    with pytest.raises(sim.InputError, match=r"plug-in Broken \(test_registered\): .*99"):
        sim.run(scenario(), tmp_path)


@pytest.mark.parametrize("options", [{"jobs": 2}, {"engine": "pool"}, {"master": "spark://127.0.0.1:1"}])
def test_other_processes_do_not_know_it(options: dict[str, int], tmp_path: Path) -> None:
    sim.register("selection", "in-turn", cell(1))
    with pytest.raises(
        sim.InputError, match=r"^selection:in-turn is registered in this process, and no other knows it"
    ):
        sim.run(scenario(), tmp_path / "results", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "results").exists()


def test_what_cannot_be_registered_is_refused() -> None:
    class Bare:
        def __init__(self, parameters: plugins.Parameters, setting: SelectionSetting) -> None: ...

    with pytest.raises(sim.InputError, match="did you mean 'selection'"):
        sim.register("selections", "in-turn", cell(1))
    with pytest.raises(sim.InputError, match=r"'static': plug-in brokersim.selection:static .* has this name"):
        sim.register("selection", "static", cell(1))
    with pytest.raises(sim.InputError, match=r"plug-in Bare .* has no nested class Parameters"):
        sim.register("selection", "bare", Bare)
