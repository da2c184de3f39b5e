"""Raw rows of a broker's log, validated and loaded as arrays: every row ends as an event or with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.errors import WorkloadError, unknown
from sim.base.naming import Raw
from sim.spark import F, sql
from sim.workloads.models.event_kernels import CONNECT, DISCONNECT, SUBSCRIBE, UNSUBSCRIBE
from sim.workloads.models.log_tables import NO_EXPIRY, SECOND, Control, Delivered, EventLog, EventPublications
from sim.workloads.traces.broker_logs import BROKER_LOGS
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.rows import found, judged_as, named, with_texts
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.times import Window, outside, parse_time, time_text
from sim.workloads.traces.typed import Names, read_typed

_NEEDED = ("action", "client", "topic")
PUBLISH, DELIVER = 4, 5
ACTIONS = {
    "connect": CONNECT,
    "subscribe": SUBSCRIBE,
    "unsubscribe": UNSUBSCRIBE,
    "disconnect": DISCONNECT,
    "publish": PUBLISH,
    "deliver": DELIVER,
}

DECODED_MQTT = Layout(
    "mqtt",
    {"time": "time_s", "action": "event", "client": "client", "topic": "topic", "size": "payload_bytes"},
    delimiter="\t",
    header=True,
    time_formats=("epoch",),
    text="MQTT packets decoded from a capture",
)
EVENT_LAYOUTS = {DECODED_MQTT.name: DECODED_MQTT, **{name: log.layout for name, log in BROKER_LOGS.items()}}
# The values of optional fields, as numbers; rows that do not say have -1.
_BOOLEANS = {"0": 0, "1": 1, "false": 0, "true": 1}
FLAGS = {"qos": {"0": 0, "1": 1, "2": 2}, "retain": _BOOLEANS, "clean": _BOOLEANS}
EVENT_TYPES = {
    "micros": pa.int64(),
    "action": pa.int8(),
    **dict.fromkeys(("client", "topic", "publisher"), pa.string()),
    "size": pa.int32(),
    **dict.fromkeys(FLAGS, pa.int8()),
    "expiry": pa.int64(),
}
"""What a usable row is typed as: time in µs since 1970, UTC, sizes in bytes, expiry in seconds."""
EVENT_EXPECTED = {
    "action": f"an action ({', '.join(ACTIONS)}; --actions says what a file calls them)",
    "client": "a client, in every row that does not publish",
    "topic": "a topic, in every row that does not connect or disconnect",
    "size": "a size in whole bytes, or nothing",
    "expiry": "a whole number of seconds, or nothing",
    **{field: f"one of {', '.join(values)}, or nothing" for field, values in FLAGS.items()},
}


def needed_fields(layout: Layout) -> tuple[str, ...]:
    """The fields that every row of a log has."""
    return (*layout.time_fields, *_NEEDED)


def event_fields(layout: Layout) -> tuple[str, ...]:
    """All fields with a meaning, whether the layout has them or not."""
    return (*needed_fields(layout), "size", "publisher", "group", *FLAGS, "expiry")


def flags_of(layout: Layout) -> list[str]:
    """The optional fields with numbers that the layout has."""
    return [field for field in (*FLAGS, "expiry") if field in layout.columns]


def event_types(layout: Layout) -> dict[str, pa.DataType]:
    """The types of the columns that usable rows in a layout have."""
    flags = flags_of(layout)
    return {name: kind for name, kind in EVENT_TYPES.items() if name in flags or name not in (*FLAGS, "expiry")}


def action_words(text: str | None = None) -> dict[str, int]:
    """Which words of a log, in lower case, stand for which action; `text`: `connect=CONN,publish=PUB,publish=PUBLISH`.

    An action that it does not name keeps its own name. Raises WorkloadError where the text is no such list.
    """
    words: dict[str, int] = {}
    said = set()
    for part in text.split(",") if text else ():
        action, equals, word = (half.strip() for half in part.partition("="))
        if not (equals and word):
            raise WorkloadError(f"--actions '{part}': expected ACTION=WORD, such as publish=PUBLISH")
        if action.lower() not in ACTIONS:
            raise WorkloadError(f"--actions: {unknown('action', action, ACTIONS)}")
        if words.setdefault(word.lower(), ACTIONS[action.lower()]) != ACTIONS[action.lower()]:
            raise WorkloadError(f"--actions: '{word}' stands for two actions")
        said.add(action.lower())
    for action, code in ACTIONS.items():
        if action not in said and words.setdefault(action, code) != code:
            raise WorkloadError(f"--actions: '{action}' stands for another action, so name {action} too")
    return words


def judge_events(
    rows: sql.DataFrame, layout: Layout, words: Mapping[str, int], window: Window, size: int
) -> sql.DataFrame:
    """Type the fields of `read_rows`: micros, action, client, topic, size, publisher; null where they are not usable.

    Adds `reason`, null where the row by itself is usable; `column` and `found`, the name and the text of the invalid field. `words`
    are those of `action_words`, `window` is [first, end) in µs since 1970, `size` is that of publications without one. `raw` is
    kept where it may be needed later. No row raises, whatever it contains.
    """
    word = F.lower(F.trim("action"))
    code = F.coalesce(*(F.when(word == known, number) for known, number in words.items())).cast("tinyint")
    given = named(rows, "size")
    whole = F.regexp_extract(given, r"^\s*([0-9]+)(\.0*)?\s*$", 1).try_cast("int")
    typed = with_texts(rows, event_fields(layout)).withColumns(
        {
            "micros": parse_time(time_text(layout), layout),
            "action": code,
            **{field: named(rows, field) for field in ("client", "topic", "publisher")},
            "size": F.when(given.isNotNull(), whole).otherwise(size),
            **{field: _flag(rows, field) for field in flags_of(layout)},
        }
    )
    parsed, action, client, topic, micros = (F.col(name) for name in ("parsed", "action", "client", "topic", "micros"))
    wrong = F.when(~parsed, None).when(action.isNull(), "action")
    wrong = wrong.when((action != PUBLISH) & client.isNull(), "client")
    wrong = wrong.when(~action.isin(CONNECT, DISCONNECT) & topic.isNull(), "topic")
    wrong = wrong.when((action == PUBLISH) & F.col("size").isNull(), "size")
    for field in flags_of(layout):
        wrong = wrong.when(F.col(field).isNull(), field)
    reason = F.when(~parsed | wrong.isNotNull(), "unparsable").when(micros.isNull(), "bad_time")
    reason = reason.when(outside(micros, window), "outside_window")
    column = F.coalesce(wrong, F.when(parsed & micros.isNull(), layout.time_fields[0]))
    group = named(rows, "group")
    shared = F.when(action.isin(SUBSCRIBE, UNSUBSCRIBE), F.concat(F.lit("$share/"), group, F.lit("/"), topic))
    topic = F.when(~action.isin(CONNECT, DISCONNECT), F.coalesce(shared, topic))  # what else stands there is none
    judged = typed.withColumns({"column": column, "reason": reason, "topic": topic})
    needed = F.col("reason").isNotNull() | ~action.isin(PUBLISH, DELIVER)
    if "retain" in layout.columns:
        needed |= (action == DELIVER) & (F.col("retain") == 1)
    kept = F.when(needed, F.col("raw"))
    return judged_as(judged.withColumns({"found": found(judged), "raw": kept}), event_types(layout))


def _flag(rows: sql.DataFrame, field: str) -> sql.Column:
    """The number that an optional field stands for: -1 where it is empty, null where it cannot be."""
    given = named(rows, field)
    if field == "expiry":
        whole = F.regexp_extract(given, r"^\s*([0-9]+)(\.0*)?\s*$", 1).try_cast("bigint")
        value = F.when(whole <= NO_EXPIRY, whole)
    else:
        word = F.regexp_replace(F.lower(F.trim(given)), r"\.0*$", "")
        value = F.coalesce(*(F.when(word == known, number) for known, number in FLAGS[field].items())).cast("tinyint")
    return F.when(given.isNull(), -1).otherwise(value).cast("bigint" if field == "expiry" else "tinyint")


def load_events(shelf: Shelf, layout: Layout) -> tuple[EventLog, NDArray[np.int64], NDArray[np.int64], Raw]:
    """The usable rows, each table by (time, source, line), and the `row_number` of the rows of control and of deliveries.

    And how often each value of the layout's flags occurs, by action. Clients and topics are numbered by their names: whole numbers by
    value, then the others by code points.
    """
    clients, topics, flags = Names(), Names(), flags_of(layout)
    names = {"client": clients, "topic": topics, "publisher": clients}
    loaded, row = read_typed(shelf, event_types(layout), names)
    ranks = {"client": clients.sort(), "topic": topics.sort()}
    ranks["publisher"] = ranks["client"]
    order = np.argsort(loaded["micros"], kind="stable")
    if layout.kind == "log":
        loaded["micros"][order] = _spread(loaded["micros"][order])
    action = loaded["action"][order]

    def table(which: NDArray[np.bool_], *names: str) -> Columns:
        chosen = order[which]
        found = {name: loaded[name][chosen] for name in ("micros", *names)}
        return {name: ranks[name][values] if name in ranks else values for name, values in found.items()}

    for name in ("clean", "expiry", "retain", "qos"):
        loaded.setdefault(name, np.broadcast_to(np.int8(-1), len(action)))
    published, delivered = action == PUBLISH, action == DELIVER
    control = ~(published | delivered)
    log = EventLog(
        clients.names,
        topics.names,
        Control(
            **table(control, "action", "client", "topic", "clean", "qos"),
            expiry=loaded["expiry"][order[control]].astype(np.int64),
        ),
        EventPublications(**table(published, "topic", "client", "size", "retain", "qos")),
        Delivered(**table(delivered, "topic", "publisher", "client", "retain")),
    )
    counted = count_flags(loaded["action"], loaded, flags)
    return log, row[order[control]], row[order[delivered]], flags_seen(counted, flags)


def count_flags(action: NDArray[np.int8], columns: Columns, flags: Sequence[str]) -> NDArray[np.int64]:
    """How often rows have each value (0, 1, 2) of flags, by action (actions, flags, 3)."""
    counts = np.zeros((len(ACTIONS), len(flags), 3), np.int64)
    for number, flag in enumerate(flags):
        known = (columns[flag] >= 0) & (flag in FLAGS)
        np.add.at(counts[:, number], (action[known], columns[flag][known]), 1)
    return counts


def flags_seen(counts: NDArray[np.int64], flags: Sequence[str]) -> Raw:
    """Counts of `count_flags` by the names of actions and flags, without those of 0."""
    return _without_zeros(
        {
            action: {flag: dict(enumerate(counts[code, number].tolist())) for number, flag in enumerate(flags)}
            for action, code in ACTIONS.items()
        }
    )


def _spread(micros: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending times of a log in whole seconds, spread evenly over each second in the order of its lines; others as they are."""
    if (micros % SECOND).any():
        return micros
    _, first, which, counts = np.unique(micros, return_index=True, return_inverse=True, return_counts=True)
    return micros + (np.arange(len(micros)) - first[which]) * SECOND // counts[which]


def _without_zeros(counts: Raw) -> Raw:
    """Nested counts without those of 0."""
    kept = {str(key): _without_zeros(value) if isinstance(value, dict) else value for key, value in counts.items()}
    return {key: value for key, value in kept.items() if value}
