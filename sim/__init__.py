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
    from sim.api.beginning import copy_scenario, list_scenarios, new_scenario
    from sim.api.brokers import calibrate, validate_against
    from sim.api.comparisons import best, check_exports, compare
    from sim.api.diagnosis import doctor
    from sim.api.pages import demo, report, reproduce
    from sim.api.problems import solve_offloading, solve_overlay, solve_reconfiguration
    from sim.api.reference import explain, scenario_keys
    from sim.api.results import load_results
    from sim.api.runs import run
    from sim.api.scenarios import Scenario, example, load_scenario, plan, results_folder
    from sim.api.searches import capacity, tune
    from sim.api.stepping import Simulation
    from sim.api.trace_options import LayoutOptions, SparkOptions, TimeSpan
    from sim.api.traces import prepare_checkins, prepare_events, prepare_follows
    from sim.api.workloads import describe, generate, generate_checkins, load_workload
    from sim.base.errors import InputError
    from sim.experiments.export import export, write_graphml
    from sim.experiments.orphans import orphans
    from sim.experiments.run import RunFailed
    from sim.plugins import register
    from sim.scenario.schema import json_schema

    __version__: str

_HOME = {
    "sim.api.beginning": ("copy_scenario", "list_scenarios", "new_scenario"),
    "sim.api.brokers": ("calibrate", "validate_against"),
    "sim.api.comparisons": ("best", "check_exports", "compare"),
    "sim.api.pages": ("demo", "report", "reproduce"),
    "sim.api.diagnosis": ("doctor",),
    "sim.api.reference": ("explain", "scenario_keys"),
    "sim.api.results": ("load_results",),
    "sim.api.runs": ("run",),
    "sim.api.problems": ("solve_offloading", "solve_overlay", "solve_reconfiguration"),
    "sim.api.scenarios": ("Scenario", "example", "load_scenario", "plan", "results_folder"),
    "sim.api.searches": ("capacity", "tune"),
    "sim.api.stepping": ("Simulation",),
    "sim.api.trace_options": ("LayoutOptions", "SparkOptions", "TimeSpan"),
    "sim.api.traces": ("prepare_checkins", "prepare_events", "prepare_follows"),
    "sim.api.workloads": ("describe", "generate", "generate_checkins", "load_workload"),
    "sim.base.errors": ("InputError",),
    "sim.experiments.export": ("export", "write_graphml"),
    "sim.experiments.orphans": ("orphans",),
    "sim.experiments.run": ("RunFailed",),
    "sim.plugins": ("register",),
    "sim.scenario.schema": ("json_schema",),
}
"""The public names that each module defines."""

__all__ = [
    "InputError",
    "LayoutOptions",
    "RunFailed",
    "Scenario",
    "Simulation",
    "SparkOptions",
    "TimeSpan",
    "best",
    "calibrate",
    "capacity",
    "check_exports",
    "compare",
    "copy_scenario",
    "demo",
    "describe",
    "doctor",
    "example",
    "explain",
    "export",
    "generate",
    "generate_checkins",
    "json_schema",
    "list_scenarios",
    "load_results",
    "load_scenario",
    "load_workload",
    "new_scenario",
    "orphans",
    "plan",
    "prepare_checkins",
    "prepare_events",
    "prepare_follows",
    "register",
    "report",
    "reproduce",
    "results_folder",
    "run",
    "scenario_keys",
    "solve_offloading",
    "solve_overlay",
    "solve_reconfiguration",
    "tune",
    "validate_against",
    "write_graphml",
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
