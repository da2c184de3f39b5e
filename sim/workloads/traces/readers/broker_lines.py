"""What readers of brokers' own logs have in common: lines in, events out, or the reason why a line has none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sim.base.naming import Raw


class LogEvent(NamedTuple):
    """An event of a log, as text, in the fields of the pipeline; None where the log does not say."""

    time: str | None
    action: str
    client: str | None = None
    topic: str | None = None
    size: str | None = None
    publisher: str | None = None
    qos: str | None = None
    retain: str | None = None
    clean: str | None = None
    expiry: str | None = None
    group: str | None = None


FOREIGN = ""
"""A line that is none of this log."""

LineEvents = Sequence[LogEvent] | str
"""The events of a line, or the reason why it has none, `FOREIGN` if it cannot be read."""


class LogReader(Protocol):
    """Reads the files of a log in order, and remembers what later lines need, such as who is connected."""

    def read(self, lines: Iterable[str]) -> Iterator[LineEvents]:
        """Yield what each line of a file says."""
        ...


def parse_object(text: str) -> Raw | None:
    """The object of JSON that a text is; None where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
