"""The [network.sessions] table: who goes offline, what waits meanwhile, and what is retained."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from sim.base.errors import ScenarioError, unknown_of_many
from sim.base.randomness import Streams
from sim.base.units import Duration, PositiveDuration, format_duration, unit
from sim.base.validation import show
from sim.scenario.brokers import BoundedBytes, BoundedMessages, check_overflow
from sim.scenario.fixed_table import FixedTable
from sim.workloads.format.workload import Workload
from sim.workloads.models.sessions import OfflineRules, OfflineSpan, Will, retain, take_offline


def _topic(value: object) -> int | str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"expected a topic, by number or name, found {show(value)}")


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_TOPIC = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
TopicReference = Annotated[int | str, PlainValidator(_topic), WithJsonSchema(_TOPIC)]
"""A topic by number or name."""


class OfflineTable(FixedTable):
    """Users who lose their connection unexpectedly, and connect again."""

    model_config = ConfigDict(serialize_by_alias=True)

    at: Duration
    """When users lose their connection, from the start of the run."""
    lasts: Duration = Field(alias="for")
    """How long users are offline; 0: they connect again at once, and take their sessions over."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The probability that a user goes offline then."""
    spread: Duration = 0.0
    """Each user returns later by a random time between 0 and this."""


class WillTable(FixedTable):
    """A publication that the network makes for each user who goes offline."""

    topic: TopicReference
    """The topic of wills, by number or name."""
    size: Annotated[int, Field(ge=0, lt=2**31)] = 100
    """The size of a will, in bytes."""
    delay: Duration = 0.0
    """How long after a user has gone offline its will is published, or when its session expires if that is earlier; not if the user is
    back by then."""
    retain: bool = False
    """Whether wills are retained."""


class SessionsTable(FixedTable):
    """What brokers keep for users who are offline, and for those who subscribe later."""

    persistent: bool = True
    """Whether subscriptions of users who go offline stay in force, with messages waiting, or are made again at their return."""
    expiry: PositiveDuration | None = Field(default=None, json_schema_extra={"default": "never"})
    """How long a session outlives the connection; by default forever."""
    queue: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait in a session."""
    queue_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait in a session."""
    max_age: PositiveDuration | None = Field(default=None, json_schema_extra={"default": "any"})
    """How long a message may wait in a session."""
    overflow: Literal["drop-newest", "drop-oldest"] = "drop-newest"
    """What is lost if a session is full: the message arriving, or those that have waited longest."""
    rate: Annotated[float, Field(gt=0)] | None = Field(
        default=None, json_schema_extra={"default": "unlimited", **unit("1/s")}
    )
    """How many waiting messages per second are sent to a user who has returned."""
    qos_0: Literal["drop", "keep"] = "drop"
    """Whether publications of quality of service 0 wait in sessions."""
    retained: Annotated[Literal["as-published", "all"] | tuple[TopicReference, ...], BeforeValidator(_listed)] = (
        "as-published"
    )
    """Topics on which publications are retained, by number or name, or all; by default as the workload says."""
    will: WillTable | None = None
    """The publication for each user who goes offline; none by default."""
    offline: Annotated[tuple[OfflineTable, ...], BeforeValidator(_listed)] = ()
    """The times at which users go offline."""

    @model_validator(mode="after")
    def _makes_sense(self) -> SessionsTable:
        if not self.persistent and self.expiry is not None:
            raise ValueError("expiry of sessions that are not persistent (allowed with: persistent = true)")
        for key, needed in (("will", self.will), ("expiry", self.expiry)):
            if needed is not None and not self.offline:
                raise ValueError(f"{key} without users who go offline (allowed with: offline)")
        check_overflow(self.overflow, queue=self.queue, queue_bytes=self.queue_bytes)
        return self

    def wrong(self, horizon: float) -> tuple[int, str] | None:
        """The first row of `offline` that begins after a horizon (s), and what is wrong with it."""
        for place, row in enumerate(self.offline):
            if row.at >= horizon:
                before, found = format_duration(horizon), format_duration(row.at)
                return place, f"at: expected a time before the horizon ({before}), found {found}"
        return None


def with_sessions(table: SessionsTable, workload: Workload, streams: Streams, horizon: float) -> Workload:
    """The workload up to a horizon (s) with what is retained, and users who are offline.

    Raises ScenarioError where the table does not fit the workload.
    """
    if not table.offline and table.retained == "as-published":
        return workload
    will = None if table.will is None else Will(_number("will.topic", table.will.topic, workload), *_will(table.will))
    if table.offline:
        spans, users = list[OfflineSpan](), np.arange(len(workload.users))
        for place, row in enumerate(table.offline):
            draws = streams.generator(f"offline/{place}").random((2, len(users)))
            end = row.at + row.lasts + row.spread * draws[1]
            spans += [OfflineSpan(user, row.at, end.item(user)) for user in users[draws[0] < row.share].tolist()]
        expiry = 0.0 if not table.persistent else math.inf if table.expiry is None else table.expiry
        workload = take_offline(workload, spans, OfflineRules(expiry, will), horizon)
    if table.retained != "as-published" or (will is not None and will.retain):
        listed = table.retained if isinstance(table.retained, tuple) else ()
        topics = [_number("retained", topic, workload) for topic in listed]
        workload = retain(workload, None if table.retained == "all" else topics)
    return workload


def _will(table: WillTable) -> tuple[int, float, bool]:
    return table.size, table.delay, table.retain


def _number(key: str, reference: int | str, workload: Workload) -> int:
    """The number of a topic. Raises ScenarioError where there is none."""
    names: list[str] = workload.topics.names.to_pylist()
    if isinstance(reference, int) and reference < len(names):
        return reference
    if reference not in names:
        raise ScenarioError(f"network.sessions.{key}: {unknown_of_many('topic', str(reference), names)}")
    return names.index(reference)
