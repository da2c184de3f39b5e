"""`brokersim validate`, `schema` and `policies`: check a scenario, and list what it can contain."""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import sim
from sim.api.reference import described_parameters
from sim.cli import terminal
from sim.cli.options import Overrides, ScenarioFile, grouped, option

if TYPE_CHECKING:
    from sim.scenario.model import Precision


@grouped
def validate(
    scenario: ScenarioFile,
    *,
    overrides: Overrides,
    json_: Annotated[
        bool, option("--json", "Print every variant at every point, with all defaults filled in.")
    ] = False,
) -> None:
    """Check a scenario file, and report all mistakes at once."""
    experiment = overrides.load(scenario)
    if json_:
        points = [
            {name: variant.model_dump(mode="json") for name, variant in point.variants.items()}
            for point in experiment.points
        ]
        entries = [{"point": dict(p.values), "variants": v} for p, v in zip(experiment.points, points, strict=True)]
        terminal.print_json(entries if experiment.parameters else points[0])
        return
    counts = {"variant": len(experiment.variants), "replication": experiment.base.replications}
    if experiment.parameters:
        counts = {"point": len(experiment.points), **counts}
    runs = " × ".join(_many(count, what) for what, count in counts.items())
    print(f"{scenario}: valid, {runs} = {_many(math.prod(counts.values()), 'run')}{_until(experiment.precision)}")


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    terminal.print_json(sim.json_schema())


def policies() -> None:
    """List all plug-ins and their parameters."""
    from sim import plugins

    print("\n\n".join(_group(group, names) for group in plugins.GROUPS if (names := plugins.names(group))))


TABLES = {"geometry": "network.geometry", "latency": "network.latency", "metric": "metrics"}


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"


def _until(precision: Precision | None) -> str:
    if precision is None:
        return ""
    exact = f"{precision.metric} is known to within {precision.relative:.3g} of its mean"
    return f", and more replications (at most {precision.max_replications}) until {exact}"


def _group(group: str, names: list[str]) -> str:
    return "\n\n".join([f"[{TABLES.get(group, group)}]", *("\n".join(_plugin(group, name)) for name in names)])


def _plugin(group: str, name: str) -> Iterator[str]:
    from sim import plugins
    from sim.metrics import METRICS

    found = plugins.load(group, name)
    yield f'  kind = "{name}"' if group != "metric" else f"  {name} ({METRICS[name].unit}): {METRICS[name].description}"
    yield from _paragraph((inspect.getdoc(found) or "").split("\n\n")[0], 4)
    for key, kind, default, text in described_parameters(found.Parameters):
        yield f"    {key}{f' = {default}' if default else ''} ({kind})"
        yield from _paragraph(text, 8)


def _paragraph(text: str, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        " ".join(text.split()), 100, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
