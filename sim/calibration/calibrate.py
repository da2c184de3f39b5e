"""Calibration: the costs of a broker that runs, as a preset for scenarios."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.calibration.accounting import Cores, pinned, times_of_process
from sim.calibration.fit import FITTED, SLOWDOWN, CostFit, fit_costs
from sim.calibration.load import LoadGenerator
from sim.calibration.mqtt import BrokerError, MqttConnection, broker_address
from sim.calibration.options import MeasuringOptions
from sim.calibration.steps import FAN_OUTS, STEPS, LoadStep, StepLimits, subscribers_topics, take_steps
from sim.files import toml
from sim.files.atomic import whole_file

LEAST_CLEAN = 0.5
"""The share of samples during which neither broker nor client waited for a core, below which nothing is fitted."""
FEWEST = 20
"""The fewest samples that a median delay is taken of."""
VERSION_WITHIN = 0.5
"""How long a broker may take to say its version, s."""
BOTTLENECK = 0.9
"""The share of time with something to do from which on the client may limit the throughput."""
BUNDLES = 1.25
"""From this factor on between the times of a copy below and at saturation, the costs at saturation hold only there."""


@dataclass(frozen=True)
class CalibratedBroker:
    """What was measured of a broker, and the costs fitted to it."""

    url: str
    broker: str
    machine: str
    date: str
    process: int | None
    cores: Cores
    steps: list[LoadStep]
    fit: CostFit

    @property
    def clean(self) -> float:
        """The share of samples during which neither broker nor client waited for a core."""
        return clean_share(self.steps)

    @property
    def busiest_client(self) -> LoadStep:
        """The saturated step in which the client had most to do, compared with the broker."""
        saturated = [step for step in self.steps if step.kind == "saturated"]
        return max(saturated, key=lambda step: step.client - (step.broker or 0.0))

    @property
    def client_limits(self) -> bool:
        """Whether the client, not the broker, may have limited the throughput in some step."""
        return self.busiest_client.client > max(self.busiest_client.broker or 0.0, BOTTLENECK)

    @property
    def bundles(self) -> float | None:
        """The factor by which a copy takes longer below saturation than in some step at it, where that is more than `BUNDLES`.

        Such a broker sends several copies at once if it is saturated.
        """
        apart = float(np.median([step.per_copy for step in self.steps if step.kind == "loaded"]))
        least = min(step.busy / step.fan_out for step in self.steps if step.kind == "saturated" and step.fan_out > 1)
        return apart / least if apart > BUNDLES * least > 0 else None

    def preset(self) -> Raw:
        """The content of the file for scenarios: costs in microseconds, and how they were measured."""
        costs = {key: _written(key, one.value, 6) for key, one in self.fit.costs.items()}
        costs["send"] = costs["send_client"]
        intervals = {
            key: [_written(key, bound, 4) for bound in (one.low, one.high)] for key, one in self.fit.costs.items()
        }
        left_out = set() if self.fit.costs["wake_up"].value else set(FITTED[4:])
        worst = {
            kind: float(f"{max(abs(one.relative) for one in self.fit.residuals if one.step.kind == kind):.3g}")
            for kind in ("idle", "saturated")
        }
        about = {
            "broker": self.broker,
            "url": self.url,
            "date": self.date,
            "machine": self.machine,
            "by": f"brokersim {version('brokersim')}",
            "accounts": "kernel" if self.process else "slope of delay over load",
            "clean": float(f"{self.clean:.3g}"),
        }
        return {
            "costs": {key: costs[key] for key in ("time", "send", *FITTED[1:]) if key not in left_out},
            "measured": {**about, "confidence_intervals": intervals, "largest_residual": worst},
        }

    def write(self, path: Path) -> None:
        """Write the preset atomically."""
        with whole_file(path, InputError) as unfinished:
            unfinished.write_text(toml.document(self.preset()), encoding="utf-8")


def _written(key: str, value: float, digits: int) -> str | float:
    """A cost as it is in a preset."""
    return float(f"{value:.{digits}g}") if key == SLOWDOWN else f"{1e6 * value:.{digits}g}us"


def clean_share(steps: list[LoadStep]) -> float:
    """The mean share of samples of steps during which neither broker nor client waited for a core."""
    return float(np.mean([step.clean for step in steps]))


def measure_broker(url: str, options: MeasuringOptions, progress: Callable[[str], None]) -> CalibratedBroker:
    """Measure a broker, and fit its costs. Raises BrokerError where it cannot be measured, or too few samples count."""
    process, limits = options.pid, StepLimits(options.seconds, options.messages)
    address = broker_address(url, options.remote)
    times = None if process is None else times_of_process(process)
    try:
        with pinned(process) as cores, LoadGenerator(address, times) as load:
            broker = broker_version(MqttConnection(address, f"{load.run_name}-v"))
            load.connect(1, subscribers_topics(), len(FAN_OUTS))
            steps = []
            for step in take_steps(load, limits):
                steps.append(step)
                progress(f"{len(steps)} of {STEPS} steps: {step_sentence(step)}")
    finally:
        if times is not None:
            times.close()
    _check(steps, str(address), process)
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return CalibratedBroker(str(address), broker, machine(), date, process, cores, steps, fit_costs(steps))


def step_sentence(step: LoadStep) -> str:
    """What came out of a step, in words."""
    found = (
        f"{step.rate:,.0f} publications/s, {1e6 * step.busy:.1f} µs each"
        if step.kind == "saturated"
        else f"median delay {1e6 * step.quantile(0.5):.0f} µs at {step.rate:,.0f} publications/s"
    )
    return f"{step.name}: {found}, {step.clean:.0%} of samples clean"


def _check(steps: list[LoadStep], url: str, process: int | None) -> None:
    """Raise BrokerError where nothing can be fitted."""
    if process is not None and not any(step.broker for step in steps):
        raise BrokerError(f"--pid {process}: not the process of the broker at {url}: it did not run under load")
    check_clean(url, clean_share(steps), min(len(step.delays) for step in steps if step.kind == "idle"))
    if sum(step.kind == "saturated" and step.busy > 0 for step in steps) < len(FITTED):
        raise BrokerError(
            f"{url}: delays do not grow with the publications under way; with --pid the time on a core is measured"
        )


def check_clean(url: str, share: float, fewest: int) -> None:
    """Raise BrokerError where too few samples were taken while neither broker nor client waited for a core."""
    if share < LEAST_CLEAN or fewest < FEWEST:
        raise BrokerError(
            f"{url}: the machine is too busy, or the measurement too short: {share:.0%} of samples, {fewest} in the worst step, were "
            f"taken while neither broker nor client waited for a core (at least {LEAST_CLEAN:.0%} and {FEWEST} are needed)"
        )


def broker_version(connection: MqttConnection) -> str:
    """What a broker says it is; "unknown" where it says nothing."""
    try:
        return connection.retained("$SYS/broker/version", VERSION_WITHIN) or "unknown"
    finally:
        connection.close()


def machine() -> str:
    """This machine, in words: processor, cores, system, Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
