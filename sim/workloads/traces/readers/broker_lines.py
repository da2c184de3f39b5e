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


class Wills:
    """The wills of clients that are connected, by their connections."""

    def __init__(self) -> None:
        self._wills = dict[str, LogEvent]()

    def keep(self, connection: str, will: LogEvent | None) -> None:
        """A connection has this will from now on."""
        self._wills.pop(connection, None)
        if will is not None:
            self._wills[connection] = will

    def published(self, connection: str, time: str) -> list[LogEvent]:
        """What is published as a connection is lost."""
        will = self._wills.pop(connection, None)
        return [] if will is None else [will._replace(time=time)]


FOREIGN = ""
"""A line that does not belong to this log."""

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
