"""`brokersim generate` and `describe`: synthetic workloads, and a summary of any workload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

# Any: Typer's own Click and Rich, whose types it does not export.
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import sim
from sim.api.reference import described_parameters
from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.options import argument, option
from sim.cli.parameters import options, parameters, settings

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
SHOWN = {"mean": "mean", "minimum": "minimum", "median": "median", "p95": "95th percentile", "maximum": "maximum"}


class Generate(TyperCommand):
    """A command whose options, and their help, include the parameters of the given kind."""

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
                    for key, allowed, default, text in described_parameters(plugins.load("workload", kind).Parameters)
                ]
            )


def generate(
    context: typer.Context,
    kind: Annotated[
        str, argument("KIND", "content, mobility, poisson or another kind; its parameters are options too.")
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

    if out is None and checkins is None:
        raise InputError("nothing to write: give --out WORKLOAD, --checkins FILE or both")
    if dirt and checkins is None:
        raise InputError("--dirt spoils rows of the raw file: give --checkins FILE too")
    found = plugins.load("workload", kind)
    if checkins is not None and not hasattr(found, "checkins"):
        raise InputError(f"--checkins: a {kind} workload has no check-ins (allowed: mobility)")
    given = parameters(found.Parameters, [*settings(set_ or []), *options(context.args)])
    if checkins is not None:
        rows = sim.generate_checkins(checkins, given, seed=seed, replication=replication, dirt=dirt)
        unusable = sum(rows.values()) - rows["good"]
        print(f"{checkins}: {sum(rows.values()):,} check-ins, {unusable:,} of them unusable")
    if out is not None:
        workload = sim.generate(kind, given, out, seed=seed, replication=replication)
        counted = (f"{count:,} {NAMES.get(name, name)}" for name, count in workload.counts.items() if count)
        print(f"{out}: {', '.join(counted)}")
        if clamped := workload.generator.get("clamped"):
            print(f"{out}: {clamped:,} subscriptions have fewer predicates than drawn: no more fields were available")


def describe(
    workload: Annotated[Path, argument("WORKLOAD", "A workload folder.")],
    json_: Annotated[bool, option("--json", "Print the whole summary as JSON.")] = False,
) -> None:
    """Summarise a workload.

    Shows counts, rates, distributions, time span, and what became of a trace's rows.
    """
    summary = {"workload": str(workload), **sim.describe(workload)}
    if json_:
        print(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = terminal.console()
    for title, heads, rows in _tables(summary):
        console.print(title, style="bold")  # a table's own title would be wrapped at the table's width
        console.print(terminal.plain_table(heads, rows, ("", "changes", "rate")))


def _tables(summary: Raw) -> Iterator[tuple[str, Sequence[str], Iterable[Sequence[str]]]]:
    """The titles, the heads and the rows of a summary's tables."""
    users, spread, rows = summary["counts"]["users"], summary["distributions"], summary["rows"]
    yield f"{summary['workload']}: a workload of kind {summary['kind']}", (), _facts(summary)
    yield "Contents", ("", "count", "rate"), _counts(summary["counts"], summary["rates"])
    yield (
        "Distributions",
        ("", *SHOWN.values()),
        [
            (words, *(_number(spread[name][key]) for key in SHOWN))
            for name, words in DISTRIBUTIONS.items()
            if name in spread
        ],
    )
    yield (
        "Users by their number of subscription changes",
        ("changes", "users", "share"),
        [(words, f"{count:,}", _percent(count, users)) for words, count in summary["users_by_changes"].items()],
    )
    if shares := summary["movement"]:
        named = {
            f"(user, cell) pairs of a single visit, of {shares['pairs']:,} pairs": "single_visits",
            "stays of less than a day, until the user's next visit": "stays_under_day",
            "stays of more than a week": "stays_over_week",
        }
        yield "How users move", ("", "share"), [(words, _percent(shares[key])) for words, key in named.items()]
    if rows:
        left = {f"quarantined: {reason.replace('_', ' ')}": count for reason, count in rows["quarantined"].items()}
        left |= {f"left out: {reason}": count for reason, count in rows.get("left_out", {}).items()}
        shown = [
            (words, f"{count:,}", _percent(count, rows["read"]))
            for words, count in {"kept": rows["kept"], **left}.items()
        ]
        yield "Rows of the trace", ("", "rows", "share"), [("read", f"{rows['read']:,}", ""), *shown]


def _facts(summary: Raw) -> Iterator[tuple[str, str]]:
    from sim.base.units import format_duration

    span = summary["span"]
    yield "from", _date(span["origin"])
    yield "to", f"{_date(span['end'])} ({format_duration(summary['horizon'])})"
    if span["first_event"]:
        yield "first and last event", f"{_date(span['first_event'])}, {_date(span['last_event'])}"
    if summary["cell"] is not None:
        yield "topics", f"cells of {summary['cell']:g}° × {summary['cell']:g}°"
    if generator := summary["generator"]:
        seed = "" if summary["seed"] is None else f", seed {summary['seed']}"
        yield "generated by", f"{generator.get('name', 'unknown')}{seed}"
    for source in summary["sources"]:
        yield "prepared from", f"{source['file']} ({source['bytes']:,} bytes)"
    yield "SHA-256", summary["hash"]


def _counts(counts: dict[str, int], rates: dict[str, float | None]) -> Iterator[tuple[str, str, str]]:
    said = {
        "filters": "among the topics",
        "interests": "at the start",
        "subscription_events": f"{_number(rates['subscription_changes_per_user_hour'])} per user and hour",
        "publications": f"{_number(rates['publications_per_hour'])} per hour, "
        f"{_number(rates['publications_per_topic_day'])} per topic and day",
        "movements": f"{_number(rates.get('movements_per_user_day'))} per user and day" if counts["movements"] else "",
        "deliveries": f"{_number(rates.get('deliveries_per_publication'))} per publication",
    }
    always = ("users", "topics", "interests", "subscription_events", "publications", "movements")
    for name in (
        *always[:2],
        "filters",
        *always[2:],
        "sessions",
        "subscriptions",
        "fields",
        "values",
        "deliveries",
        "shares",
    ):
        if name in always or name in counts:
            yield NAMES.get(name, name), f"{counts[name]:,}", said.get(name, "")


def _date(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _number(value: float | None) -> str:
    """Whole numbers with separators, others with three significant digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def _percent(part: float | None, whole: float = 1) -> str:
    return "–" if part is None or not whole else f"{100 * part / whole:.1f} %"
