"""Publishers: pass publications to the engine at the times of the workload."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import PUBLICATIONS, WAITING_PUBLICATIONS, Clock, Feed
from sim.brokers.fabric.delivery import NO_GUARANTEE
from sim.brokers.fabric.outages import Outages
from sim.brokers.statistics.recorder import Recorder
from sim.workloads.format.workload import Publications

_BATCH = 1 << 16  # publications that are counted at once


class Holding(Protocol):
    """The part of the protocol that makes brokers hold publications back."""

    @property
    def running(self) -> bool:
        """Whether brokers may be holding publications back now."""

    def holds(self, broker: int) -> bool:
        """Whether this broker holds publications back."""


class Publishers:
    """Publishes at the brokers of publishers; publications from outside enter at a random broker, fixed for each publication.

    While that is absent, or about to leave as planned, they enter at the next one by number. `host` (users) is the live broker of
    each user, `key` is for the draws.
    """

    def __init__(
        self,
        clock: Clock,
        publications: Publications,
        host: NDArray[np.int32],
        key: int,
        engine: Engine,
        recorder: Recorder,
        holding: Holding | None,
        outages: Outages | None = None,
    ) -> None:
        self._clock, self._publications, self._host = clock, publications, host
        self._brokers, self._key, self._engine, self._recorder = len(recorder.traffic), key, engine, recorder
        self._holding, self._outages, self._next = holding, outages, 0
        self.delivery = NO_GUARANTEE
        self._waiting: dict[int, list[int]] = {}  # by user, or ~broker from outside: publications that clients keep
        self._came: list[NDArray[np.int32]] = []  # the brokers of the latest, which have not been counted
        self._counted = 0

    def start(self) -> None:
        """Start publishing."""
        times = self._publications.time
        Feed(self._clock, PUBLICATIONS, self._publish).start(float(times[0]) if len(times) else None)

    def _publish(self) -> float | None:
        times, first, engine = self._publications.time, self._next, self._engine
        last = first + 1
        if engine.together > 1:  # before the next event there are only publications
            last = max(last, min(first + engine.together, int(np.searchsorted(times, self._clock.peek()))))
        brokers = entries(self._publications.publisher[first:last], first, self._host, self._brokers, self._key)
        if self._outages is not None and self._outages.entry is not None:
            outside = self._publications.publisher[first:last] < 0
            brokers[outside] = self._outages.entry[brokers[outside]]
        if self._outages is not None and self._outages.active:
            brokers = np.where((brokers >= 0) & self._outages.down[brokers], ~brokers, brokers)
        self._note_entry(slice(first, last), brokers)
        keeps = self.delivery.guarantees and bool((brokers < 0).any())
        if keeps or (self._holding is not None and self._holding.running):
            for number, broker in enumerate(brokers.tolist(), first):
                if broker < 0 and self._keeps(number):
                    self._wait(number, ~broker)
                elif broker >= 0 and self._holds(broker):
                    engine.hold(number, broker)
                else:
                    engine.publish(number, brokers[number - first : number - first + 1])
        else:
            engine.publish(first, brokers)
        self._next = last
        self._came.append(brokers)
        if last - self._counted >= _BATCH:
            self._count()
        return float(times[last]) if last < len(times) else None

    def _note_entry(self, numbers: slice | NDArray[np.int64], brokers: int | NDArray[np.int32]) -> None:
        """Note where publications enter, before any of them can be delivered."""
        if self._recorder.entered is not None:
            self._recorder.entered[numbers] = brokers

    def _holds(self, broker: int) -> bool:
        return self._holding is not None and self._holding.running and self._holding.holds(broker)

    # -- what clients keep

    def _keeps(self, number: int) -> bool:
        """Whether a client keeps a publication until its broker has it."""
        return self.delivery.quality_of(self._publications.qos.item(number)) > 0

    def _wait(self, number: int, broker: int) -> int:
        """A client keeps a publication; returns the client, as in `_waiting`."""
        publisher = self._publications.publisher.item(number)
        entry = None if self._outages is None else self._outages.entry
        client: int = publisher if publisher >= 0 else ~(broker if entry is None else entry.item(broker))
        self._waiting.setdefault(client, []).append(number)
        return client

    def recall(self, broker: int) -> None:
        """A broker that crashes now loses what it holds back, which has not been acknowledged to clients that keep it."""
        for number in self._engine.recall(broker) if self.delivery.guarantees else ():
            if not self._keeps(number):
                self._engine.hold(number, broker)
                continue
            client = self._wait(number, broker)
            if client < 0 or self._host[client] >= 0:
                self.connected(client)

    def connected(self, user: int) -> None:
        """A user is connected to a broker again."""
        if user in self._waiting:
            self._clock.call(self._clock.now, WAITING_PUBLICATIONS, partial(self._resume, user))

    def restarted(self, broker: int) -> None:
        """A broker is up again."""
        self.connected(~broker)

    def refused(self, broker: int) -> None:
        """A broker accepts no users any more; if it takes nothing from outside either, what waits for it enters at the next one."""
        if self._outages is not None and self._outages.closed[broker]:
            for number in sorted(self._waiting.pop(~broker, [])):
                self.connected(self._wait(number, broker))

    def _resume(self, client: int) -> None:
        """A client publishes what it keeps, unless its broker has failed again."""
        broker = self._host.item(client) if client >= 0 else ~client
        down = broker < 0 or (self._outages is not None and self._outages.down[broker])
        if down or client not in self._waiting:
            return
        numbers = np.array(sorted(self._waiting.pop(client)), np.int64)
        self._note_entry(numbers, broker)
        for number in numbers.tolist():
            self._engine.hold(number, broker)
        if not self._holds(broker):
            self._engine.release(broker)
        publications = self._publications
        here = np.full(len(numbers), broker, np.int32)
        self._recorder.publish(publications.time[numbers], here, publications.size[numbers])

    def close(self) -> None:
        """Count what has been published; what clients keep has not set out."""
        for client, numbers in self._waiting.items():
            host = self._host.item(client) if client >= 0 else client
            for number in numbers:
                self._engine.hold(number, max(host, ~host))
        if self._came:
            self._count()

    def _count(self) -> None:
        brokers, publications = np.concatenate(self._came), self._publications
        came = self._counted + np.flatnonzero(brokers >= 0)  # the others' brokers are down
        self._recorder.publish(publications.time[came], brokers[brokers >= 0], publications.size[came])
        self._came, self._counted = [], self._next


@kernel
def entries(
    publishers: NDArray[np.int32], first: int, host: NDArray[np.int32], brokers: int, key: int
) -> NDArray[np.int32]:
    """The brokers that publications `first`, `first + 1`, … enter at; -1 publishes from outside. For ~b see `Engine.publish`."""
    found = np.empty(publishers.size, np.int32)
    for i in range(publishers.size):
        outside = publishers[i] < 0
        found[i] = int(keyed_uniform(key, first + i, 0) * brokers) if outside else host[publishers[i]]
    return found
