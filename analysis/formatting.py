"""Numbers as text: digits justified by the confidence interval, thousands separators, and units that suit the size."""

from __future__ import annotations

import math

from sim.base.units import SECONDS
from sim.experiments.statistics import Interval

_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SCALES = {"s": {unit: size for unit, size in SECONDS.items() if unit != "w"}, "bytes": _BYTES}


def scale(unit: str, size: float) -> tuple[float, str]:
    """The divisor and the new unit that make values of about `size` in `unit` easy to read.

    Seconds become µs … d, bytes B … TB; other units are kept.
    """
    steps = _SCALES.get(unit)
    if steps is None:
        return 1.0, unit
    if size == 0 or not math.isfinite(size):
        return 1.0, "B" if unit == "bytes" else unit
    name = max(
        (s for s in steps if steps[s] <= abs(size)), key=steps.__getitem__, default=min(steps, key=steps.__getitem__)
    )
    return steps[name], {"us": "µs"}.get(name, name)


def decimals_of(half_width: float) -> int:
    """The decimals that show a half-width with one significant digit, two if it begins with 1; negative for tens and more."""
    exponent = math.floor(math.log10(half_width))
    return -exponent + (half_width / 10.0**exponent < 2)


def number(value: float, decimals: int | None = None) -> str:
    """A number with thousands separators and a true minus; without `decimals` it is whole or has four significant digits."""
    if not math.isfinite(value):
        return "–"
    if decimals is None:
        whole = value == round(value) or abs(value) >= 1e4
        decimals = 0 if whole else 3 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


def quantity(value: float, unit: str) -> str:
    """A number with its unit, scaled to suit its size: `36.2 ms`, `1.24 MB`, `1,204 messages`."""
    if not math.isfinite(value):
        return "–"
    factor, name = scale(unit, value)
    return with_unit(number(value / factor), name)


def with_unit(text: str, unit: str) -> str:
    """A number's text with its unit; ratios and counts have none, as their names imply it."""
    return text if unit in {"–", "count"} else f"{text} {unit}"


def describe(interval: Interval, factor: float = 1.0, signed: bool = False) -> tuple[str, str]:
    """The mean and the confidence interval `[low, high]` as text, divided by `factor`; the latter is "" where there is none.

    `signed` adds a plus to positive numbers. A bound other than 0 is never rounded to 0.
    """
    if interval.n == 0:
        return "–", ""
    mean = interval.mean / factor
    if interval.low is None or interval.high is None:
        return (_sign(mean) + number(mean, _percent_decimals(mean)) if signed else number(mean)), ""
    low, high = interval.low / factor, interval.high / factor
    decimals = decimals_of(high - mean)
    while interval.excludes(0) and round(min(abs(low), abs(high)), decimals) == 0:
        decimals += 1
    texts = [(_sign(x) if signed else "") + number(x, decimals) for x in (mean, low, high)]
    return texts[0], f"[{texts[1]}, {texts[2]}]"


def _sign(value: float) -> str:
    return "+" if value > 0 else ""


def _percent_decimals(value: float) -> int:
    """Three significant digits, at most two decimals: for a difference without a confidence interval."""
    return 0 if value == 0 else max(0, min(2, 2 - math.floor(math.log10(abs(value)))))
