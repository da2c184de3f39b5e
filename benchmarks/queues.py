"""M/M/1 queues, one of them or ten with the same arrivals, in this simulator and in other well-known ones.

Each function simulates messages that arrive at rate LOAD, wait for a server with exponential service of mean 1, and with a fan-out
are copied to that many queues. It returns the mean time from arrival to the end of service, as a check: 4 in theory.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import simpy

from benchmarks.networks import network_of, still_workload
from sim.brokers.fabric.stations import StationSetting
from sim.brokers.network import Network
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.workloads.format.workload import Interests

LOAD = 0.75
SOJOURN = 1 / (1 - LOAD)


def network(messages: int, fan_out: int) -> Network:
    """One broker, or one that takes negligible time and `fan_out` others with a subscriber each."""
    times = np.cumsum(np.random.default_rng(1).exponential(1 / LOAD, messages))
    brokers = 1 if fan_out == 1 else fan_out + 1
    topic, horizon = np.zeros(messages, np.int64), float(times[-1]) + 100.0
    first = np.arange(brokers + 1) if fan_out == 1 else np.append(0, np.arange(brokers))
    workload = still_workload(Interests(first, np.zeros(fan_out, np.int32)), 1, horizon, times, topic, topic)
    overlay = FullMesh(FullMesh.Parameters(), GeometrySetting(brokers, 1, 1))
    capacity = np.ones(brokers)
    if fan_out > 1:
        capacity[0] = 1e6
    return network_of(
        overlay,
        workload,
        np.arange(brokers),
        np.zeros((brokers, brokers)),
        window=horizon,
        stations=StationSetting("exponential", 1.0),
        capacity=capacity,
        plane="compiled",
    )


def brokersim(messages: int, fan_out: int) -> Callable[[], float]:
    """This simulator's compiled engine, with everything recorded that a run records."""
    made = network(messages, fan_out)

    def run() -> float:
        made.run()
        delay = made.metrics()["notification_delay"]
        assert delay is not None
        return float(delay)

    return run


def simpy_callbacks(messages: int, fan_out: int) -> Callable[[], float]:
    """SimPy with callbacks instead of processes, the fastest way to use it; nothing is recorded but the sum of times."""
    return lambda: _SimPyQueues(messages, fan_out).mean()


class _SimPyQueues:
    def __init__(self, messages: int, fan_out: int) -> None:
        self.environment = simpy.Environment()
        self.draw = random.Random(1).expovariate  # noqa: S311  (as people do)
        self.left, self.queues = messages, [deque[float]() for _ in range(fan_out)]
        self.busy, self.total, self.served = [False] * fan_out, 0.0, 0
        self._arrive()

    def mean(self) -> float:
        self.environment.run()
        return self.total / self.served

    def _arrive(self) -> None:
        if self.left:
            self.left -= 1
            event = self.environment.timeout(self.draw(LOAD))
            assert event.callbacks is not None
            event.callbacks.append(self._arrived)

    def _arrived(self, _: Any) -> None:
        now = self.environment.now
        for number, queue in enumerate(self.queues):
            queue.append(now)
            if not self.busy[number]:
                self._serve(number)
        self._arrive()

    def _serve(self, number: int) -> None:
        self.busy[number] = True
        came = self.queues[number].popleft()
        event = self.environment.timeout(self.draw(1.0), (number, came))
        assert event.callbacks is not None
        event.callbacks.append(self._done)

    def _done(self, event: Any) -> None:
        number, came = event.value
        self.total += self.environment.now - came
        self.served += 1
        if self.queues[number]:
            self._serve(number)
        else:
            self.busy[number] = False


def cimba(messages: int, fan_out: int) -> Callable[[], float]:
    """Cimba's C engine, with a model that is compiled from Python."""
    import cimba
    from cimba import inputs

    assert fan_out == 1

    class Queue(cimba.Model):  # type: ignore[misc]
        interarrival = inputs.dist.exponential(mean=1 / LOAD)
        service = inputs.dist.exponential(mean=1.0)

        @cimba.process  # type: ignore[untyped-decorator]
        def arrivals(self) -> None:
            while True:
                cimba.hold(self.interarrival.next())
                self.waiting.put(cimba.now())

        @cimba.process  # type: ignore[untyped-decorator]
        def server(self) -> None:
            while True:
                came = self.waiting.get()
                cimba.hold(self.service.next())
                self.times.record(cimba.now() - came)

        @cimba.on_end  # type: ignore[untyped-decorator]
        def measure(self) -> None:
            self.mean = self.times.sample_mean()

        __annotations__ = {
            "interarrival": cimba.Input[float],
            "service": cimba.Input[float],
            "waiting": cimba.Store[float],
            "times": cimba.Dataset,
            "mean": cimba.Output[float],
        }

    model = Queue()
    window = cimba.Window(warmup=0, duration=messages / LOAD)
    made = cimba.Experiment(model, replications=1, window=window, seed=1)
    return lambda: float(np.ravel(made.run()[model].mean.values)[0])


def ciw(messages: int, fan_out: int) -> Callable[[], float]:
    """Ciw; fan-out is not among what its networks do."""
    import ciw

    assert fan_out == 1
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(LOAD)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[1],
    )

    def run() -> float:
        ciw.seed(1)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(messages, method="Finish")
        records = simulation.get_all_records()
        return float(np.mean([record.exit_date - record.arrival_date for record in records]))

    return run


def salabim(messages: int, fan_out: int) -> Callable[[], float]:
    """Salabim, its processes as generators."""
    import salabim

    assert fan_out == 1

    def run() -> float:
        environment = salabim.Environment(yieldless=False, random_seed=1)
        server, times = salabim.Resource("server", env=environment), list[float]()

        class Message(salabim.Component):  # type: ignore[misc]
            def process(self) -> Any:
                came = environment.now()
                yield self.request(server)
                yield self.hold(salabim.Exponential(1.0).sample())
                self.release()
                times.append(environment.now() - came)

        class Arrivals(salabim.Component):  # type: ignore[misc]
            def process(self) -> Any:
                for _ in range(messages):
                    yield self.hold(salabim.Exponential(1 / LOAD).sample())
                    Message()

        Arrivals()
        environment.run()
        return float(np.mean(times))

    return run
