"""Rows of follows and events, validated and loaded as arrays: every row is usable or has a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.randomness import Streams
from sim.spark import F, sql
from sim.workloads.models.follow_log import EVER, UNENDING, FollowLog, FollowPublications, Follows
from sim.workloads.traces.follow_tables import FollowTable, Labels, Span
from sim.workloads.traces.rows import found, judged_as, named, read_rows, with_texts
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.times import Window, outside, parse_time, time_text
from sim.workloads.traces.typed import Names, read_typed

_DIGITS = 12  # hexadecimal digits of a share, which a float holds exactly


def expected_text(table: FollowTable) -> dict[str, str]:
    """What is expected in the fields of a table, as text; each kind of time is described separately."""
    fields = {topics.fields[0]: f"a {topics.kind}, which is not empty" for topics in table.topics}
    return {**fields, table.user: "a user, which is not empty"}


def judge_follows(rows: sql.DataFrame, table: FollowTable, window: Window, streams: Streams) -> sql.DataFrame:
    """Type the fields of `read_rows`: user, a `topic_<n>` for each of the table's, kind, and micros, or since and until.

    Null where they are not usable, and since and until where there is no such limit. Adds `reason`, null where the row by itself is
    usable; `column` and `found`, the name and the text of the invalid field. `window` is [first, end) in µs since 1970 for
    publications. No row raises, whatever it contains.
    """

    def bound(field: str) -> sql.Column:
        text, otherwise = named(rows, field), {"since": EVER, "until": UNENDING}[field]
        return F.when(text.isNull(), otherwise).otherwise(parse_time(text, table.layout, bound=True))

    judged = with_texts(rows, table.used)
    if table.events:
        micros = parse_time(time_text(table.layout), table.layout)
        judged = judged.withColumn("micros", F.when(micros >= table.first_micros, micros))
        if table.spread:
            judged = judged.withColumn("micros", _moment(F.col("micros"), F.col("raw"), table.spread, streams))
    judged = judged.withColumns(
        {
            "user": named(rows, table.user),
            **{f"topic_{n}": named(rows, *topics.fields) for n, topics in enumerate(table.topics)},
            **({} if table.events else {"kind": named(rows, table.kind)}),
            **{field: bound(field) for field in table.bounds},
        }
    )
    times = {"micros": table.time[0]} if table.events else {field: field for field in table.bounds}
    late = [F.when(F.col(typed).isNull(), field) for typed, field in times.items()]
    if len(table.bounds) == 2:
        late.append(F.when(F.col("until") <= F.col("since"), "until"))
    names = {"user": table.user} if table.follows else {}
    names |= {f"topic_{n}": topics.fields[0] for n, topics in enumerate(table.topics)}
    nameless = F.coalesce(*(F.when(F.col(typed).isNull(), field) for typed, field in names.items()))
    parsed = F.col("parsed")
    judged = judged.withColumns(
        {"wrong": F.when(parsed, nameless), "late": F.when(parsed, F.coalesce(*late, F.lit(None)))}
    )
    reason = F.when(~parsed | F.col("wrong").isNotNull(), "unparsable").when(F.col("late").isNotNull(), "bad_time")
    if table.events:
        reason = reason.when(outside(F.col("micros"), window), "outside_window")
    judged = judged.withColumns({"reason": reason, "column": F.coalesce("wrong", "late")})
    # publications are never quarantined later
    raw = F.when(F.col("reason").isNotNull(), F.col("raw")) if table.events else F.col("raw")
    judged = judged.withColumns({"found": found(judged), "raw": raw})
    return judged_as(judged, follow_types(table))


def follow_types(table: FollowTable) -> dict[str, pa.DataType]:
    """What a table's usable row is typed as: times in µs since 1970, UTC."""
    texts = ("user", *(f"topic_{n}" for n in range(len(table.topics))), *(() if table.events else ("kind",)))
    return {
        **dict.fromkeys(texts, pa.string()),
        **dict.fromkeys(("micros",) if table.events else table.bounds, pa.int64()),
    }


def _moment(micros: sql.Column, row: sql.Column, span: Span, streams: Streams) -> sql.Column:
    """A moment in the day or month of a time: a share of it determined by the seed and the row's text.

    The share is the first twelve hexadecimal digits of the SHA-256 of the key, a colon and the text, as a fraction.
    """
    start = F.date_trunc(span, F.timestamp_micros(micros))
    begin, end = F.unix_micros(start), F.unix_micros(F.timestamp_add(span.upper(), F.lit(1), start))
    digest = F.sha2(F.concat(F.lit(f"{streams.key('workload.moments')}:"), row), 256)
    share = F.conv(F.substring(digest, 1, _DIGITS), 16, 10).cast("double") / float(16**_DIGITS)
    return begin + F.floor(share * (end - begin))


def read_labels(spark: sql.SparkSession, folder: Path, labels: Labels) -> sql.DataFrame:
    """The names of topics: rows with `topic`, the text that identifies it, and `name`, otherwise as from `read_rows`."""
    rows = read_rows(spark, folder, labels.layout, labels.used)
    found = {"topic": named(rows, *labels.fields), "name": F.col(labels.name)}
    blamed = {name: F.lit(None).cast("string") for name in ("reason", "column", "found")}
    return rows.withColumns(found | blamed).select("source", "block", "row", "raw", *blamed, *found)


def load_labels(shelf: Shelf) -> dict[str, str]:
    """The names of topics, by the texts that identify them; of several names the first by code points."""
    names: dict[str, str] = {}
    for _, _, batch in shelf.usable():
        for topic, name in zip(batch["topic"].to_pylist(), batch["name"].to_pylist(), strict=True):
            if topic is not None and name is not None and name.strip(" "):
                names[topic] = min(names.get(topic, name), name)
    return names


def load_follows(
    shelves: Sequence[Shelf], tables: Sequence[FollowTable], labels: Mapping[str, Mapping[str, str]]
) -> FollowLog:
    """The usable rows of each table.

    Users are numbered by their names, topics by kind and then by their names in rows: whole numbers by value, then the others by
    code points. A topic of several kinds is of the first in that order. `labels`, by kind, are the final names of topics.
    """
    users, kind_names = Names(), Names()
    topics = {kind: Names() for kind in sorted({topics.kind for table in tables for topics in table.topics})}
    found = [_load(shelf, table, users, topics, kind_names) for shelf, table in zip(shelves, tables, strict=True)]
    ranks, shift, names, kinds = {}, 0, list[str](), list[str]()
    for kind, numbers in topics.items():
        ranks[kind] = numbers.sort()
        ranks[kind][:-1] += shift
        shift += len(numbers.names)
        names += [labels.get(kind, {}).get(name, name) for name in numbers.names]
        kinds += [kind] * len(numbers.names)
    user, kind_rank = users.sort(), kind_names.sort()
    first_kind = np.full(len(names), len(kind_names.names))
    follows = list[Follows]()
    micros, topic, publisher = list[NDArray[np.int64]](), list[NDArray[np.int32]](), list[NDArray[np.int32]]()
    for table, (columns, row) in zip(tables, found, strict=True):
        who = user[columns.pop("user")]
        on = {some: ranks[some.kind][columns.pop(f"topic_{n}")] for n, some in enumerate(table.topics)}
        if "kind" in columns:
            (which,) = on.values()
            ranked = kind_rank[columns["kind"]]
            np.minimum.at(first_kind, which[ranked >= 0], ranked[ranked >= 0])
        for some in table.events:
            micros.append(columns["micros"])
            topic.append(on[some])
            publisher.append(who)
        for some in table.follows:
            if table.events:
                follows.append(Follows(who, on[some], np.full(len(row), -1), columns["micros"]))
            else:
                follows.append(Follows(who, on[some], row, columns.get("since"), columns.get("until")))
    for number in np.flatnonzero(first_kind < len(kind_names.names)).tolist():
        kinds[number] = kind_names.names[first_kind[number]]
    published = FollowPublications(np.concatenate(micros), np.concatenate(topic), np.concatenate(publisher))
    return FollowLog(users.names, names, kinds, follows, published)


def _load(
    shelf: Shelf, table: FollowTable, users: Names, topics: Mapping[str, Names], kinds: Names
) -> tuple[Columns, NDArray[np.int64]]:
    names = {"user": users, "kind": kinds} | {f"topic_{n}": topics[some.kind] for n, some in enumerate(table.topics)}
    return read_typed(shelf, follow_types(table), names)
