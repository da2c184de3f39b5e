"""The costs of a broker, fitted to what was measured in load steps, with confidence intervals and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sim.calibration.steps import LoadStep

FITTED = ("time", "send_client", "per_byte", "wake_up")
"""The costs that are fitted, by their keys in [brokers.service]."""
MEANINGS = {
    "time": "to receive a publication",
    "send_client": "per copy to a user",
    "per_byte": "per byte of the publication",
    "wake_up": "if the broker was idle",
}
_CONFIDENCE = 0.95


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

    def idle(self, fan_out: int, size: int) -> float:
        """The time (s) of an idle broker for a publication."""
        return self.costs["wake_up"].value + self.busy(fan_out, size)


def fit_costs(steps: Sequence[LoadStep]) -> CostFit:
    """Fit the costs.

    What a busy broker needs per publication is linear in copies and bytes: least squares of relative errors over the saturated steps,
    without negative costs. `wake_up` is by how much longer the median delay at an idle broker is, mean over steps.
    """
    saturated = [step for step in steps if step.kind == "saturated" and step.busy > 0]
    idle = [step for step in steps if step.kind == "idle" and len(step.delays)]
    design = np.array([(1.0, step.fan_out, step.size) for step in saturated])
    measured = np.array([step.busy for step in saturated])
    values, errors = _relative_least_squares(design, measured)
    freedom = max(len(saturated) - int((values > 0).sum()), 1)
    costs = {key: _cost(value, error, freedom) for key, value, error in zip(FITTED, values, errors, strict=False)}
    longer = np.array([step.quantile(0.5) - values @ (1.0, step.fan_out, step.size) for step in idle])
    error = float(longer.std(ddof=1) / np.sqrt(len(longer))) if len(longer) > 1 else np.inf
    costs["wake_up"] = _cost(max(float(longer.mean()), 0.0), error, max(len(longer) - 1, 1))
    found = CostFit(costs, [])
    for step in steps:
        if step in saturated:
            found.residuals.append(Residual(step, step.busy, found.busy(step.fan_out, step.size)))
        elif step in idle:
            found.residuals.append(Residual(step, step.quantile(0.5), found.idle(step.fan_out, step.size)))
    return found


def _relative_least_squares(
    design: NDArray[np.float64], measured: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The coefficients, none negative, that minimise squared relative errors, and their standard errors (0 for those that are 0)."""
    rows, used = design / measured[:, None], np.ones(design.shape[1], bool)
    while True:
        values, errors = np.zeros(len(used)), np.zeros(len(used))
        values[used] = np.linalg.lstsq(rows[:, used], np.ones(len(rows)), rcond=None)[0]
        if (values >= 0).all():
            break
        used[values.argmin()] = False
    left = rows @ values - 1
    variance = left @ left / max(len(rows) - int(used.sum()), 1)
    errors[used] = np.sqrt(np.diag(np.linalg.pinv(rows[:, used].T @ rows[:, used])) * variance)
    return values, errors


def _cost(value: float, error: float, freedom: int) -> FittedCost:
    half = float(stats.t.ppf((1 + _CONFIDENCE) / 2, freedom)) * error
    return FittedCost(float(value), max(float(value) - half, 0.0), float(value) + half)
