"""The exceptions of brokersim: invalid input, reported in one message, and internal faults."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class BrokersimError(Exception):
    """Base of all errors that brokersim raises on purpose."""


class InputError(BrokersimError):
    """Something a person typed or supplied is wrong; the command line prints the message and exits with status 2.

    The message names the file, key or row, what was found and what is allowed.

    Examples:
        >>> try:
        ...     sim.run("scenarios/quikstart.toml")
        ... except sim.InputError as error:
        ...     print(error)
        scenarios/quikstart.toml: ...
    """


class ScenarioError(InputError):
    """A scenario, or a table of it, is not valid."""


class WorkloadError(InputError):
    """A trace or a workload folder cannot be used."""


class ResultsError(InputError):
    """A folder is not a (complete) result."""


class PluginError(InputError):
    """A third-party plug-in breaks its interface's contract; the message names its class."""


class ConservationError(BrokersimError):
    """A run miscounted notifications: due is not delivered + lost + in flight. A fault of brokersim."""


class MetricError(BrokersimError):
    """A network computes a metric that is not declared, or lacks one that is. A fault of brokersim."""


def refuse(wrong: str | None) -> None:
    """Raise ScenarioError where something is wrong."""
    if wrong is not None:
        raise ScenarioError(wrong)


def cut(text: str, length: int = 60) -> str:
    """A text shortened for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that `name` was most likely meant to be, or None where none is close."""
    close = difflib.get_close_matches(name, list(allowed), n=1)
    return close[0] if close else None


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """The closest valid name, as the end of a message; "" where none is close."""
    near = nearest(name, allowed)
    return f", did you mean '{near}'?" if near else ""


def unknown(what: str, name: str, allowed: Iterable[str]) -> str:
    """The sentence for an unknown name: what was found, the closest valid name, and what is allowed."""
    names = sorted(allowed)
    return f"unknown {what} '{name}'{suggestion(name, names)} (allowed: {', '.join(names)})"


def unknown_of_many(what: str, name: str, names: Sequence[str]) -> str:
    """As `unknown`, for names that may be too many to list: only their number and an example are given."""
    return f"unknown {what} '{name}'{suggestion(name, names)} (there are {len(names):,}, such as '{names[0]}')"
