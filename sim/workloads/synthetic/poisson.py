"""The generic Poisson model of changing interests in three patterns (DYNATOPS, section IV.A.2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim.base.randomness import Streams
from sim.base.units import SECONDS, PositiveDuration, unit
from sim.files.parquet import numbers
from sim.workloads.format.workload import DAY, Interests, Shares, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.models.sampling import draw_distinct
from sim.workloads.synthetic.common import Generated, check_events, everybody_shares, poisson_publications
from sim.workloads.synthetic.poisson_kernels import differences, draw_weighted, replacements


class PoissonWorkload:
    """Users want a fixed number of topics and change them as a Poisson process; they have no positions."""

    class Parameters(Generated):
        """Sizes and rates; a rate of 0 means never."""

        users: int = Field(1000, gt=0, lt=2**31)
        """Number of users."""
        topics: int = Field(100, gt=0, lt=2**31)
        """Number of topics."""
        topics_per_user: int = Field(5, ge=0)
        """Number of distinct topics that each user wants at any time."""
        pattern: Literal["uniform", "zipf", "multimodal"] = "uniform"
        """Popularity of topics: uniform; topic i = 1, 2, … with weight (i + 1)^-exponent; or uniform within the user's mode."""
        exponent: float = Field(1.0, ge=0)
        """Zipf's exponent σ."""
        mode_size: int = Field(10, gt=0)
        """Consecutive topics per mode: topics are divided into modes, and each user has one, drawn at random."""
        change_rate: float = Field(0.1, ge=0, json_schema_extra=unit("1/h"))
        """Rate of subscription changes per user."""
        change: Literal["replace", "redraw"] = "replace"
        """A change replaces one topic by another of the pattern, or redraws all topics, in a new mode."""
        publication_rate: float = Field(1.0, ge=0, json_schema_extra=unit("1/h"))
        """Rate of publications on each topic, each by a user drawn at random."""
        horizon: PositiveDuration = 100 * SECONDS["h"]
        """Length of the workload."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""
        group_size: int | None = Field(None, ge=1, exclude_if=lambda size: size is None)
        """How many users share their subscriptions, those with the lowest numbers first: one of each group gets a publication."""

        @model_validator(mode="after")
        def _topics_suffice(self) -> PoissonWorkload.Parameters:
            replaces = self.change_rate > 0 and self.change == "replace"
            pool, said = self.topics, "topics"
            if self.pattern == "multimodal":
                pool, said = self.mode_size, "mode_size"
                if self.topics % pool:
                    raise ValueError(f"topics is {self.topics}, which are not modes of {pool} topics each (mode_size)")
            if pool < self.topics_per_user + replaces:
                change = " and change to others" if replaces else ""
                raise ValueError(f"{said} is {pool}, but users want {self.topics_per_user}{change}")
            check_events("rates and horizon", self.events)
            return self

        @property
        def events(self) -> float:
            changes = self.users * self.change_rate * (1 if self.change == "replace" else self.topics_per_user)
            return (changes + self.topics * self.publication_rate) * self.horizon / SECONDS["h"]

        @property
        def pool(self) -> int:
            """The topics among which a user chooses."""
            return self.mode_size if self.pattern == "multimodal" else self.topics

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = p = parameters
        self._pool = p.pool
        weight = np.arange(2.0, p.pool + 2) ** -p.exponent if p.pattern == "zipf" else np.ones(p.pool)
        self._below = np.concatenate(([0.0], np.cumsum(weight)))  # the weight of all topics before each

    def generate(self, streams: Streams) -> Workload:
        """The workload; modes, interests, changes and publications are drawn from separate streams."""
        p = self.parameters
        first = self._modes(p.users, streams.generator("workload.modes"))
        drawn = self._draw(p.users, streams.generator("workload.interests"))
        interests = Interests(
            np.arange(p.users + 1, dtype=np.int64) * p.topics_per_user, (first[:, None] + drawn).ravel()
        )
        per_day = np.full(p.topics, p.publication_rate * (DAY / SECONDS["h"]))
        return Workload(
            kind="poisson",
            horizon=p.horizon,
            topics=Topics.without_places(numbers(p.topics), "topic", per_day),
            users=Users.without_places(numbers(p.users)),
            interests=interests,
            subscription_events=self._changes(first, drawn, streams.generator("workload.changes")),
            publications=poisson_publications(
                p.topics, p.users, p.publication_rate, p.horizon, p.size, streams.generator("workload.publications")
            ),
            shares=Shares.none() if p.group_size is None else everybody_shares(p.users, p.topics, p.group_size),
            generator={"name": "poisson", **p.model_dump(mode="json"), "replication": streams.replication},
            seed=streams.seed,
        )

    def _modes(self, count: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """The first topics of `count` modes, drawn at random."""
        return self._pool * generator.integers(0, self.parameters.topics // self._pool, count, dtype=np.int32)

    def _draw(self, rows: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw sets of topics for users: distinct places in the pool, ascending; shape (rows, topics_per_user)."""
        p = self.parameters
        if p.pattern != "zipf":
            return draw_distinct(rows, p.topics_per_user, self._pool, generator)
        return draw_weighted(self._below, generator.random((rows, p.topics_per_user)))

    def _changes(
        self, first: NDArray[np.int32], held: NDArray[np.int32], generator: np.random.Generator
    ) -> SubscriptionEvents:
        p = self.parameters
        mean = p.users * p.change_rate * p.horizon / SECONDS["h"] if p.topics_per_user else 0.0
        count = int(generator.poisson(mean))
        time = np.sort(generator.uniform(0, p.horizon, count))
        user = generator.integers(0, p.users, count, dtype=np.int32)
        if p.change == "redraw":
            modes = self._modes(count, generator)
            drawn = self._draw(count, generator)
            row, topic, action = differences(first[:, None] + held, user, modes[:, None] + drawn)
            return SubscriptionEvents(time[row], user[row], topic, action)
        slot = generator.integers(0, max(p.topics_per_user, 1), count, dtype=np.int32)
        others = max(self._pool - p.topics_per_user, 1)
        if p.pattern == "zipf":
            share = generator.random(count)
        else:
            share = (generator.integers(0, others, count, dtype=np.int32) + 0.5) / others
        indptr = np.arange(p.users + 1, dtype=np.int64) * p.topics_per_user
        topic = replacements(self._below, indptr, held.ravel().copy(), user, slot, share) + first[user][:, None]
        action = np.tile(np.array([1, -1], np.int8), count)
        return SubscriptionEvents(np.repeat(time, 2), np.repeat(user, 2), topic.ravel(), action)
