"""Safe expressions that compare keys or metrics: parsed against a whitelist, never executed as code."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

# Any: operators take numbers and texts; which go together is known when an expression is evaluated.
from typing import Any

from sim.base.errors import InputError
from sim.base.units import parse_duration, write_duration
from sim.base.validation import Mistake, hint, show
from sim.metrics import METRICS

Value = int | float | str | bool
"""The value of a key or an expression."""

LONGEST = 1000  # characters
DEEPEST = 100  # nested operations
LARGEST = 1 << 1024
"""The bound on numbers, so that evaluating takes no more time or memory than parsing."""
ALLOWED = (
    "numbers, 'text', true, false, names of keys, + - * / // % **, comparisons, and, or, not, min(…), max(…), abs(…)"
)

_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_ORDER: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_SAME: dict[type[ast.AST], Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_SIGNS: dict[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


@dataclass(frozen=True)
class Expression:
    """An expression such as `network.brokers <= workload.users / 10`.

    A duration in quotes (`'12h'`) counts as seconds when combined with numbers. Raises InputError, with the place in the text,
    where it is not an expression, or contains anything but `ALLOWED`.
    """

    text: str

    def __post_init__(self) -> None:
        self.names  # noqa: B018  # reports what is not allowed at once

    @cached_property
    def names(self) -> list[str]:
        """The dotted names that occur, without repetitions."""
        return list(dict.fromkeys(self._checked(self._tree, 0)))

    def value(self, lookup: Callable[[str], Value]) -> Value:
        """The value, with `lookup` for names. Raises InputError, with the place, where it has none.

        An InputError of `lookup` is raised in the same way.
        """
        return self._value(self._tree, lookup)

    def holds(self, lookup: Callable[[str], Value]) -> bool:
        """Whether it is true. Raises InputError where its value is neither true nor false."""
        return self._truth(self._tree, self.value(lookup))

    @cached_property
    def _line(self) -> str:
        return " ".join(self.text.split("\n")).strip()

    @cached_property
    def _tree(self) -> ast.expr:
        if not 0 < len(self._line) <= LONGEST:
            example = "an expression such as network.brokers <= workload.users / 10"
            raise InputError(f"expected {example}, found {len(self._line):,} characters (allowed: 1 to {LONGEST:,})")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's warnings about odd expressions
                return ast.parse(self._line, mode="eval").body
        except SyntaxError as error:
            at = error.offset - 1 if error.offset else len(self._line)
            raise self._error(at, f"not an expression (allowed: {ALLOWED})") from None
        except (ValueError, RecursionError, MemoryError):
            raise InputError(f"{show(self._line)}: not an expression, or nested too deeply") from None

    def _checked(self, node: ast.expr, depth: int) -> Iterator[str]:
        """The names in a node. Raises InputError where a node is not allowed."""
        inner: list[ast.expr] = []
        match node:
            case ast.Constant(value=bool() | int() | float() | str()) if not _huge(node.value):
                pass
            case ast.Name(id="true" | "false"):
                pass
            case ast.Name() | ast.Attribute() if name := _name(node):
                yield name
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                inner = [node.left, node.right]
            case ast.UnaryOp() if isinstance(node.op, ast.Not) or type(node.op) in _SIGNS:
                inner = [node.operand]
            case ast.BoolOp():
                inner = node.values
            case ast.Compare() if all(type(op) in _ORDER | _SAME for op in node.ops):
                inner = [node.left, *node.comparators]
            case ast.Call(keywords=[]) if name := _name(node.func):
                if name not in _FUNCTIONS:
                    raise self._wrong(node, f"unknown function{hint(name, list(_FUNCTIONS))}")
                if (name == "abs") != (len(node.args) == 1) or not node.args:
                    many = "one argument" if name == "abs" else "two arguments or more"
                    raise self._wrong(node, f"expected {many}, found {len(node.args)}")
                inner = node.args
            case _:
                raise self._wrong(node, f"not allowed in an expression (allowed: {ALLOWED})")
        if depth > DEEPEST:
            raise self._wrong(node, "nested too deeply")
        for child in inner:
            yield from self._checked(child, depth + 1)

    def _value(self, node: ast.expr, lookup: Callable[[str], Value]) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return constant
            case ast.Name(id="true" | "false"):
                return node.id == "true"
            case ast.Name() | ast.Attribute():
                try:
                    return lookup(_name(node))
                except InputError as error:
                    raise self._wrong(node, str(error)) from None
            case ast.BoolOp():
                stops = isinstance(node.op, ast.Or)
                for part in node.values:
                    if self._truth(part, self._value(part, lookup)) is stops:
                        return stops
                return not stops
            case ast.UnaryOp(op=ast.Not()):
                return not self._truth(node.operand, self._value(node.operand, lookup))
            case ast.UnaryOp():
                return self._computed(node, _SIGNS[type(node.op)], [node.operand], lookup)
            case ast.BinOp():
                return self._computed(node, _ARITHMETIC[type(node.op)], [node.left, node.right], lookup)
            case ast.Call():
                return self._computed(node, _FUNCTIONS[_name(node.func)], node.args, lookup)
            case ast.Compare():
                left, before = node.left, self._value(node.left, lookup)
                for op, right in zip(node.ops, node.comparators, strict=True):
                    after = self._value(right, lookup)
                    if not self._compared(op, (left, before), (right, after)):
                        return False
                    left, before = right, after
                return True
        raise self._wrong(node, "not allowed in an expression")

    def _computed(
        self, node: ast.expr, function: Callable[..., Any], parts: list[ast.expr], lookup: Callable[[str], Value]
    ) -> Value:
        numbers = [self._number(part, self._value(part, lookup)) for part in parts]
        if function is operator.pow and all(isinstance(number, int) for number in numbers):
            base, exponent = int(numbers[0]), int(numbers[1])
            if exponent > 0 and abs(base).bit_length() * exponent > 2 * LARGEST.bit_length():
                raise self._wrong(node, "gives a number that is too large")
        try:
            result = function(*numbers)
        except ZeroDivisionError:
            raise self._wrong(node, "a division by zero") from None
        except OverflowError:
            raise self._wrong(node, "gives a number that is too large") from None
        if isinstance(result, complex) or result != result:
            raise self._wrong(node, "is not a real number")
        if _huge(result):
            raise self._wrong(node, "gives a number that is too large")
        number: int | float = result
        return number

    def _compared(self, op: ast.cmpop, left: tuple[ast.expr, Value], right: tuple[ast.expr, Value]) -> bool:
        if type(op) in _ORDER:
            return _ORDER[type(op)](self._number(*left), self._number(*right))
        a, b = left[1], right[1]
        if isinstance(a, str) != isinstance(b, str):
            a, b = _seconds(a), _seconds(b)
        return _SAME[type(op)](a, b)

    def _number(self, node: ast.expr, value: Value) -> int | float:
        value = _seconds(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(node, f"expected a number or a duration, found {show(value)}")
        return value

    def _truth(self, node: ast.expr, value: Value) -> bool:
        if not isinstance(value, bool):
            raise self._wrong(node, f"expected a comparison, which is true or false, found {show(value)}")
        return value

    def _wrong(self, node: ast.expr, what: str) -> InputError:
        return self._error(len(self._line.encode()[: node.col_offset].decode()), what)

    def _error(self, at: int, what: str) -> InputError:
        rest = self._line[at:]
        where = f"at {show(rest[:30])}" if rest else "at the end"
        return InputError(f"{where} (character {at + 1}): {what}")


@dataclass(frozen=True)
class Limit:
    """A limit for one metric, such as `load_stddev < 0.5` or `notification_delay_p99 <= 200ms`."""

    metric: str
    op: str
    value: float

    OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}  # noqa: RUF012

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Parse a limit; for metrics in seconds the number may be a duration. Raises InputError where it is not a limit."""
        found = re.fullmatch(r"\s*([A-Za-z]\w*)\s*(<=|>=|<|>)\s*(.*\S)\s*", text)
        if found is None:
            raise InputError(f"{text!r}: expected a metric and its limit, such as 'notification_delay_p99 <= 200ms'")
        name, op, limit = found.groups()
        if name not in METRICS:
            raise InputError(f"{text!r}: unknown metric '{name}'{hint(name, list(METRICS))}")
        try:
            value = parse_duration(limit) if METRICS[name].unit == "s" else float(limit)
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            allowed = "a number of seconds or a duration such as '200ms'" if METRICS[name].unit == "s" else "a number"
            raise InputError(f"{text!r}: expected {allowed}, found '{limit}'")
        return cls(name, op, value)

    def holds(self, value: float | None) -> bool:
        """Whether a value of the metric is within the limit; an undefined value (None or NaN) is not."""
        return value is not None and bool(self.OPERATORS[self.op](value, self.value))

    @property
    def asks_for_service(self) -> bool:
        """Whether it bounds delays or counts of deliveries, which are meaningless where a broker is saturated."""
        metric = METRICS[self.metric]
        return metric.got_through and metric.better == ("lower" if self.op.startswith("<") else "higher")

    def __str__(self) -> str:
        limit = write_duration(self.value) if METRICS[self.metric].unit == "s" else f"{self.value:g}"
        return f"{self.metric} {self.op} {limit}"


def unknown_metrics(names: Iterable[object]) -> list[Mistake]:
    """Messages about unknown names of metrics, by their positions."""
    return [
        ((i,), f"unknown metric{hint(name, list(METRICS))} (found {show(name)})")
        for i, name in enumerate(names)
        if not (isinstance(name, str) and name in METRICS)
    ]


KEEPS_UP = Limit("saturated_brokers", "<", 0.5)
"""The limit that in most replications no broker is saturated."""


def guarded(limits: Sequence[Limit], objectives: Iterable[str] = ()) -> tuple[Limit, ...]:
    """The limits, plus that no broker is saturated if one of the limits or objectives covers only what was delivered."""
    asked = any(limit.asks_for_service for limit in limits) or any(METRICS[name].got_through for name in objectives)
    return tuple(dict.fromkeys([*limits, KEEPS_UP] if asked else limits))


def _name(node: ast.AST) -> str:
    """The dotted name that a node stands for, or ""."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute() if before := _name(node.value):
            return f"{before}.{node.attr}"
    return ""


def _huge(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) >= LARGEST


def _seconds(value: Value) -> Value:
    """The seconds of a duration given as text; any other value unchanged."""
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except ValueError:
        return value
