"""The generic Poisson model of changing interests, uniform pattern (DYNATOPS, section IV.A.2)."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from sim import plugins
from sim.randomness import Streams
from sim.units import SECONDS, PositiveDuration, unit
from sim.workloads.sampling import draw_distinct
from sim.workloads.synthetic.poisson_kernels import replacements
from sim.workloads.tables import strings
from sim.workloads.workload import (
    DAY,
    MOST_EVENTS,
    Interests,
    Publications,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)


class PoissonWorkload:
    """Every user wants a fixed number of topics and replaces one by another as a Poisson process; nobody has a place."""

    class Parameters(plugins.Parameters):
        """Sizes and rates; a rate of 0 means never."""

        users: int = Field(1000, gt=0, lt=2**31)
        """Users."""
        topics: int = Field(100, gt=0, lt=2**31)
        """Topics."""
        topics_per_user: int = Field(5, ge=0)
        """Topics that each user wants at any time, all different."""
        change_rate: float = Field(0.1, ge=0, json_schema_extra=unit("1/h"))
        """Replacements of one topic by another, per user."""
        publication_rate: float = Field(1.0, ge=0, json_schema_extra=unit("1/h"))
        """Publications per topic, each by a user drawn at random."""
        horizon: PositiveDuration = 100 * SECONDS["h"]
        """Length."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        @model_validator(mode="after")
        def _topics_suffice(self) -> PoissonWorkload.Parameters:
            needed = self.topics_per_user + (self.change_rate > 0)
            if self.topics < needed:
                raise ValueError(f"topics is {self.topics}, but users want {self.topics_per_user} and change to others")
            events = (self.users * self.change_rate + self.topics * self.publication_rate) * self.horizon / SECONDS["h"]
            if events >= MOST_EVENTS:
                raise ValueError(
                    f"rates and horizon come to {events:.3g} events, allowed: fewer than {MOST_EVENTS:.3g}"
                )
            return self

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def generate(self, streams: Streams) -> Workload:
        """The workload; interests, changes and publications are drawn from streams of their own."""
        p = self.parameters
        interests = Interests(
            np.arange(p.users + 1, dtype=np.int64) * p.topics_per_user,
            draw_distinct(p.users, p.topics_per_user, p.topics, streams.generator("workload.interests")).ravel(),
        )
        per_day = np.full(p.topics, p.publication_rate * (DAY / SECONDS["h"]))
        nowhere = np.full(max(p.topics, p.users), np.nan)
        return Workload(
            kind="poisson",
            horizon=p.horizon,
            topics=Topics(
                strings(map(str, range(p.topics))),
                strings(["topic"] * p.topics),
                per_day,
                nowhere[: p.topics],
                nowhere[: p.topics],
            ),
            users=Users(strings(map(str, range(p.users))), nowhere[: p.users], nowhere[: p.users]),
            interests=interests,
            subscription_events=self._changes(interests, streams.generator("workload.changes")),
            publications=self._publications(streams.generator("workload.publications")),
            generator={"name": "poisson", **p.model_dump(mode="json"), "replication": streams.replication},
            seed=streams.seed,
        )

    def _changes(self, interests: Interests, generator: np.random.Generator) -> SubscriptionEvents:
        p = self.parameters
        mean = p.users * p.change_rate * p.horizon / SECONDS["h"] if p.topics_per_user else 0.0
        count = int(generator.poisson(mean))
        time = np.sort(generator.uniform(0, p.horizon, count))
        user = generator.integers(0, p.users, count, dtype=np.int32)
        slot = generator.integers(0, max(p.topics_per_user, 1), count, dtype=np.int32)
        other = generator.integers(0, max(p.topics - p.topics_per_user, 1), count, dtype=np.int32)
        topic = replacements(interests.indptr, interests.indices.copy(), user, slot, other)
        action = np.tile(np.array([1, -1], np.int8), count)
        return SubscriptionEvents(np.repeat(time, 2), np.repeat(user, 2), topic.ravel(), action)

    def _publications(self, generator: np.random.Generator) -> Publications:
        p = self.parameters
        count = int(generator.poisson(p.topics * p.publication_rate * p.horizon / SECONDS["h"]))
        return Publications(
            np.sort(generator.uniform(0, p.horizon, count)),
            generator.integers(0, p.topics, count, dtype=np.int32),
            generator.integers(0, p.users, count, dtype=np.int32),
            np.full(count, p.size, np.int32),
        )
