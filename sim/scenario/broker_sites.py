"""The brokers of a scenario: their number, the workload's cells, or a file of their sites."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from sim.base.validation import show
from sim.files.inputs import File, InputFile, NoSuchFile
from sim.overlay.sites import Sites, parse_sites

_MOST_BROKERS = 2**31
"""The exclusive upper bound on the number of brokers."""
_BROKERS_FILE = InputFile(parse_sites)


def _brokers(value: object) -> int | str | File[Sites]:
    if value == "cells":
        return "cells"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        if value >= _MOST_BROKERS:
            raise ValueError(f"expected fewer than {_MOST_BROKERS:,} brokers, found {value:,}")
        return value
    allowed = "a number of brokers (1 or more), 'cells' (one per visited cell) or a CSV file"
    if not isinstance(value, str | File):
        raise ValueError(f"expected {allowed}, found {show(value)}")
    try:
        return _BROKERS_FILE.read(value)
    except NoSuchFile as error:
        raise ValueError(f"{error} (allowed: {allowed})") from None


BrokerSites = Annotated[
    int | Literal["cells"] | File[Sites],
    PlainValidator(_brokers),
    PlainSerializer(lambda brokers: brokers.dump() if isinstance(brokers, File) else brokers),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "exclusiveMaximum": _MOST_BROKERS},
                {"const": "cells"},
                {"type": "string"},
            ]
        }
    ),
]
"""What `network.brokers` may be."""
