"""The costs of a broker, fitted to what was measured in load steps, with confidence intervals and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sim.calibration.steps import LoadStep

FITTED = ("time", "send_client", "per_byte", "wake_up", "wake_up_half", "wake_up_least", "wake_up_slowdown")
"""The costs that are fitted, by their keys in [brokers.service]."""
SLOWDOWN = FITTED[-1]
"""The one that is a share, not a time."""
MEANINGS = {
    "time": "to receive a publication",
    "send_client": "per copy to a user",
    "per_byte": "per byte of the publication",
    "wake_up": "if the broker was idle for long",
    "wake_up_half": "idle time after which half of wake_up, above its least, is needed",
    "wake_up_least": "the part of wake_up that is needed however short the broker was idle",
    "wake_up_slowdown": "the share by which the rest takes longer if the broker was idle for long",
}
_CONFIDENCE = 0.95
_HALVES = np.logspace(-5, -1, 201)  # s; what is tried for wake_up_half
_IDLE = np.logspace(-5, 1, 25)  # s; idle times in between are one point of the fit
_POINT = 10
"""The fewest samples of such a point."""
_RESAMPLED = 200


@dataclass(frozen=True)
class FittedCost:
    """A cost (s; a slowdown: a share) with its 95 % confidence interval."""

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
        wake_up, half, least, slowdown = (self.costs[key].value for key in FITTED[3:])
        busy = self.busy(fan_out, size)
        return busy + least + (wake_up - least + slowdown * busy) * _share(idle, half)


def _share(idle: NDArray[np.float64], half: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of a wake-up, but for its least part, that is needed after idle times (s)."""
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
    """Rows of median idle time, median delay, and the time of a busy broker, s."""
    place = np.digitize(step.idle, _IDLE)
    counts = np.bincount(place, minlength=2)
    alike = [place == one for one, count in enumerate(counts) if one and count >= max(min(_POINT, counts[1:].max()), 1)]
    return np.array([(np.median(step.idle[one]), np.median(step.delays[one]), busy) for one in alike]).reshape(-1, 3)


def _wake_up(points: NDArray[np.float64]) -> dict[str, FittedCost]:
    """The costs of a wake-up from rows as of `_by_idle_time`."""
    idle, delay, busy = points.T
    drawn = np.random.default_rng(1).multinomial(len(points), np.full(len(points), 1 / len(points)), _RESAMPLED)
    times = np.concatenate([np.ones((1, len(points)), np.int64), drawn])
    values, least = np.zeros((len(times), 4)), np.full(len(times), np.inf)
    for half in _HALVES:
        share = _share(idle, half)
        found, errors = _not_negative(
            np.stack([np.ones_like(idle), share, busy * share], 1) / delay[:, None], 1 - busy / delay, times
        )
        better = errors < least
        always, more, slowdown = found[better].T
        values[better] = np.stack([always + more, np.full(len(always), half), always, slowdown], 1)
        least[better] = errors[better]
    outside = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(values[1:], (outside, 1 - outside), axis=0).tolist()
    return {
        key: FittedCost(value, min(one, value), max(other, value))
        for key, value, one, other in zip(FITTED[3:], values[0].tolist(), low, high, strict=True)
    }


def _not_negative(
    rows: NDArray[np.float64], wanted: NDArray[np.float64], times: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The coefficients (samples, columns) with the least squares, none negative, where rows occur so often in samples (samples, rows).

    And the squares, less those without any. All sets of coefficients that are not 0 are tried: there are few.
    """
    grams, products = np.einsum("sp,pi,pj->sij", times, rows, rows, optimize=True), times @ (rows * wanted[:, None])
    found, least = np.zeros(products.shape), np.zeros(len(times))
    for used in product((False, True), repeat=rows.shape[1]):
        chosen = np.flatnonzero(used)
        gram = grams[:, chosen][:, :, chosen] * (1 + 1e-12 * np.eye(len(chosen)))  # idle times may all be alike
        values = np.linalg.solve(gram, products[:, chosen, None])[:, :, 0]
        squares = -(values * products[:, chosen]).sum(1)
        better = (values >= 0).all(1) & (squares < least)
        found[better] = 0.0
        found[np.ix_(better, chosen)] = values[better]
        least[better] = squares[better]
    return found, least


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
