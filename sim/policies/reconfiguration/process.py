"""Parameters that all reconfiguration policies share: when they are asked, and what is counted (DYNATOPS III.D)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from sim import plugins
from sim.base.units import SECONDS, Period, PositiveDuration, Quantity


class ProcessParameters(plugins.Parameters):
    """Parameters of the reconfiguration process: monitoring, test, computation, protocol."""

    period: Period = 10 * SECONDS["h"]
    """The reconfiguration-free period T_free: a decision is made at the end of each."""
    smoothing: float = Field(0.3, gt=0, le=1)
    """Weight of the last period in the expected publication rates (alpha of eq. 12)."""
    threshold: Quantity = 0.1
    """The policy is asked only if the cost exceeds this share of the largest cost of reconfiguration (beta)."""
    delay_weight: Quantity = 1.0
    """Weight of a unit of delay, relative to a message to an unrelated relay (w_d of eq. 6)."""
    delay: Literal["hops", "round-trips"] = "hops"
    """The unit of delay: a hop, or the mean round-trip time between two brokers, with hops weighted by their time."""
    count_rendezvous: bool = False
    """Whether a rendezvous broker that does not subscribe counts as a relay."""
    constants: tuple[Quantity, Quantity, Quantity] = (1.0, 1.0, 1.0)
    """Weights of the three terms of the cost of reconfiguration (eq. 11)."""
    timeout: PositiveDuration = 60.0
    """How long a broker waits for the manager before the brokers agree among themselves whether to fall back."""
    replaced: ClassVar = {"manager_down": 'the manager\'s death is a fault (allowed: [[faults]] with kind = "manager")'}


class ReconfigurationWithoutParameters:
    """Base of policies without parameters beyond those of the process."""

    class Parameters(ProcessParameters):
        pass

    def __init__(self, parameters: Parameters) -> None:
        pass
