"""`brokersim validate-against`: a scenario's workload on a broker that runs and in the simulator, side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import sim
from sim.base.errors import InputError
from sim.calibration.options import MeasuringOptions
from sim.cli import terminal
from sim.cli.calibrate import BrokerUrl, Page
from sim.cli.options import Json, Overrides, Quiet, ScenarioFile, Variant, grouped, option


@grouped
def validate_against(
    url: BrokerUrl,
    scenario: ScenarioFile,
    median: Annotated[str, option("SHARE", "By how much the median delay may differ.")] = "15%",
    p99: Annotated[str, option("SHARE", "By how much the 99th percentile of delays may differ.")] = "25%",
    throughput: Annotated[str, option("SHARE", "By how much deliveries per second may differ.")] = "20%",
    deliveries: Annotated[str, option("SHARE", "By how much the number of deliveries may differ.")] = "0%",
    losses: Annotated[str, option("SHARE", "By how much the number of losses may differ.")] = "0%",
    variant: Variant = None,
    page: Page = None,
    *,
    overrides: Overrides,
    options: MeasuringOptions,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replay a scenario's workload on a broker and in the simulator, and compare.

    The scenario has one broker, with service times such as a preset of `calibrate`. Differences are relative to what was measured.
    Exit status 1 if one is larger than allowed.
    """
    overrides.check(scenario)
    say = terminal.speaker(quiet)
    texts = {"median": median, "p99": p99, "throughput": throughput, "deliveries": deliveries, "losses": losses}
    found = sim.validate_against(
        url,
        scenario,
        page,
        variant,
        allowed={name: _share(name, text) for name, text in texts.items()},
        **overrides.given,
        **asdict(options),
        progress=lambda line: say(f"brokersim: {line}"),
    )
    if json_:
        rows = [{**asdict(one), "agrees": one.agrees} for one in found.compared.quantities]
        terminal.print_json({"agrees": found.agrees, "clean": found.compared.clean, "quantities": rows})
    else:
        from sim.calibration.page import validation_rows, validation_sentence

        heads = ("quantity", "measured", "simulated", "difference", "allowed", "verdict")
        console = terminal.console()
        console.print(f"{found.compared.title} on {found.compared.broker}", style="bold")
        console.print(terminal.plain_table(heads, validation_rows(found.compared), left=("quantity", "verdict")))
        for sentence in (validation_sentence(found.compared), *found.compared.notes):
            console.print(sentence, soft_wrap=True)
    if not found.agrees:
        raise typer.Exit(1)


def _share(name: str, text: str) -> float:
    """A share such as 15% or 0.15. Raises InputError for anything else."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise InputError(f"--{name} {text}: expected a share such as 15% or 0.15")
    return value
