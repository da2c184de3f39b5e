"""The [brokers] section: what brokers do with a message, and how long they take."""

from __future__ import annotations

import tomllib
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from sim.base.errors import unknown
from sim.base.units import Duration, parse_duration, unit
from sim.base.validation import nested, show
from sim.files.inputs import File, InputFile, csv_rows
from sim.scenario.fixed_table import FixedTable

COSTS = ("time", "matching", "send", "send_client", "per_byte", "acknowledgement", "wake_up")
"""The keys of a service table that are durations."""

MEASURED_COSTS: dict[str, dict[str, float]] = {
    "light": {"time": 2.56e-6, "send": 9e-6, "send_client": 9e-6, "per_byte": 1.4e-9, "wake_up": 85e-6},
    "cluster": {"time": 32e-6, "send": 32e-6, "send_client": 32e-6},
    "bus": {"time": 0.202e-6, "send": 0.191e-6, "send_client": 0.191e-6},
}
"""Service costs measured on one core; docs/formats.md gives the sources."""

_Measured = tuple[tuple[float, ...], tuple[float, ...]]
"""Service times (s), and how often each was measured."""


def parse_service_times(text: str) -> _Measured:
    """Parse service times: CSV with the columns seconds and count. Raises ValueError with the line of a mistake."""
    rows = [
        (row.number("seconds", least=0), row.number("count", above=0)) for row in csv_rows(text, ["seconds", "count"])
    ]
    if not any(seconds for seconds, _ in rows):
        raise ValueError("all seconds are 0 (allowed: at least one above 0)")
    seconds, counts = zip(*sorted(rows), strict=True)
    return seconds, counts


_SLOWDOWN = "wake_up_slowdown"
_OVERRULED_BY = {"wake_up_half": {"wake_up"}, "wake_up_least": {"wake_up", "wake_up_half"}, _SLOWDOWN: {"wake_up"}}
"""Keys of a preset that are ignored where the scenario gives the keys that they refine."""
_PRESET_COSTS = (*COSTS, *_OVERRULED_BY)
PRESET_ENDING = ".toml"
"""The ending of files of costs; other presets are names."""


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"expected a number, found {show(value)}")


def parse_preset(text: str) -> dict[str, float]:
    """Parse costs (s): TOML with a table `costs`, other tables are about the measurement. Raises ValueError with a mistake."""
    try:
        costs = tomllib.loads(text).get("costs")
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from None
    if not isinstance(costs, dict) or not costs:
        raise ValueError(f"no table [costs] (allowed in it: {', '.join(_PRESET_COSTS)})")
    found = {}
    for key, value in costs.items():
        if key not in _PRESET_COSTS:
            raise ValueError(f"costs: {unknown('cost', key, _PRESET_COSTS)}")
        try:
            found[key] = _number(value) if key == _SLOWDOWN else parse_duration(value)
        except ValueError as error:
            raise ValueError(f"costs.{key}: {error}") from None
        if key == _SLOWDOWN and not 0 <= found[key] <= 100:
            raise ValueError(f"costs.{key}: expected 0 to 100, found {show(value)}")
        if not 0 <= found[key] <= 3600:
            raise ValueError(f"costs.{key}: expected 0 to 1 h, found {show(value)}")
    return found


_PRESET_FILE = InputFile(parse_preset)


def _preset(value: object) -> str | File[dict[str, float]] | None:
    if value is None or isinstance(value, File) or (isinstance(value, str) and value in MEASURED_COSTS):
        return value
    if isinstance(value, str) and value.endswith(PRESET_ENDING):
        return _PRESET_FILE.read(value)
    found = (
        unknown("preset", value, MEASURED_COSTS) if isinstance(value, str) else f"expected text, found {show(value)}"
    )
    raise ValueError(f"{found}; a file of costs ends in {PRESET_ENDING}")


ServicePreset = Annotated[
    str | File[dict[str, float]] | None,
    PlainValidator(_preset),
    PlainSerializer(lambda preset: preset.dump() if isinstance(preset, File) else preset),
    WithJsonSchema(
        {"anyOf": [{"enum": list(MEASURED_COSTS)}, {"type": "string", "pattern": r"\.toml$"}, {"type": "null"}]}
    ),
]
"""The name of measured costs, or a file of them."""


def _bound(what: str) -> PlainValidator:
    def read(value: object) -> int | None:
        if value is None or value == "unbounded":
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise ValueError(f"expected a number of {what} (1 or more) or 'unbounded', found {show(value)}")

    return PlainValidator(read)


_WRITTEN = PlainSerializer(lambda bound: "unbounded" if bound is None else bound)
_SCHEMA = WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "unbounded"}]})
BoundedMessages = Annotated[int | None, _bound("messages"), _WRITTEN, _SCHEMA]
BoundedBytes = Annotated[int | None, _bound("bytes"), _WRITTEN, _SCHEMA]


class Service(FixedTable):
    """The time that a broker needs for a message: the mean is the sum of the costs of receiving, matching and sending it."""

    kind: Literal["none", "deterministic", "exponential", "gamma", "lognormal", "histogram"] = "none"
    """Whether there is no service time, the mean itself, or a random one for each message."""
    preset: ServicePreset = None
    """Measured costs of a kind of broker, or a file of them (.toml), used for costs that are not given."""
    time: Duration = 0.0
    """The (mean) time to receive a message."""
    matching: Duration = 0.0
    """Additional service time per counter that matching increments; only for workloads with content."""
    send: Duration = 0.0
    """Additional service time per copy sent to another broker."""
    send_client: Duration = 0.0
    """Additional service time per copy sent to one of the broker's users."""
    per_byte: Duration = 0.0
    """Additional service time per byte of the message."""
    acknowledgement: Duration = Field(default=0.0, exclude_if=lambda time: not time)
    """The (mean) time to serve an acknowledgement of another broker, with a guarantee; 0: acknowledgements are not served."""
    wake_up: Duration = 0.0
    """Additional constant service time for a message that finds one of the broker's servers idle."""
    wake_up_half: Duration = Field(default=0.0, exclude_if=lambda time: not time)
    """The idle time after which half of wake_up is needed, t / (t + wake_up_half) of it after t; 0, the default: always all of it."""
    wake_up_least: Duration = Field(default=0.0, exclude_if=lambda time: not time)
    """The part of wake_up that is needed however short the idle time was; wake_up_half then applies to the rest."""
    wake_up_slowdown: float = Field(default=0.0, ge=0, le=100, exclude_if=lambda share: not share)
    """The share by which a service takes longer where the broker was idle, as caches are cold; half of it after wake_up_half."""
    variation: float = Field(default=1.0, gt=0, le=100)
    """The coefficient of variation of service times; only for kinds gamma and lognormal."""
    file: Annotated[File[_Measured], InputFile(parse_service_times)] | None = None
    """Measured service times, a CSV file with the columns seconds and count; only for kind histogram, scaled to the mean."""

    @model_validator(mode="before")
    @classmethod
    def _preset_where_not_said(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        try:
            preset = _preset(value.get("preset"))
        except ValueError as error:
            raise nested([(("preset",), str(error))]) from None
        costs = preset.content if isinstance(preset, File) else MEASURED_COSTS.get(preset or "", {})
        measured = {key: cost for key, cost in costs.items() if not _OVERRULED_BY.get(key, set()) & set(value)}
        return {**measured, **value, "preset": preset}

    @model_validator(mode="after")
    def _time_where_needed(self) -> Service:
        costs = [key for key in COSTS if getattr(self, key)]
        if self.kind == "none" and self.preset:
            name = self.preset.name if isinstance(self.preset, File) else self.preset
            raise ValueError(f"preset '{name}' needs a kind (allowed: any but 'none')")
        if self.kind == "none" and costs:
            raise ValueError(f"kind 'none' takes no {costs[0]} above 0")
        if self.kind != "none" and not costs:
            raise ValueError(f"kind '{self.kind}' needs a time above 0")
        if self.wake_up_half and not self.wake_up:
            raise ValueError("wake_up_half without a wake_up, so that it has no effect (allowed with: wake_up)")
        if self.wake_up_slowdown and not self.wake_up:
            raise ValueError("wake_up_slowdown without a wake_up (allowed with: wake_up)")
        if self.wake_up_least and not self.wake_up_half:
            raise ValueError(
                "wake_up_least without a wake_up_half, so that it has no effect (allowed with: wake_up_half)"
            )
        if self.wake_up_least > self.wake_up:
            raise ValueError(
                f"wake_up_least of {self.wake_up_least:g} s is above wake_up, {self.wake_up:g} s (allowed: up to it)"
            )
        if self.variation != 1.0 and self.kind not in ("gamma", "lognormal"):
            raise ValueError(f"kind '{self.kind}' takes no variation (allowed with: 'gamma', 'lognormal')")
        if (self.file is None) == (self.kind == "histogram"):
            raise ValueError(f"kind '{self.kind}' {'needs a' if self.file is None else 'takes no'} file")
        return self


def check_overflow(overflow: str, **limits: int | None) -> None:
    """Raise ValueError for an overflow rule other than the default where nothing is limited."""
    if overflow != "drop-newest" and all(limit is None for limit in limits.values()):
        raise ValueError(
            f"overflow '{overflow}' without a limit, so that it has no effect (allowed with: {', '.join(limits)})"
        )


class Brokers(FixedTable):
    """The [brokers] section: how brokers serve messages."""

    service: Service = Service()
    """The service time."""
    servers: int = Field(default=1, ge=1, le=1024)
    """How many messages a broker serves at the same time."""
    queue: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait at a broker."""
    queue_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait at a broker."""
    order: Literal["control-first", "fifo"] = "control-first"
    """Which message is served next: control messages before publications, or the one that has waited longest."""
    overflow: Literal["drop-newest", "drop-oldest"] = "drop-newest"
    """Which publications are dropped where the queue is full: the one that arrives, or those that have waited longest."""
    connection_rate: Annotated[float, Field(gt=0, le=2**53)] | None = Field(
        default=None, json_schema_extra=unit("1/s"), exclude_if=lambda rate: rate is None
    )
    """How many connections of users whose broker has crashed a broker accepts per second; by default any number."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Brokers:
        limits = {
            "servers": self.servers > 1,
            "queue": self.queue is not None,
            "queue_bytes": self.queue_bytes is not None,
        }
        for key, limited in limits.items():
            if limited and self.service.kind == "none":
                raise ValueError(f"{key} without a service time, so that no message waits (allowed with: service.kind)")
        check_overflow(self.overflow, queue=self.queue, queue_bytes=self.queue_bytes)
        return self
