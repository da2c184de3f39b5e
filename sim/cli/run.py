"""`brokersim run`: a scenario's runs, with progress on standard error and a summary on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from analysis.deliveries import DeliveryCheck
    from sim.experiments.results import Results
    from sim.scenario import Experiment

PLAIN_WIDTH = 100
"""Columns of a table that is not shown on a terminal."""
SHOWN = 20
"""Pairs of topic and subscriber that are shown, at most."""

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, such as network.brokers=200; variant.NAME.KEY=VALUE for one variant. May be repeated.",
    ),
]
WorkloadFolder = Annotated[
    Path | None, typer.Option("--workload", metavar="DIR", help="A workload's folder, in place of the one in the file.")
]


def run(
    scenario: ScenarioFile,
    set_: Overrides = None,
    workload: WorkloadFolder = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where results go; results/NAME by default.", show_default=False)
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; all cores by default.", show_default=False)
    ] = None,
    check_deliveries: Annotated[
        bool,
        typer.Option(
            "--check-deliveries",
            help="Compare what users received with the deliveries of the trace; exit status 1 where counts differ.",
        ),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run a scenario and summarise what came out.

    Every variant is run in every replication, on the same arrivals. Runs that are in the results folder already are not
    run again, so an interrupted command goes on where it was.
    """
    from sim.cli.display import display
    from sim.experiments.run import default_folder
    from sim.experiments.run import run as run_experiment
    from sim.scenario import load_scenario

    overrides = [*(set_ or ()), *(["subscribers=true"] if check_deliveries else [])]
    experiment = load_scenario(scenario, overrides, workload)
    if check_deliveries:
        from analysis.deliveries import traces_of

        traces_of(experiment)  # what has none is told before anything is run
    folder = out if out is not None else default_folder(experiment)
    try:
        with display(experiment, quiet) as progress:
            results = run_experiment(experiment, folder, jobs=jobs or cores(), progress=progress)
    except KeyboardInterrupt:
        print(f"brokersim: interrupted; finished runs are kept in {folder}, the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    for note in results.notes:
        print(f"note: {note}", file=sys.stderr)
    checks = _checks(results, experiment) if check_deliveries else []
    if json_:
        print(json.dumps(as_json(results, checks), indent=2, ensure_ascii=False))
    else:
        print_summary(results)
        for check in checks:
            print_check(check)
        print(f"\nResults: {results.folder}")
    for failure in results.failed:
        where = f"variant {failure['variant']}, replication {failure['replication']}"
        print(f"{failure['traceback']}brokersim: {where} failed: {failure['reason']}", file=sys.stderr)
    if results.failed or not all(check.differing.empty for check in checks):
        raise typer.Exit(1)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def print_summary(results: Results) -> None:
    """The scenario's headline metrics by variant with intervals and differences to the baseline, and what that says."""
    from rich.console import Console
    from rich.table import Table

    from analysis.comparison import label, method, sentences, summary, variants_of

    variants, replications = variants_of(results), results.manifest["replications"]
    table = Table()
    table.add_column("metric")
    table.add_column("unit")
    for variant in variants:
        table.add_column(variant, justify="right")
    for row in summary(results):
        cells = ("\n".join(filter(None, row.variants[variant])) for variant in variants)
        table.add_row(label(row.metric), row.unit, *cells, end_section=True)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    console.print(results.manifest["title"], style="bold")
    console.print(table)
    if replications > 1:
        console.print(method(results))
    for sentence in sentences(results):
        console.print(sentence)


def _checks(results: Results, experiment: Experiment) -> list[DeliveryCheck]:
    from analysis.deliveries import check_deliveries

    return check_deliveries(results, experiment)


def print_check(check: DeliveryCheck) -> None:
    """The deliveries of one run beside those of the trace; of many pairs, only those that differ most."""
    from rich.console import Console
    from rich.table import Table

    rows = check.counts if len(check.counts) <= SHOWN else check.differing.head(SHOWN)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    console.print(f"\nDeliveries of {check.variant}, replication {check.replication + 1}", style="bold")
    if len(rows):
        table = Table("topic", "subscriber")
        for name in ("in the trace", "simulated", "difference"):
            table.add_column(name, justify="right")
        for topic, subscriber, trace, simulated, difference in rows.itertuples(index=False, name=None):
            table.add_row(
                str(topic), str(subscriber), f"{trace:,}", f"{simulated:,}", f"{difference:+,}" if difference else "0"
            )
        console.print(table)
    console.print(check.sentence())


def as_json(results: Results, checks: Sequence[DeliveryCheck] = ()) -> dict[str, Any]:
    """The summary for programs: all metrics of all variants, null where there is no interval or no difference."""
    from analysis.comparison import compare_table

    table = compare_table(results)
    rows = json.loads(table.to_json(orient="records", double_precision=15))
    failed = [{key: run[key] for key in ("variant", "replication", "reason")} for run in results.failed]
    checked = [
        {"variant": check.variant, "replication": check.replication, **row}
        for check in checks
        for row in json.loads(check.counts.to_json(orient="records"))
    ]
    return {
        "results": str(results.folder),
        "title": results.manifest["title"],
        "baseline": results.manifest["report"]["baseline"],
        "replications": results.manifest["replications"],
        "metrics": rows,
        "notes": results.notes,
        "failed": failed,
        **({"deliveries": checked} if checks else {}),
    }
