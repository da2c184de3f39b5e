"""A calibrated Mosquitto beside its simulation, on workloads that it was not calibrated on: 5 minutes.

Broker and client each have a core of their own and, where that is allowed, go before whatever else wants it. The broker has no Nagle's
algorithm; one more calibration is of one with it, and one without the kernel's accounts. Presets and pages go to results/calibration.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import sim
from benchmarks.measure import Figure
from sim.api.brokers import CalibratedPreset
from sim.base.errors import InputError
from sim.calibration.accounting import TaskTimes, pinned, times_of_process
from sim.calibration.load import LoadGenerator, LoadPlan
from sim.calibration.mqtt import BrokerAddress, BrokerError, broker_address
from sim.calibration.options import MeasuringOptions
from sim.calibration.page import cost
from sim.calibration.samples import busy_shares, clean, clean_rate
from sim.calibration.validate import AllowedDifferences, ValidatedScenario, validate_scenario
from sim.simulation import build, simulate
from sim.workloads.format.workload import (
    Interests,
    Publications,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)

FOLDER = Path("results") / "calibration"
FAN_OUT = 15
MIX = [(1, 100), (3, 2000), (4, 300), (7, 100), (12, 1000), (18, 200)]
"""Subscribers and bytes of the topics of the mix."""
WORKLOADS = {"fan-out of 15": [(FAN_OUT, 100)], "mix": MIX}
RATE = 150.0
"""Publications per second at low load."""
SHARES = (0.3, 0.5, 0.7)
"""Loads, as shares of the measured saturation."""
_SECONDS = 40.0
_AT_ONCE = "set_tcp_nodelay true"
_PRIORITY = 10  # among real-time tasks; the broker has twice that
_LOW, _HIGH = AllowedDifferences(), AllowedDifferences(median=0.25, p99=0.4)


def figures() -> Iterator[Figure]:
    """The fitted costs, and each quantity beside its simulation."""
    if shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        yield Figure("calibration", "not measured: mosquitto is not installed", "–", None)
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _mosquitto(_AT_ONCE) as (url, pid):
        found = _calibrated(url, "preset", pid)
        if not isinstance(found, CalibratedPreset):
            yield found
            return
        yield from _costs(found)
        yield from _costs(_calibrated(url, "without-accounts"), ", without --pid")
        for name, topics in WORKLOADS.items():
            yield from _compared(f"{name}, {RATE:.0f}/s", url, pid, _world(topics, RATE, 20.0), _LOW)
            rate, client = _saturation(url, pid, topics)
            predicted = 1 / np.mean([found.measured.fit.busy(*topic) for topic in topics])
            off = predicted / rate - 1
            yield Figure(
                f"{name}, saturated",
                f"{rate:,.0f}/s, simulated {predicted:,.0f}/s ({off:+.1%}); the client had something to do {client:.0%} of the time",
                "± 20 %",
                bool(abs(off) <= 0.2),
            )
            for share in SHARES:
                world = _world(topics, share * rate, 3.0)
                yield from _compared(f"{name}, {share:.0%} of saturation", url, pid, world, _HIGH)
    with _mosquitto("") as (url, pid):
        found = _calibrated(url, "nagle", pid)
        yield from _costs(found, ", Nagle's algorithm")
        if isinstance(found, CalibratedPreset):
            factor = found.measured.bundles
            yield Figure("time per copy below saturation, Nagle's algorithm", f"{factor or 1:.1f} times", "–", None)
    yield from _line()


def _calibrated(url: str, name: str, pid: int | None = None) -> CalibratedPreset | Figure:
    """A calibration, or why there is none."""
    try:
        with _first():
            return sim.calibrate(
                url, FOLDER / f"{name}.toml", FOLDER / f"{name}.html", pid=pid, seconds=_SECONDS, progress=_say
            )
    except BrokerError as error:
        return Figure(f"calibration, {name}", f"not measured: {error}", "–", None)


@contextmanager
def _first() -> Iterator[None]:
    """Go before other work, in a compiled loop that others wait for at most 50 ms per second; not where that is not allowed."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _say(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def _mosquitto(setting: str) -> Iterator[tuple[str, int]]:
    """A Mosquitto with a setting, on the first core: its URL and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mosquitto.conf"
        file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n{setting}\n")
        with _started("-c", str(file)) as server:
            yield f"mqtt://127.0.0.1:{port}", server.pid


@contextmanager
def _started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    path = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    server = subprocess.Popen([str(path), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(server.pid, {min(os.sched_getaffinity(0))})
        with suppress(PermissionError):
            os.sched_setscheduler(server.pid, os.SCHED_FIFO, os.sched_param(2 * _PRIORITY))
        time.sleep(1.0)
        yield server
    finally:
        server.terminate()
        server.wait(10)


def _costs(found: CalibratedPreset | Figure, how: str = "") -> Iterator[Figure]:
    if isinstance(found, Figure):
        yield found
        return
    for key, one in found.measured.fit.costs.items():
        low, value, high = (cost(key, each) for each in (one.low, one.value, one.high))
        yield Figure(f"{key}{how}", f"{value} [{low}, {high}]", "–", None)
    for kind in ("idle", "saturated"):
        residuals = [one.relative for one in found.measured.fit.residuals if one.step.kind == kind]
        yield Figure(f"residuals, {kind}{how}", f"{min(residuals):+.1%} to {max(residuals):+.1%}", "–", None)
    yield Figure(f"clean samples{how}", f"{found.measured.clean:.0%}", "–", None)
    busiest = found.measured.busiest_client
    ran = "" if busiest.broker is None else f", the broker ran {busiest.broker:.0%}"
    yield Figure(f"client where it had most to do{how}", f"{busiest.client:.0%} of the time{ran}", "–", None)


def _compared(name: str, url: str, pid: int, world: Workload, allowed: AllowedDifferences) -> Iterator[Figure]:
    service = {"kind": "deterministic", "preset": str(FOLDER / "preset.toml")}
    scenario = sim.load_scenario(
        {"network": {"brokers": 1, "geometry": {"kind": "star"}}, "brokers": {"service": service}}
    )
    options = MeasuringOptions(pid, seconds=60, messages=50_000_000)
    try:
        with _first():
            found: ValidatedScenario = validate_scenario(
                url, scenario.base, world, (name, "base"), allowed, options, lambda line: None
            )
    except InputError as error:
        yield Figure(name, f"not measured: {error}", "–", None)
        return
    for one in found.quantities:
        if one.name != "p90 of delays":
            measured, simulated = (
                f"{1e6 * value:.0f} µs" if one.unit == "s" else f"{value:,.0f}"
                for value in (one.measured, one.simulated)
            )
            yield Figure(
                f"{name}: {one.name}",
                f"{measured}, simulated {simulated} ({one.difference:+.1%}); {found.clean:.0%} clean",
                f"± {one.allowed:.0%}",
                one.agrees,
            )


def _world(topics: list[tuple[int, int]], rate: float, seconds: float) -> Workload:
    """Publications on topics with these numbers of subscribers and bytes, equally often, as a Poisson process."""
    random = np.random.default_rng(7)
    count = int(rate * seconds)
    time_ = np.sort(random.uniform(0, seconds, count))
    topic = random.integers(len(topics), size=count).astype(np.int32)
    size = np.array([size for _, size in topics], np.int32)[topic]
    users = max(fan_out for fan_out, _ in topics)
    wanted = [[one for one, (fan_out, _) in enumerate(topics) if user < fan_out] for user in range(users)]
    indptr = np.cumsum([0, *map(len, wanted)])
    names = pa.array([f"t{one}" for one in range(len(topics))])
    return Workload(
        "benchmark",
        seconds,
        Topics.without_places(names, "topic", np.ones(len(topics))),
        Users.without_places(pa.array([f"u{user}" for user in range(users)])),
        Interests(indptr, np.array([one for row in wanted for one in row], np.int32)),
        SubscriptionEvents.none(),
        Publications(time_, topic, np.full(count, -1, np.int32), size),
    )


def _line() -> Iterator[Figure]:
    """Median delays over 0, 1 and 2 hops between three bridged brokers, with a subscriber at each."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        frees = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [free.getsockname()[1] for free in frees]
        for free in frees:
            free.close()
        tasks: list[Path] = []
        for broker in (1, 0, 2):
            lines = [f"listener {ports[broker]} 127.0.0.1", "allow_anonymous true", "user root"]
            if broker != 1:
                lines += [f"connection b{broker}", f"address 127.0.0.1:{ports[1]}", "topic # both 0"]
            (folder / f"{broker}.conf").write_text("\n".join(lines) + "\n")
            server = opened.enter_context(_started("-c", str(folder / f"{broker}.conf")))
            tasks.append(Path(f"/proc/{server.pid}/schedstat"))
        times = TaskTimes(tasks)
        opened.callback(times.close)
        brokers = [BrokerAddress("127.0.0.1", port) for port in ports]
        load = opened.enter_context(LoadGenerator(brokers[0], times))
        with pinned(server.pid), _first():
            load.connect(1, [[0]] * 3, 1, brokers)
            time.sleep(1.0)
            world = _world([(3, 100)], RATE, 10.0)
            ones = np.ones(len(world.publications), np.int64)
            record = load.run(LoadPlan(0 * ones, 100 * ones, 3 * ones, 0 * ones, world.publications.time, patience=2.0))
    kept, delays = clean(record), (record.stamp - record.sent[record.number]) / 1e9
    simulated = _simulated_line(world)
    for hops in range(3):
        mine = delays[(record.receiver == hops) & kept[record.number]]
        if not len(mine):
            yield Figure(f"bridges, {hops} hops: median delay", "not measured: no sample counts", "–", None)
            continue
        measured = float(np.median(mine))
        off = simulated[hops] / measured - 1
        text = (
            f"{1e6 * measured:.0f} µs, simulated {1e6 * simulated[hops]:.0f} µs ({off:+.1%}); {kept.mean():.0%} clean"
        )
        yield Figure(f"bridges, {hops} hops: median delay", text, "–", None)


def _simulated_line(world: Workload) -> list[float]:
    """Median delays over 0, 1 and 2 hops, s; equally many deliveries have each."""
    users = replace(world, publications=replace(world.publications, publisher=0 * world.publications.publisher))
    edges = FOLDER / "line.csv"
    edges.write_text("source,target\n0,1\n1,2\n")
    network = {
        "brokers": 3,
        "geometry": {"kind": "graph", "file": str(edges)},
        "latency": {"kind": "unit", "rtt": "1us"},
    }
    service = {"kind": "deterministic", "preset": str(FOLDER / "preset.toml")}
    for seed in range(1000):
        scenario = sim.load_scenario({"network": network, "brokers": {"service": service}, "seed": seed}).base
        network_of = build(scenario, users, 0)
        network_of.start()
        if network_of.users.host.tolist() == [0, 1, 2]:
            break
    table = simulate(scenario, users, 0).tables["delays"]
    order = np.argsort(table["lower"])
    counts = np.cumsum(np.asarray(table["users"])[order])
    middle = ((np.asarray(table["lower"]) + np.asarray(table["upper"])) / 2)[order]
    return [float(middle[np.searchsorted(counts, share * counts[-1])]) for share in (1 / 6, 1 / 2, 5 / 6)]


def _saturation(url: str, pid: int, topics: list[tuple[int, int]]) -> tuple[float, float]:
    """Publications per second at saturation if topics are equally frequent, and the largest share of time that the client had to do.

    Each topic is saturated by itself.
    """
    times = times_of_process(pid)
    users = max(fan_out for fan_out, _ in topics)
    wanted = [[one for one, (fan_out, _) in enumerate(topics) if user < fan_out] for user in range(users)]
    seconds, ran = [], []
    ones = np.ones(1_000_000, np.int64)
    try:
        with pinned(pid), _first(), LoadGenerator(broker_address(url, remote=False), times) as load:
            load.connect(1, wanted, len(topics))
            for topic, (fan_out, size) in enumerate(topics):
                plan = LoadPlan(topic * ones, size * ones, fan_out * ones, 0 * ones, window=64, seconds=2.0)
                record = load.run(plan)
                seconds.append(1 / (clean_rate(record)[0] or len(record.sent) / plan.seconds))
                ran.append(busy_shares(record)[1])
    finally:
        times.close()
    return float(1 / np.mean(seconds)), max(ran)
