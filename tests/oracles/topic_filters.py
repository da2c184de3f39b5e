"""Slow, obvious matching of topics by filters, one level after the other."""

from __future__ import annotations


def matches(filter_: str, topic: str, kind: str) -> bool:
    """`kind` is exact, mqtt (5.0, section 4.7) or nats."""
    if kind == "exact":
        return filter_ == topic
    if kind == "mqtt":
        wanted, there = filter_.split("/"), topic.split("/")
        begins_wild = wanted[0] == "+" or wanted == ["#"]
        return not (begins_wild and topic.startswith("$")) and _mqtt(wanted, there)
    wanted, there = filter_.split("."), topic.split(".")
    return "" not in there and _nats(wanted, there)


def _mqtt(wanted: list[str], there: list[str]) -> bool:
    if wanted == ["#"]:
        return True
    if not wanted or not there:
        return wanted == there
    return wanted[0] in ("+", there[0]) and _mqtt(wanted[1:], there[1:])


def _nats(wanted: list[str], there: list[str]) -> bool:
    if wanted == [">"]:
        return bool(there)
    if not wanted or not there:
        return wanted == there
    return wanted[0] in ("*", there[0]) and _nats(wanted[1:], there[1:])


def follow(changes, appears, kind):
    """The subscriptions to topics of each user, as (time, user, topic, +1 or -1), by going through all times that matter.

    `changes` are (time, user, filter, +1 or -1) in order, `appears` says when each topic does; times before 0 are the beginning. A name
    that occurs in `appears` is a topic for itself, at any time.
    """
    found, held, before = [], set(), set()
    for now in sorted({time for time, *_ in changes} | set(appears.values())):
        for time, user, name, action in changes:
            if time == now:
                (held.add if action > 0 else held.discard)((user, name))
        after = {
            (user, topic)
            for user, name in held
            for topic in appears
            if name == topic or (name not in appears and appears[topic] <= now and matches(name, topic, kind))
        }
        found += [(now, *pair, -1) for pair in before - after] + [(now, *pair, 1) for pair in after - before]
        before = after
    return found
