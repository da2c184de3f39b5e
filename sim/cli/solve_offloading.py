"""`brokersim solve offloading`: which topics a back end keeps, how many subscribers this satisfies, and the value of capacity."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import sim
from sim.api.problems import check_offloading
from sim.api.trace_options import progress_lines
from sim.base.errors import InputError
from sim.base.escaping import csv_cell
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.instances import few, print_solutions, read_instances
from sim.cli.options import Quiet, argument, option

if TYPE_CHECKING:
    from rich.table import Table

STEPS = 20


def offloading(
    source: Annotated[
        Path,
        argument(
            "FILE|WORKLOAD",
            'JSON, {"interests": [[topic, …] per subscriber], "event_rate": [per topic], "capacity": number or "10%", '
            '"tau": number or [per subscriber]} or a list of such objects; or a workload\'s folder.',
        ),
    ],
    policy: Annotated[
        str, option("NAME", "An offloading policy listed by brokersim policies, or none to keep all topics.")
    ],
    capacity: Annotated[
        str | None,
        option(
            "X",
            "Maximum cost of the kept topics: a number, or a share of all topics' cost, such as 10%; overrides the file's.",
        ),
    ] = None,
    tau: Annotated[
        str | None, option("X", "Events per period that satisfy a subscriber; overrides the file's.")
    ] = None,
    seed: Annotated[
        int | None, option("", "Seed of random draws; overrides the file's.", min=0, show_default="1")
    ] = None,
    bounds: Annotated[
        bool, option("--bounds", "Also compute upper bounds, which no choice of topics exceeds.")
    ] = False,
    curve: Annotated[
        bool, option("--curve", "Show the objective at each capacity from 0 up to the given one.")
    ] = False,
    steps: Annotated[
        int | None, option("", "Number of equal steps of the curve.", min=1, max=10_000, show_default=str(STEPS))
    ] = None,
    out: Annotated[Path | None, option("FILE.csv", "Also write the curve as a table.")] = None,
    plot: Annotated[Path | None, option("FILE.svg", "Also draw the curve, as .svg, .png, .pdf or .html.")] = None,
    names: Annotated[bool, option("--names", "With --json: also print the names of a workload's topics.")] = False,
    json_: Annotated[bool, option("--json", "Print the topics and their values as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Choose the topics that a back end of limited capacity keeps.

    A subscriber is satisfied by tau events per period, or by all events of its topics if these are fewer. Topics are named by their
    position in event_rate, from 0. More keys, with their defaults: "cost": null ([per topic], instead of 1 per notification),
    "seed": 1. For a workload, interests are those at its start, and rates are per period of the workload.
    """
    _check(source, steps, out, plot, curve, names, json_)
    objective = check_offloading(policy, capacity, tau)
    contents, listed = ([source], False) if source.is_dir() else read_instances(source)
    if len(contents) != 1 and (one := "--out" if out else "--plot" if plot else None):
        raise InputError(f"{one} is for one curve: {source} has a list of {len(contents)}")
    solutions = []
    points = (steps or STEPS) if curve else 0
    with progress_lines(quiet) as tell:
        for i, content in enumerate(contents):
            place = (i,) if listed else ()
            try:
                solutions.append(
                    sim.solve_offloading(
                        content, policy, capacity, tau, seed, bounds=bounds, steps=points, place=place, tell=tell
                    )
                )
            except InputError as error:
                raise InputError(str(error) if source.is_dir() else f"{source}: {error}") from None
    if names:
        solutions = [{**solution, "names": _names(source, solution["topics"])} for solution in solutions]
    if json_:
        print_solutions(solutions, listed)
    else:
        _show(source, policy, objective, solutions, listed)
    # written last, so that a full disk does not lose the printed results
    if out is not None:
        _write_table(out, solutions[0]["curve"])
    if plot is not None:
        from analysis.charts import save_figure
        from analysis.offloading import capacity_curve

        save_figure(capacity_curve(solutions[0]["curve"], policy, objective), plot)


def _check(
    source: Path, steps: int | None, out: Path | None, plot: Path | None, curve: bool, names: bool, json_: bool
) -> None:
    """Reject options that do not go together, before anything takes long."""
    for name, value in (("--steps", steps), ("--out", out), ("--plot", plot)):
        if value is not None and not curve:
            raise InputError(f"{name} is for the curve (give --curve too)")
    if names and not (json_ and source.is_dir()):
        raise InputError("--names is for the JSON of a workload (give --json and a workload's folder)")
    if out is not None and out.suffix != ".csv":
        raise InputError(f"--out {out}: the curve is written as .csv (as JSON: --json)")
    if plot is not None:
        from analysis.charts import picture

        picture(plot)


def _names(folder: Path, topics: Sequence[int]) -> list[str]:
    from sim.workloads.format.demand import topic_names

    known = topic_names(folder)
    return [known[topic].as_py() for topic in topics]


def _write_table(path: Path, points: Sequence[Raw]) -> None:
    """The curve as CSV; the bound is the lowest of all, and empty if none was requested."""
    from sim.files.atomic import whole_file

    columns = [key for key in points[0] if key != "upper_bounds"]
    with whole_file(path) as unfinished:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(map(csv_cell, [*columns, "upper_bound"]))
            rows.writerows(map(csv_cell, [*(point[column] for column in columns), _bound(point)]) for point in points)


def _bound(found: Raw) -> float | None:
    """The lowest of the upper bounds."""
    return min(found["upper_bounds"].values(), default=None)


def _show(source: Path, policy: str, objective: str, solutions: list[Raw], listed: bool) -> None:
    from sim.base.units import format_duration
    from sim.workloads.format.manifest import read_manifest

    console = terminal.console()
    workload = read_manifest(source)[0] if source.is_dir() else None
    per = f", per {format_duration(workload['period'])}" if workload else ""
    if not any("curve" in solution for solution in solutions):
        console.print(f"{source}: {policy}{per}", style="bold")
        console.print(_table(solutions, objective))
    for i, solution in enumerate(solutions):
        if "curve" in solution:
            console.print(f"{source}{f' [{i}]' if listed else ''}: {policy}{per}, by capacity", style="bold")
            console.print(_table(solution["curve"], objective, curve=True))
    if not listed:
        for line in _notes(solutions[0], objective):
            console.print(line)
    if workload and (changes := workload["counts"]["subscription_events"]):
        console.print(f"Interests are those at the start; {changes:,} later changes of subscriptions are ignored.")


def _table(solutions: Sequence[Raw], objective: str, curve: bool = False) -> Table:
    """A row for each decision; for a curve, only with values that differ from the previous step."""
    mean = objective == "satisfied"
    bounded = any(solution["upper_bounds"] for solution in solutions)
    columns = {
        "capacity": True,
        "used": not curve,
        "topics\nkept": True,
        "satisfied": True,
        "of all\nin need": True,
        "satis-\nfaction" if mean else "sum of\nsatis-\nfaction": True,
        "gained": curve,
        "at most": bounded,
        "ratio": bounded,
    }
    rows = []
    for before, solution in zip([None, *solutions], solutions, strict=False):
        value, bound, satisfaction = solution["value"], _bound(solution), solution["satisfaction"]
        row = [
            _number(solution["capacity"]),
            _share(solution["cost"], solution["capacity"]),
            f"{solution['kept'] if curve else len(solution['topics']):,}",
            f"{solution['satisfied']:,}",
            _share(solution["satisfied"], solution["subscribers"] - solution["free"]),
            "–" if satisfaction is None else f"{satisfaction:.4f}" if mean else _number(value),
            "" if before is None else _number(value - before["value"]),
            "–" if bound is None else _number(bound),
            f"{value / bound:.4f}" if bound else "–",
        ]
        rows.append([text for text, shown in zip(row, columns.values(), strict=True) if shown])
    return terminal.plain_table([column for column, shown in columns.items() if shown], rows)


def _notes(solution: Raw, objective: str) -> Iterator[str]:
    """Results that are not in the table: subscribers that need nothing, the bounds, and the topics, if few."""
    if free := solution["free"]:
        yield f"{free:,} of {solution['subscribers']:,} subscribers need nothing; they are not counted above."
    if solution["cost"] > solution["capacity"]:
        yield f"Over capacity: these topics cost {_number(solution['cost'])}, and the policy ignores the capacity."
    if solution["upper_bounds"]:
        what = {"satisfied": "satisfied subscribers", "satisfaction": "the sum of satisfaction"}[objective]
        bounds = ", ".join(f"{name} {_number(bound)}" for name, bound in solution["upper_bounds"].items())
        yield f"Upper bounds of {what}: {bounds}."
    if topics := solution["topics"]:
        yield f"Topics, in the order picked: {few(topics, len(topics))}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.2f}".removesuffix(".00")


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
