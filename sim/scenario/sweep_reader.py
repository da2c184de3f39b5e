"""Read the [sweep] table of a scenario, and find its mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sim.base.errors import InputError
from sim.base.naming import Keys, Raw, RawValue
from sim.base.units import parse_duration
from sim.base.validation import Mistake, hint, show, unknown_key
from sim.files import toml
from sim.scenario.expressions import Expression
from sim.scenario.sweep import (
    GRID,
    MOST,
    OPTIONS,
    RANGE,
    SALTELLI,
    SAMPLES,
    SCALES,
    Override,
    ParsedSweep,
    SweptAxis,
    SweptRange,
)


def read_sweep(
    table: object,
    forbids: Callable[[Keys], str | None],
    is_path: Callable[[Keys], bool],
    is_integer: Callable[[Keys], bool],
) -> tuple[ParsedSweep, list[Mistake]]:
    """The sweep of a [sweep] table, and its mistakes, with places as keys from that table.

    `forbids` gives the reason why a key path cannot be swept, if there is one; `is_path` whether its texts are paths of files;
    `is_integer` whether it takes only integers, so that its ranges have no fractions. Mistaken keys are left out of the sweep.
    """
    reader = _Reader(forbids, is_path, is_integer)
    return reader.sweep(table), reader.problems


def place_of(table: object, keys: Keys) -> Keys:
    """The place of a key path in a [sweep] table, which may write it as `a.b` or `"a.b"`; the path itself where it is not there."""
    try:
        path = _path((), keys)
    except ValueError:
        return keys
    for place, known, _ in leaves(table):
        if path[: len(known)] == known:
            return (*place, *path[len(known) :])
    return keys


def _zipped(table: Raw) -> tuple[bool, list[RawValue]]:
    """Whether a [sweep] table has a single list of zipped keys, and all such lists."""
    zipped = table.get("zip", [])
    single = not isinstance(zipped, list) or any(isinstance(name, str) for name in zipped)
    return single, [zipped] if single else zipped


def _path(before: Keys, keys: Sequence[str | int]) -> Keys:
    """A key path from its parts, each of which may be dotted, except names of variants. Raises ValueError where one is invalid."""
    for key in keys:
        before = (*before, *((key,) if before == ("variant",) else toml.split(str(key))))
    return before


def leaves(table: object, place: Keys = (), keys: Keys = ()) -> Iterator[tuple[Keys, Keys, RawValue]]:
    """Yield each swept key of a [sweep] table: its place, its key path (empty if invalid), and its values."""
    for key, value in table.items() if isinstance(table, dict) else ():
        if place or key not in OPTIONS:
            try:
                path = _path(keys, [key])
            except ValueError:
                yield (*place, key), (), value
                continue
            if isinstance(value, dict) and value and not {"from", "to"} & value.keys():
                yield from leaves(value, (*place, key), path)
            else:
                yield (*place, key), path, value


def without(table: Raw, keys: Keys) -> Raw:
    """The [sweep] table without a key and all below it, neither swept nor zipped; {} where it sweeps nothing else."""
    gone = {place: path for place, path, _ in leaves(table) if path and path[: len(keys)] == keys}
    if not gone:
        return table
    if len(gone) == sum(1 for _ in leaves(table)):
        return {}
    kept = _pruned(table, (), gone)
    if "zip" in kept:
        _, groups = _zipped(kept)
        left = [[x for x in group if _known(x) not in gone.values()] for group in groups if isinstance(group, list)]
        kept["zip"] = [group for group in left if len(group) > 1]
    return kept


def _pruned(table: Raw, place: Keys, gone: Container[Keys]) -> Raw:
    """A table without the values at some places, and without tables that become empty."""
    kept = {key: value for key, value in table.items() if (*place, key) not in gone}
    inner = {
        key: _pruned(value, (*place, key), gone) for key, value in kept.items() if isinstance(value, dict) and value
    }
    return {key: inner.get(key, value) for key, value in kept.items() if inner.get(key, value) != {}}


@dataclass
class _Reader:
    forbids: Callable[[Keys], str | None]
    is_path: Callable[[Keys], bool]
    is_integer: Callable[[Keys], bool]
    problems: list[Mistake] = field(default_factory=list)

    def sweep(self, table: object) -> ParsedSweep:
        if not isinstance(table, dict):
            self._wrong((), f"expected a table from keys to lists of values, found {show(table)}")
            return ParsedSweep()
        sample, samples = self._sample(table)
        axes: list[SweptAxis] = []
        for place, keys, value in leaves(table):
            if problem := self._forbidden(keys, axes):
                self._wrong(place, problem)
            elif axis := self._axis(place, keys, value, sample == GRID):
                axes.append(axis)
        if not axes and not self.problems:
            self._wrong((), 'no key is swept: expected keys with lists of values, such as "network.brokers" = [10, 20]')
        sweep = ParsedSweep(self._dimensions(table, axes, sample == GRID), self._where(table, sample), sample, samples)
        if not self.problems and sweep.count > MOST:
            self._wrong((), f"{sweep.count:,} points are too many (allowed: {MOST:,}); give fewer values, or samples")
        return sweep

    def _forbidden(self, keys: Keys, axes: Sequence[SweptAxis]) -> str | None:
        if not keys:
            return "expected the path of a key, such as network.brokers"
        for axis in axes:
            length = min(len(keys), len(axis.keys))
            if axis.keys[:length] == keys[:length]:
                return f"swept twice: {axis.name} is swept already"
        return self.forbids(keys)

    def _axis(self, place: Keys, keys: Keys, value: object, grid: bool) -> SweptAxis | None:
        if isinstance(value, dict) and value:
            spread = self._range(place, keys, value, grid)
            if spread is None:
                return None
            numbers = spread.values() if grid else []
            laid = tuple(Override(keys, number, place, f"{number:g}") for number in numbers)
            return SweptAxis(keys, place, value, laid, None if grid else spread)
        if not isinstance(value, list):
            expected = "a list of values, or a range such as { from = 1, to = 9, steps = 5 }"
            self._wrong(place, f"expected {expected}, found {show(value)}")
            return None
        if not value:
            self._wrong(place, "an empty list: give at least one value")
            return None
        texts = _texts(value, self.is_path(keys))
        laid = tuple(
            Override(keys, one, (*place, i), text) for i, (one, text) in enumerate(zip(value, texts, strict=True))
        )
        named = [text if isinstance(one, str) else one for one, text in zip(value, texts, strict=True)]
        return SweptAxis(keys, place, named, laid)

    def _range(self, place: Keys, keys: Keys, table: Raw, grid: bool) -> SweptRange | None:
        before = len(self.problems)
        for key in table.keys() - set(RANGE):
            self._wrong((*place, key), unknown_key(RANGE, key, table[key]))
        for key in RANGE[: 3 if grid else 2]:
            if key not in table:
                self._wrong(place, f"missing key '{key}': expected a range such as {{ from = 1, to = 9, steps = 5 }}")
        scale = self._one_of(table, "scale", SCALES, place)
        read = [self._end((*place, key), table[key], scale) for key in RANGE[:2] if key in table]
        ends = [end for end in read if end is not None]
        steps = table.get("steps")
        if "steps" in table and not _whole(steps, 2):
            self._wrong((*place, "steps"), f"expected a number of steps, 2 or more, found {show(steps)}")
        if _whole(steps, MOST + 1):
            self._wrong((*place, "steps"), f"expected {MOST:,} steps at most, found {steps:,}")
        if len(ends) == 2 and ends[0] == ends[1]:
            self._wrong((*place, "to"), f"expected a number other than 'from', found {show(table['to'])}")
        if len(self.problems) > before:
            return None
        start, stop = ends if self.is_integer(keys) else map(float, ends)
        return SweptRange(start, stop, steps, scale == "log")

    def _end(self, place: Keys, value: object, scale: str) -> int | float | None:
        try:
            seconds = parse_duration(value)
        except ValueError:
            self._wrong(place, f"expected a number or a duration such as '10h', found {show(value)}")
            return None
        if scale == "log" and seconds <= 0:
            self._wrong(place, f"expected more than 0 on a logarithmic scale, found {show(value)}")
            return None
        return value if isinstance(value, int) else seconds

    def _dimensions(self, table: Raw, axes: Sequence[SweptAxis], grid: bool) -> tuple[tuple[SweptAxis, ...], ...]:
        """Group zipped axes into dimensions, each at the place of its first axis."""
        named = {keys for _, keys, _ in leaves(table)}
        by_keys = {axis.keys: axis for axis in axes}
        group_of: dict[Keys, tuple[SweptAxis, ...]] = {}
        single, groups = _zipped(table)
        for number, names in enumerate(groups):
            place: Keys = ("zip",) if single else ("zip", number)
            if not isinstance(names, list) or len(names) < 2:
                self._wrong(place, f"expected a list of two or more swept keys, found {show(names)}")
                continue
            group: list[SweptAxis] = []
            for i, name in enumerate(names):
                keys = _known(name)
                if keys not in named:
                    allowed = [toml.join(known) for known in named if known]
                    self._wrong((*place, i), f"no such key is swept{hint(name, sorted(allowed))} (found {show(name)})")
                elif keys in group_of or by_keys.get(keys) in group:
                    self._wrong((*place, i), f"zipped twice (found {show(name)})")
                elif keys in by_keys:
                    group.append(by_keys[keys])
            if grid and len({len(axis.values) for axis in group}) > 1:
                counts = ", ".join(f"{axis.name} has {len(axis.values)}" for axis in group)
                self._wrong(place, f"zipped keys need equally many values: {counts}")
            group_of |= {axis.keys: tuple(group) for axis in group}
        return tuple(dict.fromkeys(group_of.get(axis.keys, (axis,)) for axis in axes))

    def _sample(self, table: Raw) -> tuple[str, int]:
        sample, samples = self._one_of(table, "sample", SAMPLES), table.get("samples", 0)
        if sample == GRID:
            if "samples" in table:
                self._wrong(("samples",), "a grid has no samples: set sample, too" + hint("", SAMPLES[1:]))
        elif not _whole(samples, 1):
            self._wrong(("samples",), f"expected a number of samples, 1 or more, found {show(table.get('samples'))}")
        elif sample == SALTELLI and samples & (samples - 1):
            near = 1 << int(samples).bit_length()
            self._wrong(("samples",), f"expected a power of two, such as {near // 2} or {near}, found {samples}")
        else:
            return sample, samples
        return sample, 0

    def _where(self, table: Raw, sample: str) -> Expression | None:
        if "where" not in table:
            return None
        if sample == SALTELLI:
            self._wrong(("where",), "Sobol indices need all of Saltelli's points: leave this out")
            return None
        if not isinstance(table["where"], str):
            self._wrong(("where",), f"expected an expression in quotes, found {show(table['where'])}")
            return None
        try:
            return Expression(table["where"])
        except InputError as error:
            self._wrong(("where",), str(error))
            return None

    def _one_of(self, table: Raw, key: str, allowed: Sequence[str], place: Keys = ()) -> str:
        found = table.get(key, allowed[0])
        if found in allowed:
            return str(found)
        self._wrong((*place, key), f"unknown value{hint(found, allowed)} (found {show(found)})")
        return allowed[0]

    def _wrong(self, place: Keys, text: str) -> None:
        self.problems.append((place, text))


def _known(name: object) -> Keys:
    """The key path in a text; empty where it is invalid."""
    try:
        return _path((), [name]) if isinstance(name, str) else ()
    except ValueError:
        return ()


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _texts(values: Sequence[RawValue], paths: bool) -> list[str]:
    """The shortest distinct texts for values that may be text or tables."""
    short = [_short(value, paths) for value in values]
    often = Counter(short)
    return [toml.text(value) if often[text] > 1 else text for text, value in zip(short, values, strict=True)]


def _short(value: RawValue, path: bool) -> str:
    if isinstance(value, dict) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, str):
        return Path(value).name if path else value
    return toml.text(value)
