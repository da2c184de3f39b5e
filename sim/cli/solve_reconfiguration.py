"""`brokersim solve reconfiguration`: which broker to place on which node of a ring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from sim.base.errors import InputError, unknown
from sim.cli import terminal
from sim.cli.instances import print_solutions, read_instances
from sim.cli.options import argument, option

SHOWN = 40


def reconfiguration(
    source: Annotated[
        Path,
        argument(
            "FILE",
            'JSON, {"bits", "node_ids", "topic_hashes", "subscriptions": [[topic, …] per broker], "publications": [per topic], '
            '"mapping": [node id per broker], "delay_weight"} or a list of such objects.',
        ),
    ],
    policy: Annotated[
        str,
        option(
            "NAME", "A reconfiguration policy listed by brokersim policies, or none to evaluate the mapping as it is."
        ),
    ],
    json_: Annotated[bool, option("--json", "Print mapping, costs, swaps and trees as JSON.")] = False,
) -> None:
    """Find places for brokers on a Chord ring, with less overhead and delay.

    Costs are those of DYNATOPS: messages to brokers that only relay a topic, and delay_weight for each hop to one that wants
    it, weighted by the topic's publications. Topics are named by their place in topic_hashes, from 0. More keys, with their
    defaults: "rtt": null ([[…] between brokers], in place of hops), "count_rendezvous": false, "move_cost": {"constants": [1, 1, 1]}
    (null: moving is free), "seed": 1.
    """
    from sim.cli.reconfiguration_problems import read_instance

    decide = _policy(policy)
    contents, listed = read_instances(source)
    solutions = []
    for i, content in enumerate(contents):
        place = (i,) if listed else ()
        try:
            instance = read_instance(content, place)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        problem = instance.problem()
        try:
            solutions.append(instance.solution(problem, decide(problem)))
        except InputError as error:
            raise InputError(f"{source}: {f'[{i}]: ' if listed else ''}{error}") from None
    if json_:
        print_solutions(solutions, listed)
    else:
        _show(f"{source}: {policy}", solutions)


def _policy(name: str) -> Any:
    """What decides: a function from a problem to a reconfiguration."""
    from sim import plugins
    from sim.policies.promises import ReconfigurationPromises
    from sim.policies.reconfiguration.problem import Reconfiguration

    if name == "none":
        return lambda problem: Reconfiguration(problem.node_of)
    if name not in (names := plugins.names("reconfiguration")):
        raise InputError(f"--policy: {unknown('reconfiguration policy', name, [*names, 'none'])}")
    parameters = plugins.load("reconfiguration", name).Parameters()
    return plugins.make(ReconfigurationPromises, name, parameters).reconfigure


def _show(title: str, solutions: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    columns = [
        "brokers",
        "topics",
        "cost\nbefore",
        "cost\nafter",
        "change",
        "external",
        "internal",
        "delay",
        "moved",
        "swaps",
    ]
    for column in columns:
        table.add_column(column, justify="right", vertical="bottom")
    for solution in solutions:
        before, after = solution["cost_before"], solution["cost_after"]
        table.add_row(
            f"{len(solution['mapping']):,}",
            f"{len(solution['trees']):,}",
            *(_number(cost) for cost in (before, after)),
            f"{100 * (after - before) / before:+.1f} %" if before else "–",
            *(_number(solution[key]) for key in ("external", "internal", "delay", "moved")),
            f"{len(solution['swaps']):,}",
        )
    console = terminal.console()
    console.print(title, style="bold")
    console.print(table)
    if len(solutions) == 1:
        for line in _notes(solutions[0]):
            console.print(line)


def _number(value: int | float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or value >= 10_000 else f"{value:,.2f}"


def _notes(solution: dict[str, Any]) -> Iterator[str]:
    """The mapping, and the swaps that led to it, if few."""
    yield f"Node ids of brokers 0 to {len(solution['mapping']) - 1}: {_few(map(str, solution['mapping']), len(solution['mapping']))}"
    if swaps := solution["swaps"]:
        listed = (f"{broker} with {partner} ({_number(cost)})" for broker, partner, cost in swaps)
        yield f"Swaps of brokers, with the cost after each: {_few(listed, len(swaps))}"


def _few(texts: Iterator[str], count: int) -> str:
    shown = ", ".join(text for text, _ in zip(texts, range(SHOWN), strict=False))
    return shown + (f", … and {count - SHOWN:,} more (all of them: --json)" if count > SHOWN else "")
