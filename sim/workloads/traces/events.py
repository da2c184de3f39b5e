"""Raw rows of a broker's log, judged and loaded as arrays: every row ends as an event or with a reason."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.errors import WorkloadError, unknown
from sim.spark import F, sql
from sim.workloads.models.event_kernels import CONNECT, DISCONNECT, SUBSCRIBE, UNSUBSCRIBE
from sim.workloads.models.event_log import Control, Delivered, EventLog, EventPublications
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.rows import found, named, with_texts
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
EVENT_LAYOUTS = {DECODED_MQTT.name: DECODED_MQTT}
EVENT_EXPECTED = {
    "action": f"an action ({', '.join(ACTIONS)}; --actions says what a file calls them)",
    "client": "a client, in every row that does not publish",
    "topic": "a topic, in every row that does not connect or disconnect",
    "size": "a size in whole bytes, or nothing",
}


def needed_fields(layout: Layout) -> tuple[str, ...]:
    """The fields that every row of a log has."""
    return (*layout.time_fields, *_NEEDED)


def event_fields(layout: Layout) -> tuple[str, ...]:
    """All fields with a meaning, whether the layout has them or not."""
    return (*needed_fields(layout), "size", "publisher")


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
        }
    )
    parsed, action, client, topic, micros = (F.col(name) for name in ("parsed", "action", "client", "topic", "micros"))
    wrong = F.when(~parsed, None).when(action.isNull(), "action")
    wrong = wrong.when((action != PUBLISH) & client.isNull(), "client")
    wrong = wrong.when(~action.isin(CONNECT, DISCONNECT) & topic.isNull(), "topic")
    wrong = wrong.when((action == PUBLISH) & F.col("size").isNull(), "size")
    reason = F.when(~parsed | wrong.isNotNull(), "unparsable").when(micros.isNull(), "bad_time")
    reason = reason.when(outside(micros, window), "outside_window")
    column = F.coalesce(wrong, F.when(parsed & micros.isNull(), layout.time_fields[0]))
    topic = F.when(~action.isin(CONNECT, DISCONNECT), topic)  # what else stands there is none
    judged = typed.withColumns({"column": column, "reason": reason, "topic": topic})
    kept = F.when(F.col("reason").isNotNull() | ~action.isin(PUBLISH, DELIVER), F.col("raw"))
    judged = judged.withColumns({"found": found(judged), "raw": kept})
    return judged.drop("parsed", *layout.time_fields, *(f"{field}_text" for field in event_fields(layout)))


def load_events(shelf: Shelf) -> tuple[EventLog, NDArray[np.int64]]:
    """The usable rows, each table by (time, source, line), and the `row_number` of the control table's rows.

    Clients and topics are numbered by their names: whole numbers by value, then the others by code points.
    """
    clients, topics = Names(), Names()
    columns: dict[str, Names | type[np.generic]] = {
        "micros": np.int64, "action": np.int8, "size": np.int32, "client": clients, "topic": topics, "publisher": clients
    }  # fmt: skip
    loaded, row = read_typed(shelf, {name: (name, kind) for name, kind in columns.items()})
    ranks = {"client": clients.sort(), "topic": topics.sort()}
    ranks["publisher"] = ranks["client"]
    order = np.argsort(loaded["micros"], kind="stable")
    action = loaded["action"][order]

    def table(which: NDArray[np.bool_], *names: str) -> Columns:
        chosen = order[which]
        found = {name: loaded[name][chosen] for name in ("micros", *names)}
        return {name: ranks[name][values] if name in ranks else values for name, values in found.items()}

    published, delivered = action == PUBLISH, action == DELIVER
    control = ~(published | delivered)
    log = EventLog(
        clients.names,
        topics.names,
        Control(**table(control, "action", "client", "topic")),
        EventPublications(**table(published, "topic", "client", "size")),
        Delivered(**table(delivered, "topic", "publisher", "client")),
    )
    return log, row[order[control]]
