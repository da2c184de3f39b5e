"""Location workloads: the interests of users in cells over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import location as oracle

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models.location import (
    Cells,
    Visits,
    cells_of,
    draw_friends,
    location_subscriptions,
    location_workload,
    merge_checkins,
    number_cells,
    publish_each,
    redrawn,
    visits_of,
)


def visits(*rows: tuple[float, int, int]) -> Visits:
    """Visits (time, user, cell); cell c lies at latitude 0.5 and longitude c + 0.5."""
    time, user, cell = (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.empty(0)] * 3
    cell = cell.astype(np.int32)
    return Visits(time.astype(float), user.astype(np.int32), cell, np.full(len(cell), 0.5), cell + 0.5)


def changes(
    of: Visits, friends: list[list[int]], topics: int
) -> tuple[list[list[int]], list[tuple[float, int, int, int]]]:
    k = len(friends[0]) if friends else 0
    interests, events = location_subscriptions(of, np.array(friends, np.int32).reshape(len(friends), k), topics)
    wanted = [part.tolist() for part in np.split(interests.indices, interests.indptr[1:-1])] if friends else []
    rows = zip(*(column.tolist() for column in vars(events).values()), strict=True)
    return wanted, list(rows)


def workload(of: Visits, users: int, cells: int, friends: int, streams: Streams) -> Workload:
    grid = Cells(np.zeros(cells, np.int64), np.arange(cells), 1.0)
    return location_workload(
        of,
        grid,
        strings(map(str, range(users))),
        publish_each(of, 100),
        friends=friends,
        streams=streams,
        origin="2010-01-01T00:00:00Z",
        horizon=100.0,
        generator={"name": "test"},
    )


def test_a_follower_walks_along_with_its_friend() -> None:
    wanted, events = changes(visits((1, 0, 5), (2, 1, 6), (7, 1, 8)), [[1], [0]], 9)
    assert wanted == [[5, 6], [5, 6]]
    assert events == [(7, 0, 8, 1), (7, 0, 6, -1), (7, 1, 8, 1), (7, 1, 6, -1)]


def test_a_cell_is_wanted_as_long_as_one_watched_user_is_there() -> None:
    meeting = visits((0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 3), (2, 2, 3), (3, 1, 1))
    wanted, events = changes(meeting, [[1, 2], [0, 2], [0, 1]], 4)
    assert wanted[0] == [0, 1, 2]
    assert [event for event in events if event[1] == 0] == [(1, 0, 3, 1), (1, 0, 1, -1), (2, 0, 2, -1), (3, 0, 1, 1)]


def test_nobody_and_nothing() -> None:
    assert changes(visits(), [], 0) == ([], [])
    assert changes(visits(), [[1], [0]], 3) == ([[], []], [])
    with pytest.raises(ValueError, match=r"cells 0\.\.4 for 4 topics"):
        changes(visits((0, 0, 0), (1, 0, 4)), [[]], 4)


@settings(max_examples=tried(300), deadline=None)
@given(st.data())
def test_equals_the_oracle(data: st.DataObject) -> None:
    users = data.draw(st.integers(1, 6))
    friends = draw_friends(
        users, data.draw(st.integers(0, 4)), np.random.default_rng(data.draw(st.integers(0, 99)))
    ).tolist()
    row = st.tuples(st.integers(0, 4).map(float), st.integers(0, users - 1), st.integers(0, 3))
    rows = sorted(data.draw(st.lists(row, max_size=25)))
    assert changes(visits(*rows), friends, 4) == oracle.location_subscriptions(rows, friends)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 45), st.integers(0, 9))
def test_friends_are_others_each_once(users: int, friends: int, seed: int) -> None:
    drawn = draw_friends(users, friends, np.random.default_rng(seed))
    assert drawn.shape == (users, max(0, min(friends, users - 1)))
    for user, row in enumerate(drawn.tolist()):
        assert row == sorted(set(row) - {user})
        assert all(0 <= friend < users for friend in row)


def test_all_sets_of_friends_are_equally_likely() -> None:
    generator = np.random.default_rng(5)
    drawn = np.concatenate([draw_friends(5, 2, generator)[[3]] for _ in range(6000)])
    sets, counts = np.unique(drawn, axis=0, return_counts=True)
    assert sets.tolist() == [[0, 1], [0, 2], [0, 4], [1, 2], [1, 4], [2, 4]]
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(6000 * (1 / 6) * (5 / 6))


def test_cells_are_numbered_by_row_then_column() -> None:
    cells, cell = number_cells(np.array([40.7, -0.5, 40.1, 40.7]), np.array([-74.0, 0.2, 3.0, -73.1]), 1.0)
    assert list(zip(cells.row, cells.column, strict=True)) == [(-1, 0), (40, -74), (40, 3)]
    assert cell.tolist() == [1, 0, 2, 1]
    topics = cells.topics(publish_each(visits((0, 0, 1), (1, 0, 1)), 1).per_topic(len(cells)), horizon=43200.0)
    assert topics.names.to_pylist() == ["-1,0", "40,-74", "40,3"]
    assert topics.event_rate.tolist() == [0, 4, 0]  # two in half a day
    assert topics.latitude.tolist() == [-0.5, 40.5, 40.5]
    assert topics.longitude.tolist() == [0.5, -73.5, 3.5]


def test_positions_on_the_edge_of_the_earth_have_a_place_on_it() -> None:
    cells, _ = number_cells(np.array([90.0, -90.0]), np.array([180.0, -180.0]), 1.0)
    topics = cells.topics(publish_each(visits(), 1).per_topic(len(cells)), horizon=1.0)
    assert topics.latitude.tolist() == [-89.5, 90]
    assert topics.longitude.tolist() == [-179.5, 180]


def test_successive_check_ins_in_one_cell_are_one_visit() -> None:
    checkins = visits((9, 0, 1), (3, 0, 1), (5, 1, 1), (4, 0, 1), (6, 0, 2), (8, 1, 1))
    merged = merge_checkins(checkins)
    assert list(zip(merged.time, merged.user, merged.cell, strict=True)) == [(3, 0, 1), (5, 1, 1), (6, 0, 2), (9, 0, 1)]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_location_workload_is_valid_and_can_be_drawn_again(data: st.DataObject) -> None:
    users = data.draw(st.integers(1, 6))
    row = st.tuples(st.integers(0, 9).map(float), st.integers(0, users - 1), st.integers(0, 3))
    of = merge_checkins(visits(*data.draw(st.lists(row, max_size=20))))
    made = workload(of, users, 4, 2, Streams(1))
    validate_workload(made, Path("w"))
    np.testing.assert_equal(vars(visits_of(made)), vars(of))

    again = redrawn(made, Streams(1))
    np.testing.assert_equal(vars(again.subscription_events), vars(made.subscription_events))
    np.testing.assert_equal(vars(again.interests), vars(made.interests))

    other = redrawn(made, Streams(1, 2), resample_users=True)
    validate_workload(other, Path("w"))
    assert len(set(other.users.names.to_pylist())) == users
    by_user = np.bincount(made.publications.publisher, minlength=users)
    original = [int(name.split("#")[0]) for name in other.users.names.to_pylist()]
    assert np.bincount(other.publications.publisher, minlength=users).tolist() == by_user[original].tolist()


def test_replications_of_a_trace_differ_in_friends_alone() -> None:
    of = visits(*sorted((float(t), u, (u * 7 + t) % 9) for u in range(30) for t in range(3)))
    base = workload(of, 30, 9, 4, Streams(1))
    first, second = redrawn(base, Streams(1, 1)), redrawn(base, Streams(1, 2))
    assert first.publications is base.publications
    assert first.movements is base.movements
    assert not np.array_equal(first.interests.indices, second.interests.indices)
    assert redrawn(replace(base, kind="poisson"), Streams(1, 1)).interests is base.interests


def test_a_trace_whose_tables_disagree_is_refused() -> None:
    base = workload(visits((0, 0, 0), (1, 1, 2)), 2, 3, 1, Streams(1))
    assert len(cells_of(base)) == 3
    away = replace(base, movements=replace(base.movements, latitude=np.array([0.5, 7.5])))
    with pytest.raises(WorkloadError, match=r"movements.parquet: row 1: position outside all cells"):
        redrawn(away, Streams(1, 1))
    with pytest.raises(WorkloadError, match=r"generator\.friends is missing"):
        redrawn(replace(base, generator={}), Streams(1, 1))
    named = replace(base, topics=replace(base.topics, names=strings(["a", "b", "c"])))
    with pytest.raises(WorkloadError, match=r"named such as '40,-74'"):
        redrawn(named, Streams(1, 1))
