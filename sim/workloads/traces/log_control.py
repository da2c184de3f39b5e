"""What controls sessions and subscriptions in logs too long for one process: tasks follow the clients, some each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.naming import name_key
from sim.base.ordering import lex_order
from sim.content.topic_filters import GRAMMARS
from sim.files.columns import values_of
from sim.files.directories import Directory
from sim.files.parquet import strings
from sim.workloads.format.workload import EVENT_TABLES, Workload, first_filter
from sim.workloads.models.event_kernels import LOG_NEVER
from sim.workloads.models.event_log import LongerLog, are_wild, effects_of, event_workload
from sim.workloads.models.log_tables import SECOND, Control, Delivered, EventLog, EventPublications
from sim.workloads.models.shared_subscriptions import IN_GROUP, shared_filter, with_shared_filters
from sim.workloads.traces.by_user import write_dropped
from sim.workloads.traces.exchange import split_rows, write_sorted
from sim.workloads.traces.log_split import CONTROL_ROWS, ON_PUBLISHED, ON_RETAINED
from sim.workloads.traces.numbered import USERS, read_names, write_names
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.typed import Names

OF_TOPICS, OF_FILTERS, OF_GROUPS = range(3)
"""What names of `write_names` are of, besides users."""
Clients = tuple[int, range]
"""The number of a task, and the parts of the clients that it has."""


@dataclass(frozen=True)
class ControlRows:
    """The rows of control of some clients in files of `EventSplitter`, and how they are followed (see `event_workload`).

    `names-topics` in the folder has the topics of the log, by name, with what happens on them.
    """

    splits: Sequence[str]
    parts: int
    folder: Directory
    filters: str
    persistent: bool
    live: bool
    queues_qos_0: bool

    def log(self, which: range) -> tuple[EventLog, Columns, NDArray[np.int32]]:
        """The log of parts of the clients, its rows' places and numbers, and all topics.

        Of each topic on which anything happens it has a publication or delivery of nobody, at some time.
        """
        clients, asked = Names(), Names()
        batches = [batch for part in which for batch in split_rows(self.folder, self.splits, part, self.parts)]
        rows: Columns = {
            field.name: np.concatenate(
                [np.zeros(0, field.type.to_pandas_dtype()), *(values_of(batch[field.name]) for batch in batches)]
            )
            for field in CONTROL_ROWS
            if field.type != pa.string()
        }
        for name, numbers in (("client", clients), ("topic", asked)):
            rows[name] = np.concatenate([np.zeros(0, np.int32), *(numbers.number(batch[name]) for batch in batches)])
        order = lex_order(rows["micros"], rows["place"])
        rows = {name: values[order] for name, values in rows.items()}
        there = read_names(self.folder, "topics")
        known, said = there["name"].to_pylist(), values_of(there["used"].combine_chunks()).astype(np.int8)
        wanted = asked.unsorted
        names = sorted({*known, *wanted, *filter(None, map(shared_filter, wanted))}, key=name_key)
        number = {name: place for place, name in enumerate(names)}
        rows["client"] = clients.sort()[rows["client"]]
        rows["topic"] = np.array([*(number[name] for name in wanted), -1], np.int32)[rows["topic"]]
        topics = np.array([number[name] for name in known], np.int32)
        on = said & ON_PUBLISHED > 0
        published, others = topics[on], topics[said & ~ON_RETAINED > ON_PUBLISHED]
        nobody = np.full(len(topics), -1, np.int32)
        unknown, some = nobody.astype(np.int8), np.zeros(len(topics), np.int64)
        held, one = (said[on] & ON_RETAINED > 0).astype(np.int8), np.ones(len(published), np.int32)
        count, rest = slice(len(published)), slice(len(others))
        log = EventLog(
            clients.names,
            names,
            Control(**{name: rows[name] for name in Control.dtypes()}),
            EventPublications(some[count], published, nobody[count], one, held, unknown[count]),
            Delivered(some[rest], others, nobody[rest], nobody[rest], unknown[rest]),
        )
        return log, rows, topics


@dataclass(frozen=True)
class EffectsPart:
    """Finds which rows of control of some clients have an effect; `dropped-TASK` gets the numbers of the others."""

    control: ControlRows
    compiled: ClassVar[bool] = True

    def __call__(self, item: Clients) -> tuple[int, TaskResult]:
        """How many rows have none, the first and the last time of those that have.

        `names-effects-TASK` in the folder gets their clients, the topics and the filters that they want, and names of shared
        subscriptions.
        """
        number, which = item
        log, rows, _ = self.control.log(which)
        found = effects_of(log, self.control.persistent, self.control.filters, self.control.queues_qos_0)
        unused = {"no_effect": rows["row"][~found.effect]}
        write_dropped(self.control.folder, f"dropped-{number}", unused)
        wild, wanted = are_wild(found.log.topics, GRAMMARS[self.control.filters]), np.unique(found.wanted)
        names = [(USERS, log.clients[who]) for who in np.unique(log.control.client[found.effect]).tolist()]
        names += [(OF_FILTERS if wild[one] else OF_TOPICS, log.topics[one]) for one in wanted[wanted >= 0].tolist()]
        names += [(OF_GROUPS, log.topics[one]) for one in np.flatnonzero(found.shared.group_of >= 0).tolist()]
        write_names(
            self.control.folder, f"effects-{number}", [(of, n, name, "", 1) for n, (of, name) in enumerate(names)]
        )
        times = log.control.micros[found.effect]
        return len(found.effect), {
            "dropped": int((~found.effect).sum()),
            "times": (int(times[0]), int(times[-1])) if len(times) else None,
        }


@dataclass(frozen=True)
class ControlPart:
    """Makes the tables of sessions, subscriptions and what goes with them for some clients of a log with these `names`.

    `names-all` in the folder has its users, topics, filters and groups in their order; `span` is the first and the last time
    (µs). Files have batches of `batch` rows.
    """

    control: ControlRows
    span: tuple[int, int]
    batch: int
    compiled: ClassVar[bool] = True

    def __call__(self, item: Clients) -> tuple[int, TaskResult]:
        """The files of tables, the members that are apart (`Members`), and how many subscriptions match nothing, by name.

        Files are sorted by their first column, `micros` or `topic`. Rows of one time are in the order in which they were `caused` (µs),
        and then of the `place` of a row or, behind the last one, of a client; users that are members apart have the number -2 - their
        position among those that are returned.
        """
        number, which = item
        log, rows, topics = self.control.log(which)
        workload, causes = event_workload(
            log,
            persistent=self.control.persistent,
            filters=self.control.filters,
            live=self.control.live,
            queues_qos_0=self.control.queues_qos_0,
            longer=LongerLog(self.span, topics),
        )
        assert workload is not None
        known = read_names(self.control.folder, "all")
        every = {
            of: strings(known.filter(pc.field("of") == of)["name"].to_pylist())
            for of in (USERS, OF_TOPICS, OF_FILTERS, OF_GROUPS)
        }
        user = _places(workload.users.names, every[USERS])
        apart = np.flatnonzero(user < 0)
        user[apart] = -2 - np.arange(len(apart))
        plain = first_filter(workload.topics)
        topic = np.append(
            np.arange(plain, dtype=np.int32),
            len(every[OF_TOPICS]) + _places(workload.topics.names[plain:], every[OF_FILTERS]),
        )
        place = np.concatenate([rows["place"], _places(strings(log.clients), every[USERS])])
        caused = np.append(rows["micros"], np.full(len(log.clients), LOG_NEVER))
        files, counts = {}, {}
        for table, cause in causes.rows.items():
            found: Columns = dict(getattr(workload, table).columns)
            begins = "time" if "time" in found else "start"
            micros = np.rint(found.pop(begins) * SECOND).astype(np.int64)
            found = {
                "micros": micros,
                "caused": caused[cause],
                "place": place[cause],
                **found,
                "user": user[found["user"]],
            }
            found |= {"topic": topic[found["topic"]]} if "topic" in found else {}
            files[table], counts[table] = self._write(table, number, found), len(micros)
        shares, members = self._shares(workload, log, user, topic, every[OF_GROUPS].to_pylist())
        files["shares"], counts["shares"] = self._write("shares", number, shares), len(shares["topic"])
        return len(rows["row"]), {
            "files": files,
            "rows": counts,
            "apart": members,
            "unmatched": dict(workload.unmatched),
        }

    def _write(self, table: str, number: int, columns: Columns) -> TaskResult:
        return vars(write_sorted(self.control.folder, f"{table}-{number}", columns, str(number), self.batch))

    def _shares(
        self, workload: Workload, log: EventLog, user: Integers, topic: Integers, groups: Sequence[str]
    ) -> tuple[Columns, list[tuple[str, str]]]:
        """Who shares what in which group, and the client and the group of each member that is apart."""
        shares = workload.shares
        names = with_shared_filters(log, by_queue=self.control.filters == "nats")[1].groups
        place = {name: number for number, name in enumerate(groups)}
        group = np.array([place[name] for name in names], np.int32)[shares.group] if names else shares.group
        members: dict[int, tuple[str, str]] = {}
        for who, of in zip(shares.user.tolist(), shares.group.tolist(), strict=True):
            if user[who] < -1 and who not in members:
                members[who] = workload.users.names[who].as_py().removesuffix(f"{IN_GROUP}{names[of]}"), names[of]
        assert len(members) == (user < -1).sum()
        columns = {"topic": topic[shares.topic].astype(np.int64), "user": user[shares.user], "group": group}
        return columns, [members[who] for who in sorted(members)]


def _places(names: pa.StringArray, among: pa.StringArray) -> NDArray[np.int32]:
    """The position of each name among others, -1 where it is none of them."""
    found: NDArray[np.int32] = values_of(pc.index_in(names, value_set=among).fill_null(-1)).astype(np.int32)
    return found


CONTROL_TABLES = tuple(name for name in EVENT_TABLES if name not in ("movements", "publications", "deliveries"))
"""The tables that `ControlPart` makes."""
