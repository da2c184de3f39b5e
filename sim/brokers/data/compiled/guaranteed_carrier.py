"""Carries publications in the compiled loop with a guarantee for every hop, as `GuaranteedCarrier` does in SimPy's heap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.carrier import CompiledCarrier
from sim.brokers.data.compiled.closing import count_links
from sim.brokers.data.compiled.crash import take_controls
from sim.brokers.data.compiled.guaranteed import (
    kept_in_transit,
    process_guaranteed,
)
from sim.brokers.data.compiled.guaranteed_crash import keep_no_longer, lose_copies, send_at_restart
from sim.brokers.data.compiled.kept import KEEPING
from sim.brokers.data.compiled.records import SMALL
from sim.brokers.data.compiled.reports import TopicReports
from sim.brokers.data.compiled.rerouted import Rerouting, take_route
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.statistics.ledger import DROPPED, LOST
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications

_DIVERTED = 256  # detours in use before unused ones are freed


class KeptReports(TopicReports):
    """Reports what is in transit at the end by what is kept, as no message may carry it at the moment."""

    def close(self, held: list[int]) -> None:
        """Count what is in transit at the end, or held back (numbers), and what the loop has counted."""
        arrays = self._memory.arrays
        self._found = np.zeros(len(arrays["finished"]), np.int64)
        records = arrays["kept"], arrays["flights"], arrays["positions"]
        self._short = kept_in_transit(self._memory.states, *records, self._found)
        super().close(held)

    def _climbing(self) -> NDArray[np.int32]:
        return self._short

    def _end_below(self, found: NDArray[np.int64]) -> None:
        found += self._found


class CompiledGuaranteedCarrier(CompiledCarrier):
    """Carries publications on trees, with a guarantee for every hop."""

    _loop = staticmethod(process_guaranteed)

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        super().__init__(fabric, recorder, subscriptions, publications)
        self._reports = KeptReports(recorder, self._due, publications, self._arena, self._memory)
        recorder.traffic.in_use = self._windows_in_use
        self._memory.use("qos", publications.qos.astype(np.int32).view(SMALL))
        self._rerouting, self._most_diverted = Rerouting(fabric, self._arena, self._memory), _DIVERTED

    def _windows_in_use(self) -> NDArray[np.int64]:
        """The windows of publications in transit, which no message may carry at the moment."""
        kept = self._arrays["kept"]
        found: NDArray[np.int64] = self._arrays["flights"]["window"][kept["flight"][kept["over"] == 0]].astype(np.int64)
        return found

    def fail(self, broker: int, now: float, held: list[int]) -> list[int]:
        """Lose all copies at the broker, publications that it `held` back, and what it keeps unless its store is persistent."""
        states, controls = self._memory.states, np.empty(0, np.int64)
        if self._state["takes_time"]:
            while lose_copies(states, broker, now) == st.CHECK:
                self._update_slot()
            controls = take_controls(states, broker, now)
        if self._fabric.delivery.store == "memory":
            for kept in self._kept_by(broker):
                while keep_no_longer(states, kept, st.CRASHED, now) == st.CHECK:
                    self._update_slot()
        self._reports.end_held(held, DROPPED, LOST["crashed"])
        self.act_on_notes()
        return controls.tolist()

    def restart(self, broker: int, now: float) -> None:
        """The broker sends again what would have been due meanwhile."""
        waiting = self._arrays["kept"]["timer"] == 0
        for kept in [number for number in self._kept_by(broker) if waiting[number]]:
            while (code := send_at_restart(self._memory.states, kept, now)) != st.DONE:
                if code == st.DETOUR:
                    self._take_route(kept, now)
                    break
                self._act(code)

    def brokers_moved(self) -> None:
        """The overlay routes around other brokers."""
        super().brokers_moved()
        if self._fabric.outages is not None:
            self._memory.look_at_outages(self._fabric.outages, self._fabric.transmission)

    def _act(self, code: int) -> bool:
        if code == st.DETOUR:
            self._take_route(int(self._state["stopped_at"]))
            return True
        return super()._act(code)

    def _take_route(self, kept: int, now: float | None = None) -> None:
        """Send something kept along the present route: now, or as it is its timer's turn."""
        if len(self._arena.diverted) > self._most_diverted:
            self._reclaim_detours()
        start, waits = self._rerouting.route(kept)
        self._memory.use_arena(self._arena)
        flight = self._arrays["flights"][self._arrays["kept"]["flight"][kept]]
        if flight["version"] == st.NONE and start >= 0:  # it may leave the root
            slot = int(self._arena.positions["children"][start])
            self._refresh(slot, int(flight["period"]))
            if self._arena.positions["first"][start] == st.NONE and self._arena.shares(slot):
                time = float(self._arrays["heap"]["time"][0]) if now is None else now
                self._choose(slot, int(flight["number"]), int(flight["origin"]), time)
        route = kept, start, waits, now is None, 0.0 if now is None else now
        while (code := take_route(self._memory.states, *route)) != st.DONE:
            self._act(code)

    def _reclaim_detours(self) -> None:
        """Free the positions of detours whose flights are over."""
        arena, kept, flights = self._arena, self._arrays["kept"], self._arrays["flights"]
        arena.report_diverted(self._recorder)
        carried = {number: int(flights["number"][number]) for number in np.unique(kept["flight"][kept["over"] == 0])}
        over = [each for each in arena.diverted if carried.get(each.flight) != each.number]
        arena.diverted = [each for each in arena.diverted if carried.get(each.flight) == each.number]
        for each in over:
            part = slice(each.first, each.first + each.size)
            count_links(arena.positions, arena.tallies, part, False, self._recorder)
            arena.give_back_block(each.first, each.size)
        self._most_diverted = max(_DIVERTED, 2 * len(arena.diverted))

    def _kept_by(self, broker: int) -> list[int]:
        """The numbers of what a broker keeps, in the order in which it was sent first."""
        kept = self._arrays["kept"]
        found = np.flatnonzero((kept["over"] == 0) & (kept["sender"] == broker) & (kept["done"] == KEEPING))
        numbers: list[int] = found[np.argsort(kept["born"][found])].tolist()
        return numbers

    def keeps(self, broker: int) -> bool:
        """Whether the broker keeps something, or a client something for it."""
        kept = self._arrays["kept"]
        to_it = (kept["sender"] == st.NONE) & (kept["broker"] == broker)
        return bool(((kept["over"] == 0) & (kept["done"] == KEEPING) & ((kept["sender"] == broker) | to_it)).any())

    def _update_slot(self) -> None:
        self._refresh(int(self._state["stopped_at"]), int(self._state["stopped_period"]))

    def close(self, held: list[tuple[int, int]]) -> StationRecord:
        """Count what is in transit at the end, or `held` back (number, broker), and what the loop has counted."""
        found = super().close(held)
        self._recorder.remembered = int(self._state["most_remembered"])
        return found
