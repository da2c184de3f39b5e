"""The workload format: written workloads are read unchanged, and damage is reported."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.errors import WorkloadError
from sim.content.conjunctions import Conjunctions
from sim.content.predicates import Content
from sim.files.parquet import read_frame, strings, write_columns
from sim.workloads.content.routing import route
from sim.workloads.format import checks as validation
from sim.workloads.format import folder as folder_module
from sim.workloads.format import manifest
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.workload import (
    DAY,
    Deliveries,
    Interests,
    Movements,
    Publications,
    Sessions,
    Shares,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)

NAN = float("nan")


def small() -> Workload:
    """Three users, of whom one wants nothing, four topics."""
    return Workload(
        kind="test",
        horizon=100.0,
        topics=Topics(
            strings(["a", "b", "", "ä"]),
            strings(["cell"] * 4),
            np.arange(4.0),
            np.array([0, NAN, 1, 2]),
            np.array([0, NAN, 0, 0]),
        ),
        users=Users(strings(["7", "8", "x y"]), np.array([NAN, 1.5, -90]), np.array([NAN, -180, 180.0])),
        interests=Interests(np.array([0, 2, 2, 3]), np.array([0, 1, 3], np.int32)),
        subscription_events=SubscriptionEvents(
            np.array([1.0, 2, 2, 3]),
            np.array([0, 0, 1, 0], np.int32),
            np.array([2, 0, 0, 0], np.int32),
            np.array([1, -1, 1, 1], np.int8),
        ),
        publications=Publications(
            np.array([5.0, 5]), np.array([1, 3], np.int32), np.array([-1, 2], np.int32), np.array([0, 9], np.int32)
        ),
        movements=Movements(np.array([0.0, 100]), np.array([1, 0], np.int32), np.array([1.0, 2]), np.array([3.0, 4])),
        sessions=Sessions(np.array([0, 2], np.int32), np.array([0.5, 1]), np.array([100.0, 1])),
        deliveries=Deliveries(
            np.array([6.0, 7]), np.array([1, 3], np.int32), np.array([-1, 2], np.int32), np.array([0, 2], np.int32)
        ),
        shares=Shares(*np.array([(1, 0, 5), (1, 2, 5), (2, 0, 0)], np.int32).T.copy()),
        origin="2010-03-01T00:00:00Z",
        cell=0.5,
        generator={"name": "test", "share": 0.1},
        seed=4,
        sources=({"file": "a.tsv", "sha256": "00", "bytes": 3},),
        rows={"read": 3, "kept": 2, "quarantined": {"bad_time": 1}},
    )


def by_content() -> Workload:
    """Two users with three subscriptions to content of two fields, three publications of them; fewest carry 0=1 and 1=2."""
    return tiny.content(
        [(0, {0: 0, 1: 2}), (1, {0: 0}), (0, {0: 1, 1: 0})],
        [(1.0, -1, 5, (0, 2)), (2.0, 0, 6, (0, 0)), (3.0, 1, 7, (1, 0))],
        users=2,
        fields=2,
        values=3,
        horizon=DAY,
    )


def assert_equal(one: Any, other: Any, where: str = "") -> None:
    """Equal in everything but the hash."""
    if isinstance(one, np.ndarray):
        assert other.dtype == one.dtype, where
        np.testing.assert_array_equal(other, one, err_msg=where)
    elif hasattr(one, "__dataclass_fields__"):
        for name, value in vars(one).items():
            if name != "hash":
                assert_equal(value, getattr(other, name), f"{where}.{name}")
    else:
        assert other.equals(one) if isinstance(one, pa.Array) else other == one, where


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    users, topics = draw(st.integers(0, 4)), draw(st.integers(0, 5))
    some = 12 if users and topics else 0
    floats = st.floats(allow_nan=False, allow_infinity=False, width=32)

    def column(elements: st.SearchStrategy[Any], size: int, dtype: Any) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(elements, min_size=size, max_size=size)), dtype)

    def places(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        known = column(st.booleans(), size, np.bool_)
        latitude, longitude = column(st.floats(-90, 90), size, float), column(st.floats(-180, 180), size, float)
        return np.where(known, latitude, NAN), np.where(known, longitude, NAN)

    wanted = [sorted(draw(st.sets(st.integers(0, topics - 1)))) if topics else [] for _ in range(users)]
    holds = {(user, topic) for user, row in enumerate(wanted) for topic in row}
    events = []
    for _ in range(draw(st.integers(0, some))):
        user, topic = draw(st.integers(0, users - 1)), draw(st.integers(0, topics - 1))
        events.append((user, topic, -1 if (user, topic) in holds else 1))
        holds ^= {(user, topic)}
    event = np.array(events, np.int64).reshape(-1, 3)
    published, moved, connected, delivered = (draw(st.integers(0, some)) for _ in range(4))
    started = np.sort(column(st.floats(0, 50), connected, float))
    times = st.floats(0, 50)
    pairs = st.tuples(st.integers(0, topics - 1), st.integers(0, users - 1)) if topics and users else st.nothing()
    shared = sorted(draw(st.sets(pairs)))
    latitude = column(st.floats(-90, 90), moved, float)
    return Workload(
        kind=draw(st.text(max_size=3)),
        horizon=50.0,
        topics=Topics(
            strings(draw(st.lists(st.text(max_size=3), min_size=topics, max_size=topics))),
            strings(["k"] * topics),
            np.abs(column(floats, topics, float)),
            *places(topics),
        ),
        users=Users(strings(map(str, range(users))), *places(users)),
        interests=Interests(
            np.cumsum([0, *map(len, wanted)], dtype=np.int64), np.array([t for row in wanted for t in row], np.int32)
        ),
        subscription_events=SubscriptionEvents(  # type: ignore[call-arg]
            np.sort(column(times, len(event), float)), *(event.T[:2].astype(np.int32)), event[:, 2].astype(np.int8)
        ),
        publications=Publications(
            np.sort(column(times, published, float)),
            column(st.integers(0, max(topics - 1, 0)), published, np.int32),
            column(st.integers(-1, users - 1), published, np.int32),
            column(st.integers(0, 2**31 - 1), published, np.int32),
        ),
        movements=Movements(
            np.sort(column(times, moved, float)),
            column(st.integers(0, max(users - 1, 0)), moved, np.int32),
            latitude,
            latitude * 2,
        ),
        sessions=Sessions(column(st.integers(0, max(users - 1, 0)), connected, np.int32), started, started / 2 + 25),
        deliveries=Deliveries(
            np.sort(column(times, delivered, float)),
            column(st.integers(0, max(topics - 1, 0)), delivered, np.int32),
            column(st.integers(-1, users - 1), delivered, np.int32),
            column(st.integers(0, max(users - 1, 0)), delivered, np.int32),
        ),
        shares=Shares(
            *np.array([(topic, user, user // 2) for topic, user in shared], np.int32).reshape(-1, 3).T.copy()
        ),
        cell=draw(st.none() | st.floats(0.01, 5)),
    )


@settings(max_examples=40, deadline=None)
@given(workloads())
def test_what_is_written_is_read_and_always_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, made: Workload
) -> None:
    one, two = tmp_path_factory.mktemp("w"), tmp_path_factory.mktemp("w")
    write_workload(made, one)
    loaded = load_workload(one)
    assert_equal(made, loaded)
    write_workload(loaded, two)
    assert contents(one) == contents(two)
    assert loaded.hash == hashlib.sha256((one / "manifest.json").read_bytes()).hexdigest()


def test_predicates_are_topics_and_subscriptions_wait_at_the_most_selective(tmp_path: Path) -> None:
    write_workload(by_content(), tmp_path)
    read = load_workload(tmp_path)
    assert_equal(by_content(), read)
    assert read.topics.names.to_pylist() == ["0=0", "0=1", "1=0", "1=2"]
    assert set(read.topics.kinds.to_pylist()) == {"predicate"}
    assert read.published().tolist() == [2, 1, 2, 1]
    assert read.topics.event_rate.tolist() == [2, 1, 2, 1]
    assert read.on_topic(2).tolist() == [False, True, True]
    assert [read.interests.indices[a:b].tolist() for a, b in pairwise(read.interests.indptr)] == [[1, 3], [0]]
    assert pq.read_table(tmp_path / "predicates.parquet").to_pydict() == {
        "subscription": [0, 0, 1, 2, 2], "owner": [0, 0, 1, 0, 0], "field": [0, 1, 0, 0, 1], "value": [0, 2, 0, 1, 0],
    }  # fmt: skip
    assert pq.read_table(tmp_path / "values.parquet").to_pydict() == {
        "publication": [0, 0, 1, 1, 2, 2], "field": [0, 1, 0, 1, 0, 1], "value": [0, 2, 0, 0, 1, 0],
    }  # fmt: skip
    assert {"subscriptions": 3, "fields": 2, "values": 3}.items() <= read.counts.items()
    write_workload(small(), tmp_path)
    assert not (tmp_path / "values.parquet").exists()


@pytest.mark.parametrize(("users", "publications"), [(0, 3), (2, 0), (0, 0)])
def test_content_without_subscriptions_or_publications(tmp_path: Path, users: int, publications: int) -> None:
    made = by_content()
    assert made.content is not None
    wanted = made.content.conjunctions
    if not users:
        none = np.empty(0, np.int32)
        wanted = Conjunctions(np.zeros(1, np.int64), none, none, none, 2, 3)
    content = Content(wanted, made.content.values[:publications])
    topics, interests = route(content, 2, made.horizon)
    published = Publications(*(column[:publications] for column in vars(made.publications).values()))
    made = replace(made, content=content, topics=topics, interests=interests, publications=published)
    write_workload(made, tmp_path)
    assert_equal(made, load_workload(tmp_path))


def test_interests_are_cut_into_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "INTERESTS_PER_PART", 4)
    made = replace(
        small(),
        interests=Interests(np.array([0, 4, 4, 6]), np.array([0, 1, 2, 3, 0, 2], np.int32)),
        subscription_events=SubscriptionEvents(*(column[:0] for column in vars(small().subscription_events).values())),
    )
    write_workload(made, tmp_path)
    parts = [pq.read_table(path) for path in sorted((tmp_path / "interests").iterdir())]
    assert [part["user"].to_pylist() for part in parts] == [[0, 0, 0, 0], [2, 2]]
    assert [part["topic"].to_pylist() for part in parts] == [[0, 1, 2, 3], [0, 2]]
    assert_equal(made, load_workload(tmp_path))


def test_other_tools_read_the_tables(tmp_path: Path) -> None:
    write_workload(small(), tmp_path)
    assert pq.read_table(tmp_path / "topics.parquet").to_pydict() == {
        "topic": [0, 1, 2, 3],
        "name": ["a", "b", "", "ä"],
        "kind": ["cell"] * 4,
        "event_rate": [0, 1, 2, 3],
        "latitude": [0, None, 1, 2],
        "longitude": [0, None, 0, 0],
    }
    sealed = json.loads((tmp_path / "manifest.json").read_text())
    assert sealed["counts"] == {
        "users": 3, "topics": 4, "interests": 3, "subscription_events": 4, "publications": 2, "movements": 2,
        "sessions": 2, "deliveries": 2, "shares": 3,
    }  # fmt: skip
    assert sorted(sealed["files"]) == sorted(contents(tmp_path).keys() - {"manifest.json"})


def test_a_workload_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    quarantine = pa.table({"source": ["a"], "line": [3], "raw": ["?"], "reason": ["unparsable"]})
    write_workload(small(), tmp_path / "w", [quarantine])
    assert pq.read_table(tmp_path / "w" / "quarantine").to_pylist()[0]["line"] == 3
    load_workload(tmp_path / "w")
    nothing = {"movements": Movements.none(), "sessions": Sessions.none(), "deliveries": Deliveries.none()}
    less = replace(small(), **nothing, shares=Shares.none())
    write_workload(less, tmp_path / "w")
    assert {path.name for path in (tmp_path / "w").iterdir()} == {
        "manifest.json", "topics.parquet", "users.parquet", "interests", "subscription_events.parquet",
        "publications.parquet",
    }  # fmt: skip
    assert_equal(less, load_workload(tmp_path / "w"))

    (tmp_path / "w" / "thesis.tex").write_text("years of work")
    with pytest.raises(WorkloadError, match=r"contains 'thesis.tex', which is not part of a workload"):
        write_workload(small(), tmp_path / "w")
    load_workload(tmp_path / "w")
    with pytest.raises(WorkloadError, match="this folder cannot be created"):
        write_workload(small(), tmp_path / "w" / "thesis.tex")


@pytest.mark.parametrize("linked", ["interests", "topics.parquet", "interests/part-00000.parquet"])
def test_a_workload_with_a_link_in_it_is_left_as_it_is(tmp_path: Path, linked: str) -> None:
    """Its owner moved a part of it to another disk, and whatever is there is not ours to replace."""
    write_workload(small(), tmp_path / "w")
    (tmp_path / "w" / linked).rename(tmp_path / "elsewhere")
    (tmp_path / "w" / linked).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkloadError, match=rf"w: contains '{linked}', which is a link; give an empty or new folder"):
        write_workload(replace(small(), seed=2), tmp_path / "w")
    assert_equal(small(), load_workload(tmp_path / "w"))


def test_a_file_of_somebody_elses_inside_a_workload_stays(tmp_path: Path) -> None:
    write_workload(small(), tmp_path / "w")
    (tmp_path / "w" / "interests" / "notes.txt").write_text("mine")
    with pytest.raises(WorkloadError, match=r"w: contains 'interests/notes\.txt', which is not part of a workload"):
        write_workload(small(), tmp_path / "w")
    assert (tmp_path / "w" / "interests" / "notes.txt").read_text() == "mine"


def test_an_interrupted_write_leaves_no_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_workload(small(), tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manifest, "sha256", killed)
    with pytest.raises(KeyboardInterrupt):
        write_workload(small(), tmp_path)
    monkeypatch.undo()
    with pytest.raises(WorkloadError, match=r"unfinished one \(it has no manifest\.json\)"):
        load_workload(tmp_path)
    write_workload(small(), tmp_path)
    assert_equal(small(), load_workload(tmp_path))


def column(table: str, name: str, row: int, value: object) -> Callable[[Path], None]:
    """Changes one value of a table."""

    def damage(folder: Path) -> None:
        path = folder / f"{table}.parquet"
        found = pq.read_table(path)
        values = found[name].to_pylist()
        values[row] = value
        position = found.column_names.index(name)
        pq.write_table(found.set_column(position, found.schema.field(name), pa.array(values, found[name].type)), path)

    return damage


def key(name: str, value: object) -> Callable[[Path], None]:
    """Changes one key of the manifest; `...` takes it out."""

    def damage(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text()) | {name: value}
        kept = {name: value for name, value in values.items() if value is not ...}
        (folder / "manifest.json").write_text(json.dumps(kept))

    return damage


def renamed(table: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / f"{table}.parquet"
        found = pq.read_table(path)
        pq.write_table(found.rename_columns([new if name == old else name for name in found.column_names]), path)

    return damage


def retyped(table: str, name: str, kind: pa.DataType) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / f"{table}.parquet"
        found = pq.read_table(path)
        pq.write_table(found.set_column(found.column_names.index(name), name, found[name].cast(kind)), path)

    return damage


def cut(folder: Path) -> None:
    path = folder / "publications.parquet"
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES = [
    (lambda folder: (folder / "manifest.json").unlink(), r"w: not a workload folder, or an unfinished one"),
    (lambda folder: (folder / "manifest.json").write_text("{"), r"manifest.json: not valid JSON"),
    (lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"), r"manifest.json: not valid JSON"),
    (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), r"manifest.json: not valid JSON"),
    (key("sources", [5]), r"manifest.json: sources\[0\] is 5, expected file, sha256 and bytes"),
    (key("sources", [{"file": "a.csv", "sha256": 5, "bytes": 3}]), r"manifest.json: sources\[0\] is .*, expected file"),
    (
        key("rows", {"read": 9, "kept": "9", "quarantined": {}}),
        r"manifest.json: rows is .*, expected numbers: read, kept",
    ),
    (key("rows", {"read": 9, "kept": 8, "quarantined": {"time": "1"}}), r"manifest.json: rows is .*, expected numbers"),
    (key("rows", {"read": "9"}), r"manifest.json: rows is .*, expected numbers: read, kept, and quarantined by reason"),
    (key("horizon", 1e12), r"manifest.json: the horizon ends after the year 9999"),
    (lambda folder: (folder / "manifest.json").write_text("[]"), r"manifest.json: not the manifest of a workload"),
    (key("format", ...), r"manifest.json: not the manifest of a workload"),
    (key("format", 2), r"manifest.json: workload format 2, this version reads format 1"),
    (key("format", "brokersim-results"), r"workload format 'brokersim-results', this version reads format 1"),
    (key("horizon", ...), r"manifest.json: no key 'horizon'"),
    (key("horizon", "100"), r"manifest.json: horizon is '100', expected a number"),
    (key("horizon", -1.0), r"manifest.json: horizon is -1.0, allowed: above 0"),
    (key("cell", 0.0), r"manifest.json: cell is 0.0, allowed: above 0"),
    (key("origin", "yesterday"), r"manifest.json: origin is 'yesterday', expected a time such as 2010-08-01T00:00:00Z"),
    (key("counts", {"users": 9}), r"manifest.json: counts.users is 9, found 3"),
    (lambda folder: (folder / "topics.parquet").unlink(), r"topics.parquet: missing file"),
    (lambda folder: shutil.rmtree(folder / "interests"), r"interests/part-00000.parquet: missing file"),
    (cut, r"publications.parquet: not a readable parquet file"),
    (
        renamed("topics", "event_rate", "rate"),
        r"topics.parquet: no column 'event_rate' \(found: topic, name, kind, rate,",
    ),
    (retyped("users", "user", pa.int64()), r"users.parquet: column 'user' is int64, expected int32"),
    (column("users", "name", 1, None), r"users.parquet: row 1: name is null, expected string"),
    (column("publications", "size", 1, None), r"publications.parquet: row 1: size is null, expected int32"),
    (column("topics", "topic", 1, 3), r"topics.parquet: row 1: topic is 3, expected 1"),
    (column("users", "user", 2, 0), r"users.parquet: row 2: user is 0, expected 2"),
    (
        column("topics", "event_rate", 3, -0.5),
        r"topics.parquet: row 3: event_rate is -0.5, allowed: finite and at least 0",
    ),
    (column("topics", "event_rate", 0, NAN), r"topics.parquet: row 0: event_rate is nan"),
    (column("topics", "latitude", 0, 91.0), r"topics.parquet: row 0: position is 91.0, 0.0, allowed: latitude -90..90"),
    (column("users", "longitude", 1, None), r"users.parquet: row 1: position is 1.5, nan"),
    (column("interests/part-00000", "user", 2, 3), r"interests: row 2: user is 3, allowed: 0..2"),
    (column("interests/part-00000", "user", 0, 1), r"interests: row 1: user 0 after user 1, rows must be sorted"),
    (column("interests/part-00000", "topic", 2, 4), r"interests: row 2: topic is 4, allowed: 0..3"),
    (column("interests/part-00000", "topic", 1, 0), r"interests: row 1: topic 0 is not above the previous one"),
    (
        column("subscription_events", "time", 2, 9.0),
        r"events.parquet: row 3: time is 3.0 s after 9.0 s, rows must be sorted",
    ),
    (column("subscription_events", "time", 2, NAN), r"events.parquet: row 2: time is nan s, allowed: 0..100 s"),
    (column("subscription_events", "time", 3, 101.0), r"events.parquet: row 3: time is 101.0 s, allowed: 0..100 s"),
    (column("subscription_events", "time", 0, -1.0), r"events.parquet: row 0: time is -1.0 s"),
    (column("subscription_events", "user", 0, -1), r"events.parquet: row 0: user is -1, allowed: 0..2"),
    (column("subscription_events", "topic", 1, 4), r"events.parquet: row 1: topic is 4, allowed: 0..3"),
    (column("subscription_events", "action", 1, 0), r"events.parquet: row 1: action is 0, allowed: 1, -1"),
    (column("subscription_events", "action", 1, 1), r"row 1: user 0 subscribes to topic 0, which it has already"),
    (
        column("subscription_events", "action", 0, -1),
        r"row 0: user 0 unsubscribes from topic 2, which it does not have",
    ),
    (column("subscription_events", "topic", 3, 2), r"row 3: user 0 subscribes to topic 2, which it has already"),
    (column("publications", "topic", 0, -1), r"publications.parquet: row 0: topic is -1, allowed: 0..3"),
    (column("publications", "publisher", 1, 3), r"publications.parquet: row 1: publisher is 3, allowed: -1..2"),
    (column("publications", "size", 0, -7), r"publications.parquet: row 0: size is -7, allowed: finite and at least 0"),
    (column("movements", "user", 1, 3), r"movements.parquet: row 1: user is 3, allowed: 0..2"),
    (column("movements", "latitude", 0, NAN), r"movements.parquet: row 0: position is nan, 3.0"),
    (column("sessions", "user", 0, -1), r"sessions.parquet: row 0: user is -1, allowed: 0..2"),
    (column("sessions", "start", 1, 0.0), r"sessions.parquet: row 1: start is 0.0 s after 0.5 s, rows must be sorted"),
    (column("sessions", "end", 1, 0.5), r"sessions.parquet: row 1: end is 0.5 s, allowed: 1..100 s \(the horizon\)"),
    (column("deliveries", "time", 0, 8.0), r"deliveries.parquet: row 1: time is 7.0 s after 8.0 s"),
    (column("deliveries", "topic", 1, 4), r"deliveries.parquet: row 1: topic is 4, allowed: 0..3"),
    (column("deliveries", "publisher", 1, -2), r"deliveries.parquet: row 1: publisher is -2, allowed: -1..2"),
    (column("deliveries", "subscriber", 0, -1), r"deliveries.parquet: row 0: subscriber is -1, allowed: 0..2"),
    (
        column("shares", "user", 1, 0),
        r"shares.parquet: row 1: topic 1 and user 0 are not above those of the previous row",
    ),
    (column("shares", "topic", 2, 4), r"shares.parquet: row 2: topic is 4, allowed: 0..3"),
    (column("shares", "group", 0, -1), r"shares.parquet: row 0: group is -1, allowed: 0..2147483647"),
    (column("publications", "size", 0, 1), r"publications.parquet: changed since it was written \(its SHA-256"),
]


def counted(**counts: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text())
        key("counts", values["counts"] | counts)(folder)

    return damage


def shortened(table: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / f"{table}.parquet"
        found = pq.read_table(path)
        pq.write_table(found.slice(0, len(found) - 1), path)

    return damage


CONTENT_DAMAGES = [
    (column("predicates", "subscription", 0, 1), r"predicates.parquet: row 0: subscription is 1, expected 0"),
    (column("predicates", "subscription", 0, -1), r"predicates.parquet: row 0: subscription is -1, expected 0"),
    (column("predicates", "subscription", 2, 3), r"predicates.parquet: row 2: subscription is 3, expected 0 or 1"),
    (column("predicates", "subscription", 3, -1), r"predicates.parquet: row 3: subscription is -1, expected 1 or 2"),
    (column("predicates", "owner", 4, 1), r"predicates.parquet: row 4: owner is 1, but subscription 2 belongs to 0"),
    (column("predicates", "owner", 2, 2), r"predicates.parquet: row 2: owner is 2, allowed: 0..1"),
    (column("predicates", "field", 2, 2), r"predicates.parquet: row 2: field is 2, allowed: 0..1"),
    (
        column("predicates", "field", 4, 0),
        r"predicates.parquet: row 4: field 0 is not above the previous one of the same",
    ),
    (column("predicates", "value", 4, 3), r"predicates.parquet: row 4: value is 3, allowed: 0..2"),
    (column("values", "publication", 3, 2), r"values.parquet: row 3: publication is 2, expected 1"),
    (column("values", "field", 2, 1), r"values.parquet: row 2: field is 1, expected 0"),
    (column("values", "value", 5, -1), r"values.parquet: row 5: value is -1, allowed: 0..2"),
    (shortened("values"), r"values.parquet: 5 rows, expected 2 for each publication"),
    (counted(fields="2"), r"manifest.json: counts.fields is '2', expected a whole number from 1 to 100000"),
    (counted(fields=10**6), r"manifest.json: counts.fields is 1000000, expected a whole number from 1 to 100000"),
    (
        counted(values=2**31),
        r"manifest.json: counts.values is 2147483648, expected a whole number from 1 to 2147483647",
    ),
    (counted(fields=3), r"values.parquet: row 2: publication is 1, expected 0"),
    (counted(values=2), r"predicates.parquet: row 1: value is 2, allowed: 0..1"),
    (column("topics", "name", 1, "0=7"), r"topics.parquet: row 1: name '0=7', expected name '0=1': the topics are all"),
    (column("values", "value", 1, 1), r"topics.parquet: row 3: name '1=2', expected name '1=1'"),
    (column("interests/part-00000", "topic", 0, 0), r"interests: row 0: user 0, topic 0, expected user 0, topic 1: an"),
    (column("publications", "topic", 0, 1), r"publications.parquet: row 0: topic is 1, allowed: -1..-1"),
    (column("values", "field", 2, None), r"values.parquet: row 2: field is null, expected int32"),
    (lambda folder: (folder / "values.parquet").unlink(), r"values.parquet: missing file"),
]


@pytest.mark.parametrize(("damage", "message"), CONTENT_DAMAGES)
def test_what_is_damaged_in_content_is_named(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    write_workload(by_content(), tmp_path / "w")
    damage(tmp_path / "w")
    with pytest.raises(WorkloadError, match=message) as caught:
        load_workload(tmp_path / "w")
    assert str(tmp_path / "w") in str(caught.value)


def test_subscriptions_to_content_do_not_change(tmp_path: Path) -> None:
    events = SubscriptionEvents(np.ones(1), np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int8))
    with pytest.raises(WorkloadError, match=r"events.parquet: row 0: subscriptions to content do not change"):
        write_workload(replace(by_content(), subscription_events=events), tmp_path)


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_what_is_damaged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], message: str
) -> None:
    """The same however many rows are looked at at a time."""
    write_workload(small(), tmp_path / "w")
    damage(tmp_path / "w")
    for at_once in (validation._AT_ONCE, 2, 1):
        monkeypatch.setattr(validation, "_AT_ONCE", at_once)
        with pytest.raises(WorkloadError, match=message) as caught:
            load_workload(tmp_path / "w")
        assert str(tmp_path / "w") in str(caught.value)


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=6), st.integers(1, 5))
def test_topics_of_a_user_must_rise_in_memory_too(rows: list[list[int]], at_once: int) -> None:
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([topic for row in rows for topic in row], np.int32)
    bad = [
        first + n
        for first, row in zip(indptr.tolist(), rows, strict=False)
        for n, (a, b) in enumerate(pairwise(row), 1)
        if a >= b
    ]
    raises = (
        pytest.raises(WorkloadError, match=f"^w: row {bad[0]}: topic {indices[bad[0]]} is not")
        if bad
        else nullcontext()
    )
    with pytest.MonkeyPatch.context() as patch, raises:
        patch.setattr(validation, "_AT_ONCE", at_once)
        validation.Checks("w").ascending(indptr, indices)


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(WorkloadError, match=f"{path.name}: not a workload folder"):
            load_workload(path)


def test_a_broken_workload_is_not_written(tmp_path: Path) -> None:
    bad = replace(small(), topics=replace(small().topics, event_rate=np.zeros(3)))
    with pytest.raises(
        WorkloadError, match=r"topics.parquet: columns of different lengths \(names 4, kinds 4, event_rate 3"
    ):
        write_workload(bad, tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_publications_are_counted_on_each_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.workloads.format.workload.ROW_GROUP", 1)
    published = small().publications
    expected = [int((published.topic == topic).sum()) for topic in range(5)]
    assert sum(expected) == len(published) > 1
    assert published.per_topic(5).tolist() == expected


def test_a_frame_is_that_of_pandas(tmp_path: Path) -> None:
    columns = {"name": strings(["a", "", "c"]), "n": np.array([1, 2, 3]), "x": np.array([0.5, np.nan, 2.0])}
    write_columns(tmp_path / "t.parquet", columns)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "t.parquet"), pd.read_parquet(tmp_path / "t.parquet"))
    assert list(read_frame(tmp_path / "t.parquet", ["x"])) == ["x"]
