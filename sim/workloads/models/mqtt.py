"""Topic filters of MQTT 5.0 (section 4.7): `+` stands for one level of a topic's name, `#` at the end for any number."""

from __future__ import annotations

from collections.abc import Sequence

# Any: a tree of dicts, with a position at the key None.
from typing import Any


def is_filter(name: str) -> bool:
    """Whether the name contains a wildcard: a level that is `+`, or a last one that is `#`."""
    levels = name.split("/")
    return "+" in levels or levels[-1] == "#"


def is_shared(name: str) -> bool:
    """Whether the name is that of a shared subscription: `$share/GROUP/FILTER` (MQTT 5.0, section 4.8.2), or `$queue/FILTER`."""
    return name.startswith(("$share/", "$queue/"))


def expand(filters: Sequence[str], topics: Sequence[str]) -> list[list[int]]:
    """The positions of the topics that each filter matches, ascending; a name without wildcards matches itself.

    A wildcard at the beginning of a filter does not match a topic that begins with `$`.
    """
    tree: dict[str | None, Any] = {}  # level → the levels below it; a topic that ends here has the key None
    for position, topic in enumerate(topics):
        node = tree
        for level in topic.split("/"):
            node = node.setdefault(level, {})
        node[None] = position
    return [sorted(_matches(tree, filter_.split("/"))) for filter_ in filters]


def _matches(tree: dict[str | None, Any], levels: list[str]) -> list[int]:
    found, to_do = [], [(tree, 0)]
    while to_do:
        node, depth = to_do.pop()
        rest = levels[depth:]
        if rest in ([], ["#"]) and None in node:  # "a/#" matches "a" too
            found.append(node[None])
        if rest and (rest[0] == "+" or rest == ["#"]):
            below = depth + (rest[0] == "+")
            hidden = node is tree
            to_do += [
                (node[level], below) for level in node if level is not None and not (hidden and level.startswith("$"))
            ]
        elif rest and rest[0] in node:
            to_do.append((node[rest[0]], depth + 1))
    return found
