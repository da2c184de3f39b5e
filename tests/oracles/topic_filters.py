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
