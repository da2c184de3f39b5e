"""Brokers that run: their costs as a preset for scenarios, and a scenario's workload on them beside the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from sim.api.console import Say, silent
from sim.api.scenarios import ScenarioSource, load_scenario
from sim.base.errors import InputError, unknown
from sim.base.installed import need_extra
from sim.calibration.options import MeasuringOptions

if TYPE_CHECKING:
    from sim.calibration.calibrate import CalibratedBroker
    from sim.calibration.validate import ValidatedScenario


@dataclass(frozen=True)
class CalibratedPreset:
    """The costs of a broker, written to `preset`; `measured` has all load steps and the fit."""

    measured: CalibratedBroker = field(repr=False)
    preset: Path

    @property
    def costs(self) -> pd.DataFrame:
        """A row per fitted cost: seconds, with a 95 % confidence interval."""
        rows = [(key, one.value, one.low, one.high) for key, one in self.measured.fit.costs.items()]
        return pd.DataFrame(rows, columns=["cost", "seconds", "low", "high"])

    @property
    def steps(self) -> pd.DataFrame:
        """A row per fitted load step: kind, subscribers, size (bytes), measured and fitted (s), residual, clean samples."""
        names = ["kind", "subscribers", "size", "measured", "fitted", "residual", "clean"]
        rows = [
            (one.step.kind, one.step.fan_out, one.step.size, one.measured, one.fitted, one.relative, one.step.clean)
            for one in self.measured.fit.residuals
        ]
        return pd.DataFrame(rows, columns=names)

    @property
    def sentences(self) -> list[str]:
        """What came out, in sentences."""
        from sim.calibration.page import calibration_sentences

        return calibration_sentences(self.measured)

    def _repr_html_(self) -> str:
        return str(self.costs.to_html(index=False))


def calibrate(
    url: str,
    out: str | Path = "preset.toml",
    page: str | Path | None = None,
    *,
    pid: int | None = None,
    remote: bool = False,
    seconds: float = 60.0,
    messages: int = 5_000_000,
    progress: Say | None = None,
) -> CalibratedPreset:
    """Measure an MQTT broker under load, and write what it needs for a publication as a preset for `brokers.service.preset`.

    Args:
        url: the broker, such as "mqtt://127.0.0.1:1883".
        out: the file to write, ending in .toml; it is written only once all is measured.
        page: also write a page of HTML with all steps, residuals and charts.
        pid: the broker's process on this machine, whose time on a core the kernel accounts (Linux); without it, a saturated broker's
            time is taken from delays.
        remote: allow a broker on another host.
        seconds: how long load is put on the broker.
        messages: how many messages the broker may receive and send.
        progress: called with a line after each step.

    Returns:
        The costs with confidence intervals, and all steps.

    Raises:
        InputError: where there is no broker, it ends connections or drops messages, or the machine is too busy to measure it.

    Examples:
        >>> sim.calibrate("http://127.0.0.1")
        Traceback (most recent call last):
        ...
        sim.calibration.mqtt.BrokerError: http://127.0.0.1: not the address of an MQTT broker (allowed: mqtt://HOST:PORT)
    """
    from sim.calibration.calibrate import measure_broker
    from sim.calibration.page import write_calibration

    path = Path(out)
    if path.suffix != ".toml":
        raise InputError(f"{path}: a preset is a file that ends in .toml")
    if not path.parent.is_dir():
        raise InputError(f"{path}: no such folder '{path.parent}'")
    check_page(page)
    found = measure_broker(url, MeasuringOptions(pid, remote, seconds, messages), progress or silent)
    found.write(path)
    if page is not None:
        write_calibration(found, Path(page))
    return CalibratedPreset(found, path)


def check_page(page: str | Path | None) -> None:
    """Raise InputError where a page cannot be written, before anything takes long."""
    if page is not None and Path(page).suffix != ".html":
        raise InputError(f"{page}: a page is a file that ends in .html")
    if page is not None:
        need_extra("report", "a page")


@dataclass(frozen=True)
class ComparedBroker:
    """A scenario on a broker and in the simulator, side by side."""

    compared: ValidatedScenario = field(repr=False)

    @property
    def agrees(self) -> bool:
        """Whether no quantity differs by more than allowed."""
        return self.compared.agrees

    @property
    def table(self) -> pd.DataFrame:
        """A row per quantity: measured, simulated (delays in s), relative difference, allowed difference, and whether it agrees."""
        names = ["quantity", "unit", "measured", "simulated", "difference", "allowed", "agrees"]
        rows = [
            (one.name, one.unit, one.measured, one.simulated, one.difference, one.allowed, one.agrees)
            for one in self.compared.quantities
        ]
        return pd.DataFrame(rows, columns=names)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def validate_against(
    url: str,
    source: ScenarioSource,
    page: str | Path | None = None,
    variant: str | None = None,
    *,
    allowed: Mapping[str, float] | None = None,
    overrides: Sequence[str] = (),
    workload: str | Path | None = None,
    pid: int | None = None,
    remote: bool = False,
    seconds: float = 60.0,
    messages: int = 5_000_000,
    progress: Say | None = None,
) -> ComparedBroker:
    """Replay the workload of a scenario with one broker on an MQTT broker, and compare what came out with the simulation.

    A delay ends with the last copy of its publication, which is when a simulated broker has served it.

    Args:
        url: the broker, such as "mqtt://127.0.0.1:1883".
        source: a scenario file, its content, or a loaded one.
        page: also write a page of HTML with the comparison.
        variant: the variant; the first by default.
        allowed: by how much the simulation may differ, relative to what was measured: "median" (0.15 by default), "p99" (0.25),
            "throughput" (0.2), "deliveries" and "losses" (0).
        overrides: texts `key.path=value` that override keys of the scenario.
        workload: a workload folder, instead of the one named in the scenario.
        pid: the broker's process on this machine, to leave out samples during which it waited for a core (Linux).
        remote: allow a broker on another host.
        seconds: how much of the workload is replayed.
        messages: how many messages the broker may receive and send.
        progress: called with lines about the progress.

    Returns:
        All quantities side by side, with verdicts.

    Raises:
        InputError: where there is no broker, the scenario cannot be replayed, or the machine is too busy.

    Examples:
        >>> sim.validate_against("mqtt://127.0.0.1", sim.example())
        Traceback (most recent call last):
        ...
        sim.base.errors.ScenarioError: scenario: network.brokers: one URL is one broker, found 4 (allowed: 1)
    """
    from sim.calibration.page import write_validation
    from sim.calibration.validate import AllowedDifferences, replayed, validate_scenario
    from sim.experiments.run import naming, prepared_folder
    from sim.workloads.format.folder import load_workload

    check_page(page)
    names = AllowedDifferences.__dataclass_fields__
    for name in allowed or {}:
        if name not in names:
            raise InputError(f"allowed: {unknown('quantity', name, names)}")
    experiment = load_scenario(source, overrides, workload)
    chosen = next(iter(experiment.variants)) if variant is None else variant
    if chosen not in experiment.variants:
        raise InputError(unknown("variant", chosen, experiment.variants))
    scenario, options = experiment.variants[chosen], MeasuringOptions(pid, remote, seconds, messages)
    folder = prepared_folder(experiment, scenario)
    with naming(experiment):
        world = replayed(scenario, None if folder is None else load_workload(folder), options)
        limits = AllowedDifferences(**(allowed or {}))
        titles = experiment.title, chosen
        found = validate_scenario(url, scenario, world, titles, limits, options, progress or silent)
    if page is not None:
        write_validation(found, Path(page))
    return ComparedBroker(found)
