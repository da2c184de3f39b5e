"""Schedules of faults against an oracle, random times, traces, and what a plug-in refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import plugins
from sim.base.errors import InputError, ScenarioError
from sim.base.validation import validate
from sim.workloads.faults.fault import (
    BrokenLink,
    DeadManager,
    Drain,
    Fault,
    FaultSetting,
    Losses,
    Outage,
    Partition,
    Slowdown,
)
from sim.workloads.faults.schedule import (
    CRASH,
    CUT,
    DRAIN,
    LOSS,
    MANAGER_BACK,
    MANAGER_DEAD,
    MEND,
    RESTART,
    SLOW_DOWN,
    FaultSchedule,
    impossible,
    resolve_faults,
)

BROKERS, HORIZON, LOSS_ANYWAY = 4, 10.0, 0.2
SETTING = FaultSetting(("oslo", "paris", "rome", "7"), ("north", "south", "south", "south"), HORIZON, 5)


def faults(kind: str, setting: FaultSetting = SETTING, **parameters: Any) -> list[Fault]:
    found = plugins.load("faults", kind)
    return list(found(validate(found.Parameters, parameters)).faults(setting))


# -- the schedule, beside an oracle that asks of each time what lasts then


def spans() -> st.SearchStrategy[tuple[float, float]]:
    """Times that meet each other, and the horizon, often; some are for good."""
    start = st.integers(0, 11).map(float)
    lasts = st.one_of(st.just(math.inf), st.integers(1, 6).map(float))
    return st.tuples(start, lasts).map(lambda span: (span[0], span[0] + span[1]))


def lasting(kind: Any, *of: st.SearchStrategy[Any]) -> st.SearchStrategy[Fault]:
    return st.builds(lambda span, values: kind(*span, *values), spans(), st.tuples(*of))


BROKER = st.integers(0, BROKERS - 1)
LINK = st.lists(BROKER, min_size=2, max_size=2, unique=True)
SIDE = st.frozensets(BROKER, min_size=1, max_size=BROKERS - 1)
FAULTS = st.lists(
    st.one_of(
        lasting(Outage, BROKER),
        st.builds(lambda span, link: BrokenLink(*span, *link), spans(), LINK),
        lasting(Partition, SIDE),
        lasting(Losses, st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        lasting(Slowdown, BROKER, st.sampled_from([0.5, 2.0, 3.0])),
        lasting(DeadManager),
    ),
    max_size=12,
)


class State:
    """What has failed, as the entries of a schedule so far say it."""

    def __init__(self, sides: np.ndarray) -> None:
        self.sides = sides
        self.down: set[int] = set()
        self.links: set[tuple[int, int]] = set()
        self.partitions: set[int] = set()
        self.loss = LOSS_ANYWAY
        self.factor = [1.0] * BROKERS
        self.manager_dead = False

    def take(self, action: int, target: int, other: int, value: float) -> None:
        """An entry, which has to change something."""
        if action in (CRASH, RESTART):
            assert (target in self.down) == (action == RESTART)
            self.down ^= {target}
        elif action in (MANAGER_DEAD, MANAGER_BACK):
            assert (target, other) == (-1, -1)
            assert self.manager_dead == (action == MANAGER_BACK)
            self.manager_dead = not self.manager_dead
        elif action == LOSS:
            assert (target, other) == (-1, -1)
            assert value != self.loss
            self.loss = value
        elif action == SLOW_DOWN:
            assert value != self.factor[target]
            self.factor[target] = value
        elif other < 0:
            assert (target in self.partitions) == (action == MEND)
            self.partitions ^= {target}
        else:
            assert target < other
            assert ((target, other) in self.links) == (action == MEND)
            self.links ^= {(target, other)}

    def cut(self, one: int, other: int) -> bool:
        parted = any(self.sides[partition, one] != self.sides[partition, other] for partition in self.partitions)
        return parted or (min(one, other), max(one, other)) in self.links


def cuts(fault: Fault, one: int, other: int) -> bool:
    if isinstance(fault, BrokenLink):
        return {fault.one, fault.other} == {one, other}
    return isinstance(fault, Partition) and (one in fault.side) != (other in fault.side)


def check(state: State, lasts: Sequence[Fault]) -> None:
    assert state.down == {fault.broker for fault in lasts if isinstance(fault, Outage)}
    for one in range(BROKERS):
        for other in range(BROKERS):
            assert state.cut(one, other) == (one != other and any(cuts(fault, one, other) for fault in lasts))
        factors = [fault.factor for fault in lasts if isinstance(fault, Slowdown) and fault.broker == one]
        assert state.factor[one] == math.prod(factors)
    assert state.manager_dead == any(isinstance(fault, DeadManager) for fault in lasts)
    assert state.loss == max([LOSS_ANYWAY, *(fault.probability for fault in lasts if isinstance(fault, Losses))])


def rows(schedule: FaultSchedule) -> list[tuple[float, int, int, int, float]]:
    columns = schedule.time, schedule.action, schedule.target, schedule.other, schedule.value
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(FAULTS)
def test_a_schedule_comes_to_what_lasts_at_each_time(some: list[Fault]) -> None:
    schedule = resolve_faults(some, BROKERS, HORIZON, LOSS_ANYWAY)
    entries = rows(schedule)
    assert [entry[:4] for entry in entries] == sorted({entry[:4] for entry in entries})
    assert all(0 <= time < HORIZON for time, *_ in entries)
    assert schedule.strikes_brokers == any(entry[1] not in (MANAGER_DEAD, MANAGER_BACK) for entry in entries)
    state = State(schedule.sides)
    for half in range(int(2 * HORIZON)):
        now = half / 2
        while entries and entries[0][0] <= now:
            state.take(*entries.pop(0)[1:])
        check(state, [fault for fault in some if fault.start <= now < fault.end])
        assert state.manager_dead == any(start <= now < end for start, end in schedule.manager_dead)
    assert entries == []


@given(FAULTS, st.randoms(use_true_random=False))
def test_the_order_in_which_faults_are_listed_makes_no_difference(some: list[Fault], random: Any) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    one, other = (resolve_faults(listed, BROKERS, HORIZON, LOSS_ANYWAY) for listed in (some, shuffled))
    assert rows(one) == rows(other)
    assert one.sides.tolist() == other.sides.tolist()


def test_drains_are_known_by_their_beginnings() -> None:
    some = faults("drain", brokers=["rome", 0, 2], at=[5, 3], rate=2, **{"for": 4})
    assert some[1] == Drain(3.0, math.inf, (2, 0), 2.0, 30.0, 4.0)
    schedule = resolve_faults([*some, Outage(1.0, 2.0, 3)], BROKERS, HORIZON)
    assert rows(schedule)[2:] == [(3.0, DRAIN, 0, -1, 0.0), (5.0, DRAIN, 1, -1, 0.0)]
    assert schedule.drains == (some[1], some[0])
    table = schedule.table([(3.0, "drain", 2, 7.0), (1.5, "up", 1, 0.0)])
    assert table["what"].to_pylist() == ["crash", "up", "restart", "drain"]
    assert table["brokers"].to_pylist() == [[3], [1], [3], [2]]


def test_a_schedule_is_arrays_of_fixed_types_that_nobody_changes() -> None:
    for some in ([], faults("crash", brokers=[0, "rome"], at=3), faults("partition", regions="north", at=[1, 2])):
        schedule = resolve_faults(some, BROKERS, HORIZON)
        columns = schedule.time, schedule.action, schedule.target, schedule.other, schedule.value, schedule.sides
        assert [column.dtype.str for column in columns] == ["<f8", "|i1", "<i4", "<i4", "<f8", "|b1"]
        assert not any(column.flags.writeable for column in columns)
        assert len(schedule) == len(schedule.time)
    assert schedule.sides.tolist() == [[False, True, True, True]]
    assert schedule.has(CUT)
    assert not schedule.has(CRASH)


def test_actions_at_one_time_have_their_order() -> None:
    assert list(range(6)) == [RESTART, MEND, LOSS, SLOW_DOWN, CRASH, CUT]
    some = [
        Outage(0.0, 5.0, 1),
        Outage(5.0, 6.0, 0),
        BrokenLink(1.0, 5.0, 2, 0),
        BrokenLink(5.0, 7.0, 1, 2),
        Losses(5.0, math.inf, 0.5),
        Slowdown(5.0, math.inf, 3, 2.0),
    ]
    at_five = [row[1:4] for row in rows(resolve_faults(some, BROKERS, HORIZON)) if row[0] == 5.0]
    assert at_five == [(RESTART, 1, -1), (MEND, 0, 2), (LOSS, -1, -1), (SLOW_DOWN, 3, -1), (CRASH, 0, -1), (CUT, 1, 2)]


def test_listed_outages_of_one_broker_must_not_overlap_but_may_meet() -> None:
    some = faults("crash", brokers="rome", at=[1, 3], **{"for": 2})
    assert [row[:2] for row in rows(resolve_faults(some, BROKERS, HORIZON))] == [(1.0, CRASH), (5.0, RESTART)]
    again, drawn = faults("crash", brokers=2, at=4), [Outage(4.0, 9.0, 2)]
    wrong = (
        "broker rome is to crash at 4 s, but is down from 3 s until 5 s by faults[0] "
        "(allowed: outages of one broker that do not overlap)"
    )
    assert impossible([some, drawn, again], SETTING.names) == (2, wrong)
    assert impossible([some, drawn], SETTING.names) is None


# -- the kinds


def test_times_may_be_listed_and_repeated() -> None:
    some = faults("crash", brokers=1, at=["1s", 2.5], every="4s", **{"for": "1s"})
    assert [(fault.start, fault.end) for fault in some] == [(1, 2), (5, 6), (9, 10), (2.5, 3.5), (6.5, 7.5)]
    assert [fault.end for fault in faults("crash", brokers=1, at=0)] == [math.inf]


def test_brokers_are_named_by_name_or_number() -> None:
    assert [SETTING.broker(reference) for reference in ("rome", 2, "2", "7", 0)] == [2, 2, 2, 3, 0]
    assert faults("cut", links=[["rome", 0]], at=1, **{"for": 2}) == [BrokenLink(1.0, 3.0, 2, 0)]
    assert faults("slow", brokers="7", factor=4, at=1) == [Slowdown(1.0, math.inf, 3, 4.0)]
    assert faults("loss", probability=0.25, at=1) == [Losses(1.0, math.inf, 0.25)]


def test_a_partition_is_of_regions_or_of_brokers() -> None:
    south = Partition(1.0, math.inf, frozenset({1, 2, 3}))
    assert faults("partition", regions="south", at=1) == [south]
    assert faults("partition", brokers=["paris", 2, "7"], at=1) == [south]
    one = resolve_faults([south, *faults("partition", regions=["north"], at=1)], BROKERS, HORIZON)
    assert one.sides.tolist() == [[False, True, True, True]]


def written(folder: Path, text: str) -> str:
    path = folder / "outages.csv"
    path.write_text(text)
    return str(path)


def test_a_trace_lists_outages_and_cut_links(tmp_path: Path) -> None:
    text = "broker,down_from,up_at,other\nrome,1,2.5,\n0,3,,\n7,4,5,oslo\nparis,10,11,\n"
    assert faults("trace", file=written(tmp_path, text)) == [
        Outage(1.0, 2.5, 2, listed=True),
        Outage(3.0, math.inf, 0, listed=True),
        BrokenLink(4.0, 5.0, 3, 0),
    ]
    assert faults("trace", file=written(tmp_path, "broker,down_from\n1,9\n")) == [Outage(9.0, math.inf, 1, listed=True)]


UP = {"mean": "1s"}
DOWN = {"mean": "500ms"}


@pytest.mark.parametrize(
    ("kind", "parameters", "wrong"),
    [
        ("crash", {"brokers": 4, "at": 1}, r"no such broker 4 \(allowed: 0 to 3, or a name\)"),
        ("crash", {"brokers": -1, "at": 1}, "no such broker -1"),
        ("crash", {"brokers": "pari", "at": 1}, r"unknown broker 'pari', did you mean 'paris'\? \(allowed: 7, oslo"),
        ("crash", {"brokers": 1, "at": [1, "12s"]}, r"at: expected times before the horizon \(10 s\), found 12 s"),
        (
            "crash",
            {"brokers": 1, "at": 1, "every": "1us", "for": "1us"},
            "every: expected 9 us or more, so 1,000,000 times at most",
        ),
        (
            "cut",
            {"links": [["rome", 2]], "at": 1},
            r"no broker has a link to itself \(found 'rome' and 2, allowed: two",
        ),
        ("partition", {"regions": "sout", "at": 1}, r"unknown region 'sout', did you mean 'south'\? \(allowed: north"),
        ("partition", {"brokers": [0, 1, 2, 3], "at": 1}, "all brokers would be cut off, from none"),
        (
            "lifetimes",
            {"up": UP, "down": DOWN, "number": 5},
            "number: expected at most 4, the number of brokers",
        ),
        (
            "lifetimes",
            {"up": {"mean": "1us"}, "down": {"mean": "1us"}},
            r"a mean of 2 us up and down gives 20,000,000 outages of 4 brokers \(allowed: 1,000,000\)",
        ),
    ],
)
def test_what_the_network_does_not_have_is_refused(kind: str, parameters: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ScenarioError, match=wrong):
        faults(kind, **parameters)


def test_regions_are_refused_where_brokers_have_none() -> None:
    with pytest.raises(ScenarioError, match="regions: these brokers have none"):
        faults("partition", FaultSetting(("0", "1"), None, HORIZON, 1), regions="eu", at=1)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("broker,down_from\nrom,1\n", "file: outages.csv, line 2: unknown broker 'rom', did you mean 'rome'"),
        ("broker,down_from,other\nrome,1,2\n", "file: outages.csv, line 2: no broker has a link to itself"),
        ("broker,down_from\nrome,20\n", r"expected rows before the horizon \(10 s\), found the first at 20 s"),
        ("broker,down_from,up_at\nrome,3,3\n", "line 2: up_at: expected a number above 3, found '3'"),
        ("broker,down_from\nrome,-1\n", "line 2: down_from: expected a number from 0, found '-1'"),
        ("broker,down\nrome,-1\n", "line 1: no column 'down_from', did you mean 'down'"),
    ],
)
def test_what_is_wrong_in_a_trace_is_told_with_its_line(tmp_path: Path, text: str, wrong: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises((InputError, ValueError), match=wrong):
        faults("trace", file=path)


# -- what is drawn

NAMES = tuple(map(str, range(40)))


def drawn(key: int, horizon: float, **parameters: Any) -> list[Outage]:
    return faults("lifetimes", FaultSetting(NAMES, None, horizon, key), **parameters)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("up", "down"),
    [
        ({"mean": 10}, {"mean": 2}),
        ({"mean": 10, "distribution": "weibull", "shape": 0.7}, {"mean": 2, "distribution": "weibull", "shape": 2}),
        ({"mean": 10, "distribution": "pareto", "shape": 3}, {"mean": 2, "distribution": "pareto", "shape": 2.5}),
        ({"mean": 3}, {"mean": 5, "distribution": "weibull", "shape": 1.5}),
    ],
)
def test_brokers_are_up_for_the_share_of_time_that_their_means_say(up: dict[str, Any], down: dict[str, Any]) -> None:
    """Of 20 confidence intervals of 95 % fewer than 16 cover the true share with a probability of 0.26 %."""
    horizon, warm_up, covered = 4000.0, 400.0, 0
    for key in range(20):
        down_time = np.zeros(len(NAMES))
        for outage in drawn(key, horizon, up=up, down=down):
            down_time[outage.broker] += max(0.0, min(outage.end, horizon) - max(outage.start, warm_up))
        available = 1.0 - down_time / (horizon - warm_up)
        half = 2.023 * available.std(ddof=1) / math.sqrt(len(NAMES))  # Student's t, 39 degrees of freedom
        covered += bool(abs(available.mean() - up["mean"] / (up["mean"] + down["mean"])) <= half)
    assert covered >= 16


@pytest.mark.parametrize(
    "lifetime",
    [
        {"mean": 10},
        {"mean": 10, "distribution": "weibull", "shape": 0.7},
        {"mean": 10, "distribution": "weibull", "shape": 4},
        {"mean": 10, "distribution": "pareto", "shape": 3},
    ],
)
def test_the_first_crashes_are_distributed_as_they_should_be(lifetime: dict[str, Any]) -> None:
    """The largest distance between the empirical and the true distribution is below Kolmogorov's bound at 1 %."""
    setting = FaultSetting(tuple(map(str, range(4000))), None, 1e6, 3)
    found: list[Outage] = faults("lifetimes", setting, up=lifetime, down={"mean": 9e9})  # type: ignore[assignment]
    first = np.sort(list({outage.broker: outage.start for outage in reversed(found)}.values()))
    assert len(first) == 4000
    shape = lifetime.get("shape", 1.0)
    if lifetime.get("distribution") == "pareto":
        true = 1.0 - (10.0 * (shape - 1.0) / shape / first) ** shape
    else:
        true = 1.0 - np.exp(-((first / (10.0 / math.gamma(1.0 + 1.0 / shape))) ** shape))
    steps = np.arange(len(first) + 1) / len(first)
    distance = max(np.abs(true - steps[1:]).max(), np.abs(true - steps[:-1]).max())
    assert distance < 1.63 / math.sqrt(len(first))


def test_each_broker_has_draws_of_its_own() -> None:
    every = drawn(1, 500.0, up=UP, down=DOWN)
    some = drawn(1, 500.0, up=UP, down=DOWN, brokers=[30, "3"])
    assert some == [outage for outage in every if outage.broker in (3, 30)]
    few = drawn(1, 500.0, up=UP, down=DOWN, number=5)
    chosen = {outage.broker for outage in few}
    assert len(chosen) == 5
    assert few == [outage for outage in every if outage.broker in chosen]
    assert drawn(1, 250.0, up=UP, down=DOWN) == [outage for outage in every if outage.start < 250.0]
    assert drawn(2, 500.0, up=UP, down=DOWN) != every
