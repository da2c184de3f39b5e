"""The spotify-sessions workload: users listen in sessions, and are notified about friends, playlists and artists meanwhile.

After "The Hidden Pub/Sub of Spotify" (Setty, Kreitz, Vitenberg, van Steen, Urdaneta, Gimåker; DEBS 2013), which describes topics
for friends, playlists and artists, subscribed to by users who are online, and "Understanding User Behavior in Spotify" (Zhang et
al.; INFOCOM 2013), which describes a daily rhythm of session starts. The numbers are our own choice.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim.base.csr import row_starts
from sim.base.randomness import Streams
from sim.base.units import SECONDS, Duration, PositiveDuration, Utc, unit
from sim.files.parquet import numbers, strings
from sim.workloads.format.workload import DAY, Interests, Publications, Sessions, Topics, Users, Workload
from sim.workloads.synthetic.common import Generated, check_events
from sim.workloads.synthetic.online import subscriptions, times_during, times_online
from sim.workloads.synthetic.spotify import popular_interests, whole_sizes
from sim.workloads.synthetic.spotify_kernels import one_at_a_time

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_STEPS = 1440  # steps for inverting the rhythm of a day


class _Told(NamedTuple):
    """Publications of one kind, in any order."""

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]


class SpotifySessions:
    """Friends, playlists and artists that users follow while they are online, in sessions with a daily rhythm."""

    class Parameters(Generated):
        """Follows, sessions and publications; a rate of 0 means never."""

        users: int = Field(2000, gt=0, lt=2**31)
        """Number of users; each has a topic for its friends, on what it listens to (kind `friend`)."""
        playlists: int = Field(500, gt=0, lt=2**31)
        """Number of playlist topics (kind `playlist`), each of a random owner."""
        artists: int = Field(200, gt=0, lt=2**31)
        """Number of artist topics (kind `artist`)."""
        friends_per_user: float = Field(5.0, ge=0)
        """Mean number of users that a user draws to follow (lognormal, rounded); repeated draws count once, itself never."""
        playlists_per_user: float = Field(2.0, ge=0)
        """Mean number of playlists that a user draws to follow, likewise."""
        artists_per_user: float = Field(5.0, ge=0)
        """Mean number of artists that a user draws to follow, likewise."""
        follows_sigma: float = Field(1.0, ge=0, le=5)
        """Standard deviation of the logarithm of a user's numbers of friends, playlists and artists."""
        popularity_exponent: float = Field(0.9, ge=0)
        """For each kind, topic i = 0, 1, … is drawn with probability proportional to (i + 1)^-exponent (Zipf)."""
        session_rate: float = Field(2.0, ge=0, json_schema_extra=unit("1/d"))
        """Mean rate at which a user begins sessions; a session that would begin during another is dropped."""
        activity_sigma: float = Field(0.8, ge=0, le=5)
        """Spread between users: standard deviation of the logarithm of their session rates (lognormal)."""
        session: PositiveDuration = 30 * SECONDS["min"]
        """Mean length of a session."""
        session_sigma: float = Field(1.0, ge=0, le=5)
        """Standard deviation of the logarithm of a session's length (lognormal)."""
        rhythm: float = Field(0.8, ge=0, le=1)
        """Daily rhythm: sessions begin at a relative rate of 1 + rhythm · cos(2π · time since `peak` / 1 d); 0 is no rhythm."""
        peak: Duration = 16 * SECONDS["h"]
        """The time of day, in UTC, at which most sessions begin."""
        listen_rate: float = Field(4.0, ge=0, json_schema_extra=unit("1/h"))
        """Rate of a user's publications on its own topic, while online."""
        playlist_rate: float = Field(0.5, ge=0, json_schema_extra=unit("1/h"))
        """Rate of the owner's publications on each playlist, while online."""
        release_rate: float = Field(0.2, ge=0, json_schema_extra=unit("1/w"))
        """Rate of an artist's releases, published on its topic from outside, all at the same time of the week."""
        release_day: Weekday = "friday"
        """The day of releases."""
        release_time: Duration = 9 * SECONDS["h"]
        """The time of day of releases, in UTC."""
        reaction: float = Field(0.3, ge=0, le=1)
        """Share of an artist's followers who listen to a release and publish that on their own topics."""
        reaction_time: PositiveDuration = 15 * SECONDS["min"]
        """Mean time online until a follower listens to a release (exponential); offline users listen in a later session."""
        origin: Utc = "2013-01-10T00:00:00Z"
        """Time 0, UTC; a Thursday by default."""
        horizon: PositiveDuration = 3 * SECONDS["d"]
        """Length of the workload."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        @model_validator(mode="after")
        def _fits(self) -> SpotifySessions.Parameters:
            topics = self.users + self.playlists + self.artists
            if topics >= 2**31:
                raise ValueError(f"users, playlists and artists give {topics:,} topics, allowed: fewer than {2**31:,}")
            for key in ("peak", "release_time"):
                if (time := getattr(self, key)) >= DAY:
                    raise ValueError(f"{key} is {time:g} s, which is not a time of day (allowed: below {DAY:g} s)")
            check_events("rates and horizon", self.events)
            return self

        @property
        def events(self) -> float:
            sessions = self.users * self.session_rate * (self.horizon / DAY + 1)
            follows = self.friends_per_user + self.playlists_per_user + self.artists_per_user
            heard = self.artists * self.release_rate * self.horizon / SECONDS["w"]
            notified = self.listen_rate + self.playlist_rate * self.playlists / self.users
            return sessions * (2 * follows + notified * self.session / SECONDS["h"]) + heard * (1 + self.users)

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def generate(self, streams: Streams) -> Workload:
        """The workload; follows, sessions, publications, releases and reactions are drawn from separate streams."""
        p = self.parameters
        follows = self._follows(streams)
        sessions = self._sessions(streams.generator("workload.sessions"))
        interests, changes = subscriptions(follows, sessions, p.users, p.horizon)
        publications = self._publications(follows, sessions, streams)
        topics = p.users + p.playlists + p.artists
        kinds = {"friend": p.users, "playlist": p.playlists, "artist": p.artists}
        by_start = np.argsort(sessions.start, kind="stable")
        return Workload(
            kind="spotify-sessions",
            horizon=p.horizon,
            topics=Topics.without_places(
                strings(f"{kind} {number}" for kind, count in kinds.items() for number in range(count)),
                strings(kind for kind, count in kinds.items() for _ in range(count)),
                publications.per_topic(topics).astype(np.float64) * (DAY / p.horizon),
            ),
            users=Users.without_places(numbers(p.users)),
            interests=interests,
            subscription_events=changes,
            publications=publications,
            sessions=sessions.rows(by_start),
            origin=p.origin,
            generator={"name": "spotify-sessions", **p.model_dump(mode="json"), "replication": streams.replication},
            seed=streams.seed,
        )

    @property
    def _clock(self) -> float:
        """The time of day of time 0 (s)."""
        start = datetime.fromisoformat(self.parameters.origin)
        return SECONDS["h"] * start.hour + SECONDS["min"] * start.minute + start.second

    def _follows(self, streams: Streams) -> Interests:
        """The topics that each user wants while online: friends, playlists, then artists."""
        p = self.parameters
        user, topic, first = [], [], 0
        for kind, count, mean in (
            ("friends", p.users, p.friends_per_user),
            ("playlists", p.playlists, p.playlists_per_user),
            ("artists", p.artists, p.artists_per_user),
        ):
            sizes = whole_sizes(mean, p.follows_sigma, (0, count), p.users, streams.generator(f"workload.{kind}"))
            drawn = popular_interests(sizes, count, p.popularity_exponent, streams.key(f"workload.{kind}"))
            user.append(np.repeat(np.arange(p.users, dtype=np.int32), np.diff(drawn.indptr)))
            topic.append(drawn.indices + np.int32(first))
            first += count
        users, topics = np.concatenate(user), np.concatenate(topic)
        others = users != topics  # no user is its own friend
        users, topics = users[others], topics[others]
        return Interests(row_starts(np.bincount(users, minlength=p.users)), topics[np.argsort(users, kind="stable")])

    def _sessions(self, generator: np.random.Generator) -> Sessions:
        """Sessions between time 0 and the horizon, by user and start; those under way at time 0 begin there.

        They are drawn from the previous day on, as a Poisson process per user with the daily rhythm.
        """
        p = self.parameters
        days = 1 + math.ceil((self._clock + p.horizon) / DAY)
        activity = generator.lognormal(-(p.activity_sigma**2) / 2, p.activity_sigma, p.users)
        user = np.repeat(
            np.arange(p.users, dtype=np.int32), generator.poisson(activity * (p.session_rate * days), p.users)
        )
        day = generator.integers(-1, days - 1, len(user)) * DAY
        start = day + self._times_of_day(generator.random(len(user))) - self._clock
        location = math.log(p.session) - p.session_sigma**2 / 2
        end = start + generator.lognormal(location, p.session_sigma, len(user))
        order = np.lexsort((start, user))
        user, start, end = user[order], start[order], end[order]
        there = one_at_a_time(user, start, end) & (start < p.horizon) & (end > 0)
        return Sessions(user[there], np.maximum(start[there], 0.0), np.minimum(end[there], p.horizon))

    def _times_of_day(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The time of day (s) at which a share of a day's sessions has begun, by interpolation."""
        p, time = self.parameters, np.linspace(0, DAY, _STEPS + 1)
        turn = 2 * np.pi / DAY
        begun = time + p.rhythm / turn * (np.sin(turn * (time - p.peak)) + math.sin(turn * p.peak))
        return np.interp(shares, begun / DAY, time)

    def _publications(self, follows: Interests, sessions: Sessions, streams: Streams) -> Publications:
        p = self.parameters
        released = self._releases(streams.generator("workload.releases"))
        notified = (
            released,
            self._listening(sessions, streams.generator("workload.listening")),
            self._updates(sessions, streams.generator("workload.playlist-updates")),
            self._reactions(follows, sessions, released, streams.generator("workload.reactions")),
        )
        time = np.concatenate([some.time for some in notified])
        order = np.argsort(time, kind="stable")
        topic, publisher = (np.concatenate([some[i] for some in notified])[order] for i in (1, 2))
        return Publications(time[order], topic, publisher, np.full(len(time), p.size, np.int32))

    def _releases(self, generator: np.random.Generator) -> _Told:
        p = self.parameters
        first = get_args(Weekday).index(p.release_day) - datetime.fromisoformat(p.origin).weekday()
        times = np.arange(first % 7 * DAY + p.release_time - self._clock, p.horizon, SECONDS["w"])
        counts = generator.poisson(p.release_rate, (len(times), p.artists)) * (times >= 0)[:, None]
        artist = np.tile(np.arange(p.artists, dtype=np.int32), len(times))
        topic = np.repeat(artist, counts.ravel()) + np.int32(p.users + p.playlists)
        return _Told(np.repeat(times, counts.sum(axis=1)), topic, np.full(len(topic), -1, np.int32))

    def _listening(self, sessions: Sessions, generator: np.random.Generator) -> _Told:
        length = sessions.end - sessions.start
        count = generator.poisson(length * (self.parameters.listen_rate / SECONDS["h"]))
        user = np.repeat(sessions.user, count)
        return _Told(times_during(sessions, count, generator), user, user)

    def _updates(self, sessions: Sessions, generator: np.random.Generator) -> _Told:
        p = self.parameters
        owner = generator.integers(0, p.users, p.playlists, dtype=np.int32)
        by_owner = np.argsort(owner, kind="stable").astype(np.int32)
        owned = np.bincount(owner, minlength=p.users)
        length = sessions.end - sessions.start
        count = generator.poisson(length * owned[sessions.user] * (p.playlist_rate / SECONDS["h"]))
        user = np.repeat(sessions.user, count)
        playlist = by_owner[(np.cumsum(owned) - owned)[user] + generator.integers(0, owned[user])]
        return _Told(times_during(sessions, count, generator), playlist + np.int32(p.users), user)

    def _reactions(
        self, follows: Interests, sessions: Sessions, released: _Told, generator: np.random.Generator
    ) -> _Told:
        """Publications by followers of released artists, after some time online."""
        p = self.parameters
        by_artist = np.argsort(follows.indices, kind="stable")
        follower = np.repeat(np.arange(p.users, dtype=np.int32), np.diff(follows.indptr))[by_artist]
        bounds = np.searchsorted(follows.indices[by_artist], np.stack([released.topic, released.topic + 1]))
        audience = bounds[1] - bounds[0]
        within = np.arange(audience.sum()) - np.repeat(np.cumsum(audience) - audience, audience)
        user = follower[np.repeat(bounds[0], audience) + within]
        listens = generator.random(len(user)) < p.reaction
        user, since = user[listens], np.repeat(released.time, audience)[listens]
        time = times_online(sessions, user, since, generator.exponential(p.reaction_time, len(user)))
        user, time = user[~np.isnan(time)], time[~np.isnan(time)]
        return _Told(time, user, user)
