"""The trie of topic filters finds what matching every filter with every topic finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.topic_filters import matches

from sim.content.conjunctions import Conjunctions
from sim.content.matching import Matcher, MatchingIndex, Published
from sim.content.topic_filters import EXACT_NAMES, GRAMMARS, MQTT_FILTERS, NATS_SUBJECTS, TopicIndex, has_wildcard

LEVELS = {"mqtt": ["a", "b", "", "+", "#", "$x", "a+", "é"], "nats": ["a", "b", "", "*", ">", "$x", "a*", "é"]}
SEPARATOR = {"mqtt": "/", "nats": ".", "exact": "/"}


def names(kind: str, count: int, rng: np.random.Generator) -> list[str]:
    levels = LEVELS.get(kind, LEVELS["mqtt"])
    weights = np.array([4, 4, 0.5, 3, 2, 1, 1, 1])
    drawn = rng.choice(levels, (count, 6), p=weights / weights.sum())
    lengths = rng.integers(1, 7, count)
    return [SEPARATOR[kind].join(row[:length]) for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ["exact", "mqtt", "nats"])
def test_a_million_pairs_match_as_the_plain_matcher_says(kind: str) -> None:
    rng = np.random.default_rng(1)
    filters, topics = names(kind, 800, rng), names(kind, 500, rng)
    found = TopicIndex(filters, GRAMMARS[kind]).match_all(topics)
    pairs = 0
    for t, topic in enumerate(topics):
        expected = [f for f, filter_ in enumerate(filters) if matches(filter_, topic, kind)]
        assert found.subscription[found.indptr[t] : found.indptr[t + 1]].tolist() == expected, topic
        pairs += len(filters)
    assert pairs == 400_000  # of each kind
    assert len(found.subscription) > len(topics) / 4


@given(st.data(), st.sampled_from(["exact", "mqtt", "nats"]))
def test_any_filters_match_as_the_plain_matcher_says(data: st.DataObject, kind: str) -> None:
    level = st.sampled_from(LEVELS.get(kind, LEVELS["mqtt"])) | st.text("ab+#*>$/.é", max_size=3)
    name = st.lists(level, min_size=1, max_size=5).map(SEPARATOR[kind].join)
    filters, topics = data.draw(st.lists(name, max_size=12)), data.draw(st.lists(name, max_size=6))
    index, in_force = TopicIndex(filters, GRAMMARS[kind]), set(range(len(filters)))
    for topic in [*topics, *topics]:  # with all filters, and then with those that come and go
        expected = [f for f, filter_ in enumerate(filters) if matches(filter_, topic, kind) and f in in_force]
        assert index.match(topic).tolist() == expected
        if filters:
            changing = data.draw(st.sets(st.integers(0, len(filters) - 1)))
            index.remove(sorted(changing & in_force))
            index.add(sorted(changing - in_force))
            in_force ^= changing


@pytest.mark.parametrize(
    ("filter_", "matched"),
    [
        ("#", ["a", "a/b", "/", "a//b"]),
        ("+", ["a"]),
        ("a/#", ["a", "a/b", "a//b"]),
        ("+/+", ["a/b", "/"]),
        ("$SYS/#", ["$SYS", "$SYS/up"]),
        ("$SYS/+", ["$SYS/up"]),
        ("a/+/b", ["a//b"]),
        ("a/#/b", []),
        ("a+", []),
    ],
)
def test_filters_match_as_the_standard_of_mqtt_says(filter_: str, matched: list[str]) -> None:
    topics = ["a", "a/b", "/", "a//b", "$SYS", "$SYS/up"]
    index = TopicIndex([filter_], MQTT_FILTERS)
    assert [topic for topic in topics if len(index.match(topic))] == matched


@pytest.mark.parametrize(
    ("filter_", "matched"),
    [
        (">", ["orders", "orders.new", "orders.eu.new", "$SYS.up"]),
        ("orders.>", ["orders.new", "orders.eu.new"]),
        ("orders.*", ["orders.new"]),
        ("*.new", ["orders.new"]),
        ("orders.*.new", ["orders.eu.new"]),
        ("*.>", ["orders.new", "orders.eu.new", "$SYS.up"]),
        ("orders..new", []),
    ],
)
def test_subjects_match_as_nats_has_them(filter_: str, matched: list[str]) -> None:
    topics = ["orders", "orders.new", "orders.eu.new", "$SYS.up", "orders..new"]
    index = TopicIndex([filter_], NATS_SUBJECTS)
    assert [topic for topic in topics if len(index.match(topic))] == matched


def test_equal_filters_are_all_found_and_no_filters_match_nothing() -> None:
    assert TopicIndex(["a", "a", "b", "a"]).match("a").tolist() == [0, 1, 3]
    assert TopicIndex([], MQTT_FILTERS).match("a").tolist() == []
    assert TopicIndex(["#"] * 5000, MQTT_FILTERS).match_all(["a", "$a", "b"]).indptr.tolist() == [0, 5000, 5000, 10000]


def test_filters_that_come_or_go_twice_are_refused() -> None:
    index = TopicIndex(["a", "a", "#"], MQTT_FILTERS)
    index.remove([0, 2])
    assert index.match("a").tolist() == [1]
    for change, found, message in (
        (index.remove, [1, 0], "filter 0 is not in force"),
        (index.add, 1, "filter 1 is in force"),
        (index.add, [3], "filters 3..3, allowed: 0..2"),
    ):
        if found == 1:
            index.add(1)
        with pytest.raises(ValueError, match=message):
            change(found)
    assert index.match("a").tolist() == [1]


def test_a_topic_of_very_many_levels_is_matched_too() -> None:
    deep = "/".join("a" * 5000)
    assert TopicIndex(["#", deep, "a/+", f"{deep}/#"], MQTT_FILTERS).match(deep).tolist() == [0, 1, 3]


def test_which_names_have_wildcards() -> None:
    assert [has_wildcard(name, MQTT_FILTERS) for name in ("a/+", "#", "a+", "a/#/b", "a.*", "+/a")] == [
        *(True, True, False, False, False, True)
    ]
    assert [has_wildcard(name, NATS_SUBJECTS) for name in ("a.*", ">", "a.>", "a.>.b", "a/+")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not has_wildcard("#", EXACT_NAMES)


def matched(matcher: Matcher[Published], published: Published) -> list[list[int]]:
    """The subscriptions that each publication matches, whatever these are."""
    matches = matcher.match_all(published)
    return [row.tolist() for row in np.split(matches.subscription, matches.indptr[1:-1])]


def test_topics_and_content_are_matched_through_one_interface() -> None:
    """Filters of topics, and conjunctions of which the second asks for value 1 in both fields."""
    assert matched(TopicIndex(["a", "#"], MQTT_FILTERS), ["a", "b", "$c"]) == [[0, 1], [1], []]
    ones = np.array([0, 0, 1], np.int32)
    content = Conjunctions(np.array([0, 1, 3]), ones, np.ones(3, np.int32), np.arange(2, dtype=np.int32), 2, 2)
    assert matched(MatchingIndex(content), np.array([[1, 1], [1, 0], [0, 1]], np.int32)) == [[0, 1], [0], []]
