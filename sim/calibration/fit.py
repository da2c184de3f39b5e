"""The costs of a broker, fitted to what was measured in load steps, with confidence intervals and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sim.calibration.steps import LoadStep

FITTED = ("time", "send_client", "per_byte", "wake_up", "wake_up_half", "wake_up_least")
"""The costs that are fitted, by their keys in [brokers.service]."""
MEANINGS = {
    "time": "to receive a publication",
    "send_client": "per copy to a user",
    "per_byte": "per byte of the publication",
    "wake_up": "if the broker was idle for long",
    "wake_up_half": "idle time after which half of wake_up, above its least, is needed",
    "wake_up_least": "the part of wake_up that is needed however short the broker was idle",
}
_CONFIDENCE = 0.95
_HALVES = np.logspace(-5, -1, 201)  # s; what is tried for wake_up_half
_IDLE = np.logspace(-5, 1, 25)  # s; idle times in between are one point of the fit
_POINT = 10
"""The fewest samples of such a point."""
_RESAMPLED = 200


@dataclass(frozen=True)
class FittedCost:
    """A cost (s) with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Residual:
    """A step, what was measured in it (s), and what the fitted costs give: of publications that found the broker idle or saturated."""

    step: LoadStep
    measured: float
    fitted: float

    @property
    def relative(self) -> float:
        """By how much the fitted value is higher, as a share of the measured one."""
        return self.fitted / self.measured - 1


@dataclass(frozen=True)
class CostFit:
    """The fitted costs by key, and the residual of each step."""

    costs: dict[str, FittedCost]
    residuals: list[Residual]

    def busy(self, fan_out: int, size: int) -> float:
        """The time (s) of a busy broker for a publication."""
        cost = {key: one.value for key, one in self.costs.items()}
        return cost["time"] + fan_out * cost["send_client"] + size * cost["per_byte"]

    def woken(self, fan_out: int, size: int, idle: NDArray[np.float64]) -> NDArray[np.float64]:
        """The delays (s) at a broker that has had nothing to do for so long (s)."""
        wake_up, half, least = (self.costs[key].value for key in ("wake_up", "wake_up_half", "wake_up_least"))
        return self.busy(fan_out, size) + least + (wake_up - least) * _share(idle, half)


def _share(idle: NDArray[np.float64], half: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of what is above the least wake-up that is needed after idle times (s)."""
    return np.asarray(idle / (idle + half))


def fit_costs(steps: Sequence[LoadStep]) -> CostFit:
    """Fit the costs.

    What a busy broker needs per publication is linear in copies and bytes: least squares of relative errors over the saturated steps,
    without negative costs. The wake-up is fitted likewise to by how much longer delays are where a publication finds the broker idle:
    to their medians by idle time in each step, with confidence intervals from resampled medians.
    """
    saturated = [step for step in steps if step.kind == "saturated" and step.busy > 0]
    design = np.array([(1.0, step.fan_out, step.size) for step in saturated])
    measured = np.array([step.busy for step in saturated])
    values, errors = _relative_least_squares(design, measured)
    freedom = max(len(saturated) - int((values > 0).sum()), 1)
    costs = {key: _cost(value, error, freedom) for key, value, error in zip(FITTED, values, errors, strict=False)}
    found = CostFit(costs, [])
    others = [step for step in steps if step.kind != "saturated"]
    costs |= _wake_up(np.concatenate([_by_idle_time(step, found.busy(step.fan_out, step.size)) for step in others]))
    for step in steps:
        if step in saturated:
            found.residuals.append(Residual(step, step.busy, found.busy(step.fan_out, step.size)))
        elif step in others and (woken := step.idle > 0).any():
            fitted = found.woken(step.fan_out, step.size, step.idle[woken])
            found.residuals.append(Residual(step, float(np.median(step.delays[woken])), float(np.median(fitted))))
    return found


def _by_idle_time(step: LoadStep, busy: float) -> NDArray[np.float64]:
    """Rows of median idle time, median delay, and by how much that is longer than at a busy broker, s."""
    place = np.digitize(step.idle, _IDLE)
    counts = np.bincount(place, minlength=2)
    alike = [place == one for one, count in enumerate(counts) if one and count >= max(min(_POINT, counts[1:].max()), 1)]
    rows = [(np.median(step.idle[one]), np.median(step.delays[one])) for one in alike]
    return np.array([(idle, delay, delay - busy) for idle, delay in rows]).reshape(-1, 3)


def _wake_up(points: NDArray[np.float64]) -> dict[str, FittedCost]:
    """The wake-up, the idle time after which half of it is needed, and its least part, from medians by idle time."""
    idle, delay, longer = points.T
    wanted, least_row = longer / delay, 1 / delay
    rows = (_share(idle, _HALVES[:, None]) / delay)[:, None]  # halves, 1, points

    def best(times: NDArray[np.int64]) -> NDArray[np.float64]:
        """The best values (samples, 3) where points occur so often in samples (samples, points)."""
        aa, ab, bb = (times * least_row**2).sum(1), (times * least_row * rows).sum(2), (times * rows**2).sum(2)
        ay, by = (times * least_row * wanted).sum(1), (times * rows * wanted).sum(2)
        inner = np.maximum(aa * bb - ab * ab, 1e-12 * aa * bb)
        least, more = (ay * bb - by * ab) / inner, (by * aa - ay * ab) / inner
        least, more = (
            np.where(more < 0, np.maximum(ay / aa, 0), np.maximum(least, 0)),
            np.where(least < 0, np.maximum(by / bb, 0), np.maximum(more, 0)),
        )
        squares = aa * least**2 + 2 * ab * least * more + bb * more**2 - 2 * (ay * least + by * more)
        chosen = squares.argmin(axis=0), np.arange(len(times))
        return np.stack([(least + more)[chosen], _HALVES[chosen[0]], least[chosen]], axis=1)

    values = best(np.ones((1, len(points)), np.int64))[0].tolist()
    drawn = best(np.random.default_rng(1).multinomial(len(points), np.full(len(points), 1 / len(points)), _RESAMPLED))
    outside = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, (outside, 1 - outside), axis=0).tolist()
    return {
        key: FittedCost(value, min(one, value), max(other, value))
        for key, value, one, other in zip(FITTED[3:], values, low, high, strict=True)
    }


def _relative_least_squares(
    design: NDArray[np.float64], measured: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The coefficients, none negative, that minimise squared relative errors, and their standard errors."""
    rows, used = design / measured[:, None], np.ones(design.shape[1], bool)
    while True:
        values = np.zeros(len(used))
        values[used] = np.linalg.lstsq(rows[:, used], np.ones(len(rows)), rcond=None)[0]
        if (values >= 0).all():
            break
        used[values.argmin()] = False
    left = rows @ values - 1
    variance = left @ left / max(len(rows) - int(used.sum()), 1)
    return values, np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)) * variance)


def _cost(value: float, error: float, freedom: int) -> FittedCost:
    half = float(stats.t.ppf((1 + _CONFIDENCE) / 2, freedom)) * error
    return FittedCost(float(value), max(float(value) - half, 0.0), float(value) + half)
