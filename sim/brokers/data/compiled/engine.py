"""The compiled engine: every hop is an event, as in `EventEngine`, but in a compiled loop instead of SimPy's heap."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.arena import Arena
from sim.brokers.data.compiled.closing import close_servers, count_links, count_windows, in_transit
from sim.brokers.data.compiled.departures import Departing
from sim.brokers.data.compiled.loop import accept_control, next_time, process
from sim.brokers.data.compiled.memory import Memory
from sim.brokers.data.compiled.records import Items
from sim.brokers.data.due import DueByTopic
from sim.brokers.fabric.clock import ARRIVALS, BARRIERS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.statistics.ledger import CLIMBING, DUE, IN_FLIGHT, PUBLISHED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications

_BATCH = 1 << 16  # publications that wait for the loop
_RETIRED = 256  # versions, before it is seen which of them can be given back


class CompiledEngine:
    """Carries publications hop by hop down trees (see Engine), to the same bits as EventEngine.

    The loop runs behind the clock, and catches up whenever something is about to change that it depends on. While control messages wait
    in brokers, or somebody waits for what is in transit, it keeps up with the clock: it runs as far as the clock's next event, and what
    comes of it is put on the clock.
    """

    together = _BATCH

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        self._fabric, self._clock, self._recorder = fabric, fabric.clock, recorder
        self._publications, self._due = publications, DueByTopic(recorder, subscriptions)
        self._arena = Arena(fabric, self._due)
        satisfaction = recorder.satisfaction
        self._period_of = None if satisfaction is None else satisfaction.period_of
        periods = 1 if satisfaction is None else satisfaction.periods + 1
        self._satisfied = np.zeros(periods, np.int64)  # of the finished ones, those that have been reported
        self._memory = memory = Memory(fabric, recorder, periods)
        self._state, self._arrays = memory.state, memory.arrays
        memory.use_arena(self._arena)
        recorder.traffic.in_use = memory.windows_in_use
        self._held: dict[int, list[int]] = {}  # by broker: publications that it holds back
        self._control: dict[int, Message] = {}  # those that brokers serve or have waiting
        self._controls = 0
        self._when_idle: Callable[[], None] | None = None
        self._when_rooted: Callable[[], None] | None = None
        self._wakes, self._wakes_at = 0, math.inf  # the number of the one that counts
        self._retired, self._period = _RETIRED, 0

    # -- publications

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publications `first`, `first + 1`, … leave for these brokers at their times, before anything else happens."""
        numbers = np.arange(first, first + len(brokers))
        times = self._publications.time[numbers]
        self._add(numbers, brokers, times, times, 0)

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now."""
        self._held.setdefault(broker, []).append(number)

    def release(self, broker: int) -> None:
        """Release what the broker has held back."""
        numbers = np.array(self._held.pop(broker, []), np.int64)
        if len(numbers):
            now, brokers = np.full(len(numbers), self._clock.now), np.full(len(numbers), broker, np.int32)
            self._catch_up()
            self._add(numbers, brokers, now, self._publications.time[numbers], 1)

    def _add(
        self,
        numbers: NDArray[np.int64],
        brokers: NDArray[np.int32],
        times: NDArray[np.float64],
        published: NDArray[np.float64],
        released: int,
    ) -> None:
        """Have publications leave at these times (ascending, s)."""
        windows = self._recorder.windows(published)
        row, topics, identities = self._flights(numbers, brokers, windows)
        uplinks, periods = self._arena.uplinks(topics, brokers[row]), self._period_of
        departing = Departing(
            *(row, identities, uplinks, numbers, times, published, windows, self._publications.size),
            np.empty(0, np.int64) if periods is None else periods,
            released,
        )
        self._memory.use_arena(self._arena)
        self._memory.line_up(departing)
        if self._keeps_up:
            self._watch()
        elif self._state["pending_end"] >= _BATCH:
            self._run(float(times[-1]))

    def _flights(
        self, numbers: NDArray[np.int64], brokers: NDArray[np.int32], windows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The flights of publications: which of these each carries, its topic, and what keyed draws know it by."""
        return np.arange(len(numbers)), self._publications.topic[numbers].astype(np.int64), numbers

    # -- control

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another."""
        links = self._fabric.links
        if links.fixed:
            return links.arrival(self._clock.now, here, there, number)
        self._catch_up()
        link = self._arena.link(here, there)
        self._memory.use_arena(self._arena)
        last = self._arrays["last_arrival"]["value"]
        links.last[here * int(self._state["brokers"]) + there] = float(last[link])
        time = last[link] = links.arrival(self._clock.now, here, there, number)
        return time

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Have the broker serve a control message, which needs so many seconds, ahead of publications."""
        self._catch_up()
        self._controls += 1
        self._control[self._controls] = message
        self._memory.have_message()
        accept_control(self._memory.states, self._controls, broker, service, self._clock.now)
        self._watch()

    # -- time

    def advance(self, until: float) -> None:
        """Process what happens before then; trees and subscriptions are about to change."""
        self._catch_up()
        self._state["epoch"] += 1
        self._arena.trees_change()

    def next_time(self) -> float:
        """Never: what has to happen at a certain time is on the clock."""
        return math.inf

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on; what climbs to its root keeps to the brokers that it set out over."""
        self._arena.brokers_moved()
        self._state["epoch"] += 1

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit."""
        self._catch_up()
        if self._state["in_transit"] == 0 and self._state["next_pending"] == self._state["pending_end"]:
            self._at_barrier(self._clock.now, then)
        else:
            self._when_idle = then
            self._watch()

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._catch_up()
        if self._state["unrooted"] == 0:
            self._at_barrier(self._clock.now, then)
        else:
            self._when_rooted = then
            self._watch()

    def _at_barrier(self, time: float, then: Callable[[], None]) -> None:
        def act() -> None:  # after all that happens at that time
            self._run(time, at_once=True)
            self._act_on_notes()
            then()

        self._clock.call(time, BARRIERS, act)

    @property
    def follows(self) -> bool:
        """Whether nothing keeps the loop from running behind the clock."""
        return not self._keeps_up

    @property
    def _keeps_up(self) -> bool:
        return bool(self._control) or self._when_idle is not None or self._when_rooted is not None

    def _catch_up(self) -> None:
        """Process what happens before now."""
        self._run(self._clock.now)

    def _watch(self) -> None:
        """Have the loop go on when its next event comes, if it has to keep up with the clock."""
        if self._keeps_up:
            time = max(float(next_time(self._memory.states)), self._clock.now)
            if time < self._wakes_at:
                self._wakes_at = time
                self._wakes += 1
                self._clock.call(time, ARRIVALS, partial(self._wake, self._wakes))

    def _wake(self, number: int) -> None:
        if number != self._wakes:
            return  # another one has come before it
        self._wakes_at = math.inf
        if not self._keeps_up:
            return
        now, peek = self._clock.now, self._clock.peek()
        code = self._run(peek, peek <= now, self._when_idle is not None, self._when_rooted is not None)
        time = float(self._state["now"])
        if code == st.CONTROL_SERVED:
            self._wakes_at = time  # not before, by any other
            self._wakes += 1
            message = self._control.pop(int(self._state["stopped_at"]))
            self._clock.call(time, ARRIVALS, lambda: self._served(message))
            return
        if code == st.IDLE:
            then, self._when_idle = self._when_idle, None
            assert then is not None
            self._at_barrier(time, then)
        elif code == st.ROOTED_ALL:
            then, self._when_rooted = self._when_rooted, None
            assert then is not None
            self._at_barrier(time, then)
        self._watch()

    def _served(self, message: Message) -> None:
        self._wakes_at = math.inf
        message.handled(message)
        self._watch()

    def _run(self, until: float, at_once: bool = False, idle: bool = False, rooted: bool = False) -> int:
        """Have the loop run, and do what it cannot; returns why it stopped, which concerns the caller."""
        subscriptions = self._due.subscriptions
        while subscriptions.next_change < until:
            time = subscriptions.next_change
            self._process(math.nextafter(time, -math.inf), at_once=True)  # what is published at that time comes after
            subscriptions.catch_up(time)
            self._state["epoch"] += 1
        return self._process(until, at_once, idle, rooted)

    def _process(self, until: float, at_once: bool = False, idle: bool = False, rooted: bool = False) -> int:
        state, used = self._state, self._recorder.statistics.used
        while True:
            state["delay_keys"] = used[0]
            code = int(process(self._memory.states, until, at_once, idle, rooted))
            used[0] = state["delay_keys"]
            if code == st.CHECK:
                self._refresh(int(state["stopped_at"]), int(state["stopped_period"]))
            elif code == st.GROW:
                self._memory.grow()
            elif code == st.EMPTY_DELAYS:
                self._recorder.empty_tables()
            elif code == st.EMPTY_NOTES:
                self._act_on_notes()
            elif code == st.EMPTY_HOPS:
                self._trace_hops()
            elif code == st.OPEN_WINDOW:
                self._recorder.open_window(int(state["stopped_at"]))
                self._memory.use("traffic", self._recorder.statistics.traffic)
            elif code == st.LOOK:
                self._memory.look(self._memory.windows.next)
            else:
                return code

    # -- the state

    def _refresh(self, slot: int, period: int) -> None:
        if period > self._period:
            self._period = period
            self._report()
        self._arena.refresh(slot, period, int(self._state["epoch"]))
        if len(self._arena.retired) > self._retired:
            self._reclaim()
        self._memory.use_arena(self._arena)

    def _reclaim(self) -> None:
        """Give back the versions that nothing goes by any more, after counting what went by them."""
        self._act_on_notes()
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

    # -- what users receive

    def _report(self) -> None:
        """Report to the audiences how many publications reached each position of the trees, of how many that became due."""
        recorder, satisfaction = self._recorder, self._recorder.satisfaction
        if recorder.audiences is None:
            return
        for version in self._arena.current:
            self._arena.report(version, self._recorder)
        if satisfaction is not None:
            new = self._arrays["finished"]["value"] - self._satisfied
            satisfaction.count_all(new)
            self._satisfied += new

    def _act_on_notes(self) -> None:
        """Send what has left its root to the brokers that the back end does not serve, and pass on what others have served."""
        arena, left = self._arena, self._notes()
        if len(left):
            versions, entry = np.unique(left["version"], return_inverse=True)
            dues = [arena.current[version].due for version in versions.tolist()]
            slots = np.array([arena.current[version].slot for version in versions.tolist()])
            root = arena.slots["root"][slots][entry]
            columns = left["number"], entry, left["published"], left["time"], left["window"], root
            self._recorder.offload(columns, [due.offloaded for due in dues], [due.audience for due in dues])
            self._memory.use("traffic", self._recorder.statistics.traffic)  # which may have moved
        if self._recorder.deliveries is not None:
            self._memory.hand_over(arena, self._recorder.deliveries)

    def _notes(self) -> Items:
        """What has been noted since it was last asked for."""
        count = int(self._state["noted"])
        self._state["noted"] = 0
        return self._arrays["notes"][:count].copy()

    def _trace_hops(self) -> None:
        trace, count = self._recorder.trace, int(self._state["hops"])
        if trace is not None:
            trace.extend(self._arrays["traced"][:count])
            self._state["hops"] = 0

    # -- the end

    def close(self) -> StationRecord:
        """Count what is on its way at the end, and what has come to pass."""
        horizon, arrays = self._recorder.horizon, self._arrays
        self._run(horizon)
        self._act_on_notes()
        self._trace_hops()
        self._close_publications()
        if self._fabric.transmission is not None:
            self._fabric.transmission.take(self._arena.links, arrays["lines"])
        self._memory.look(horizon)
        close_servers(self._memory.states, arrays["servers"], arrays["messages"], arrays["in_service"], horizon)
        servers = arrays["servers"] if self._state["takes_time"] else arrays["servers"][:0]
        return StationRecord(self._memory.windows, *(servers[name] for name in StationRecord.measured()))

    def _close_publications(self) -> None:
        self._report()
        self._end_held()
        self._end_climbing()
        arrays, recorder, satisfaction = self._arrays, self._recorder, self._recorder.satisfaction
        found, statistics = np.zeros(len(self._satisfied), np.int64), recorder.statistics
        in_transit(
            self._memory.states, arrays["messages"], arrays["flights"], arrays["positions"], statistics.pairs, found
        )
        if satisfaction is not None:
            satisfaction.count_all(found)
        count_windows(arrays["windows"], statistics, recorder.counted)
        floods = self._fabric.overlay.floods
        count_links(arrays["positions"], arrays["tallies"], slice(0, self._arena.used), floods, recorder)

    def _end_held(self) -> None:
        """Count what brokers hold back."""
        for _, numbers in sorted(self._held.items()):
            times = self._publications.time[np.array(numbers)]
            for number, window in zip(numbers, self._recorder.windows(times).tolist(), strict=True):
                self._recorder.ledger.count_publication(window, PUBLISHED)
                self._end_short_of_root(number, window)
                if self._recorder.satisfaction is not None and self._period_of is not None:
                    self._recorder.satisfaction.count(int(self._period_of[number]), 1)

    def _end_climbing(self) -> None:
        """Count what has not left its root."""
        messages = self._arrays["messages"]
        climbing = (messages["kind"] % st.SERVED == st.UP) & (messages["kind"] != st.NONE)
        flights = self._arrays["flights"][messages["flight"][climbing]]
        for number, window in zip(flights["number"].tolist(), flights["window"].tolist(), strict=True):
            self._end_short_of_root(number, window)

    def _end_short_of_root(self, number: int, window: int) -> None:
        ledger, due = self._recorder.ledger, self._due.short_of_root(int(self._publications.topic[number]))
        ledger.count_publication(window, CLIMBING)
        for row in (DUE, IN_FLIGHT):
            ledger.count(window, row, due.brokers, due.users)
        if due.audience is not None:
            period = 0 if self._period_of is None else int(self._period_of[number])
            nowhere = np.empty(0, np.int32)
            self._recorder.arrive(due.audience, period, 1, nowhere, nowhere)
