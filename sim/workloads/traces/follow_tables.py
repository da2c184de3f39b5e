"""The files of a follow trace and the meaning of their rows: a description per table, which the pipeline reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from sim.base.errors import WorkloadError, suggestion
from sim.base.naming import Raw
from sim.files.compression import ENDINGS
from sim.workloads.traces.layouts import Layout, lay_over
from sim.workloads.traces.sources import Inputs

Span = Literal["day", "month"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOUNDS = ("since", "until")


@dataclass(frozen=True)
class FollowedTopics:
    """Topics that rows name: all of one kind, each by the first of these fields that is not empty."""

    kind: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class FollowTable:
    """Files of one layout. A row's `user`, which is a field, follows all topics of `follows` and publishes on those of `events`.

    A row that does both begins a follow. For others, the fields since and until give its time, and `kind` the kind of topic, if the
    layout has them. Publications before the year `earliest` are invalid. If only the day or month is known (`spread`), a moment in it
    is drawn. `file` is its name in a preset.
    """

    layout: Layout
    user: str = "user"
    follows: tuple[FollowedTopics, ...] = ()
    events: tuple[FollowedTopics, ...] = ()
    kind: str = "kind"
    earliest: int = 1
    spread: Span | None = None
    file: str = ""

    @property
    def topics(self) -> tuple[FollowedTopics, ...]:
        """The topics of `follows` and `events`, each once."""
        return tuple(dict.fromkeys(self.follows + self.events))

    @property
    def time(self) -> tuple[str, ...]:
        """The fields that give the time of a publication."""
        return self.layout.time_fields

    @property
    def bounds(self) -> tuple[str, ...]:
        """Which of since and until its rows have."""
        return () if self.events else tuple(bound for bound in _BOUNDS if bound in self.layout.columns)

    @property
    def needed(self) -> tuple[str, ...]:
        """The required fields of a row."""
        times, user = self.time * bool(self.events), (self.user,) * bool(self.follows)
        return tuple(dict.fromkeys((*times, *user, *(topics.fields[0] for topics in self.topics))))

    @property
    def used(self) -> tuple[str, ...]:
        """All fields with a meaning, whether the layout has them or not."""
        named = (field for topics in self.topics for field in topics.fields)
        return tuple(dict.fromkeys((*self.needed, self.user, *named, self.kind, *self.bounds)))

    @property
    def first_micros(self) -> int:
        """When the year `earliest` begins, µs since 1970."""
        return (datetime(self.earliest, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True)
class Labels:
    """A file with the names of topics of a kind: a topic, the first of `fields` that is not empty, has a `name`."""

    layout: Layout
    kind: str
    fields: tuple[str, ...]
    name: str
    file: str

    @property
    def used(self) -> tuple[str, ...]:
        """All fields with a meaning."""
        return tuple(dict.fromkeys((*self.fields, self.name)))


@dataclass(frozen=True)
class Preset:
    """A public data set: its description, the tables in its folder, and the names of its topics."""

    name: str
    text: str
    tables: tuple[FollowTable, ...]
    labels: Labels | None = None


@dataclass(frozen=True)
class Trace:
    """Tables and labels with their files; times without a zone are all in the same zone."""

    name: str
    tables: tuple[tuple[FollowTable, Inputs], ...]
    labels: tuple[Labels, Inputs] | None = None

    @property
    def time_zone(self) -> str:
        return self.tables[0][0].layout.time_zone

    def parameters(self) -> Raw:
        """Its entries in a manifest."""
        tables = [{**table.layout.parameters(), "spread": table.spread} for table, _ in self.tables]
        return {"format": self.name, "tables": tables}


def follow_origins(tables: Sequence[FollowTable]) -> dict[str, list[int]]:
    """The numbers of those of a trace's tables of which tables of the workload are made, where these are not all."""
    follows = [number for number, table in enumerate(tables) if table.follows]
    events = [number for number, table in enumerate(tables) if table.events]
    return {"interests": follows, "subscription_events": follows, "publications": events}


_TOPIC = (FollowedTopics("topic", ("topic",)),)


def free_trace(follows: tuple[Layout, Inputs], events: tuple[Layout, Inputs], spread: Span | None = None) -> Trace:
    """Follows with user, topic and perhaps kind, since and until, and events with time, topic and perhaps publisher.

    Raises WorkloadError where a layout lacks a field.
    """
    who = FollowTable(follows[0], follows=_TOPIC)
    what = FollowTable(events[0], user="publisher", events=_TOPIC, spread=spread)
    who.layout.require("follows", who.needed, "--follows-columns", (*who.used, *_BOUNDS))
    what.layout.require("events", what.needed, "--events-columns", what.used)
    return Trace("free", ((who, follows[1]), (what, events[1])))


def preset_trace(name: str, folder: Path, time_zone: str | None = None) -> Trace:
    """The files of a preset in a folder, plain or compressed; `time_zone` is that of times without one.

    Raises WorkloadError where one is missing.
    """
    preset = PRESETS[name]

    tables = tuple(
        (replace(table, layout=lay_over(table.layout, time_zone=time_zone)), _find(folder, table.file, preset))
        for table in preset.tables
    )
    labels = preset.labels
    return Trace(name, tables, (labels, _find(folder, labels.file, preset)) if labels else None)


def _find(folder: Path, file: str, preset: Preset) -> Inputs:
    if not folder.is_dir():
        found = "not a folder" if folder.exists() else "no such folder"
        raise WorkloadError(f"{folder}: {found}; --format {preset.name} needs the folder of its files")
    for ending in ("", *ENDINGS):
        if (folder / f"{file}{ending}").is_file():
            return (folder / f"{file}{ending}",)
    hint = suggestion(file, (entry.name for entry in folder.iterdir()))
    allowed = f"plain or compressed ({', '.join(ENDINGS)})"
    raise WorkloadError(f"{folder}: no {file} in it, {allowed}{hint} (--format {preset.name} needs it)")


def _hetrec(*columns: str, time_format: str = "iso") -> Layout:
    return Layout("lastfm-hetrec", columns, delimiter="\t", header=True, time_formats=(time_format,))


def _artist(*fields: str) -> tuple[FollowedTopics, ...]:
    return (FollowedTopics("artist", fields),)


def _friend(field: str) -> tuple[FollowedTopics, ...]:
    return (FollowedTopics("friend", (field,)),)


# Last.fm began in 2002.
LASTFM_HETREC = Preset(
    "lastfm-hetrec",
    "Last.fm, HetRec 2011: plays and friendships without times; tags, of which a month is known",
    (
        FollowTable(_hetrec("user", "artist", "weight"), follows=_artist("artist"), file="user_artists.dat"),
        FollowTable(_hetrec("user", "friend"), follows=_friend("friend"), file="user_friends.dat"),
        FollowTable(
            _hetrec("user", "artist", "tag", "day", "month", "year", time_format="yyyy-M-d"),
            events=_artist("artist") + _friend("user"),
            earliest=2002,
            spread="month",
            file="user_taggedartists.dat",
        ),
    ),
    Labels(_hetrec("artist", "name", "url", "picture"), "artist", ("artist",), "name", "artists.dat"),
)
_PLAYS = Layout("lastfm-1k", ("user", "time", "artist", "name", "track", "title"), delimiter="\t")
# An artist without a MusicBrainz id is identified by name.
LASTFM_1K = Preset(
    "lastfm-1k",
    "Last.fm, the plays of a thousand users, to the second",
    (
        FollowTable(
            _PLAYS,
            follows=_artist("artist", "name"),
            events=_artist("artist", "name"),
            file="userid-timestamp-artid-artname-traid-traname.tsv",
        ),
    ),
    Labels(_PLAYS, "artist", ("artist", "name"), "name", "userid-timestamp-artid-artname-traid-traname.tsv"),
)
_FILM = (FollowedTopics("film", ("film",)),)
# Trust counts as a follow; reviewers of a film follow its further reviews. Reviews are known to the day.
CIAODVD = Preset(
    "ciaodvd",
    "CiaoDVD: who trusts whom, and reviews of films, of which a day is known",
    (
        FollowTable(Layout("ciaodvd", ("user", "friend", "trust")), follows=_friend("friend"), file="trusts.txt"),
        FollowTable(
            Layout("ciaodvd", ("user", "film", "genre", "review", "rating", "time"), time_formats=("yyyy-MM-dd",)),
            follows=_FILM,
            events=_friend("user") + _FILM,
            spread="day",
            file="movie-ratings.txt",
        ),
    ),
)
PRESETS = {preset.name: preset for preset in (LASTFM_HETREC, CIAODVD, LASTFM_1K)}
