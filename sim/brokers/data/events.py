"""The general engine: every hop of every message is one event in SimPy's heap."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.carrier import Carrier
from sim.brokers.data.kept import Attempt
from sim.brokers.fabric.clock import LOOKS, Feed
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.fabric.station_windows import StationWindows
from sim.brokers.fabric.stations import station_record
from sim.brokers.fabric.window_ends import WindowEnds
from sim.brokers.statistics.recorder import Recorder


class EventEngine:
    """The engine that carries publications hop by hop (see Engine)."""

    together = 1
    follows = False

    def __init__(self, fabric: Fabric, recorder: Recorder, carrier: Carrier) -> None:
        self._clock, self._recorder, self._links, self._servers = fabric.clock, recorder, fabric.links, fabric.servers
        self._carrier, self.rule, self._in_transit = carrier, carrier.rule, carrier.in_transit
        self._held: dict[int, list[int]] = {}  # by broker: publications that it holds back
        self._windows, self._transmission = StationWindows(recorder.edges, recorder.measured), fabric.transmission
        self._ends = WindowEnds(recorder.edges, recorder.measured)
        if (self._servers or self._transmission is not None) and self._ends.next < math.inf:
            Feed(self._clock, LOOKS, self._end_window).start(self._ends.next)

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publication number `first` enters at its broker now; one at a time."""
        self._carrier.depart(first, int(brokers[0]), self._recorder.window(self._clock.now))

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now."""
        self._held.setdefault(broker, []).append(number)

    def recall(self, broker: int) -> list[int]:
        """Forget what the broker has held back."""
        return self._held.pop(broker, [])

    def release(self, broker: int) -> None:
        """Release what the broker has held back."""
        for number in self._held.pop(broker, []):
            self._carrier.depart(number, broker, self.rule.window(number), released=True)

    def fail(self, broker: int) -> list[Message]:
        """Lose what the broker holds, in service, waiting or held back; returns the control messages among it."""
        publications, controls = self._servers[broker].crash() if self._servers else ([], [])
        self._carrier.crash(broker, publications)
        for number in self._held.pop(broker, []):
            self._carrier.depart(number, ~broker, self.rule.window(number))
        self.rule.finished.record()
        # acknowledgements are lost with the broker
        return [message for message in controls if not isinstance(message.carries, Attempt)]

    def restart(self, broker: int) -> None:
        """Send again what the broker still keeps."""
        self._carrier.restart(broker)

    def keeps(self, broker: int) -> bool:
        """Whether the broker has what it keeps not acknowledged yet, or not acknowledged what clients keep."""
        return self._carrier.keeps(broker)

    def outages_changed(self) -> None:
        """Hops may take more than their latency from now on, or no longer."""
        self._carrier.outages_changed()

    def advance(self, until: float) -> None:
        """Uplinks may change; publications that have left their roots keep their trees."""
        self.rule.trees_change()

    def next_time(self) -> float:
        """Infinite: the clock has all its events."""
        return math.inf

    def brokers_moved(self) -> None:
        """Publications on their way to a root keep their path of brokers."""
        self.rule.brokers_moved()

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another."""
        return self._links.arrival(self._clock.now, here, there, number)

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Let the broker serve a control message ahead of publications."""
        self._servers[broker].accept(message, service, control=True)

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit."""
        self._in_transit.when_idle(then)

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._in_transit.when_rooted(then)

    def stop_waiting(self) -> None:
        """Drop the callbacks whose time has not come."""
        self._in_transit.stop_waiting()

    # -- the end

    def _end_window(self) -> float | None:
        """End a window; returns when the next one ends, None if not before the end of the run."""
        self._look(self._clock.now)
        self._ends.end()
        return self._ends.next if self._ends.next < math.inf else None

    def _look(self, now: float) -> None:
        if self._servers:
            self._windows.look(np.array([server.look(now) for server in self._servers]).T)
        if self._transmission is not None:
            self._transmission.look(now)

    def close(self) -> StationRecord:
        """Count what is in transit at the end: on links or in service (in the clock's heap), or at brokers."""
        for broker, numbers in sorted(self._held.items()):
            for number in numbers:
                self.rule.never_set_out(number, broker)
        self._look(self._recorder.horizon)
        waiting = [message for server in self._servers for message in server.close(self._recorder.horizon)]
        on_the_clock = [event for _, _, _, event in self._clock.pending() if isinstance(event, Message)]
        self._carrier.close(on_the_clock + waiting)
        return station_record(self._servers, self._windows)
