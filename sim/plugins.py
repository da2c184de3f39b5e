"""Plug-ins: geometries, latency models, policies, workload generators, faults and metrics, looked up by name in entry-point groups.

A plug-in is a class with a nested `Parameters` model: the scenario file's table for it is validated by that model, and the
same model documents it in `brokersim policies` and in the JSON Schema.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import FrozenInstanceError, dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb

# Any: plug-ins are anybody's, and what they are called with depends on the group.
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict

from sim.base.errors import BrokersimError, InputError, PluginError, ScenarioError, cut, unknown

Found: TypeAlias = Any
"""What a plug-in of anybody's returns or holds, and what it is given: of any type, until promises have been checked."""

GROUPS = (
    "geometry",
    "latency",
    "selection",
    "sharing",
    "reconfiguration",
    "offloading",
    "workload",
    "faults",
    "metric",
)
"""The groups that have a table in scenarios; plug-ins of the group `paper` are named to `brokersim reproduce`."""


class Parameters(BaseModel):
    """Base of every plug-in's parameters: unknown keys are errors, values are frozen, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


_registered: dict[tuple[str, str], type] = {}
"""Classes of this process that no package offers, by group and name."""


def register(group: str, name: str, kind: type) -> None:
    """Let scenarios name a class of this process as a plug-in, without a package that offers it: in a notebook, for example.

    Only this process knows the class, so that runs that use it are performed here, one at a time (`jobs=1`). A run's identity
    follows the compiled code of the class and of what it names in its module: changed code means new runs. Registering a name
    again replaces the class.

    Args:
        group: "geometry", "latency", "selection", "sharing", "reconfiguration", "offloading", "workload", "faults" or
            "metric".
        name: the `kind` by which scenarios name it, or the name of the metric; none that a package offers.
        kind: the class, with nested `Parameters`, as described in docs/policies.md.

    Raises:
        InputError: where there is no such group, the name is taken, or the class has no Parameters.

    Examples:
        >>> from sim.policies.selection.fixed import StaticSelection
        >>> class Mine(StaticSelection):
        ...     pass
        >>> sim.register("selection", "mine", Mine)
        >>> scenario = sim.Scenario({**sim.example(), "selection": {"kind": "mine"}})
        >>> sim.run(scenario, "results/registered").runs["variant"].unique().tolist()
        ['ring', 'star']
    """
    if group not in GROUPS:
        raise InputError(unknown("group of plug-ins", group, GROUPS))
    if name in _entries(group):
        raise InputError(f"{group} kind '{name}': {_entry(group, name)} has this name (allowed: any other)")
    _registered[group, name] = with_parameters(kind, described(kind))
    load.cache_clear()


def is_registered(kind: type) -> bool:
    """Whether a plug-in's class is known to this process alone."""
    return kind in _registered.values()


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"brokersim.{group}")}


def names(group: str) -> list[str]:
    """The names known in a group (one of `GROUPS`), sorted."""
    return sorted({*_entries(group), *(name for of, name in _registered if of == group)})


@cache
def load(group: str, name: str) -> Found:
    """Load the plug-in class of this name. Raises ScenarioError where it does not exist or is not a plug-in."""
    if (group, name) in _registered:
        return _registered[group, name]
    if name not in _entries(group):
        raise ScenarioError(unknown(f"{group} kind", name, names(group)))
    return with_parameters(load_entry(group, name), _entry(group, name))


def with_parameters(found: Found, label: str) -> Found:
    """A plug-in's class. Raises ScenarioError where it has no Parameters."""
    model = getattr(found, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, Parameters)):
        raise ScenarioError(f"{label} has no nested class Parameters(sim.plugins.Parameters)")
    return found


def load_entry(group: str, name: str) -> Found:
    """Load the object of an existing entry point. Raises PluginError where it cannot be imported."""
    try:
        return _entries(group)[name].load()
    except Exception as error:  # its module may raise anything when imported
        raise PluginError(f"{_entry(group, name)} cannot be loaded ({type(error).__name__}: {error})") from error


def _entry(group: str, name: str) -> str:
    """An entry point, as named in messages."""
    return f"plug-in brokersim.{group}:{name} ({_entries(group)[name].value})"


def are_ours(kind: type) -> bool:
    """Whether a plug-in's class is built in; third-party classes are checked at run time."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def described(kind: type) -> str:
    """A plug-in's class, as named in messages."""
    return f"plug-in {kind.__name__} ({kind.__module__})"


@dataclass(frozen=True, eq=False)
class Promise:
    """What a plug-in promises, in one sentence.

    `check` yields what is wrong with the return value (of a method) or the value (of an attribute) of one of the plug-in's
    `members`. A promise that is `costly` is checked by `sim.conformance` only, not in a run.
    """

    sentence: str
    members: tuple[str, ...] = ()
    check: Callable[..., Iterator[str]] = lambda *_: iter(())
    costly: bool = False


def promise(*members: str, costly: bool = False) -> Callable[[Callable[..., Iterator[str]]], Promise]:
    """Decorator: makes a method of `Promises` the check of a promise about members; its docstring is the promise's sentence."""
    return lambda check: Promise(" ".join((check.__doc__ or "").split()), members, check, costly)


class BrokenPromise(PluginError):
    """A plug-in has broken a promise: the message names its class and says how; `promise` is the promise's sentence."""

    promise = ""


def broken(kind: type, promise: Promise, wrong: str) -> BrokenPromise:
    """The error that says how a plug-in's class breaks a promise."""
    error = BrokenPromise(f"{described(kind)}: {wrong}")
    error.promise = promise.sentence
    return error


class Promises:
    """Watches one plug-in: `plugin` is an instance whose methods raise BrokenPromise where they break a promise.

    Each group has a subclass; its attributes that are a `Promise` are the group's promises. `protocol` is what its plug-ins must
    have, `optional` what they may have, `parameters` the base of their Parameters.
    """

    group: ClassVar[str]
    protocol: ClassVar[type]
    optional: ClassVar[type] = object
    parameters: ClassVar[type[Parameters]] = Parameters

    complete = Promise(
        "The class has Parameters that extend those of its group, and all members of its protocol with their signatures."
    )
    refusing = Promise("It refuses what it cannot do with a ScenarioError or InputError, and raises nothing else.")
    strict = Promise("Its Parameters reject unknown keys.", costly=True)
    unchanged = Promise("It does not modify its arguments.", costly=True)
    lasting = Promise("Values that it has returned do not change later.", costly=True)
    same = Promise("It is deterministic: the same arguments give the same result.", costly=True)
    independent = Promise("It does not use the global random state of Python or NumPy.", costly=True)

    def __init__(self, kind: type, *arguments: Found, costly: bool = False) -> None:
        self.kind, self.setting, self.costly = kind, arguments[-1], costly
        self.member = ""
        self._checks: dict[str, list[tuple[Promise, Callable[..., Iterator[str]]]]] = {}
        for promise in self.listed():
            for member in promise.members if costly or not promise.costly else ():
                self._checks.setdefault(member, []).append((promise, promise.check))
        self.model(kind)
        if wrong := _refusal(kind, arguments):
            given = ", ".join(type(argument).__qualname__ for argument in arguments)
            raise broken(self.kind, self.complete, f"it cannot be made of {given}: {wrong}")
        # a class of its own has room for what is put before its methods, whatever slots it has
        made = type(kind.__name__, (kind,), {"__module__": kind.__module__})
        self.plugin = self._guarded("its constructor", made, *arguments)
        members = {**vars(self.protocol), **self.protocol.__annotations__}
        members |= {name: value for name, value in vars(self.optional).items() if self.offers(kind, name)}
        named = [member for member in sorted(members) if not member.startswith("_")]
        missing = [member for member in named if not self._guarded(member, hasattr, self.plugin, member)]
        if missing:
            raise broken(self.kind, self.complete, f"it lacks {', '.join(missing)} of {self.protocol.__name__}")
        methods = {member: members[member] for member in named if inspect.isfunction(members[member])}
        self._attributes = [member for member in named if member not in methods]
        for member, declared in methods.items():
            method = getattr(self.plugin, member)
            expected = list(inspect.signature(declared).parameters)[1:]
            if wrong := _refusal(method, expected):
                raise broken(self.kind, self.complete, f"{member} cannot take ({', '.join(expected)}): {wrong}")
            self.plugin.__dict__[member] = partial(self._asked, member, method)

    @classmethod
    def model(cls, kind: type) -> type[Parameters]:
        """The Parameters of a class. Raises BrokenPromise where it has none."""
        found = getattr(kind, "Parameters", None)
        if isinstance(kind, type) and isinstance(found, type) and issubclass(found, cls.parameters):
            return found
        base = f"{cls.parameters.__module__}.{cls.parameters.__name__}"
        raise broken(kind, cls.complete, f"it has no nested class Parameters({base})")

    @classmethod
    def offers(cls, kind: type, member: str) -> bool:
        """Whether a class has a member that is `optional`."""
        return hasattr(kind, member)

    @classmethod
    def listed(cls) -> list[Promise]:
        """The promises of all groups, then those of this group."""
        return [value for each in reversed(cls.__mro__) for value in vars(each).values() if isinstance(value, Promise)]

    def breaches(self, member: str, found: Found, *arguments: Found) -> Iterator[BrokenPromise]:
        """The first promise that a member's return value for these arguments, or its value, breaks; later ones may rely on it."""
        for promise, check in self._checks.get(member, ()):
            self.member = member
            try:
                wrong = next(check(self, found, *arguments), None)
            except (BrokersimError, MemoryError):
                raise
            except Exception as error:  # a value of a kind that the check does not expect
                reason = f"{type(error).__name__}: {error}; promised: {promise.sentence}"
                wrong = f"{member} is {cut(repr(found))} ({reason})"
            if wrong is not None:
                yield broken(self.kind, promise, wrong)
                return

    def held(self) -> Iterator[tuple[str, Found]]:
        """The plug-in's attributes that promises are about, with their values."""
        return ((member, getattr(self.plugin, member)) for member in self._attributes)

    def _asked(self, member: str, method: Callable[..., Found], /, *arguments: Found, **named: Found) -> Found:
        found = self._guarded(member, method, *arguments, **named)
        for error in self.breaches(member, found, *arguments, *named.values()):
            raise error
        return found

    def _guarded(self, what: str, call: Callable[..., Found], /, *arguments: Found, **named: Found) -> Found:
        """What a call returns; an unexpected error becomes a BrokenPromise with the line of the plug-in's source."""
        try:
            return call(*arguments, **named)
        except (BrokersimError, MemoryError):
            raise
        except Exception as error:
            frames = extract_tb(error.__traceback__)
            source = getattr(sys.modules.get(self.kind.__module__), "__file__", None)
            last = next((frame for frame in reversed(frames) if frame.filename == source), frames[-1])
            place = f"{Path(last.filename).name}, line {last.lineno}"
            writes = isinstance(error, FrozenInstanceError) or "read-only" in str(error)
            raise broken(
                self.kind,
                self.unchanged if writes else self.refusing,
                f"{what} raised {type(error).__name__}: {error} ({place})",
            ) from error


def _refusal(call: Callable[..., Found], arguments: Sequence[Found]) -> str | None:
    """Why the signature does not accept these arguments; None where it does."""
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError as error:
        return str(error)
    except ValueError:  # its signature cannot be inspected
        pass
    return None


def make(promises: type[Promises], name: str, *arguments: Found) -> Found:
    """Create the plug-in of this name in a group; a third-party one is watched. Raises BrokenPromise."""
    kind = load(promises.group, name)
    if are_ours(kind):
        return kind(*arguments)
    watch = promises(kind, *arguments)
    for member, found in watch.held():
        for error in watch.breaches(member, found):
            raise error
    return watch.plugin


def units(group: str, name: str) -> dict[str, str]:
    """The units of a plug-in's parameters that have one; empty for a plug-in that is not installed."""
    if name not in names(group):
        return {}
    fields = load(group, name).Parameters.model_json_schema()["properties"]
    return {key: field["x-unit"] for key, field in fields.items() if "x-unit" in field}
