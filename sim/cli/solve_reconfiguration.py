"""`brokersim solve reconfiguration`: which broker to place on which node of a ring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import sim
from sim.api.problems import check_reconfiguration
from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.instances import few, print_solutions, read_instances
from sim.cli.options import argument, option


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
    it, weighted by the topic's publications. Topics are named by their position in topic_hashes, from 0. More keys, with their
    defaults: "rtt": null ([[…] between brokers], instead of hops), "count_rendezvous": false, "move_cost": {"constants": [1, 1, 1]}
    (null: moving is free), "seed": 1.
    """
    check_reconfiguration(policy)
    contents, listed = read_instances(source)
    solutions = []
    for i, content in enumerate(contents):
        try:
            solutions.append(sim.solve_reconfiguration(content, policy, (i,) if listed else ()))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    if json_:
        print_solutions(solutions, listed)
    else:
        _show(f"{source}: {policy}", solutions)


def _show(title: str, solutions: list[Raw]) -> None:
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
    console = terminal.console()
    console.print(title, style="bold")
    console.print(terminal.plain_table(columns, map(_row, solutions)))
    if len(solutions) == 1:
        for line in _notes(solutions[0]):
            console.print(line)


def _row(solution: Raw) -> Iterator[str]:
    before, after = solution["cost_before"], solution["cost_after"]
    yield from (f"{len(solution[key]):,}" for key in ("mapping", "trees"))
    yield from (_number(cost) for cost in (before, after))
    yield f"{100 * (after - before) / before:+.1f} %" if before else "–"
    yield from (_number(solution[key]) for key in ("external", "internal", "delay", "moved"))
    yield f"{len(solution['swaps']):,}"


def _number(value: int | float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or value >= 10_000 else f"{value:,.2f}"


def _notes(solution: Raw) -> Iterator[str]:
    """The mapping, and the swaps that led to it, if few."""
    mapping = solution["mapping"]
    yield f"Node ids of brokers 0 to {len(mapping) - 1}: {few(mapping, len(mapping))}"
    if swaps := solution["swaps"]:
        listed = (f"{broker} with {partner} ({_number(cost)})" for broker, partner, cost in swaps)
        yield f"Swaps of brokers, with the cost after each: {few(listed, len(swaps))}"
