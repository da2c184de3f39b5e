"""Brokers from a CSV text: the sites read from it, and messages about all mistakes."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.overlay.sites import parse_sites

names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)
brokers = st.tuples(names, st.floats(-90, 90), st.floats(-180, 180), names, st.floats(1e-3, 1e3))


def test_all_columns() -> None:
    sites = parse_sites("broker,latitude,longitude,region,capacity\nparis,48.86,2.35,eu,2\n\nnew york,40.7,-74,us,\n")
    assert (sites.names, sites.regions) == (("paris", "new york"), ("eu", "us"))
    assert (sites.latitude.tolist(), sites.longitude.tolist()) == ([48.86, 40.7], [2.35, -74.0])
    assert sites.capacity is not None
    assert sites.capacity.tolist() == [2.0, 1.0]
    assert sites.have_places


def test_names_alone_are_enough() -> None:
    sites = parse_sites("broker\na\nb\n")
    assert (sites.names, sites.regions, sites.have_places) == (("a", "b"), None, False)
    assert np.isnan([*sites.latitude, *sites.longitude]).all()


@given(st.lists(brokers, min_size=1, max_size=8, unique_by=lambda row: row[0]), st.permutations(range(5)))
def test_what_is_written_is_read_whatever_the_order_of_columns(
    rows: list[tuple[str, float, float, str, float]], order: list[int]
) -> None:
    header = ("broker", "latitude", "longitude", "region", "capacity")
    text = io.StringIO()
    csv.writer(text).writerows([row[i] for i in order] for row in [header, *rows])
    sites = parse_sites(text.getvalue())
    assert sites.capacity is not None
    assert sites.regions is not None
    columns = sites.names, sites.latitude.tolist(), sites.longitude.tolist(), sites.regions, sites.capacity.tolist()
    assert list(zip(*columns, strict=True)) == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows (expected a header with broker, and rows below it)"),
        ("broker\n", "no rows (expected a header with broker, and rows below it)"),
        ("name,latitude\n", "line 1: no column 'broker' (columns found: name, latitude)"),
        (
            "broker;region\na;b\n",
            "line 1: no column 'broker', did you mean 'broker;region'? (columns found: broker;region)",
        ),
        (
            "broker,regoin\na,eu\n",
            "line 1: unknown column 'regoin', did you mean 'region'? "
            "(allowed: broker, latitude, longitude, region, capacity)",
        ),
        ("broker\na\nb\n\na\n", "line 5: broker: 'a' is already on line 2"),
        ("broker,region\na,eu\n,eu\n", "line 3: broker: missing"),
        ("broker,region\na,eu\nb,\n", "line 3: region: missing"),
        (
            "broker,longitude\na,1\n",
            "column 'longitude' without the other one (allowed: latitude and longitude, or none)",
        ),
        ("broker,latitude,longitude\na,1,2\nb,1,\n", "line 3: longitude: missing"),
        ("broker,latitude,longitude\na,95,2\n", "line 2: latitude: expected a number from -90 to 90, found '95'"),
        (
            "broker,latitude,longitude\na,1,east\n",
            "line 2: longitude: expected a number from -180 to 180, found 'east'",
        ),
        ("broker,capacity\na,0\n", "line 2: capacity: expected a number above 0, found '0'"),
        ("broker,capacity\na,-1\n", "line 2: capacity: expected a number above 0, found '-1'"),
        ("broker,capacity\na,inf\n", "line 2: capacity: expected a number above 0, found 'inf'"),
    ],
)
def test_mistakes_are_told_with_their_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_sites(text)
    assert str(error.value) == said


def test_an_own_file_cannot_be_changed_by_a_run() -> None:
    sites = parse_sites("broker,capacity\na,3\n")
    for array in (sites.latitude, sites.longitude, sites.capacity):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = math.pi
