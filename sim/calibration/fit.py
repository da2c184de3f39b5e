"""The costs of a broker, fitted to what was measured in load steps, with confidence intervals and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sim.calibration.steps import LoadStep

FITTED = ("time", "send_client", "per_byte", "wake_up", "wake_up_half")
"""The costs that are fitted, by their keys in [brokers.service]."""
MEANINGS = {
    "time": "to receive a publication",
    "send_client": "per copy to a user",
    "per_byte": "per byte of the publication",
    "wake_up": "if the broker was idle for long",
    "wake_up_half": "idle time after which half of wake_up is needed",
}
_CONFIDENCE = 0.95
_LIGHT = 0.15
"""The utilisation up to which the median delay is that of a publication that waits for no other."""
_HALVES = np.logspace(-6, -1, 251)  # s; what is tried for wake_up_half
_RESAMPLED = 200


@dataclass(frozen=True)
class FittedCost:
    """A cost (s) with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Residual:
    """A step, what was measured in it (s), and what the fitted costs give."""

    step: LoadStep
    measured: float
    fitted: float

    @property
    def relative(self) -> float:
        """By how much the fitted value is higher, as a share of the measured one."""
        return self.fitted / self.measured - 1


@dataclass(frozen=True)
class CostFit:
    """The fitted costs by key, and the residual of each step at an idle and at a saturated broker."""

    costs: dict[str, FittedCost]
    residuals: list[Residual]

    def busy(self, fan_out: int, size: int) -> float:
        """The time (s) of a busy broker for a publication."""
        cost = {key: one.value for key, one in self.costs.items()}
        return cost["time"] + fan_out * cost["send_client"] + size * cost["per_byte"]

    def idle(self, fan_out: int, size: int, rate: float) -> float:
        """The median delay (s) at a broker that has nothing else to do, at `rate` publications per second."""
        wake_up, half = self.costs["wake_up"].value, self.costs["wake_up_half"].value
        busy = self.busy(fan_out, size)
        return busy + wake_up * float(_share_needed(_idle_for(rate, busy), half))


def _idle_for(rate: float | NDArray[np.float64], busy: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """The median idle time (s) before a publication of a Poisson process with `rate` per second."""
    found: NDArray[np.float64] = np.maximum(np.log(2) / np.asarray(rate) - busy, 1e-9)
    return found


def _share_needed(idle: NDArray[np.float64], half: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the wake-up that is needed after idle times (s)."""
    return np.asarray(idle / (idle + half))


def fit_costs(steps: Sequence[LoadStep]) -> CostFit:
    """Fit the costs.

    What a busy broker needs per publication is linear in copies and bytes: least squares of relative errors over the saturated steps,
    without negative costs. `wake_up` and `wake_up_half` are fitted likewise to by how much longer median delays are in steps with
    little load, with confidence intervals from resampled steps.
    """
    saturated = [step for step in steps if step.kind == "saturated" and step.busy > 0]
    design = np.array([(1.0, step.fan_out, step.size) for step in saturated])
    measured = np.array([step.busy for step in saturated])
    values, errors = _relative_least_squares(design, measured)
    freedom = max(len(saturated) - int((values > 0).sum()), 1)
    costs = {key: _cost(value, error, freedom) for key, value, error in zip(FITTED, values, errors, strict=False)}
    found = CostFit(costs, [])
    light = [
        step
        for step in steps
        if step.kind != "saturated" and len(step.delays) and step.rate * found.busy(step.fan_out, step.size) < _LIGHT
    ]
    costs |= _wake_up(light, np.array([found.busy(step.fan_out, step.size) for step in light]))
    for step in steps:
        if step in saturated:
            found.residuals.append(Residual(step, step.busy, found.busy(step.fan_out, step.size)))
        elif step in light:
            fitted = found.idle(step.fan_out, step.size, step.rate)
            found.residuals.append(Residual(step, step.quantile(0.5), fitted))
    return found


def _wake_up(light: Sequence[LoadStep], busy: NDArray[np.float64]) -> dict[str, FittedCost]:
    """The wake-up and the idle time after which half of it is needed, from steps with little load."""
    delay = np.array([step.quantile(0.5) for step in light])
    idle = _idle_for(np.array([step.rate for step in light]), busy)
    halves = np.concatenate([[0.0], _HALVES]) if len({step.rate for step in light}) > 1 else np.zeros(1)
    needed = _share_needed(idle, halves[:, None]) / delay
    longer = (delay - busy) / delay

    def best(times: NDArray[np.int64]) -> NDArray[np.float64]:
        """The best values (samples, 2) where steps occur so often in samples (samples, steps)."""
        products, squares = needed @ (times * longer).T, needed**2 @ times.T
        wake_up = np.maximum(products, 0.0) / squares
        least = (wake_up * (wake_up * squares - 2 * products)).argmin(axis=0)
        return np.stack([wake_up[least, np.arange(len(times))], halves[least]], axis=1)

    ((wake_up, half),) = best(np.ones((1, len(light)), np.int64)).tolist()
    drawn = best(np.random.default_rng(1).multinomial(len(light), np.full(len(light), 1 / len(light)), _RESAMPLED))
    outside = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, (outside, 1 - outside), axis=0)
    values = {"wake_up": (wake_up, low[0], high[0]), "wake_up_half": (half, low[1], high[1])}
    return {
        key: FittedCost(value, float(min(one, value)), float(max(other, value)))
        for key, (value, one, other) in values.items()
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
