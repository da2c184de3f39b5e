"""Check whether a plug-in keeps its promises, for the tests of plug-in authors.

from sim.conformance import assert_conforms

def test_conforms() -> None:
    assert_conforms("selection", MyPolicy)
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass

import numpy as np
from pydantic import ValidationError

from sim.base.errors import InputError, unknown
from sim.base.naming import Raw
from sim.conformance.cases import CASES, Call, Calls, Case
from sim.overlay.promises import GeometryPromises, LatencyPromises
from sim.own_metrics import MetricPromises
from sim.plugins import BrokenPromise, Found, Parameters, Promise, Promises, broken
from sim.policies.promises import OffloadingPromises, ReconfigurationPromises, SelectionPromises, SharingPromises
from sim.workloads.faults.promises import FaultPromises
from sim.workloads.promises import WorkloadPromises

PROMISES: dict[str, type[Promises]] = {
    promises.group: promises
    for promises in (
        GeometryPromises,
        LatencyPromises,
        SelectionPromises,
        SharingPromises,
        ReconfigurationPromises,
        OffloadingPromises,
        WorkloadPromises,
        FaultPromises,
        MetricPromises,
    )
}
"""What the plug-ins of each group promise."""


def check(group: str, plugin: type, parameters: Raw | None = None, *, seed: int = 1) -> list[str]:
    """One sentence for each promise that a plug-in (a class) of a group breaks on small random cases; empty if it keeps all.

    `parameters` are passed to its `Parameters`; another `seed` draws other cases. A plug-in may refuse some cases with an InputError.
    """
    if group not in PROMISES:
        raise InputError(unknown("group of plug-ins", group, PROMISES))
    trial = _Trial(PROMISES[group], plugin)
    trial.run(dict(parameters or {}), CASES[group](seed))
    return list(trial.broken.values())


def assert_conforms(group: str, plugin: type, parameters: Raw | None = None, *, seed: int = 1) -> None:
    """Raise AssertionError with one line for each broken promise that `check` finds."""
    broken = check(group, plugin, parameters, seed=seed)
    assert not broken, "\n".join(["", *broken])


class _Trial:
    """One plug-in on all cases; `broken` maps each broken promise to the first way in which it was broken."""

    def __init__(self, promises: type[Promises], plugin: type) -> None:
        self.promises, self.plugin = promises, plugin
        self.broken: dict[str, str] = {}
        self.refusal: str | None = None
        self.answered = False

    def report(self, error: BrokenPromise, place: str) -> None:
        self.broken.setdefault(error.promise, f"{error}{place}")

    def miss(self, promise: Promise, wrong: str, place: str = "") -> None:
        self.report(broken(self.plugin, promise, wrong), place)

    def run(self, parameters: Raw, cases: Mapping[str, Case]) -> None:
        try:
            model = self.promises.model(self.plugin)
        except BrokenPromise as error:
            return self.report(error, "")
        given = model(**parameters)
        with suppress(ValidationError):
            model(**{**parameters, "no_such_parameter": 1})
            self.miss(self.promises.strict, "its Parameters accept unknown keys")
        for name, case in cases.items():
            state = _random_state()
            try:
                self.one(f" ({name})", case, given)
            except BrokenPromise as error:
                self.report(error, f" ({name})")
            except InputError as refusal:
                self.refusal = str(refusal)
            if _random_state() != state:
                self.miss(self.promises.independent, "it uses the global random state", f" ({name})")
        if not (self.answered or self.broken):
            self.miss(self.promises.refusing, f"it refuses all cases: {self.refusal}")
        return None

    def one(self, place: str, case: Case, parameters: Parameters) -> None:
        """Try one case. Raises BrokenPromise where the plug-in cannot be created, InputError where it refuses the case."""
        given = _content(case.arguments)
        first, second = (self.promises(self.plugin, parameters, *case.arguments, costly=True) for _ in range(2))
        for (member, found), (_, again) in zip(first.held(), second.held(), strict=True):
            for error in first.breaches(member, found):
                self.report(error, place)
            if _content(found) != _content(again):
                self.miss(self.promises.same, f"{member} differs between two instances with the same arguments", place)
        answers = self.ask(first, case.calls, place)
        if callable(case.calls):
            others = [("called on another instance", self.ask(second, case.calls, place))]
        else:
            backwards = self.ask(second, case.calls[::-1], place)[::-1]
            others = [("called again", self.ask(first, case.calls, place)), ("called in another order", backwards)]
        for way, other in others:
            for (call, answer), (_, now) in zip(answers, other, strict=False):
                if answer != now:
                    self.miss(self.promises.same, f"{call.member} returns something else when {way}", call.at(place))
        if _content(case.arguments) != given:
            self.miss(self.promises.unchanged, "it modifies the setting that it is created with", place)
        self.answered |= not case.calls

    def ask(self, watch: Promises, calls: Calls, place: str) -> list[tuple[Call, Found]]:
        """Make the calls; each with what was returned, None where a promise was broken or the call refused."""
        script = calls(watch.plugin) if callable(calls) else (call for call in calls)
        asked = []
        found = None
        with suppress(StopIteration):
            while True:
                call = script.send(found)
                if call.member not in vars(watch.plugin):  # an optional member that it does not have
                    found = None
                    continue
                given, found = _content(call.arguments), None
                try:
                    found = getattr(watch.plugin, call.member)(*call.arguments)
                    self.answered = True
                except BrokenPromise as error:
                    self.report(error, call.at(place))
                except InputError as refusal:
                    self.refusal = str(refusal)
                if _content(call.arguments) != given:
                    self.miss(self.promises.unchanged, f"{call.member} modifies its arguments", call.at(place))
                asked.append((call, found, _content(found)))
        for call, found, content in asked:
            if _content(found) != content:
                self.miss(self.promises.lasting, f"what {call.member} returned changes later", call.at(place))
        return [(call, content) for call, _, content in asked]


def _random_state() -> tuple[object, ...]:
    return random.getstate(), _content(np.random.get_state())  # noqa: NPY002  (to detect its use)


def _content(value: Found) -> Found:
    """A comparable copy of a value's present content."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value):
        return type(value), [_content(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [(key, _content(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [_content(each) for each in value]
    if hasattr(value, "to_pylist"):
        return value.to_pylist()
    return _content(np.asarray(value)) if hasattr(value, "__array__") else repr(value)
