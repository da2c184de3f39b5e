"""brokersim, a discrete-event simulator for publish/subscribe broker networks.

    import sim

    results = sim.run("scenarios/quickstart.toml", out="results/quickstart")
    results.runs.groupby("variant")["notification_delay"].mean()

Names are imported on first use, so that `import sim` is fast.
"""

from __future__ import annotations

from importlib import import_module

# Any: names of several types, imported when they are asked for.
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.experiments.export import export
    from sim.experiments.results import load_results
    from sim.experiments.run import run
    from sim.scenario.reader import load_scenario

__all__ = ["export", "load_results", "load_scenario", "run"]

_HOME = {
    "run": "sim.experiments.run",
    "export": "sim.experiments.export",
    "load_results": "sim.experiments.results",
    "load_scenario": "sim.scenario.reader",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute '{name}' (it has: {', '.join(__all__)})")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
