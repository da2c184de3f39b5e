"""Rows of follows and of what is published, judged by Spark and loaded as arrays: every row is of use or has a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness import Streams
from sim.workloads.models.follow_log import EVER, UNENDING, FollowLog, FollowPublications, Follows
from sim.workloads.traces.follow_tables import FollowTable, Labels, Span
from sim.workloads.traces.rows import read_rows
from sim.workloads.traces.times import parse_time
from sim.workloads.traces.typed import Names, read_typed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DIGITS = 12  # hexadecimal, of which a share is made: a float holds it exactly


def expected_text(table: FollowTable) -> dict[str, str]:
    """What is expected in the fields of a table, as text; each kind of time is described separately."""
    fields = {topics.fields[0]: f"a {topics.kind}, which is not empty" for topics in table.topics}
    dates = (
        dict.fromkeys(table.time, f"what {'-'.join(table.time)} is to make a date of") if len(table.time) > 1 else {}
    )
    return {**fields, table.user: "a user, which is not empty", **dates}


def judge_follows(
    rows: DataFrame, table: FollowTable, window: tuple[int | None, int | None], streams: Streams
) -> DataFrame:
    """Type the fields of `read_rows`: user, a `topic_<n>` for each of the table's, kind, and micros, or since and until.

    Null where they are not usable, and since and until where there is no such limit. Adds `reason`, null where the row is usable
    as far as one row can tell; `column` and `found`, the name and the text of the field of which it speaks. `window` is [first,
    end) in µs since 1970 for what is published. No row raises, whatever it holds.
    """
    from pyspark.sql import functions as F

    def text_of(*fields: str) -> Column:
        texts = [F.when(F.trim(field) != "", F.col(field)) for field in fields if field in rows.columns]
        return F.coalesce(*texts) if texts else F.lit(None).cast("string")

    def bound(field: str, otherwise: int) -> Column:
        text = text_of(field)
        return F.when(text.isNull(), otherwise).otherwise(parse_time(text, table.layout, bound=True))

    typed = {
        "user": text_of(table.user),
        **{f"topic_{n}": text_of(*topics.fields) for n, topics in enumerate(table.topics)},
        **({} if table.events else {"kind": text_of(table.kind)}),
        **{
            field: bound(field, otherwise)
            for field, otherwise in (("since", EVER), ("until", UNENDING))
            if field in table.bounds
        },
    }
    judged = rows.withColumns({f"{field}_text": F.col(field) for field in rows.columns if field in table.used})
    if table.events:
        text = F.concat_ws("-", *table.time) if len(table.time) > 1 else F.col(table.time[0])
        micros = parse_time(text, table.layout)
        judged = judged.withColumn("micros", F.when(micros >= table.first_micros, micros))
        if table.spread:
            judged = judged.withColumn("micros", _moment(F.col("micros"), F.col("raw"), table.spread, streams))
    judged = judged.withColumns(typed)
    times = [F.when(F.col("micros").isNull(), table.time[0])] if table.events else []
    times += [F.when(F.col(field).isNull(), field) for field in table.bounds]
    if len(table.bounds) == 2:
        times.append(F.when(F.col("until") <= F.col("since"), "until"))
    names = [F.when(F.col("user").isNull(), table.user)] if table.follows else []
    names += [F.when(F.col(f"topic_{n}").isNull(), topics.fields[0]) for n, topics in enumerate(table.topics)]
    parsed = F.col("parsed")
    judged = judged.withColumns(
        {"wrong": F.when(parsed, F.coalesce(*names)), "late": F.when(parsed, F.coalesce(*times, F.lit(None)))}
    )
    reason = F.when(~parsed | F.col("wrong").isNotNull(), "unparsable").when(F.col("late").isNotNull(), "bad_time")
    if table.events and window[0] is not None:
        reason = reason.when(F.col("micros") < window[0], "outside_window")
    if table.events and window[1] is not None:
        reason = reason.when(F.col("micros") >= window[1], "outside_window")
    judged = judged.withColumns({"reason": reason, "column": F.coalesce("wrong", "late")})
    texts = [F.when(F.col("column") == field, F.col(f"{field}_text")) for field in rows.columns if field in table.used]
    # of what is published none is called back later
    raw = F.when(F.col("reason").isNotNull(), F.col("raw")) if table.events else F.col("raw")
    judged = judged.withColumns({"found": F.coalesce(*texts), "raw": raw})
    return judged.select("source", "block", "row", "raw", "reason", "column", "found", *loaded(table))


def loaded(table: FollowTable) -> tuple[str, ...]:
    """The typed columns of a table's rows."""
    topics = (f"topic_{n}" for n in range(len(table.topics)))
    return ("user", *topics, *(("micros",) if table.events else ("kind", *table.bounds)))


def _moment(micros: Column, row: Column, span: Span, streams: Streams) -> Column:
    """A moment in the day or month of a time: a share of it that belongs to the seed and to the row's text.

    The share is the first twelve hexadecimal digits of the SHA-256 of the key, a colon and the text, as a fraction.
    """
    from pyspark.sql import functions as F

    start = F.date_trunc(span, F.timestamp_micros(micros))
    begin, end = F.unix_micros(start), F.unix_micros(F.timestamp_add(span.upper(), F.lit(1), start))
    digest = F.sha2(F.concat(F.lit(f"{streams.key('workload.moments')}:"), row), 256)
    share = F.conv(F.substring(digest, 1, _DIGITS), 16, 10).cast("double") / float(16**_DIGITS)
    return begin + F.floor(share * (end - begin))


def read_labels(spark: SparkSession, folder: Path, labels: Labels) -> dict[str, str]:
    """What the topics of a kind are called, by the text that names them; of several names the first by code points.

    A header is a row among the others: nothing bears the name of its field.
    """
    from pyspark.sql import functions as F

    rows = read_rows(spark, folder, labels.layout, tuple(dict.fromkeys((*labels.fields, labels.name))))
    topic = F.coalesce(*(F.when(F.trim(field) != "", F.col(field)) for field in labels.fields))
    named = rows.select(topic.alias("topic"), F.col(labels.name).alias("name")).where("trim(name) != ''")
    found = named.groupBy("topic").agg(F.min("name").alias("name")).toArrow()
    return dict(zip(found["topic"].to_pylist(), found["name"].to_pylist(), strict=True))


def load_follows(
    folders: Sequence[Path], tables: Sequence[FollowTable], labels: Mapping[str, Mapping[str, str]]
) -> FollowLog:
    """The typed Parquet of each table's usable rows, in its folder; the order in which rows are stored means nothing.

    Users are numbered by their names, topics by kind and then by what rows call them: whole numbers by value, then the others by
    code points. A topic of several kinds is of the first in that order. `labels`, by kind, are what topics are called at last.
    """
    users, kind_names = Names(), Names()
    topics = {kind: Names() for kind in sorted({topics.kind for table in tables for topics in table.topics})}
    found = [_load(folder, table, users, topics, kind_names) for folder, table in zip(folders, tables, strict=True)]
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
            kind = kind_rank[columns["kind"]]
            np.minimum.at(first_kind, which[kind >= 0], kind[kind >= 0])
        for some in table.events:
            micros.append(columns["micros"])
            topic.append(on[some])
            publisher.append(who)
        for some in table.follows:
            if table.events:
                follows.append(Follows(who, on[some], np.full(len(row), -1), columns["micros"]))
            else:
                follows.append(Follows(who, on[some], row, columns.get("since"), columns.get("until")))
    for which in np.flatnonzero(first_kind < len(kind_names.names)).tolist():
        kinds[which] = kind_names.names[first_kind[which]]
    published = FollowPublications(np.concatenate(micros), np.concatenate(topic), np.concatenate(publisher))
    return FollowLog(users.names, names, kinds, follows, published)


def _load(
    folder: Path, table: FollowTable, users: Names, topics: Mapping[str, Names], kinds: Names
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    columns: dict[str, tuple[str, Names | type[np.generic]]] = {"user": ("user", users)}
    columns |= {f"topic_{n}": (f"topic_{n}", topics[some.kind]) for n, some in enumerate(table.topics)}
    if table.events:
        columns["micros"] = ("micros", np.int64)
    elif table.kind in table.layout.columns:
        columns["kind"] = ("kind", kinds)
    return read_typed(folder, columns | {bound: (bound, np.int64) for bound in table.bounds})
