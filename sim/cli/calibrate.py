"""`brokersim calibrate`: the costs of a broker that runs, as a preset for scenarios."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import sim
from sim.calibration.options import MeasuringOptions
from sim.cli import terminal
from sim.cli.options import Json, Quiet, argument, grouped, option

BrokerUrl = Annotated[str, argument("URL", "An MQTT broker, such as mqtt://127.0.0.1:1883.")]
Page = Annotated[Path | None, option("--page FILE", "Also write a page (.html) with tables and charts.")]


@grouped
def calibrate(
    url: BrokerUrl,
    out: Annotated[Path, option("FILE", "The preset to write (.toml).")] = Path("preset.toml"),
    page: Page = None,
    *,
    options: MeasuringOptions,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a broker under load, and write its costs as a preset for scenarios.

    Load steps have 1 to 20 subscribers and 100 B to 10 kB, at 150 publications per second and as fast as the broker can. Samples
    during which broker or client waited for a core do not count; if those are too many, nothing is written.
    """
    say = terminal.speaker(quiet)
    found = sim.calibrate(url, out, page, **asdict(options), progress=lambda line: say(f"brokersim: {line}"))
    if json_:
        terminal.print_json(
            {
                "preset": str(out),
                **found.measured.preset(),
                "steps": found.steps.to_dict("records"),
                "notes": found.sentences,
            }
        )
        return
    from analysis.formatting import quantity

    rows = [
        (cost, *(quantity(value, "s") for value in values)) for cost, *values in found.costs.itertuples(index=False)
    ]
    console = terminal.console()
    console.print(f"{found.measured.broker} at {found.measured.url}", style="bold")
    console.print(terminal.plain_table(("cost", "fitted", "from", "to"), rows, left=("cost",)))
    for sentence in found.sentences:
        console.print(sentence, soft_wrap=True)
    print(f"\nPreset: {found.preset}" + (f"\nPage: {page}" if page else ""))
