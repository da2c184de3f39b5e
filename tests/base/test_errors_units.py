"""The small things that all packages share: sentences about wrong names, durations, plug-ins."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sim import plugins
from sim.base import errors
from sim.base.errors import BrokersimError, ConservationError, InputError, ScenarioError, nearest, unknown
from sim.base.units import SECONDS, Duration, PositiveDuration, format_duration, parse_duration
from sim.metrics import METRICS


def test_what_a_person_got_wrong_is_told_apart_from_faults_of_ours() -> None:
    for kind in (errors.ScenarioError, errors.WorkloadError, errors.ResultsError):
        assert issubclass(kind, InputError)
    assert issubclass(ConservationError, BrokersimError)
    assert not issubclass(ConservationError, InputError)


def test_the_nearest_name_is_offered_only_where_one_is_near() -> None:
    assert nearest("similarty", ["static", "similarity"]) == "similarity"
    assert nearest("xyz", ["static", "similarity"]) is None
    assert unknown("policy", "sttic", ["static", "location"]) == (
        "unknown policy 'sttic', did you mean 'static'? (allowed: location, static)"
    )
    assert unknown("policy", "xyz", ["a", "b"]) == "unknown policy 'xyz' (allowed: a, b)"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("90", 90.0),
        (90, 90.0),
        (0.5, 0.5),
        ("1.5 h", 5400.0),
        (" 7d ", 604800.0),
        ("2w", 1209600.0),
        ("5min", 300.0),
        ("20 ms", 0.02),
        ("3us", 3e-6),
        ("1e3s", 1000.0),
        (".5s", 0.5),
    ],
)
def test_durations_as_people_write_them(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    "value", ["", "h", "7 days", "1h30", "1 H", "nan", math.nan, math.inf, 10**400, "1e999s", True, None, [1]]
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected a (finite )?duration"):
        parse_duration(value)


def test_durations_in_models_have_a_sign() -> None:
    assert TypeAdapter(Duration).validate_python("0s") == 0.0
    for kind, text in ((Duration, "-1s"), (PositiveDuration, "0s")):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(text)


@given(st.floats(1e-6, 1e9))
def test_a_duration_as_text_is_right_to_three_digits(seconds: float) -> None:
    text = format_duration(seconds)
    assert parse_duration(text) == pytest.approx(seconds, rel=5e-3)
    assert text.split()[1] in SECONDS


def test_durations_as_text() -> None:
    assert [format_duration(s) for s in (0, 0.036, 5400, 90, 864000, -2)] == [
        "0 s", "36 ms", "1.5 h", "1.5 min", "10 d", "-2 s",
    ]  # fmt: skip


def test_all_plugins_of_ours_are_found_and_describe_themselves() -> None:
    for group in plugins.GROUPS:
        assert plugins.names(group) or group == "metric"  # those of ours are no plug-ins
        for name in plugins.names(group):
            found = plugins.load(group, name)
            assert found.__doc__, f"{group}:{name} has no docstring"
            for key, field in found.Parameters.model_fields.items():
                assert field.description, f"{group}:{name}: {key} has no docstring"
                # nothing can stand in for what was measured, nor for what is to fail
                given = key in ("file", "round_trips") or group == "faults"
                assert given or not field.is_required(), f"{group}:{name}: {key} has no default"


def test_an_unknown_plugin_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ScenarioError, match=r"unknown selection kind 'statc', did you mean 'static'\? \(allowed: loc"):
        plugins.load("selection", "statc")


class WithoutParameters:
    """No plug-in."""


def test_a_class_without_parameters_is_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = plugins.EntryPoint("bare", f"{__name__}:WithoutParameters", "brokersim.selection")
    monkeypatch.setattr(plugins, "_entries", lambda _group: {"bare": entry})
    with pytest.raises(ScenarioError, match="has no nested class Parameters"):
        plugins.load("selection", "bare")
    plugins.load.cache_clear()


@pytest.mark.parametrize("values", [{"x": 1}, {"a": math.nan}, {"a": math.inf}])
def test_parameters_refuse_unknown_keys_and_what_is_no_number(values: dict[str, float]) -> None:
    class Some(plugins.Parameters):
        a: float = 1.0

    with pytest.raises(ValidationError):
        Some.model_validate(values)
    with pytest.raises(ValidationError):
        Some().a = 2.0  # type: ignore[misc]


def test_metrics_are_named_once_with_units() -> None:
    units = {"count", "messages", "s", "hops", "bytes", "notifications", "–"}
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit in units
        assert metric.description
        assert metric.better in {"lower", "higher", "neutral"}
        assert not metric.integer or metric.unit in {"count", "messages", "bytes", "hops"}
