"""Reports of the compiled engine about publications on topics, which its loop only counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.arena import Arena
from sim.brokers.data.compiled.closing import count_last_deliveries, count_windows, in_transit
from sim.brokers.data.compiled.memory import Memory
from sim.brokers.data.due import DueByTopic
from sim.brokers.statistics.ledger import CLIMBING, DUE, IN_FLIGHT, PUBLISHED
from sim.brokers.statistics.recorder import Recorder
from sim.workloads.format.workload import Publications


class TopicReports:
    """Reports to the recorder what became of publications, from the arena and the memory."""

    def __init__(
        self, recorder: Recorder, due: DueByTopic, publications: Publications, arena: Arena, memory: Memory
    ) -> None:
        self._recorder, self._due, self._publications = recorder, due, publications
        self._arena, self._memory = arena, memory
        self._period_of = None if recorder.satisfaction is None else recorder.satisfaction.period_of
        # finished publications already reported, by period
        self._satisfied = np.zeros(len(memory.arrays["finished"]), np.int64)

    def report(self) -> None:
        """Report to the audiences how many publications reached each position of the trees, of how many that became due."""
        recorder, satisfaction = self._recorder, self._recorder.satisfaction
        if recorder.audiences is None:
            return
        for version in self._arena.current:
            self._arena.report(version, recorder)
        self._arena.report_diverted(recorder)
        if satisfaction is not None:
            new = self._memory.arrays["finished"]["value"] - self._satisfied
            satisfaction.count_all(new)
            self._satisfied += new

    def offload(self, left: Items) -> None:
        """Send the publications noted as having left their roots to the brokers that the back end does not serve."""
        arena = self._arena
        versions, entry = np.unique(left["version"], return_inverse=True)
        dues = [arena.current[version].due for version in versions.tolist()]
        slots = np.array([arena.current[version].slot for version in versions.tolist()])
        root = arena.slots["root"][slots][entry]
        noted = left["number"], entry, left["published"], left["time"], left["window"], root
        size, topic = (getattr(self._publications, name)[left["number"]] for name in ("size", "topic"))
        columns = *noted, size.astype(np.int64), topic
        self._recorder.offload(columns, [due.offloaded for due in dues], [due.audience for due in dues])
        self._memory.use("traffic", self._recorder.statistics.traffic)  # which may have moved

    def close(self, held: list[int]) -> None:
        """Count what is in transit at the end, or held back (numbers), and what the loop has counted."""
        self.report()
        self.end_held(held, CLIMBING, IN_FLIGHT)
        self._end_climbing()
        recorder, satisfaction = self._recorder, self._recorder.satisfaction
        found = np.zeros(len(self._satisfied), np.int64)
        self._end_below(found)
        if satisfaction is not None:
            satisfaction.count_all(found)
        count_last_deliveries(self._memory.states, self._memory.arrays["flights"])
        count_windows(self._memory.arrays["windows"], recorder.statistics, recorder.counted)

    def _end_below(self, found: NDArray[np.int64]) -> None:
        """Count what has left its root and is in transit, and in `found` all flights of each period that are in transit."""
        arrays = self._memory.arrays
        in_transit(self._memory.states, arrays["messages"], arrays["flights"], arrays["positions"], found)

    def end_held(self, held: list[int], column: int, outcome: int) -> None:
        """Count publications that a broker holds back and that never set out, in this column and row of the ledger."""
        windows = self._recorder.windows(self._publications.time[np.array(held, np.int64)])
        for number, window in zip(held, windows.tolist(), strict=True):
            self._recorder.ledger.count_publication(window, PUBLISHED)
            self._end_short_of_root(number, window, column, outcome)
            if self._recorder.satisfaction is not None and self._period_of is not None:
                self._recorder.satisfaction.count(int(self._period_of[number]), 1)

    def _end_climbing(self) -> None:
        """Count what has not left its root."""
        flights = self._memory.arrays["flights"][self._climbing()]
        for number, window in zip(flights["number"].tolist(), flights["window"].tolist(), strict=True):
            self._end_short_of_root(number, window, CLIMBING, IN_FLIGHT)

    def _climbing(self) -> NDArray[np.int32]:
        """The flights that have not left their roots."""
        messages = self._memory.arrays["messages"]
        climbing = (messages["kind"] % st.SERVED == st.UP) & (messages["kind"] != st.NONE)
        found: NDArray[np.int32] = messages["flight"][climbing]
        return found

    def _end_short_of_root(self, number: int, window: int, column: int, outcome: int) -> None:
        ledger, due = self._recorder.ledger, self._due.short_of_root(int(self._publications.topic[number]))
        ledger.count_publication(window, column)
        for row in (DUE, outcome):
            ledger.count(window, row, due.brokers, due.users)
        if due.audience is not None:
            period = 0 if self._period_of is None else int(self._period_of[number])
            nowhere = np.empty(0, np.int32)
            self._recorder.arrive(due.audience, period, 1, nowhere, nowhere)
