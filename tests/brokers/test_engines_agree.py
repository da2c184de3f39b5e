"""The compiled data plane comes to the same bytes as the plane that makes every hop an event, in every metric and every table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from generated import KINDS, Generated, difference, generated, network, shrunk, watched, written
from test_folded import with_plane

from sim.base.errors import ScenarioError
from sim.brokers.data.events import EventEngine
from sim.brokers.network import NetworkSetting
from sim.scenario.reader import load_scenario
from sim.simulation import build, prepare_workload

CASES, MORE = 150, 1500
BARRIERS_AT_ONCE = 5108  # both of them end with a publication that is lost on its way up
HOURS = 2 * 3600.0
HARD = (
    "queues that fill",
    "control messages that waited",
    "tree changes in flight",
    "barriers",
    "offloading",
    "floods",
    "content",
)
"""What at least a third of all cases each have, as their runs show."""

there = pytest.mark.skipif(
    "compiled" not in get_args(get_type_hints(NetworkSetting)["plane"]), reason="no data plane is compiled yet"
)


def differs(made: Generated, **setting: bool) -> str | None:
    """What the compiled run comes to that the other does not; None where all is the same. Raises ScenarioError where it is refused."""
    compiled = network(made, "compiled", **setting)
    assert not isinstance(compiled.engine, EventEngine)
    events = network(made, "events", **setting)
    events.run()
    try:
        compiled.run()
    except Exception as error:  # a fault of the one plane is a difference, and is shrunk like any other
        return f"{type(error).__name__}: {error}"
    return difference(events, compiled)


def assert_same_bytes(made: Generated, **setting: bool) -> None:
    try:
        found = differs(made, **setting)
    except ScenarioError as error:
        pytest.skip(str(error))
    if found is not None:
        smallest = shrunk(made, lambda each: differs(each, **setting) is not None)
        pytest.fail(f"{differs(smallest, **setting)} (at first {found})\n{written(smallest)}", pytrace=False)


@pytest.mark.parametrize(
    ("first", "cases"), [(0, CASES), pytest.param(CASES, MORE, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_third_of_the_cases_each_have_what_is_hard(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        tally.update(watched(network(generated(seed), "events")).keys())
    assert min(tally[what] for what in HARD) >= cases / 3, tally
    assert min(tally["publications that made room"], tally["hop limits"]) >= cases / 20, tally
    assert tally["lost to users"] >= cases / 5, tally


@there
@pytest.mark.parametrize("seed", [*range(CASES), BARRIERS_AT_ONCE])
def test_all_tables_and_metrics_are_the_same_bytes(seed: int) -> None:
    assert_same_bytes(generated(seed))


@there
@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES, CASES + MORE))
def test_all_tables_and_metrics_are_the_same_bytes_in_many_cases(seed: int) -> None:
    assert_same_bytes(generated(seed))


@there
@pytest.mark.parametrize("seed", range(0, CASES, 5))
def test_traces_are_the_same_hop_by_hop(seed: int) -> None:
    assert_same_bytes(generated(seed), trace=1.0)


@there
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_taken_or_refused_whatever_else_a_network_has(kind: str) -> None:
    """So that the cases that are skipped above are all of a kind, and no feature of the others goes untested."""
    refused: Counter[str] = Counter()
    for seed in range(CASES):
        try:
            network(generated(seed, kind), "compiled")
        except ScenarioError as error:
            refused[str(error)] += 1
    assert sum(refused.values()) in (0, CASES), refused
    if refused:
        pytest.skip(f"{CASES} cases refused: {', '.join(refused)}")


SHIPPED = Path(__file__).parents[2] / "scenarios"
LOAD = (
    "brokers.service={ kind = 'exponential', time = '20ms', send = '2ms', send_client = '1ms' }",
    "brokers.queue=20",
)


@pytest.mark.long
@pytest.mark.parametrize("load", [(), LOAD], ids=["as it is", "loaded"])
@pytest.mark.parametrize("name", sorted(str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.toml")))
def test_shipped_scenarios_come_to_the_same_bytes(name: str, load: tuple[str, ...]) -> None:
    """The first and the last point, up to four variants, for two hours."""
    experiment = load_scenario(SHIPPED / name, load)
    for point in {id(each): each for each in (experiment.points[0], experiment.points[-1])}.values():
        for variant, scenario in list(point.variants.items())[:4]:
            if scenario.workload.kind == "prepared":
                pytest.skip("needs a prepared workload")
            short = scenario.model_copy(update={"horizon": min(scenario.horizon or HOURS, HOURS), "warm_up": 0.0})
            workload = prepare_workload(short, 0, None)
            if load and workload.content is not None:
                pytest.skip("content for whose copies brokers take time is left to events")
            networks = []
            for plane in ("events", "compiled"):
                networks.append(build(with_plane(short, plane), workload, 0))
                networks[-1].run()
            assert difference(*networks) is None, (point.label, variant)
