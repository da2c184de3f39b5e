"""The [tune] table: metrics to minimise or maximise, limits to meet, and the values that parameters may take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from sim.base.errors import InputError
from sim.base.naming import Keys, Raw, RawValue
from sim.base.units import parse_duration
from sim.base.validation import Mistake, dotted, hint, nested, problems, show, unknown_key
from sim.files import toml
from sim.metrics import METRICS
from sim.scenario.expressions import Limit, guarded, unknown_metrics
from sim.scenario.sweep import OPTIONS
from sim.scenario.sweep_reader import leaves

_RANGE = ("from", "to", "scale")
_SCALES = ("linear", "log")


@dataclass(frozen=True)
class TunedRange:
    """Numbers from one to another, both included, in the key's unit; integers if both ends are."""

    low: int | float
    high: int | float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def size(self) -> int | None:
        """The number of values; None where they are not whole."""
        return int(self.high - self.low) + 1 if self.whole else None

    @property
    def examples(self) -> list[RawValue]:
        """The least and the largest."""
        return [self.low, self.high]

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return self.low <= value <= self.high and (not self.whole or float(value).is_integer())


@dataclass(frozen=True)
class Choices:
    """Unordered values, which may be tables."""

    values: tuple[RawValue, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def examples(self) -> list[RawValue]:
        """All of them."""
        return list(self.values)

    def __contains__(self, value: object) -> bool:
        return value in self.values


Parameter = TunedRange | Choices


def _metrics(names: object) -> tuple[str, ...]:
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)):
        raise ValueError(f"expected a metric or a list of metrics, found {show(names)}")
    if wrong := unknown_metrics(listed):
        raise nested(wrong if listed is names else [((), text) for _, text in wrong])
    return tuple(dict.fromkeys(listed))


def _limits(texts: object) -> tuple[Limit, ...]:
    listed = [texts] if isinstance(texts, str) else texts
    if not isinstance(listed, (list, tuple)) or not all(isinstance(text, str) for text in listed):
        raise ValueError(f'expected limits such as "load_stddev < 0.5", found {show(texts)}')
    try:
        return tuple(Limit.parse(text) for text in listed)
    except InputError as error:
        raise ValueError(str(error)) from None


_NAMES = {"enum": list(METRICS)}
Metrics = Annotated[
    tuple[str, ...],
    PlainValidator(_metrics),
    PlainSerializer(list),
    WithJsonSchema({"anyOf": [_NAMES, {"type": "array", "items": _NAMES}]}),
]
Limits = Annotated[
    tuple[Limit, ...],
    PlainValidator(_limits),
    PlainSerializer(lambda limits: [str(limit) for limit in limits]),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
_VALUES: Raw = {
    "anyOf": [
        {"type": "array", "minItems": 2},
        {
            "type": "object",
            "properties": {
                "from": {"type": ["number", "string"]},
                "to": {"type": ["number", "string"]},
                "scale": {"enum": list(_SCALES)},
            },
        },
    ],
    "description": "A key of the scenario that varies: its values, a range, or a table of such keys.",
}


class Tune(BaseModel):
    """The [tune] table. All its other keys are paths of scenario keys to vary.

    Such a key has a range `{ from, to, scale }` or a list of values.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        json_schema_extra={"additionalProperties": _VALUES},
    )

    minimise: Metrics = ()
    """Metrics to minimise."""
    maximise: Metrics = ()
    """Metrics to maximise."""
    subject_to: Limits = ()
    """Limits that the means of metrics must meet, such as "load_stddev < 0.5"."""
    trials: int = Field(default=50, ge=1, le=100_000)
    """The number of points to try."""
    vary: SkipJsonSchema[Annotated[Raw, PlainValidator(dict)]] = Field(default={}, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _take_parameters(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        own = {key: value for key, value in table.items() if key in cls.model_fields and key != "vary"}
        others = {key: value for key, value in table.items() if key not in own}
        wrong: list[Mistake] = [((key,), "no key that varies") for key in OPTIONS if key in others]
        vary: dict[str, Parameter] = {}
        for place, keys, values in leaves(others):
            try:
                vary[dotted(keys)] = _parameter(keys, values)
            except _Wrong as error:
                wrong.append(((*place, *error.keys), str(error)))
        if wrong:
            raise nested(wrong)
        return {**own, "vary": vary}

    def with_options(
        self,
        minimise: Sequence[str] = (),
        maximise: Sequence[str] = (),
        subject_to: Sequence[str] = (),
        vary: Sequence[str] = (),
        trials: int | None = None,
    ) -> Tune:
        """The table with command line options applied: metrics and limits replace the table's, keys are added.

        `vary` has texts `KEY=FROM..TO`, `KEY=FROM..TO:log` or `KEY=VALUE,VALUE`. Raises InputError where one is wrong.
        """
        said = {
            "minimise": list(minimise),
            "maximise": list(maximise),
            "subject_to": list(subject_to),
            "trials": trials,
        }
        read = _read({key: value for key, value in said.items() if value})
        over: Raw = {"vary": {**self.vary, **dict(map(_option, vary))}}
        if minimise or maximise:
            over |= {"minimise": read.minimise, "maximise": read.maximise}
        if subject_to:
            over["subject_to"] = read.subject_to
        if trials is not None:
            over["trials"] = trials
        return self.model_copy(update=over)

    def checked(self) -> Tune:
        """This table, checked. Raises InputError where there is no objective or no key to vary."""
        if not self.objectives:
            raise InputError(
                "nothing to tune for: name a metric with minimise or maximise in [tune], or with --minimise"
            )
        if twice := [name for name in self.minimise if name in self.maximise]:
            raise InputError(f"'{twice[0]}' cannot be both minimised and maximised: name it once")
        if not self.vary:
            raise InputError("nothing to tune: give a key and its range in [tune], or with --vary KEY=FROM..TO")
        return self

    def typed(self, is_integer: Callable[[str], bool]) -> Tune:
        """This table with typed ranges, which have fractions unless their key takes only integers."""
        ranges = {
            key: replace(values, low=float(values.low), high=float(values.high))
            for key, values in self.vary.items()
            if isinstance(values, TunedRange) and not is_integer(key)
        }
        return self.model_copy(update={"vary": {**self.vary, **ranges}})

    @property
    def objectives(self) -> dict[str, int]:
        """The metrics to tune for: 1 for those to minimise, −1 for those to maximise."""
        return {**dict.fromkeys(self.minimise, 1), **dict.fromkeys(self.maximise, -1)}

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits for trials, including that no broker is saturated if metrics cover only what was delivered."""
        return guarded(self.subject_to, self.objectives)

    @property
    def metrics(self) -> list[str]:
        """All metrics involved, each once: the objectives, then those with limits."""
        return list(dict.fromkeys([*self.objectives, *(limit.metric for limit in self.subject_to)]))


class _Wrong(ValueError):
    """A mistake in the values of a key, and at which key of the values."""

    def __init__(self, text: str, *keys: str) -> None:
        super().__init__(text)
        self.keys = keys


def _parameter(keys: Keys, values: object) -> Parameter:
    if not keys:
        raise _Wrong("expected the path of a key, such as network.brokers")
    return _range(values) if isinstance(values, dict) else _choices(values)


def _range(table: Raw) -> TunedRange:
    for key in table:
        if key not in _RANGE:
            raise _Wrong(unknown_key(_RANGE, key, table[key]), key)
    scale = table.get("scale", _SCALES[0])
    if scale not in _SCALES:
        raise _Wrong(f"unknown scale{hint(scale, _SCALES)} (found {show(scale)})", "scale")
    low, high = _number(table, "from"), _number(table, "to")
    if high <= low:
        raise _Wrong(f"expected more than 'from' ({low:g}), found {high:g}", "to")
    if scale == "log" and low <= 0:
        raise _Wrong(f"expected more than 0 on a logarithmic scale, found {low:g}", "from")
    return TunedRange(low, high, scale == "log")


def _number(table: Raw, key: str) -> int | float:
    if key not in table:
        raise _Wrong(f"missing key '{key}': expected a range such as {{ from = 1, to = 9 }}")
    value = table[key]
    try:
        return value if isinstance(value, int) and not isinstance(value, bool) else parse_duration(value)
    except ValueError:
        raise _Wrong(f"expected a number or a duration such as '10h', found {show(value)}", key) from None


def _choices(values: object) -> Choices:
    if not isinstance(values, list):
        raise _Wrong(f"expected a range such as {{ from = 1, to = 9 }} or a list of values, found {show(values)}")
    different = [value for i, value in enumerate(values) if value not in values[:i]]
    if len(different) < 2:
        raise _Wrong(f"expected two values or more, found {show(values)}")
    return Choices(tuple(different))


def _option(text: str) -> tuple[str, Parameter]:
    """A key and its values of an option's text."""
    key, equals, values = (part.strip() for part in text.partition("="))
    low, dots, high = values.partition("..")
    if not (equals and key and values):
        raise InputError(f"--vary {text}: expected KEY=FROM..TO, KEY=FROM..TO:log or KEY=VALUE,VALUE")
    try:
        if dots:
            high, _, scale = high.partition(":")
            ends = {"from": toml.value(low.strip()), "to": toml.value(high.strip())}
            return key, _range({**ends, "scale": scale or _SCALES[0]})
        listed = toml.value(f"[{values}]")
        return key, _choices(
            listed if isinstance(listed, list) else [toml.value(part.strip()) for part in values.split(",")]
        )
    except _Wrong as error:
        raise InputError(f"--vary {text}: {error}") from None


def _read(table: Raw) -> Tune:
    """The table of options. Raises InputError with all that is wrong."""
    try:
        return Tune.model_validate(table)
    except ValidationError as error:
        options = ((f"--{keys[0]}".replace("_", "-"), text) for keys, text in problems(error, Tune))
        raise InputError("\n".join(f"{option}: {text}" for option, text in options)) from None
