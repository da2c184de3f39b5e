"""Carries publications hop by hop, as `Carrier` does, but in a compiled loop instead of SimPy's heap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.arena import Arena
from sim.brokers.data.compiled.closing import close_servers, count_links
from sim.brokers.data.compiled.crash import lose_publications, take_controls
from sim.brokers.data.compiled.departures import Departing
from sim.brokers.data.compiled.loop import accept_control, next_time, process
from sim.brokers.data.compiled.memory import Memory
from sim.brokers.data.compiled.reports import TopicReports
from sim.brokers.data.due import DueByTopic
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.statistics.ledger import DROPPED, LOST
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications

_RETIRED = 256  # versions in use before unused ones are freed


class CompiledCarrier:
    """Carries publications in the compiled loop, and does for it what compiled code cannot.

    The loop's time is that of the last event that it has processed: publications depart when it reaches them, and it has to `run`
    up to the present before anything that it depends on changes.
    """

    _loop = staticmethod(process)

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        self._fabric, self._recorder = fabric, recorder
        self._publications, self._due = publications, DueByTopic(recorder, subscriptions)
        self._arena = Arena(fabric, self._due)
        satisfaction = recorder.satisfaction
        self._period_of = None if satisfaction is None else satisfaction.period_of
        self._memory = memory = Memory(fabric, recorder, 1 if satisfaction is None else satisfaction.periods + 1)
        self._reports = TopicReports(recorder, self._due, publications, self._arena, memory)
        self._state, self._arrays = memory.state, memory.arrays
        memory.use_arena(self._arena)
        self._shared = subscriptions.shared
        self._state["shared"] = self._shared is not None
        recorder.traffic.in_use = memory.windows_in_use
        self._retired, self._period = _RETIRED, 0

    def depart(self, numbers: NDArray[np.int64], brokers: NDArray[np.int32], released: float | None = None) -> float:
        """Let publications leave their brokers: at their times, or now (`released`, s) after having been held back.

        Or they are lost then, see `Engine.publish`.
        Returns when the last of them leaves.
        """
        published = self._publications.time[numbers]
        times = published if released is None else np.full(len(numbers), released)
        windows, lost = self._recorder.windows(published), brokers < 0
        brokers = np.maximum(brokers, ~brokers)
        row, topics, identities = self._flights(numbers, brokers, windows)
        uplinks, periods = self._arena.uplinks(topics, brokers[row]), self._period_of
        departing = Departing(
            *(row, identities, uplinks, numbers, times, published, windows, self._publications.size),
            np.empty(0, np.int64) if periods is None else periods,
            lost,
            int(released is not None),
        )
        self._memory.use_arena(self._arena)
        self._memory.line_up(departing)
        return float(times[-1])

    def _flights(
        self, numbers: NDArray[np.int64], brokers: NDArray[np.int32], windows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The flights of publications: the index of each one's publication, its topic, and its identity in keyed draws."""
        return np.arange(len(numbers)), self._publications.topic[numbers].astype(np.int64), numbers

    # -- between runs of the loop

    @property
    def lined_up(self) -> int:
        """How many flights have not departed yet."""
        return int(self._state["pending_end"])

    @property
    def idle(self) -> bool:
        """Whether no publication is in transit, nor about to be."""
        return bool(self._state["in_transit"] == 0 and self._state["next_pending"] == self._state["pending_end"])

    @property
    def rooted(self) -> bool:
        """Whether everything released has left its root."""
        return bool(self._state["unrooted"] == 0)

    def next_time(self) -> float:
        """When the loop's next event is (s)."""
        return float(next_time(self._memory.states))

    def stopped(self) -> tuple[float, int]:
        """When the loop stopped (s), and at which control message, if any."""
        return float(self._state["now"]), int(self._state["stopped_at"])

    def control_arrival(self, now: float, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another, behind what the loop has sent there."""
        links, link = self._fabric.links, self._arena.link(here, there)
        self._memory.use_arena(self._arena)
        last = self._arrays["last_arrival"]["value"]
        links.last[here * int(self._state["brokers"]) + there] = float(last[link])
        time = last[link] = links.arrival(now, here, there, number)
        return time

    def serve_control(self, number: int, broker: int, service: float, now: float) -> None:
        """Let the broker serve a control message, identified by its number, ahead of publications."""
        self._memory.have_message()
        accept_control(self._memory.states, number, broker, service, now)

    def trees_change(self) -> None:
        """Trees or subscriptions are about to change."""
        self._state["epoch"] += 1
        self._arena.trees_change()

    def brokers_moved(self) -> None:
        """Brokers have moved to other nodes; publications on their way to a root keep their path of brokers."""
        self._arena.brokers_moved()
        self._state["epoch"] += 1

    # -- faults

    def fail(self, broker: int, now: float, held: list[int]) -> list[int]:
        """Lose all publications at the broker, including `held` ones; returns the numbers of its control messages."""
        states, controls = self._memory.states, np.empty(0, np.int64)
        if self._state["takes_time"]:
            while lose_publications(states, broker, now) == st.CHECK:
                self._refresh(int(self._state["stopped_at"]), int(self._state["stopped_period"]))
            controls = take_controls(states, broker, now)
        self._reports.end_held(held, DROPPED, LOST["crashed"])
        self.act_on_notes()
        return controls.tolist()

    def restart(self, broker: int, now: float) -> None:
        """A broker that has crashed is up again."""

    def keeps(self, broker: int) -> bool:
        """Nothing is kept."""
        return False

    def outages_changed(self) -> None:
        """Update which brokers are down, which links are cut, and which services are slow."""
        assert self._fabric.outages is not None
        self._memory.look_at_outages(self._fabric.outages, self._fabric.transmission)

    # -- the loop

    def run(self, until: float, at_once: bool = False, idle: bool = False, rooted: bool = False) -> int:
        """Run the loop, and do what it cannot; returns why it stopped, which is for the caller to handle."""
        subscriptions = self._due.subscriptions
        while subscriptions.next_change < until:
            time = subscriptions.next_change
            self._process(math.nextafter(time, -math.inf), at_once=True)  # publications of that time come after
            subscriptions.catch_up(time)
            self._state["epoch"] += 1
        return self._process(until, at_once, idle, rooted)

    def _process(self, until: float, at_once: bool = False, idle: bool = False, rooted: bool = False) -> int:
        state, used = self._state, self._recorder.statistics.used
        while True:
            state["delay_keys"] = used[0]
            code = int(self._loop(self._memory.states, float(until), at_once, idle, rooted))
            used[0] = state["delay_keys"]
            if not self._act(code):
                return code

    def _act(self, code: int) -> bool:
        """Do what a kernel stopped for; returns whether it may be called again."""
        state = self._state
        if code == st.CHECK:
            self._refresh(int(state["stopped_at"]), int(state["stopped_period"]))
        elif code == st.CHOOSE:
            slot, number, origin = (int(state[f"stopped_{name}"]) for name in ("at", "number", "origin"))
            self._choose(slot, number, origin, float(state["stopped_time"]))
        elif code == st.GROW:
            self._memory.grow()
        elif code == st.EMPTY_DELAYS:
            self._recorder.empty_tables()
        elif code == st.EMPTY_NOTES:
            self.act_on_notes()
        elif code == st.EMPTY_HOPS:
            self._trace_hops()
        elif code == st.OPEN_WINDOW:
            self._recorder.open_window(int(state["stopped_at"]))
            self._memory.use("traffic", self._recorder.statistics.traffic)
        elif code == st.LOOK:
            self._memory.look(float(state["look_at"]), self._arena)
        else:
            return False
        return True

    # -- the state

    def _refresh(self, slot: int, period: int) -> None:
        if period > self._period:
            self._period = period
            self._reports.report()
        self._arena.refresh(slot, period, int(self._state["epoch"]))
        if len(self._arena.retired) > self._retired:
            self._reclaim()
        self._memory.use_arena(self._arena)

    def _choose(self, slot: int, number: int, origin: int, now: float) -> None:
        """Choose the members of groups who get the publication that leaves its root now (s), which is the next one to do so."""
        if self._shared is not None and self._shared.observe is not None:
            self.act_on_notes()
        self._state["chosen"] = self._arena.choose(slot, number, origin, now)
        self._memory.use_arena(self._arena)

    def _reclaim(self) -> None:
        """Free the versions that are no longer in use, after counting the publications that used them."""
        self.act_on_notes()
        arena, floods = self._arena, self._fabric.overlay.floods
        retired, arena.retired = arena.retired, []
        for version in retired:
            if arena.versions[version]["carried"]:
                arena.retired.append(version)
                continue
            self._arena.report(version, self._recorder)
            for first, size in arena.blocks(version):
                count_links(arena.positions, arena.tallies, slice(first, first + size), floods, self._recorder)
            arena.give_back(version)
        self._retired = max(_RETIRED, 2 * len(arena.retired))

    def act_on_notes(self) -> None:
        """Act on notes: offload publications that have left their roots, and pass on what other brokers served."""
        if len(left := self._notes()):
            self._reports.offload(left)
        if self._recorder.deliveries is not None:
            self._memory.hand_over(self._arena, self._recorder.deliveries)

    def _notes(self) -> Items:
        """The notes since the last call."""
        count = int(self._state["noted"])
        self._state["noted"] = 0
        return self._arrays["notes"][:count].copy()

    def _trace_hops(self) -> None:
        trace, count = self._recorder.trace, int(self._state["hops"])
        if trace is not None:
            trace.extend(self._arrays["traced"][:count])
            self._state["hops"] = 0

    # -- the end

    def close(self, held: list[tuple[int, int]]) -> StationRecord:
        """Count what is in transit at the end, or `held` back (number, broker), and what the loop has counted."""
        horizon, arrays = self._recorder.horizon, self._arrays
        self.run(horizon)
        self.act_on_notes()
        self._trace_hops()
        self._close_publications(held)
        if self._fabric.transmission is not None:
            keys = self._memory.link_keys(self._arena)
            self._fabric.transmission.take(keys, arrays["lines"][: len(keys)], arrays["ports"])
        self._memory.look(horizon, self._arena)
        close_servers(self._memory.states, arrays["servers"], arrays["messages"], arrays["in_service"], horizon)
        servers = arrays["servers"] if self._state["takes_time"] else arrays["servers"][:0]
        return StationRecord(self._memory.windows, *(servers[name] for name in StationRecord.measured()))

    def _close_publications(self, held: list[tuple[int, int]]) -> None:
        self._reports.close([number for number, _ in held])
        floods, arrays = self._fabric.overlay.floods, self._arrays
        count_links(arrays["positions"], arrays["tallies"], slice(0, self._arena.used), floods, self._recorder)
