"""Measured round-trip times: every layout, the brokers' hosts, missing and impossible times, and messages about mistakes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.measured import Measured, read_pairs, read_places

from sim.base.errors import ScenarioError
from sim.base.validation import validate
from sim.overlay.latency import LatencySetting
from sim.overlay.measured import MatrixLatency, parse_measurements, parse_places
from sim.overlay.sites import Sites


def sites(*places: tuple[float, float]) -> Sites:
    latitude, longitude = np.array(places, float).reshape(-1, 2).T
    return Sites(tuple(f"b{i}" for i in range(len(places))), latitude, longitude)


def nowhere(brokers: int) -> Sites:
    return sites(*[(np.nan, np.nan)] * brokers)


def model(folder: Path, where: Sites, times: str, hosts: str | None = None, key: int = 1, **more: Any) -> MatrixLatency:
    (folder / "rtt.txt").write_text(times)
    values = {"file": str(folder / "rtt.txt"), **more}
    if hosts is not None:
        (folder / "hosts.csv").write_text(hosts)
        values["hosts_file"] = str(folder / "hosts.csv")
    return MatrixLatency(validate(MatrixLatency.Parameters, values), LatencySetting(where, key))


def ms(times: Any) -> list[list[float | None]]:
    return [[None if np.isnan(time) else round(1000 * float(time), 6) for time in row] for row in times]


# -- reading


@pytest.mark.parametrize("text", ["0\t1.5\n2\t0\n", "0 1.5\n\n2 0", " 0, 1.5 \r\n 2,0\r\n", "0,1.5\n2,0\n"])
def test_a_square_stands_apart_by_anything(text: str) -> None:
    measured = parse_measurements(text)
    assert measured.hosts == ("0", "1")
    assert ms(measured.seconds) == [[0.0, 1.5], [2.0, 0.0]]


def test_pairs_have_ids_that_ascend_as_numbers_do() -> None:
    measured = parse_measurements("source,destination,min,avg\n10,9,0,5\nb,10,1,6\n9,9,0,0.1\n9,b,,\n")
    assert measured.hosts == ("9", "10", "b")
    assert ms(measured.seconds) == [[0.1, None, None], [5.0, None, None], [None, 6.0, None]]


def test_ids_ascend_whatever_they_look_like() -> None:
    ids = ["c", "10", "9", "007", "7", "1" * 5000, "b"]
    text = "\n".join(["source,destination,avg", *(f"{host},{host},1" for host in ids)])
    assert parse_measurements(text).hosts == ("007", "7", "9", "10", "1" * 5000, "b", "c")


times_in_ms = st.floats(0, 1e4).map(lambda value: round(value, 3))


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(times_in_ms, min_size=n, max_size=n), min_size=n, max_size=n))
)
def test_a_square_and_its_pairs_are_the_same(square: list[list[float]]) -> None:
    lines = parse_measurements("\n".join("\t".join(map(repr, row)) for row in square))
    rows = [f"{i},{j},{time!r}" for i, row in enumerate(square) for j, time in enumerate(row)]
    pairs = parse_measurements("\n".join(["source,destination,avg", *rows[::-1]]))
    assert lines.hosts == pairs.hosts
    assert lines.seconds.tolist() == pairs.seconds.tolist() == (np.array(square) / 1e3).tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows (expected a header with source, destination, avg, and rows below it)"),
        (
            "0 1\n1 0\n2 1 0\n",
            "line 1: expected 3 numbers, as many as there are lines, found 2 "
            "(allowed: a square of numbers, or CSV with the columns source, destination and avg)",
        ),
        ("0 1\n\nx 0\n", "line 3, number 1: expected milliseconds from 0 on, found 'x'"),
        ("0 x\n1 0\n", "line 1, number 2: expected milliseconds from 0 on, found 'x'"),
        ("0 -1\n1 0\n", "line 1, number 2: expected milliseconds from 0 on, found '-1'"),
        ("0 1\n1 inf\n", "line 2, number 2: expected milliseconds from 0 on, found 'inf'"),
        (
            "source,destination,average\n1,2,3\n",
            "line 1: no column 'avg', did you mean 'average'? (columns found: source, destination, average)",
        ),
        ("source,destination,avg\n1,2,3\n1,2,4\n", "line 3: destination: 1 to 2 appears twice"),
        ("source,destination,avg\n1,,3\n", "line 2: destination: missing"),
        ("source,destination,avg\n1,2,-3\n", "line 2: avg: expected a number from 0, found '-3'"),
    ],
)
def test_mistakes_in_measurements(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_measurements(text)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,lat,longitude\n", "line 1: no column 'latitude' (columns found: id, lat, longitude)"),
        ("id,latitude,longitude\n7,1,2\n7,1,3\n", "line 3: id: 7 appears twice"),
        ("id,latitude,longitude\n7,91,2\n", "line 2: latitude: expected a number from -90 to 90, found '91'"),
    ],
)
def test_mistakes_in_hosts(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_places(text)
    assert str(error.value) == said


# -- hosts without places

SQUARE = "0 10 20 30\n10 0 40 50\n22 40 0 60\n30 50 60 0\n"


def test_brokers_stand_at_hosts_in_order_and_both_directions_count_alike(tmp_path: Path) -> None:
    made = model(tmp_path, nowhere(3), SQUARE, assign="in-order")
    assert ms(made.round_trips) == [[0, 10, 21], [10, 0, 40], [21, 40, 0]]
    assert (made.notes, made.jitter) == ((), 0.0)


def test_hosts_are_drawn_by_the_key_none_twice_and_more_brokers_leave_them_alone(tmp_path: Path) -> None:
    drawn = [ms(model(tmp_path, nowhere(3), SQUARE, key=key).round_trips) for key in (*range(200), 0)]
    assert drawn[0] == drawn[-1]
    assert len({str(times) for times in drawn}) == 24  # of the 24 ways to place 3 brokers at 4 hosts
    for times in drawn:
        assert {time for row in times for time in row} - {0} <= {10, 21, 30, 40, 50, 60}
        assert all((time == 0) == (i == j) for i, row in enumerate(times) for j, time in enumerate(row))
    more = ms(model(tmp_path, nowhere(4), SQUARE, key=5).round_trips)
    assert [row[:3] for row in more[:3]] == drawn[5]


def test_more_brokers_than_hosts(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"network\.latency\.file: 5 brokers, but rtt\.txt has only 4 hosts \(allowed: 1 to 4\)"
    ):
        model(tmp_path, nowhere(5), SQUARE)


def test_a_time_that_is_needed_and_missing(tmp_path: Path) -> None:
    text = "0 nan 1\nnan 0 3\nnan 4 0\n"
    assert ms(model(tmp_path, nowhere(1), text, assign="in-order").round_trips) == [[0]]
    with pytest.raises(ScenarioError, match=r"rtt\.txt has no time between hosts 0 and 1 of two brokers"):
        model(tmp_path, nowhere(3), text)


# -- hosts with places

EQUATOR = "id,name,latitude,longitude\n1,a,0,0\n2,b,0,1\n3,c,0,2\n5,d,0,10\n"  # a degree is 111.195 km
LINE = "source,destination,avg\n1,2,5\n2,1,7\n1,3,10\n1,5,42\n2,3,6\n3,5,0.1\n4,1,1\n"


def test_each_broker_stands_at_its_nearest_host_the_lowest_id_on_ties(tmp_path: Path) -> None:
    where = sites((0.5, 0.1), (-1, 2.2), (0, 0.5), (0, 1.4))
    made = model(tmp_path, where, LINE, EQUATOR, same_host="0.25ms", impossible="keep")
    assert ms(made.round_trips) == [[0, 10, 0.25, 6], [10, 0, 10, 6], [0.25, 10, 0, 6], [6, 6, 6, 0]]
    assert made.notes[0] == "rtt.txt: 1 of 5 hosts have no row in hosts.csv and are left out: 4"
    assert made.notes[-1] == (
        "rtt.txt: brokers stand 56 km (median) and at most 113 km (b1) from their hosts; 1 share a host with an earlier one"
    )


def test_what_is_missing_or_impossible_is_told_and_goes_by_its_rule(tmp_path: Path) -> None:
    """Sound are (km / 111.195, ms): (1, 6), (2, 10), (10, 42), (1, 6), on the line 2 + 4 x; 2–5 is missing, 3–5 too fast."""
    where = sites((0, 0), (0, 1), (0, 2), (0, 10))
    light = 2 * 8 * 111.195 / 200
    for rule, time in {"fit": 34.0, "floor": light, "keep": 0.1}.items():
        made = model(tmp_path, where, LINE, EQUATOR, impossible=rule)
        assert 1000 * made.round_trips[1, 3] == pytest.approx(38.0, rel=1e-5)
        assert 1000 * made.round_trips[2, 3] == pytest.approx(time, rel=1e-5)
        assert (np.asarray(made.round_trips) == np.asarray(made.round_trips).T).all()
    made = model(tmp_path, where, LINE, EQUATOR)
    assert made.notes[1:3] == (
        "rtt.txt: 1 of 6 pairs (16.67%) of hosts have no round-trip time, such as 2 and 5; 1 of them between hosts of brokers; "
        "they get 2 ms + 36 ms per 1,000 km, as fitted to the others",
        "rtt.txt: 1 of 5 pairs (20.00%) of hosts are faster than light in fibre (200,000 km/s), such as 3 and 5 (100 us over 890 km); "
        "1 of them between hosts of brokers; they get 2 ms + 36 ms per 1,000 km, as fitted to the others",
    )


def test_a_rule_may_be_that_there_must_be_none_where_brokers_stand(tmp_path: Path) -> None:
    rules = {"missing": "error", "impossible": "error"}
    made = model(tmp_path, sites((0, 0), (0, 10)), LINE, EQUATOR, **rules)
    assert ms(made.round_trips) == [[0, 42], [42, 0]]
    assert "0 of them between hosts of brokers; none is needed" in made.notes[1]
    for where, said in {
        (0, 1): r"network\.latency\.missing: hosts 2 and 5, where brokers stand, have no round-trip time",
        (
            0,
            2,
        ): r"network\.latency\.impossible: hosts 3 and 5 \(100 us over 890 km\), where brokers stand, are faster than light",
    }.items():
        with pytest.raises(ScenarioError, match=said):
            model(tmp_path, sites(where, (0, 10)), LINE, EQUATOR, **rules)


def test_without_sound_pairs_nothing_can_be_fitted(tmp_path: Path) -> None:
    text = "source,destination,avg\n1,2,6\n1,3,0\n3,3,0\n"
    with pytest.raises(
        ScenarioError, match=r"hosts 2 and 3, where brokers stand, have no .* too few others exist to fit a line"
    ):
        model(tmp_path, sites((0, 1), (0, 2)), text, EQUATOR)


def test_places_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="needs the brokers' positions to find their nearest hosts"):
        model(tmp_path, nowhere(2), LINE, EQUATOR)
    with pytest.raises(ScenarioError, match=r"hosts_file: hosts\.csv has no host of rtt\.txt"):
        model(tmp_path, sites((0, 0)), LINE, "id,latitude,longitude\n9,0,0\n")


# -- real measurements


@pytest.mark.parametrize("slice_", [1, 9, 18])
def test_planetlab(shared_data: Path, slice_: int) -> None:
    path = shared_data / "planetlab-rtt" / f"PlanetLabData_{slice_}.txt.gz"
    with gzip.open(path, "rt") as file:
        expected = [[float(field) for field in line.split("\t")] for line in file]
    values = {"file": str(path), "assign": "in-order"}
    made = MatrixLatency(validate(MatrixLatency.Parameters, values), LatencySetting(nowhere(490), 1))
    assert ms(made.round_trips) == [[round(time, 6) for time in row] for row in expected]


def test_wondernetwork(shared_data: Path) -> None:
    folder = shared_data / "wondernetwork-rtt"
    pings, servers = folder / "pings-2020-07-19-2020-07-20-grouped.csv.gz", folder / "servers-2020-07-19.csv"
    times, places = read_pairs(pings), read_places(servers)
    expected = Measured(times, places)
    hosts = sorted(places, key=int)
    parameters = validate(MatrixLatency.Parameters, {"file": str(pings), "hosts_file": str(servers)})
    assert len(parameters.file.content) == 250
    assert np.isnan(parameters.file.content.seconds).sum() == 250**2 - len(times) == 396
    at_hosts = sites(*(places[host] for host in hosts))
    made = MatrixLatency(parameters, LatencySetting(at_hosts, 1))
    stands = [
        expected.nearest(places[host], hosts) for host in hosts
    ]  # some stand at the same place: the lowest id has it
    for i, one in enumerate(stands):
        for j, other in enumerate(stands):
            time = 0.0 if i == j else 0.5 if one == other else expected.time(one, other)
            assert 1000 * made.round_trips[i, j] == pytest.approx(time, rel=1e-9), (one, other)
    left, missing, impossible, _ = made.notes
    assert "4 of 250 hosts have no row" in left
    assert "292, 293, 294, 295" in left
    assert f"{len(expected.missing)} of 30,135 pairs" in missing
    assert f"{len(expected.impossible)} of 30,107 pairs (0.24%)" in impossible
    ordered = [(a, b) for a, b in times if a != b and a in places and b in places]
    fast = sum(times[pair] / 1000 < expected.light(*pair) for pair in ordered)
    assert round(100 * fast / len(ordered), 2) == 0.25
