"""The compiled engine: every hop is an event, as for `EventEngine`, but in a compiled loop instead of SimPy's heap."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.carrier import CompiledCarrier
from sim.brokers.fabric.clock import ARRIVALS, BARRIERS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord

_BATCH = 1 << 16  # publications that wait for the loop


class CompiledEngine:
    """The engine that carries publications hop by hop in compiled code, with results identical to EventEngine's.

    The loop runs behind the clock, and catches up whenever something that it depends on is about to change. While control messages
    wait in brokers, or callbacks wait for messages in transit, it keeps up with the clock: it runs up to the clock's next event,
    and its consequences are scheduled on the clock.
    """

    together = _BATCH

    def __init__(self, fabric: Fabric, carrier: CompiledCarrier) -> None:
        self._clock, self._links, self._carrier = fabric.clock, fabric.links, carrier
        self._held: dict[int, list[int]] = {}  # by broker: publications that it holds back
        self._control: dict[int, Message] = {}  # control messages in service or waiting at brokers
        self._controls = 0
        self._when_idle: Callable[[], None] | None = None
        self._when_rooted: Callable[[], None] | None = None
        self._wakes, self._wakes_at = 0, math.inf  # the number of the valid wake-up

    # -- publications

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publications `first`, `first + 1`, … leave for these brokers at their times, before anything else happens."""
        self._departed(self._carrier.depart(np.arange(first, first + len(brokers)), brokers))

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now."""
        self._held.setdefault(broker, []).append(number)

    def recall(self, broker: int) -> list[int]:
        """Forget what the broker has held back."""
        return self._held.pop(broker, [])

    def release(self, broker: int) -> None:
        """Release what the broker has held back."""
        numbers = np.array(self._held.pop(broker, []), np.int64)
        if len(numbers):
            self._catch_up()
            here = np.full(len(numbers), broker, np.int32)
            self._departed(self._carrier.depart(numbers, here, self._clock.now))

    def _departed(self, until: float) -> None:
        """Publications depart up to a time (s)."""
        if self._keeps_up:
            self._watch()
        elif self._carrier.lined_up >= _BATCH:
            self._carrier.run(until)

    # -- faults

    def fail(self, broker: int) -> list[Message]:
        """Lose what the broker holds, in service, waiting or held back; returns the control messages among it."""
        self._catch_up()
        controls = self._carrier.fail(broker, self._clock.now, self._held.pop(broker, []))
        self._look_at_barriers()
        return [self._control.pop(number) for number in controls]

    def restart(self, broker: int) -> None:
        """Send again what the broker still keeps."""
        self._catch_up()
        self._carrier.restart(broker, self._clock.now)
        self._look_at_barriers()

    def keeps(self, broker: int) -> bool:
        """Whether the broker has what it keeps not acknowledged yet, or not acknowledged what clients keep."""
        self._catch_up()
        return self._carrier.keeps(broker)

    def outages_changed(self) -> None:
        """Let the loop know."""
        self._carrier.outages_changed()

    # -- control

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another."""
        if self._links.fixed:
            return self._links.arrival(self._clock.now, here, there, number)
        self._catch_up()
        return self._carrier.control_arrival(self._clock.now, here, there, number)

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Let the broker serve a control message, with this service time (s), ahead of publications."""
        self._catch_up()
        self._controls += 1
        self._control[self._controls] = message
        self._carrier.serve_control(self._controls, broker, service, self._clock.now)
        self._watch()

    # -- time

    def advance(self, until: float) -> None:
        """Process everything before `until`; trees and subscriptions are about to change."""
        self._catch_up()
        self._carrier.trees_change()

    def next_time(self) -> float:
        """Infinite: what has to happen at a certain time is on the clock."""
        return math.inf

    def brokers_moved(self) -> None:
        """Brokers have moved to other nodes; publications on their way to a root keep their path of brokers."""
        self._carrier.brokers_moved()

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit."""
        self._catch_up()
        self._when_idle = then
        self._look_at_barriers()

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._catch_up()
        self._when_rooted = then
        self._look_at_barriers()

    def stop_waiting(self) -> None:
        """Drop the callbacks whose time has not come."""
        self._catch_up()
        self._when_idle = self._when_rooted = None

    def _look_at_barriers(self) -> None:
        """Schedule callbacks for which there is nothing to wait any more; resume the loop if there is."""
        if self._when_idle is not None and self._carrier.idle:
            self._reach_barrier(st.IDLE, self._clock.now)
        if self._when_rooted is not None and self._carrier.rooted:
            self._reach_barrier(st.ROOTED_ALL, self._clock.now)
        self._watch()

    def _reach_barrier(self, code: int, time: float) -> None:
        """The loop has nothing left to do before a callback, as `code` says, if any."""
        if code == st.IDLE:
            then, self._when_idle = self._when_idle, None
        elif code == st.ROOTED_ALL:
            then, self._when_rooted = self._when_rooted, None
        else:
            return
        assert then is not None
        self._at_barrier(time, then)

    def _at_barrier(self, time: float, then: Callable[[], None]) -> None:
        def act() -> None:  # after all that happens at that time
            self._carrier.run(time, at_once=True)
            self._carrier.act_on_notes()
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
        """Process everything before now."""
        self._carrier.run(self._clock.now)

    def _watch(self) -> None:
        """Resume the loop at its next event, if it has to keep up with the clock."""
        if self._keeps_up:
            time = max(self._carrier.next_time(), self._clock.now)
            if time < self._wakes_at:
                self._wakes_at = time
                self._wakes += 1
                self._clock.call(time, ARRIVALS, partial(self._wake, self._wakes))

    def _wake(self, number: int) -> None:
        if number != self._wakes:
            return  # an earlier wake-up has replaced it
        self._wakes_at = math.inf
        if not self._keeps_up:
            return
        now, peek = self._clock.now, self._clock.peek()
        code = self._carrier.run(peek, peek <= now, self._when_idle is not None, self._when_rooted is not None)
        time, number = self._carrier.stopped()
        if code == st.CONTROL_SERVED:
            self._wakes_at = time  # not before, by any other
            self._wakes += 1
            message = self._control.pop(number)
            self._clock.call(time, ARRIVALS, lambda: self._served(message))
            return
        self._reach_barrier(code, time)
        self._watch()

    def _served(self, message: Message) -> None:
        self._wakes_at = math.inf
        message.handled(message)
        self._watch()

    def close(self) -> StationRecord:
        """Count what is in transit at the end, and what the loop has counted."""
        held = [(number, broker) for broker, numbers in sorted(self._held.items()) for number in numbers]
        return self._carrier.close(held)
