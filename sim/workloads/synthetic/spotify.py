"""Subscriptions and event rates like those of Spotify's notifications, as far as published.

"Maximizing the Number of Satisfied Subscribers in Pub/Sub Systems Under Capacity Constraints" (Setty, Kreitz, Urdaneta, Vitenberg,
van Steen), section VII, reports ten days with 1.1 million topics, 4.9 million subscribers and 2763 events per topic on average.
The numbers of topics per subscriber were not published, so there are two shapes.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim.base.memory import need
from sim.base.randomness import Streams
from sim.base.units import SECONDS, PositiveDuration, unit
from sim.files.parquet import numbers
from sim.workloads.format.workload import Interests, Publications, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.synthetic.common import Generated, check_events
from sim.workloads.synthetic.spotify_kernels import draw_interests, guide_to

PERIOD = 10 * SECONDS["d"]
"""The period of event rates (s): the length of the trace."""


def whole_sizes(
    mean: float, sigma: float, limits: tuple[int, int], count: int, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Lognormal sizes with this mean and standard deviation of the logarithm, rounded, then clipped to the limits."""
    if not mean:
        return np.zeros(count, np.int32)
    drawn = generator.lognormal(math.log(mean) - sigma**2 / 2, sigma, count)
    return np.clip(np.rint(drawn, out=drawn), *limits, out=drawn).astype(np.int32)


def popular_interests(sizes: NDArray[np.int32], topics: int, exponent: float, key: int) -> Interests:
    """Draw topics for each user, topic i = 0, 1, … with weight (i + 1)^-exponent (Zipf); repeated draws count once."""
    below = np.zeros(topics + 1)
    np.cumsum(np.arange(1.0, topics + 1) ** -exponent, out=below[1:])
    indptr, indices = np.zeros(len(sizes) + 1, np.int64), np.empty(int(sizes.sum(dtype=np.int64)), np.int32)
    draw_interests(key, sizes, below, guide_to(below), indptr, indices)
    return Interests(indptr, indices[: indptr[-1]])


def whole_rates(rates: NDArray[np.float64], mean: int, limit: int) -> NDArray[np.int64]:
    """Scale positive rates to whole numbers from 1 to `limit` by a common factor, such that their mean is exactly `mean`.

    The remainder after rounding down is distributed, one each, to those with the largest fractions; the first on ties.
    """
    total = mean * len(rates)
    low, high = 1 / rates.max(), limit / rates.min()  # factors at which all of them are 1, or the limit
    for _ in range(100):  # bisection on a logarithmic scale, down to the float below the factor
        factor = math.sqrt(low * high)
        if np.clip(rates * factor, 1, limit).sum() <= total:
            low = factor
        else:
            high = factor
    scaled = np.clip(rates * low, 1, limit)
    whole: NDArray[np.int64] = scaled.astype(np.int64)
    whole[np.argsort(whole - scaled, kind="stable")[: total - whole.sum()]] += 1
    return whole


class SpotifyDense:
    """Subscriptions and event rates at Spotify's scale, about 20 topics per user, rates independent of popularity."""

    name: ClassVar = "spotify-dense"

    class Parameters(Generated):
        """Sizes, popularity, interests and rates; topic 0 is the most popular."""

        scale: float = Field(1.0, gt=0, le=1)
        """Scale of the numbers of topics and users, with the same distributions."""
        topics: int = Field(1_100_000, gt=0, lt=2**31)
        """Number of topics, at scale 1."""
        users: int = Field(4_900_000, gt=0, lt=2**31)
        """Number of users, at scale 1."""
        popularity_exponent: float = Field(0.9, ge=0)
        """Each draw of a user's topics is topic i = 0, 1, … with probability proportional to (i + 1)^-exponent (Zipf)."""
        topics_per_user: float = Field(21.5, ge=1)
        """Mean number of topics that a user draws (lognormal, rounded, at least 1 and at most all); repeated draws count once."""
        topics_sigma: float = Field(1.2, ge=0, le=5)
        """Standard deviation of the logarithm of the number of topics that a user draws."""
        event_rate: int = Field(2763, ge=1, json_schema_extra=unit("1/(10 d)"))
        """Mean event rate of all topics, to which the rates, whole numbers of at least 1, are scaled exactly."""
        rate_sigma: float = Field(2.0, ge=0, le=5)
        """Standard deviation of the logarithm of an event rate (lognormal)."""
        rate_limit: int = Field(1_000_000, ge=1, lt=2**22, json_schema_extra=unit("1/(10 d)"))
        """Upper limit of event rates."""
        rate_correlation: float = Field(0.0, ge=-1, le=1)
        """Rank correlation (Spearman) of event rates and popularity."""
        publications: Literal["none", "poisson"] = "none"
        """Rates only, or also publications from outside, on each topic as a Poisson process of its rate (for small scales)."""
        horizon: PositiveDuration = PERIOD
        """Length of the workload."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.rate_limit < self.event_rate:
                raise ValueError(f"rate_limit is {self.rate_limit}, below the mean (event_rate, {self.event_rate})")
            check_events("users and topics_per_user", self.interests, "interests")
            smaller = f"; take a smaller scale than {self.scale:g}"
            check_events("event_rate and horizon", self.events, "publications", smaller)
            return self

        @property
        def scaled(self) -> tuple[int, int]:
            """Topics and users at this scale, at least one of each."""
            return max(1, round(self.scale * self.topics)), max(1, round(self.scale * self.users))

        @property
        def interests(self) -> float:
            """An upper bound on the expected number of interests."""
            return self.scaled[1] * self.topics_per_user

        @property
        def events(self) -> float:
            return 0.0 if self.publications == "none" else self.scaled[0] * self.event_rate * self.horizon / PERIOD

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def generate(self, streams: Streams) -> Workload:
        """The workload; interests, rates and publications are drawn from separate streams.

        Raises InputError where it would not fit in memory.
        """
        p = self.parameters
        topics, users = p.scaled
        need(
            70 * (topics + users) + 4 * p.interests + 40 * p.events,
            f"a {self.name} workload of {topics:,} topics and {users:,} users",
        )
        rates = self._rates(topics, streams)
        sizes = whole_sizes(p.topics_per_user, p.topics_sigma, (1, topics), users, streams.generator("workload.sizes"))
        return Workload(
            kind=self.name,
            horizon=p.horizon,
            topics=Topics.without_places(numbers(topics), "topic", rates.astype(np.float64)),
            users=Users.without_places(numbers(users)),
            interests=popular_interests(sizes, topics, p.popularity_exponent, streams.key("workload.interests")),
            subscription_events=SubscriptionEvents.none(),
            publications=self._publications(rates, streams.generator("workload.publications")),
            period=PERIOD,
            generator={"name": self.name, **p.model_dump(mode="json"), "replication": streams.replication},
            seed=streams.seed,
        )

    def _rates(self, topics: int, streams: Streams) -> NDArray[np.int64]:
        """Lognormal rates, with ranks correlated with popularity by a Gaussian copula."""
        p = self.parameters
        popularity = -np.sort(streams.generator("workload.popularity").normal(size=topics))
        together = 2 * math.sin(
            math.pi / 6 * p.rate_correlation
        )  # the correlation of normal variables with this rank correlation
        own = streams.generator("workload.rates").normal(size=topics)
        return whole_rates(
            np.exp(p.rate_sigma * (together * popularity + math.sqrt(1 - together**2) * own)),
            p.event_rate,
            p.rate_limit,
        )

    def _publications(self, rates: NDArray[np.int64], generator: np.random.Generator) -> Publications:
        p = self.parameters
        if p.publications == "none":
            return Publications.none()
        counts = generator.poisson(rates * (p.horizon / PERIOD))
        count = int(counts.sum())
        return Publications(
            np.sort(generator.uniform(0, p.horizon, count)),
            generator.permutation(np.repeat(np.arange(len(rates), dtype=np.int32), counts)),
            np.full(count, -1, np.int32),
            np.full(count, p.size, np.int32),
        )


class SpotifySparse(SpotifyDense):
    """Subscriptions and event rates at Spotify's scale, about 3 topics per user, higher rates on popular topics."""

    name: ClassVar = "spotify-sparse"

    class Parameters(SpotifyDense.Parameters):
        """Sizes, popularity, interests and rates; topic 0 is the most popular."""

        topics_per_user: float = Field(2.6, ge=1)
        """Mean number of topics that a user draws (lognormal, rounded, at least 1 and at most all); repeated draws count once."""
        rate_correlation: float = Field(0.4, ge=-1, le=1)
        """Rank correlation (Spearman) of event rates and popularity."""
