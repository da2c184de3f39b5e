"""brokersim, a discrete-event simulator for publish/subscribe broker networks.

    import sim

    results = sim.run("scenarios/quickstart.toml", out="results/quickstart")
    results.runs.groupby("variant")["notification_delay"].mean()

Everything that the command line does is a function here. Names are imported on first use, so that `import sim` is fast.
"""

from __future__ import annotations

from importlib import import_module

# Any: names of several types, imported when they are asked for.
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.api.comparisons import best, check_exports, compare
    from sim.api.pages import demo, report, reproduce
    from sim.api.results import load_results
    from sim.api.runs import run
    from sim.api.scenarios import Scenario, example, load_scenario, plan, results_folder
    from sim.api.searches import capacity, tune
    from sim.base.errors import InputError
    from sim.experiments.export import export
    from sim.experiments.run import RunFailed

    __version__: str

_HOME = {
    "sim.api.comparisons": ("best", "check_exports", "compare"),
    "sim.api.pages": ("demo", "report", "reproduce"),
    "sim.api.results": ("load_results",),
    "sim.api.runs": ("run",),
    "sim.api.scenarios": ("Scenario", "example", "load_scenario", "plan", "results_folder"),
    "sim.api.searches": ("capacity", "tune"),
    "sim.base.errors": ("InputError",),
    "sim.experiments.export": ("export",),
    "sim.experiments.run": ("RunFailed",),
}
"""The public names that each module defines."""

__all__ = [
    "InputError",
    "RunFailed",
    "Scenario",
    "best",
    "capacity",
    "check_exports",
    "compare",
    "demo",
    "example",
    "export",
    "load_results",
    "load_scenario",
    "plan",
    "report",
    "reproduce",
    "results_folder",
    "run",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("brokersim")
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'sim' has no attribute '{name}' (it has: {', '.join(__all__)})")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
