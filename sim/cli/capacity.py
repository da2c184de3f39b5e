"""`brokersim capacity`: the smallest value of a key at which a metric meets its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.cli import terminal
from sim.cli.options import Json, Overrides, Quiet, ScenarioFile, SearchOut, Variant, option, run_options
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from sim.api.searches import FoundCapacity


@run_options(without=("fail_fast", "verify"))
def capacity(
    scenario: ScenarioFile,
    vary: Annotated[str, option("KEY", "The key whose value to search for, such as network.brokers.")],
    until: Annotated[str, option("LIMIT", "The limit to meet, such as 'notification_delay_p99 < 200ms'.")],
    from_: Annotated[str, option("--from A", "The smallest value to try.")] = "1",
    to: Annotated[str | None, option("B", "The largest value to try; 1,024 times the smallest by default.")] = None,
    step: Annotated[
        str | None,
        option(
            "S",
            "Distance between neighbouring values; 1 by default, less if the key takes fractions and the range is short.",
        ),
    ] = None,
    largest: Annotated[bool, option("--largest", "Search for the largest value instead.")] = False,
    confidence: Annotated[
        float, option("P", "Confidence of each decision on whether the limit holds at a value.")
    ] = 0.95,
    max_replications: Annotated[
        int, option("N", "Maximum replications at a value; if still undecided, the limit counts as missed.", min=2)
    ] = 30,
    variant: Variant = None,
    *,
    overrides: Overrides,
    out: SearchOut = None,
    options: RunOptions,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the smallest value of a key at which a limit holds, or the largest.

    Values are doubled until the limit is crossed, then bisected, which assumes that the metric is monotone in the key. At each,
    replications are added until the confidence interval of the metric's mean is on one side of the limit. Runs that are already in
    the results folder are not repeated. Exit status 1 if the limit holds at no value.
    """
    overrides.check(scenario)
    say = terminal.speaker(quiet)
    found = sim.capacity(
        scenario,
        vary,
        until,
        from_,
        to,
        step,
        largest=largest,
        confidence=confidence,
        max_replications=max_replications,
        variant=variant,
        **overrides.given,
        out=out,
        progress=lambda line: say(f"brokersim: {line}"),
        **options.given,
    )
    if json_:
        terminal.print_json(_json(found))
    else:
        _print(found)
    if found.answer is None:
        raise typer.Exit(1)


def _print(capacity: FoundCapacity) -> None:
    """Print all tried values, and the conclusions."""
    from rich.table import Table

    from analysis.formatting import describe, scale
    from sim.metrics import METRICS

    question, tried = capacity.question, capacity.found.tried
    metric = METRICS[question.limit.metric]
    size = max((abs(one.interval.mean) for one in tried if one.interval.n), default=0.0)
    factor, unit = scale(metric.unit, size)
    table = Table(
        question.key,
        "replications",
        f"{metric.name} ({unit})",
        f"{100 * question.confidence_of_look:.3g} % CI",
        str(question.limit),
    )
    for one in tried:
        mean, interval = describe(one.interval, factor)
        table.add_row(question.text(one.value), str(one.interval.n), mean, interval, one.reason or one.verdict)
    console = terminal.console()
    console.print(f"{capacity.title}: {capacity.variant}", style="bold")
    console.print(table)
    for sentence in capacity.sentences:
        console.print(sentence, soft_wrap=True)
    print(f"\nResults: {capacity.folder}")


def _json(capacity: FoundCapacity) -> dict[str, object]:
    tried = [
        {
            "value": one.value,
            **one.interval.as_json(),
            "mean": one.interval.mean if one.interval.n else None,
            "verdict": one.verdict,
            "reason": one.reason,
        }
        for one in capacity.found.tried
    ]
    return {
        "results": str(capacity.folder),
        "variant": capacity.variant,
        "key": capacity.question.key,
        "until": str(capacity.question.limit),
        "answer": capacity.answer,
        "tried": tried,
        "notes": capacity.sentences,
    }
