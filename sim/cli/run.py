"""`brokersim run`: a scenario's runs, with progress on standard error and a summary on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.compare import print_headlines
from sim.cli.options import Json, Out, Overrides, Quiet, ScenarioFile, option, resumable, run_options
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.deliveries import DeliveryCheck
    from sim.experiments.results import Results
    from sim.scenario.experiment import Experiment

SHOWN = 20
"""Rows of a table that are shown, at most: pairs of topic and subscriber, points and variants."""


@run_options()
def run(
    scenario: ScenarioFile,
    *,
    overrides: Overrides,
    out: Out = None,
    options: RunOptions,
    check_deliveries: Annotated[
        bool,
        option(
            "--check-deliveries",
            "Compare what users received with the deliveries in the trace; exit status 1 if any count differs.",
        ),
    ] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario and summarise the results.

    Every variant is run in every replication at every point of the sweep, on the same arrivals. Runs that are already in the
    results folder are not repeated, so an interrupted command resumes. A failed run does not stop the others.
    """
    from sim.experiments.question import default_folder

    experiment = overrides.load(scenario, *(["subscribers=true"] if check_deliveries else []))
    if check_deliveries:
        from analysis import deliveries

        deliveries.traces_of(experiment)  # reports missing deliveries before anything is run
    folder = out if out is not None else default_folder(experiment)
    pages = set(folder.glob("*.html"))
    results = _run(experiment, folder, options, quiet)
    for page in sorted(pages - set(folder.glob("*.html"))):
        print(f"brokersim: {page} showed other runs than there are now, and was removed", file=sys.stderr)
    for note in results.notes:
        print(f"note: {note}", file=sys.stderr)
    checks = deliveries.check_deliveries(results, experiment) if check_deliveries else []
    if json_:
        terminal.print_json(as_json(results, checks))
    else:
        print_summary(results)
        for check in checks:
            print_check(check)
        print(f"\nResults: {results.folder}")
    if results.failed:
        runs = len(results.failed) + len(results.runs)
        print(
            f"brokersim: {len(results.failed)} of {runs} runs failed; --retry-failed does them again", file=sys.stderr
        )
    if results.failed or not all(check.differing.empty for check in checks):
        raise typer.Exit(1)


def _run(experiment: Experiment, folder: Path, options: RunOptions, quiet: bool) -> Results:
    """Perform the missing runs, with progress; exit status 1 where the first failure stops them."""
    from sim.cli.display import display
    from sim.experiments.run import RunFailed, run_experiment

    try:
        with resumable(folder), display(experiment, quiet) as shown:
            return run_experiment(experiment, folder, options, shown, shown.failed)
    except RunFailed:
        kept = f"finished runs are kept in {folder}, the same command goes on"
        print(f"brokersim: stopped; {kept} with the others, or --retry-failed with this one too", file=sys.stderr)
        raise typer.Exit(1) from None


def print_summary(results: Results) -> None:
    """Print the headline metrics by variant with confidence intervals and differences to the baseline, and the findings.

    Of a sweep, the first points: a row for each point and variant.
    """
    from analysis.comparison import method
    from analysis.headlines import headlines
    from analysis.replications import precision_said, warm_up_said

    console = terminal.console()
    console.print(results.manifest["title"], style="bold")
    sweep = len(results.points) > 1
    console.print(_points(results) if sweep else _variants(results))
    if results.manifest["replications"] > 1:
        console.print(method(results))
    for what, said in (("Precision", precision_said), ("Warm-up", warm_up_said)):
        if found := said(results.manifest):
            console.print(f"{what}: {found}.")
    if (rows := len(results.points) * len(results.manifest["variants"])) > SHOWN and sweep:
        console.print(f"{SHOWN} of {rows} rows; all of them: brokersim compare {results.folder}")
    print_headlines(headlines(results), console)


def _variants(results: Results) -> Table:
    from rich.table import Table

    from analysis.comparison import compare, headline_of, label, texts, variants_of

    variants = variants_of(results)
    table = Table()
    table.add_column("metric")
    table.add_column("unit")
    for variant in variants:
        table.add_column(variant, justify="right")
    for row in compare(results, headline_of(results)):
        cells = ("\n".join(filter(None, texts(row, variant))) for variant in variants)
        table.add_row(label(row.metric.name), row.scale[1], *cells, end_section=True)
    return table


def _points(results: Results) -> Table:
    from rich.table import Table

    from analysis.comparison import compare_points, headline_of, label, variants_of
    from analysis.formatting import describe, scale
    from sim.metrics import METRICS
    from sim.scenario.experiment import unit_of
    from sim.scenario.keys import text_of

    variants, manifest = variants_of(results), results.manifest
    units = {key: unit_of(key, manifest["scenario"], manifest["variants"]) for key in results.points.columns}
    table = Table(*(key.replace(".", ".\n") for key in units), "variant")
    columns = []
    for metric in headline_of(results):
        outcomes = [row.outcomes for row in compare_points(results, metric)]
        means = [abs(one.value.mean) for row in outcomes for one in row.values() if one.value.n]
        factor, unit = scale(METRICS[metric].unit, max(means, default=0.0))
        table.add_column(f"{label(metric)}\n({unit})" if unit != "–" else label(metric), justify="right")
        columns.append(
            [["\n".join(filter(None, describe(row[name].value, factor))) for name in variants] for row in outcomes]
        )
    at = [(point, i) for point in range(len(results.points)) for i in range(len(variants))]
    for point, i in at[:SHOWN]:
        values = [text_of(value, units[key]) for key, value in manifest["points"][point].items()]
        table.add_row(*values, variants[i], *(column[point][i] for column in columns))
    return table


def print_check(check: DeliveryCheck) -> None:
    """The deliveries of one run beside those of the trace; of many pairs, only those that differ most."""
    from rich.table import Table

    rows = check.counts if len(check.counts) <= SHOWN else check.differing.head(SHOWN)
    console = terminal.console()
    console.print(f"\nDeliveries of {check.variant}, replication {check.replication + 1}", style="bold")
    if len(rows):
        table = Table("topic", "subscriber")
        for name in ("in the trace", "simulated", "difference"):
            table.add_column(name, justify="right")
        for topic, subscriber, trace, simulated, more in rows.itertuples(index=False, name=None):
            table.add_row(str(topic), str(subscriber), f"{trace:,}", f"{simulated:,}", f"{more:+,}" if more else "0")
        console.print(table)
    console.print(check.sentence())


def as_json(results: Results, checks: Sequence[DeliveryCheck] = ()) -> Raw:
    """The summary for programs: all metrics of all variants, null where there is no confidence interval, difference or test.

    Of a sweep, the headline metrics at all points.
    """
    from analysis.comparison import compare_table, headline_of
    from analysis.headlines import headlines

    table = compare_table(results, headline_of(results) if len(results.points) > 1 else None)
    rows = json.loads(table.to_json(orient="records", double_precision=15))
    place = ("point", "label") if len(results.points) > 1 else ()
    failed = [{key: run[key] for key in (*place, "variant", "replication", "reason")} for run in results.failed]
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
        **{key: results.manifest[key] for key in ("precision", "warm_up") if results.manifest.get(key)},
        "metrics": rows,
        "headlines": headlines(results).as_json(),
        "notes": results.notes,
        "failed": failed,
        **({"deliveries": checked} if checks else {}),
    }
