"""`brokersim solve offloading`: which topics a back end keeps, how many subscribers this satisfies, and the value of capacity."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sim.base.errors import InputError
from sim.base.escaping import csv_cell
from sim.base.naming import Raw, RawValue
from sim.cli import terminal
from sim.cli.instances import few, policy_of, print_solutions, read_instances
from sim.cli.options import Quiet, argument, option
from sim.cli.prepare_options import progress_lines

if TYPE_CHECKING:
    from rich.table import Table

    from sim.base.naming import Keys
    from sim.policies.offloading.problem import OffloadingPolicy, OffloadingProblem

    Tell = Callable[[str, str], None]

STEPS = 20
LONG = 1_000_000
"""The number of interests from which on progress is shown."""


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
    from sim.cli.offloading_problems import KeepAll
    from sim.policies.promises import OffloadingPromises

    _check(source, steps, out, plot, curve, names, json_)
    chosen: OffloadingPolicy = policy_of(OffloadingPromises, policy) or KeepAll()
    given = _given(capacity, tau, seed)
    contents, listed = ([None], False) if source.is_dir() else read_instances(source)
    if len(contents) != 1 and (one := "--out" if out else "--plot" if plot else None):
        raise InputError(f"{one} is for one curve: {source} has a list of {len(contents)}")
    solutions = []
    with progress_lines(quiet) as tell:
        for i, content in enumerate(contents):
            problem = _problem(source, content, given, (i,) if listed else (), tell)
            say = tell if len(problem.indices) >= LONG else lambda step, detail: None
            try:
                solutions.append(_solve(chosen, problem, bounds, (steps or STEPS) if curve else 0, say))
            except InputError as error:
                raise InputError(f"{source}: {f'[{i}]: ' if listed else ''}{error}") from None
    if names:
        solutions = [{**solution, "names": _names(source, solution["topics"])} for solution in solutions]
    if json_:
        print_solutions(solutions, listed)
    else:
        _show(source, policy, chosen.objective, solutions, listed)
    # written last, so that a full disk does not lose the printed results
    if out is not None:
        _write_table(out, solutions[0]["curve"])
    if plot is not None:
        from analysis.charts import save_figure
        from analysis.offloading import capacity_curve

        save_figure(capacity_curve(solutions[0]["curve"], policy, chosen.objective), plot)


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


def _given(capacity: str | None, tau: str | None, seed: int | None) -> Raw:
    """The values given on the command line instead of in the file, by the file's keys."""
    from sim.policies.offloading.process import parse_capacity

    given: Raw = {}
    if capacity is not None:
        try:
            given["capacity"] = parse_capacity(capacity)
        except ValueError as error:
            raise InputError(f"--capacity: {error}") from None
    if tau is not None:
        try:
            given["tau"] = float(tau)
        except ValueError:
            given["tau"] = -1.0
        if not 0 <= given["tau"] <= 2**53:
            raise InputError(f"--tau: expected a number of events per period (0 or more), found {tau!r}")
    return given if seed is None else {**given, "seed": seed}


def _problem(source: Path, content: RawValue, given: Raw, place: Keys, tell: Tell) -> OffloadingProblem:
    """The problem of a workload's folder, or of an object in a file."""
    from sim.cli.offloading_problems import read_problem

    if source.is_dir():
        return _of_folder(source, given, tell)
    try:
        return read_problem({**content, **given} if isinstance(content, dict) else content, place)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _of_folder(source: Path, given: Raw, tell: Tell) -> OffloadingProblem:
    from sim.base.memory import need
    from sim.cli.offloading_problems import bytes_needed
    from sim.policies.offloading.process import make_problem
    from sim.workloads.format.demand import load_demand

    for key in ("capacity", "tau"):
        if key not in given:
            raise InputError(f"--{key} is needed: a workload does not contain it")

    def fits(users: int, topics: int, interests: int) -> None:
        what = f"{interests:,} interests of {users:,} users in {topics:,} topics"
        need(bytes_needed(users, topics, interests), f"{source}: {what}")
        if interests >= LONG:
            tell(f"reading {what}", "")

    demand = load_demand(source, fits)
    if len(demand.indices) and not demand.event_rate.any():
        raise InputError(f"{source}: its topics have no event rates (all are 0), so there is nothing to deliver")
    return make_problem(demand.indptr, demand.indices, demand.event_rate, **given)


def _solve(policy: OffloadingPolicy, problem: OffloadingProblem, bounds: bool, steps: int, tell: Tell) -> Raw:
    """The decision as JSON; with `steps` also those at smaller capacities, without their topics."""
    from sim.cli.offloading_problems import solution
    from sim.policies.offloading.curve import decisions

    tell("deciding", "")
    started = time.process_time()
    decision = policy.decide(problem)
    seconds = time.process_time() - started
    if bounds:
        tell("computing upper bounds", "")
    found = solution(problem, decision, policy.objective, bounds)
    if not steps:
        return {**found, "seconds": seconds}
    points = [_point(found)]
    for smaller, taken in decisions(policy, problem, steps):
        tell(f"capacity {_number(smaller.capacity)}: {len(points)} of {steps}", "")
        points.append(_point(solution(smaller, taken, policy.objective, bounds)))
    return {**found, "seconds": seconds, "curve": points[::-1]}


def _point(found: Raw) -> Raw:
    """A decision as a point of a curve: the number of topics replaces the topics."""
    rest = {key: value for key, value in found.items() if key not in ("topics", "capacity")}
    return {"capacity": found["capacity"], "kept": len(found["topics"]), **rest}


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
