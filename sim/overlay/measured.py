"""Round-trip times that were measured between hosts, at which the brokers stand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.errors import ScenarioError, cut, refuse
from sim.base.naming import name_key
from sim.base.randomness_kernels import keyed_uniform
from sim.base.units import Duration, Sigma, format_duration
from sim.files.inputs import File, InputFile, csv_rows
from sim.overlay.latency import LatencySetting, great_circle_km
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites

FIBRE_KM_PER_S = 200_000.0
"""Light in fibre: 5 µs per kilometre (the planning value of ITU-T Recommendation G.114)."""

Places = dict[str, tuple[float, float]]
"""Latitude and longitude (degrees) of hosts, by id."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Round-trip times between n hosts with ascending ids: `seconds` (n, n) as measured by the row's host, NaN where missing."""

    hosts: tuple[str, ...]
    seconds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.hosts)


def parse_measurements(text: str) -> Measurements:
    """Parse measurements (ms): n lines of n numbers, or CSV with the columns source, destination and avg.

    Hosts of a square are 0, 1, …; its numbers are separated by tabs, spaces or commas. `nan` and an empty avg mean missing. Raises
    ValueError with the line of a mistake.
    """
    lines = [(number, line.replace(",", " ").split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, fields) for number, fields in lines if fields]
    first = lines[0][1] if lines else []
    if "source" in first or all(_number(field) is None for field in first):  # a header may hold numbers too
        return _parse_pairs(text)
    square = np.empty((len(lines), len(lines)))
    for row, (number, fields) in enumerate(lines):
        if len(fields) != len(lines):
            raise ValueError(
                f"line {number}: expected {len(lines)} numbers, as many as there are lines, found {len(fields)} "
                "(allowed: a square of numbers, or CSV with the columns source, destination and avg)"
            )
        for column, field in enumerate(fields):
            value = _number(field)
            if value is None or value < 0 or value == math.inf:
                raise ValueError(
                    f"line {number}, number {column + 1}: expected milliseconds from 0 on, found {cut(repr(field))}"
                )
            square[row, column] = value / 1e3
    return Measurements(tuple(map(str, range(len(lines)))), square)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_pairs(text: str) -> Measurements:
    times: dict[tuple[str, str], float] = {}
    for row in csv_rows(text, ["source", "destination", "avg"], others=True):
        pair = row.text("source"), row.text("destination")
        if pair in times:
            raise row.wrong("destination", f"{pair[0]} to {pair[1]} appears twice")
        times[pair] = row.number("avg", 0) / 1e3 if row.fields["avg"] else math.nan
    hosts = sorted({host for pair in times for host in pair}, key=name_key)
    at = {host: i for i, host in enumerate(hosts)}
    seconds = np.full((len(hosts), len(hosts)), np.nan)
    seconds[[at[source] for source, _ in times], [at[to] for _, to in times]] = list(times.values())
    return Measurements(tuple(hosts), seconds)


def parse_places(text: str) -> Places:
    """Parse the positions of hosts: CSV with the columns id, latitude and longitude. Raises ValueError with the line of a mistake."""
    places: Places = {}
    for row in csv_rows(text, ["id", "latitude", "longitude"], others=True):
        host = row.text("id")
        if host in places:
            raise row.wrong("id", f"{host} appears twice")
        places[host] = row.number("latitude", -90, 90), row.number("longitude", -180, 180)
    return places


class MatrixLatency:
    """Round-trip times between hosts that were measured: the mean of both directions where both were.

    With a file of hosts each broker stands at the nearest one (the lowest id on ties), otherwise at a host of its own.
    """

    class Parameters(plugins.Parameters):
        file: Annotated[File[Measurements], InputFile(parse_measurements)]
        """Round-trip times (ms): a square of numbers, or CSV with the columns source, destination and avg."""
        hosts_file: Annotated[File[Places], InputFile(parse_places)] | None = None
        """The positions of hosts: CSV with the columns id, latitude and longitude."""
        assign: Literal["drawn", "in-order"] = "drawn"
        """Without hosts_file: brokers are at hosts drawn without replacement, or at the first ones."""
        same_host: Duration = 0.0005
        """Round-trip time between brokers at the same host."""
        missing: Literal["fit", "error"] = "fit"
        """With hosts_file, pairs of hosts without a time get that of a line over distance, fitted to all valid pairs."""
        impossible: Literal["fit", "floor", "keep", "error"] = "fit"
        """With hosts_file, pairs faster than light in fibre get the time of the fitted line or of light, or keep their own."""
        jitter: Sigma = 0.0
        """σ of a lognormal factor with mean 1 on every hop; messages on one link keep their order."""

        def unfit(self, brokers: int | None, sites: Sites | None) -> str | None:
            hosts = len(self.file.content)
            if self.hosts_file is None and brokers is not None and brokers > hosts:
                most = f"{self.file.name} has only {hosts} hosts (allowed: 1 to {hosts})"
                return f"network.latency.file: {brokers} brokers, but {most}"
            if self.hosts_file is not None and sites is not None:
                try:
                    _nearest_hosts(self, self.hosts_file, sites)
                except ScenarioError as error:
                    return str(error)
            return None

    notes: tuple[str, ...] = ()

    def __init__(self, parameters: Parameters, setting: LatencySetting) -> None:
        """Raises ScenarioError where hosts are too few, or positions or the times of a pair of brokers are missing."""
        self.jitter = parameters.jitter
        if parameters.hosts_file is None:
            refuse(parameters.unfit(len(setting.sites), setting.sites))
            host, times = _own_hosts(parameters, setting)
        else:
            host, times, self.notes = _nearest_hosts(parameters, parameters.hosts_file, setting.sites)
        np.fill_diagonal(times, parameters.same_host)
        self.round_trips = PairTimes.of_groups(host, times)


def _mean_of_directions(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    there = np.where(np.isnan(seconds), seconds.T, seconds)
    return (there + there.T) / 2


def _own_hosts(
    parameters: MatrixLatency.Parameters, setting: LatencySetting
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A host for each broker, no two the same, and the times (s) between all hosts."""
    measured, name, brokers = parameters.file.content, parameters.file.name, len(setting.sites)
    host = np.arange(len(measured))
    if parameters.assign == "drawn":
        host = np.argsort([keyed_uniform(setting.key, number, 0) for number in host.tolist()], kind="stable")
    host, times = host[:brokers], _mean_of_directions(measured.seconds)
    without = np.argwhere(np.isnan(times[np.ix_(host, host)]) & ~np.eye(brokers, dtype=bool))
    if len(without):
        one, other = (measured.hosts[i] for i in host[without[0]])
        raise ScenarioError(
            f"network.latency.file: {name} has no time between hosts {one} and {other} of two brokers "
            "(allowed: hosts_file, to fit missing times)"
        )
    return host, times


def _nearest_hosts(
    parameters: MatrixLatency.Parameters, places: File[Places], sites: Sites
) -> tuple[NDArray[np.int64], NDArray[np.float64], tuple[str, ...]]:
    """The host of each broker, the times (s) between all hosts with a position, and notes on them."""
    measured, name = parameters.file.content, parameters.file.name
    known = [i for i, host in enumerate(measured.hosts) if host in places.content]
    if not known:
        raise ScenarioError(f"network.latency.hosts_file: {places.name} has no host of {name}")
    if not sites.have_places:
        raise ScenarioError(
            "network.latency.hosts_file: needs the brokers' positions to find their nearest hosts, but they have none "
            "(allowed without positions: no hosts_file)"
        )
    hosts = [measured.hosts[i] for i in known]
    latitude, longitude = np.array([places.content[host] for host in hosts]).T
    away = great_circle_km(sites.latitude[:, None], sites.longitude[:, None], latitude, longitude)
    host = np.argmin(away, axis=1)
    km = great_circle_km(latitude[:, None], longitude[:, None], latitude, longitude)
    pairs = _Pairs(hosts, km, _mean_of_directions(measured.seconds[np.ix_(known, known)]), host)
    notes = []
    if len(known) < len(measured):
        left = [host for host in measured.hosts if host not in places.content]
        notes.append(
            f"{len(left)} of {len(measured)} hosts have no row in {places.name} and are left out: {_some(left)}"
        )
    for what, rule in (("missing", parameters.missing), ("impossible", parameters.impossible)):
        notes += pairs.repair(what, rule)
    far = away.min(axis=1)
    most = f"at most {far.max():,.0f} km ({sites.names[far.argmax()]})"
    shared = len(host) - len(set(host.tolist()))
    notes.append(
        f"brokers stand {np.median(far):,.0f} km (median) and {most} from their hosts; {shared} share a host with an earlier one"
    )
    return host, pairs.seconds, tuple(f"{name}: {note}" for note in notes)


class _Pairs:
    """All pairs of m hosts: distances (km) and times (s; NaN where not measured), both (m, m); brokers stand at the hosts `at`."""

    def __init__(
        self, hosts: Sequence[str], km: NDArray[np.float64], seconds: NDArray[np.float64], at: NDArray[np.int64]
    ) -> None:
        self.hosts, self.km, self.seconds = hosts, km, seconds
        apart = np.triu(np.ones(km.shape, dtype=bool), 1)
        used = np.isin(np.arange(len(hosts)), at)
        self.of_brokers = apart & used[:, None] & used
        self.light = 2 * km / FIBRE_KM_PER_S
        self.found = {"missing": apart & np.isnan(seconds), "impossible": apart & (seconds < self.light)}
        self.total = {"missing": int(apart.sum()), "impossible": int((apart & ~np.isnan(seconds)).sum())}
        sound = apart & (seconds >= self.light)
        self.base, self.per_km = _line(km[sound], seconds[sound])

    def repair(self, what: str, rule: str) -> Iterator[str]:
        """Apply a rule to missing or impossible times; returns a note on it."""
        found = self.found[what]
        if not found.any():
            return
        instead = {"fit": np.maximum(self.base + self.per_km * self.km, self.light), "floor": self.light}.get(
            rule, self.seconds
        )
        needed = found & self.of_brokers
        example = self._example(needed if needed.any() else found)
        flaw = (
            "have no round-trip time"
            if what == "missing"
            else f"are faster than light in fibre ({FIBRE_KM_PER_S:,.0f} km/s)"
        )
        if needed.any() and (rule == "error" or np.isnan(instead[needed]).any()):
            why = "" if rule == "error" else ", and too few others exist to fit a line"
            raise ScenarioError(f"network.latency.{what}: hosts {example}, where brokers stand, {flaw}{why}")
        self.seconds = np.where(found | found.T, instead, self.seconds)
        share = f"{found.sum():,} of {self.total[what]:,} pairs ({found.sum() / self.total[what]:.2%})"
        yield f"{share} of hosts {flaw}, such as {example}; {needed.sum()} of them between hosts of brokers; {self._deed(rule)}"

    def _example(self, found: NDArray[np.bool_]) -> str:
        one, other = np.argwhere(found)[0]
        time = self.seconds[one, other]
        known = "" if np.isnan(time) else f" ({format_duration(time)} over {self.km[one, other]:,.0f} km)"
        return f"{self.hosts[one]} and {self.hosts[other]}{known}"

    def _deed(self, rule: str) -> str:
        line = f"{format_duration(self.base)} + {format_duration(1000 * self.per_km)} per 1,000 km"
        return {
            "fit": f"they get {line}, as fitted to the others",
            "floor": "they get the time of light",
            "keep": "they keep their times",
            "error": "none is needed",
        }[rule]


def _line(km: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float]:
    """Base (s) and slope (s/km) of the least-squares line; NaN where there is none."""
    if len(km) == 0 or np.ptp(km) == 0:
        return np.nan, np.nan
    off = km - km.mean()
    slope = float(off @ (seconds - seconds.mean()) / (off @ off))
    return float(seconds.mean()) - slope * float(km.mean()), slope


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
