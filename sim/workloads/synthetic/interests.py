"""The interest models of papers on overlay design, one user per node: coin flips, a fixed number of topics, or a list per node."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from sim.base.naming import RawValue
from sim.base.randomness import Streams
from sim.base.units import SECONDS, PositiveDuration, unit
from sim.files.inputs import File, InputFile
from sim.files.parquet import numbers
from sim.overlay.topic_connected.interests import BrokerInterests as NodeInterests
from sim.overlay.topic_connected.interests import coin_flips
from sim.workloads.format.workload import DAY, Interests, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.models.sampling import draw_distinct
from sim.workloads.synthetic.common import Generated, check_events, poisson_publications
from sim.workloads.synthetic.poisson_kernels import replacements

MOST_FLIPS = 2e8
"""The most coin flips; that many take two gigabytes."""


def interest_rows(content: RawValue, place: str = "") -> list[list[int]]:
    """Check and return the topics of each node from `{"interests": [[topic, …] per node]}`, as read from JSON.

    Raises ValueError where it is something else; `place` is its place in a file.
    """
    if not (isinstance(content, dict) and "interests" in content):
        found = f"keys {', '.join(content) or 'none'}" if isinstance(content, dict) else _short(content)
        raise ValueError(
            f'{place or "the file"} is not an object with a key "interests" ({found}); '
            'expected {"interests": [[topic, …] per node]}'
        )
    rows: list[list[int]] = content["interests"]
    place = f"{place}.interests" if place else "interests"
    if not isinstance(rows, list):
        raise ValueError(f"{place} is {_short(rows)}, expected a list with a list of topics per node")
    for node, row in enumerate(rows):
        if not isinstance(row, list):
            raise ValueError(f"{place}[{node}] is {_short(row)}, expected a list of topics")
        for i, topic in enumerate(row):
            if type(topic) is not int:
                raise ValueError(f"{place}[{node}][{i}] is {_short(topic)}, expected an integer, a topic")
    return rows


def _short(value: RawValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


def parse_interests(text: str) -> NodeInterests:
    """Parse interests from JSON; topics are renumbered in ascending order. Raises ValueError."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from None
    interests = NodeInterests.of(interest_rows(content))
    if not interests.topics:
        raise ValueError("no user wants any topic, so there is nothing to publish on")
    return interests


class InterestsWorkload:
    """Users want random topics, by coin flips or in a fixed number, or those in a file; they have no positions."""

    class Parameters(Generated):
        """Sizes and rates; a rate of 0 means never."""

        users: int = Field(100, gt=0, lt=2**31)
        """Number of users."""
        topics: int = Field(100, gt=0, lt=2**31)
        """Number of topics."""
        per_user: float = Field(10, ge=0)
        """Topics per user: the mean with "coin-flips", else the exact number."""
        model: Literal["coin-flips", "exact"] = "coin-flips"
        """Each user wants each topic with probability per_user / topics, or exactly per_user topics, all different."""
        file: Annotated[File[NodeInterests], InputFile(parse_interests)] | None = None
        """A JSON file {"interests": [[topic, …] per user]}, instead of users, topics, per_user and model."""
        change_rate: float = Field(0.0, ge=0, json_schema_extra=unit("1/h"))
        """Rate at which a user replaces one topic by another."""
        connect_rate: float | None = Field(None, gt=0, json_schema_extra=unit("1/s"))
        """How many users connect per second, in the order of their numbers, each subscribing to all its topics at once; by default,
        all are present from the start."""
        publication_rate: float = Field(0.0, ge=0, json_schema_extra=unit("1/h"))
        """Rate of publications on each topic, each by a user drawn at random."""
        horizon: PositiveDuration = SECONDS["h"]
        """Length of the workload."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        @model_validator(mode="after")
        def _fits(self) -> InterestsWorkload.Parameters:
            users, topics = self._size
            if self.file is not None:
                if beside := sorted(self.model_fields_set & {"users", "topics", "per_user", "model"}):
                    raise ValueError(f"file gives the interests, so {beside[0]} must not be set too")
            elif self.per_user > topics:
                raise ValueError(f"topics is {topics}, but users want {self.per_user:g}")
            elif self.model == "exact" and self.per_user != int(self.per_user):
                raise ValueError(f'per_user is {self.per_user:g}, but model "exact" needs a whole number')
            elif self.model == "coin-flips" and users * topics > MOST_FLIPS:
                raise ValueError(
                    f"{users:,} users and {topics:,} topics need {users * topics:.3g} coin flips, allowed: {MOST_FLIPS:.3g}"
                )
            if self.connect_rate is not None and self.change_rate:
                raise ValueError(f"change_rate is {self.change_rate:g}, but with connect_rate, interests do not change")
            check_events("rates and horizon", self.events)
            return self

        @property
        def _size(self) -> tuple[int, int]:
            """The numbers of users and topics."""
            return (
                (self.users, self.topics) if self.file is None else (self.file.content.nodes, self.file.content.topics)
            )

        @property
        def events(self) -> float:
            users, topics = self._size
            return (users * self.change_rate + topics * self.publication_rate) * self.horizon / SECONDS["h"]

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def generate(self, streams: Streams) -> Workload:
        """The workload; interests, changes and publications are drawn from separate streams."""
        p = self.parameters
        interests = self._interests(streams.generator("workload.interests"))
        users, topics = interests.nodes, interests.topics
        if p.connect_rate is None:
            at_first = Interests(interests.indptr, interests.indices)
            events = self._changes(interests, streams.generator("workload.changes"))
        else:
            at_first = Interests(np.zeros_like(interests.indptr), np.empty(0, np.int32))
            events = self._connections(interests, p.connect_rate)
        return Workload(
            kind="interests",
            horizon=p.horizon,
            topics=Topics.without_places(
                numbers(topics), "topic", np.full(topics, p.publication_rate * (DAY / SECONDS["h"]))
            ),
            users=Users.without_places(numbers(users)),
            interests=at_first,
            subscription_events=events,
            publications=poisson_publications(
                topics, users, p.publication_rate, p.horizon, p.size, streams.generator("workload.publications")
            ),
            generator={"name": "interests", **p.model_dump(mode="json"), "replication": streams.replication},
            seed=streams.seed,
        )

    def _interests(self, generator: np.random.Generator) -> NodeInterests:
        p = self.parameters
        if p.file is not None:
            return p.file.content
        if p.model == "coin-flips":
            return coin_flips(p.users, p.topics, p.per_user, generator)
        each = int(p.per_user)
        drawn = draw_distinct(p.users, each, p.topics, generator)
        return NodeInterests(np.arange(p.users + 1, dtype=np.int64) * each, drawn.ravel(), p.topics)

    def _changes(self, interests: NodeInterests, generator: np.random.Generator) -> SubscriptionEvents:
        """Changes of interests; users that want nothing, or everything, do not change."""
        p = self.parameters
        wants = np.diff(interests.indptr)
        able = np.flatnonzero((wants > 0) & (wants < interests.topics)).astype(np.int32)
        count = int(generator.poisson(len(able) * p.change_rate * p.horizon / SECONDS["h"]))
        time = np.sort(generator.uniform(0, p.horizon, count))
        user = able[generator.integers(0, max(len(able), 1), count)]
        slot = generator.integers(0, wants[user], dtype=np.int32)
        others = interests.topics - wants[user]
        share = (generator.integers(0, others, dtype=np.int32) + 0.5) / others
        alike = np.arange(interests.topics + 1, dtype=np.float64)
        topic = replacements(alike, interests.indptr, interests.indices.copy(), user, slot, share)
        action = np.tile(np.array([1, -1], np.int8), count)
        return SubscriptionEvents(np.repeat(time, 2), np.repeat(user, 2), topic.ravel(), action)

    def _connections(self, interests: NodeInterests, rate: float) -> SubscriptionEvents:
        """Users connect at this rate (1/s), until the horizon."""
        user = np.repeat(np.arange(interests.nodes, dtype=np.int32), np.diff(interests.indptr))
        time = user / rate
        there = time < self.parameters.horizon
        action = np.ones(np.count_nonzero(there), np.int8)
        return SubscriptionEvents(time[there], user[there], interests.indices[there], action)
