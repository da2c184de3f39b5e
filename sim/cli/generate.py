"""`brokersim generate` and `describe`: synthetic workloads, and a summary of any workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from sim.base.errors import InputError
from sim.cli import terminal
from sim.cli.options import argument, option
from sim.cli.parameters import described, options, parameters, settings

if TYPE_CHECKING:
    from rich.table import Table

    from sim.workloads.format.workload import Workload

DISTRIBUTIONS = {
    "interests_per_user": "topics that a user wants, at the start",
    "subscription_changes_per_user": "subscription changes of a user",
    "movements_per_user": "movements of a user",
    "subscribers_per_topic": "subscribers of a topic, at the start",
    "publications_per_topic": "publications on a topic",
    "subscriptions_per_user": "subscriptions of a user, by content",
    "predicates_per_subscription": "predicates of a subscription",
    "sessions_per_user": "sessions of a user",
    "deliveries_per_user": "deliveries to a user, in the trace",
}
NAMES = {"subscription_events": "subscription changes"}
SHOWN = {"mean": "mean", "minimum": "least", "median": "median", "p95": "95 % below", "maximum": "most"}


class Generate(TyperCommand):
    """A command whose options include the parameters of the given kind, which its help lists."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[__name__] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from sim import plugins

        kinds = plugins.names("workload")
        kind = next((argument for argument in ctx.meta.get(__name__, ()) if argument in kinds), None)
        if kind is None:
            with formatter.section("Kinds"):
                formatter.write_text(f"{', '.join(kinds)}: brokersim generate KIND --help lists the options of each.")
            return
        with formatter.section(f"Options of {kind}"):
            formatter.write_dl(
                [
                    (
                        f"--{key.replace('_', '-')} VALUE",
                        f"{text} [{f'default: {default}; ' if default else ''}{allowed}]",
                    )
                    for key, allowed, default, text in described(plugins.load("workload", kind).Parameters)
                ]
            )


def generate(
    context: typer.Context,
    kind: Annotated[
        str, argument("KIND", "content, mobility, poisson or another kind; its parameters are options, too.")
    ],
    out: Annotated[
        Path | None, option("WORKLOAD", "The folder to write; a workload already there is replaced.")
    ] = None,
    set_: Annotated[
        list[str] | None, option("--set KEY=VALUE", "Set a parameter: --set users=200 is --users 200. May be repeated.")
    ] = None,
    seed: Annotated[int, option("", "Seed of all random draws.", min=0)] = 1,
    replication: Annotated[int, option("", "Which of the seed's independent replications to generate.", min=0)] = 0,
    checkins: Annotated[
        Path | None,
        option(
            "FILE",
            "Also write the raw check-ins, as input for prepare checkins (mobility only); gzip if it ends in .gz.",
        ),
    ] = None,
    dirt: Annotated[float, option("", "Share of the raw file's rows to make unusable.", min=0, max=0.49)] = 0.0,
) -> None:
    """Generate a synthetic workload, without a trace and without Spark."""
    from sim import plugins
    from sim.base.randomness import Streams
    from sim.workloads.format.folder import write_workload
    from sim.workloads.promises import WorkloadPromises
    from sim.workloads.synthetic.checkins import write_checkins

    if out is None and checkins is None:
        raise InputError("nothing to write: give --out WORKLOAD, --checkins FILE or both")
    if dirt and checkins is None:
        raise InputError("--dirt spoils rows of the raw file: give --checkins FILE, too")
    found = plugins.load("workload", kind)
    if checkins is not None and not hasattr(found, "checkins"):
        raise InputError(f"--checkins: a {kind} workload has no check-ins (allowed: mobility)")
    given = parameters(found.Parameters, [*settings(set_ or []), *options(context.args)])
    generator = plugins.make(WorkloadPromises, kind, given)
    streams = Streams(seed, replication)
    if checkins is not None:
        rows = write_checkins(checkins, generator.checkins(streams), dirt, streams.generator("workload.dirt"))
        unusable = sum(rows.values()) - rows["good"]
        print(f"{checkins}: {sum(rows.values()):,} check-ins, {unusable:,} of them unusable")
    if out is not None:
        workload = generator.generate(streams)
        write_workload(workload, out, lines=generator.lines(streams) if hasattr(found, "lines") else None)
        print(f"{out}: {_counted(workload)}")
        if clamped := workload.generator.get("clamped"):
            print(f"{out}: {clamped:,} subscriptions have fewer predicates than drawn: no more fields were available")


def describe(
    workload: Annotated[Path, argument("WORKLOAD", "A workload folder.")],
    json_: Annotated[bool, option("--json", "Print the whole summary as JSON.")] = False,
) -> None:
    """Summarise a workload.

    Counts, rates, distributions, span, and what became of a trace's rows.
    """
    from sim.workloads.format.folder import load_workload
    from sim.workloads.format.summary import summarise_workload

    summary = {"workload": str(workload), **summarise_workload(load_workload(workload))}
    if json_:
        print(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = terminal.console()
    for table in (_facts, _counts, _distributions, _classes, _movement, _rows):
        if shown := table(summary):
            title, shown.title = shown.title, None  # a title of the table's own would be broken at the table's width
            console.print(title, style="bold")
            console.print(shown)


def _counted(workload: Workload) -> str:
    return ", ".join(f"{count:,} {NAMES.get(name, name)}" for name, count in workload.counts.items() if count)


def _table(title: str, *columns: str, header: bool = True) -> Table:
    """A table whose first column is text and whose others are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, show_header=header)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number and header else "left")
    return table


def _facts(summary: dict[str, Any]) -> Table:
    from sim.base.units import format_duration

    span, generator = summary["span"], summary["generator"]
    table = _table(f"{summary['workload']}: a workload of kind {summary['kind']}", "", "", header=False)
    table.add_row("from", _date(span["origin"]))
    table.add_row("to", f"{_date(span['end'])} ({format_duration(summary['horizon'])})")
    if span["first_event"]:
        table.add_row("first and last event", f"{_date(span['first_event'])}, {_date(span['last_event'])}")
    if summary["cell"] is not None:
        table.add_row("topics", f"cells of {summary['cell']:g}° × {summary['cell']:g}°")
    if generator:
        seed = "" if summary["seed"] is None else f", seed {summary['seed']}"
        table.add_row("made by", f"{generator.get('name', 'unknown')}{seed}")
    for source in summary["sources"]:
        table.add_row("out of", f"{source['file']} ({source['bytes']:,} bytes)")
    table.add_row("SHA-256", summary["hash"])
    return table


def _counts(summary: dict[str, Any]) -> Table:
    counts, rates = summary["counts"], summary["rates"]
    rates_shown = {
        "users": "",
        "topics": "",
        "interests": "at the start",
        "subscription_events": f"{_number(rates['subscription_changes_per_user_hour'])} per user and hour",
        "publications": f"{_number(rates['publications_per_hour'])} per hour, "
        f"{_number(rates['publications_per_topic_day'])} per topic and day",
        "movements": f"{_number(rates.get('movements_per_user_day'))} per user and day" if counts["movements"] else "",
    }
    rates_shown |= {name: "" for name in ("sessions", "subscriptions", "fields", "values") if name in counts}
    if "deliveries" in counts:
        rates_shown["deliveries"] = f"{_number(rates['deliveries_per_publication'])} per publication"
    table = _table("What is in it", "", "count", "rate")
    table.columns[2].justify = "left"
    for name, rate in rates_shown.items():
        table.add_row(NAMES.get(name, name), f"{counts[name]:,}", rate)
    return table


def _distributions(summary: dict[str, Any]) -> Table:
    table = _table("How it is spread", "", *SHOWN.values())
    for name, words in DISTRIBUTIONS.items():
        if name in summary["distributions"]:
            table.add_row(words, *(_number(summary["distributions"][name][key]) for key in SHOWN))
    return table


def _classes(summary: dict[str, Any]) -> Table:
    table = _table("Users by their number of subscription changes", "changes", "users", "share")
    total = summary["counts"]["users"]
    for words, count in summary["users_by_changes"].items():
        table.add_row(words, f"{count:,}", _percent(count, total))
    return table


def _movement(summary: dict[str, Any]) -> Table | None:
    shares = summary["movement"]
    if shares is None:
        return None
    table = _table("How users move", "", "share")
    table.add_row(
        f"(user, cell) pairs of a single visit, of {shares['pairs']:,} pairs", _percent(shares["single_visits"])
    )
    table.add_row("stays of less than a day, until the user's next visit", _percent(shares["stays_under_day"]))
    table.add_row("stays of more than a week", _percent(shares["stays_over_week"]))
    return table


def _rows(summary: dict[str, Any]) -> Table | None:
    rows = summary["rows"]
    if rows is None:
        return None
    table = _table("Rows of the trace", "", "rows", "share")
    table.add_row("read", f"{rows['read']:,}", "")
    table.add_row("kept", f"{rows['kept']:,}", _percent(rows["kept"], rows["read"]))
    for reason, count in rows["quarantined"].items():
        table.add_row(f"quarantined: {reason.replace('_', ' ')}", f"{count:,}", _percent(count, rows["read"]))
    return table


def _date(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _number(value: float | None) -> str:
    """Whole numbers with separators, others with three significant digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def _percent(part: float | None, whole: float = 1) -> str:
    return "–" if part is None or not whole else f"{100 * part / whole:.1f} %"
