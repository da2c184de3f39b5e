"""`brokersim capacity`: the smallest value of a key at which a metric meets its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli import terminal
from sim.cli.options import Json, Overrides, Quiet, ScenarioFile, option, run_options
from sim.cli.search import SearchOut, Variant, bench
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from sim.studies.capacity import CapacityAnswer, CapacityQuestion, Tried
    from sim.studies.search import Bench


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
    from sim.scenario.expressions import Limit
    from sim.studies import capacity as study

    limit, say = Limit.parse(until), terminal.speaker(quiet)

    def tell(tried: Tried) -> None:
        reason = f" ({tried.reason})" if tried.reason else ""
        say(f"brokersim: {vary} = {question.text(tried.value)}: {limit} {tried.verdict}{reason}")

    with bench("capacity", scenario, variant, overrides, out, options, [until]) as opened:
        between = study.values(from_, to, step, integer=opened.is_integer(vary))
        unit = opened.unit_of(vary)
        question = study.CapacityQuestion(vary, limit, between, largest, confidence, max_replications, unit)
        found = study.capacity_of(opened, question, tell)
    if json_:
        terminal.print_json(_json(opened, question, found))
    else:
        _print(opened, question, found)
    if found.answer is None:
        raise typer.Exit(1)


def _print(bench: Bench, question: CapacityQuestion, found: CapacityAnswer) -> None:
    """Print all tried values, and the conclusions."""
    from rich.table import Table

    from analysis.formatting import describe, scale
    from sim.metrics import METRICS
    from sim.studies.capacity import capacity_sentences

    metric = METRICS[question.limit.metric]
    size = max((abs(one.interval.mean) for one in found.tried if one.interval.n), default=0.0)
    factor, unit = scale(metric.unit, size)
    table = Table(
        question.key,
        "replications",
        f"{metric.name} ({unit})",
        f"{100 * question.confidence_of_look:.3g} % CI",
        str(question.limit),
    )
    for one in found.tried:
        mean, interval = describe(one.interval, factor)
        table.add_row(question.text(one.value), str(one.interval.n), mean, interval, one.reason or one.verdict)
    console = terminal.console()
    console.print(f"{bench.experiment.title}: {bench.variant}", style="bold")
    console.print(table)
    for sentence in capacity_sentences(question, found):
        console.print(sentence, soft_wrap=True)
    print(f"\nResults: {bench.store.folder}")


def _json(bench: Bench, question: CapacityQuestion, found: CapacityAnswer) -> dict[str, object]:
    from sim.studies.capacity import capacity_sentences

    tried = [
        {
            "value": one.value,
            **one.interval.as_json(),
            "mean": one.interval.mean if one.interval.n else None,
            "verdict": one.verdict,
            "reason": one.reason,
        }
        for one in found.tried
    ]
    return {
        "results": str(bench.store.folder),
        "variant": bench.variant,
        "key": question.key,
        "until": str(question.limit),
        "answer": found.answer.value if found.answer else None,
        "tried": tried,
        "notes": capacity_sentences(question, found),
    }
