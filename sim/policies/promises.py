"""What policies from elsewhere promise, checked as they are used: the part that costs little. All of it: `sim.policies.conformance`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.base.errors import PluginError
from sim.plugins import described
from sim.policies.offloading.problem import Decision
from sim.policies.reconfiguration.problem import Reconfiguration
from sim.policies.views import Exchange, Selection, SelectionPolicy, SelectionSetting, SelectionView

REACTIONS = frozenset({"subscription", "movement"})

if TYPE_CHECKING:
    _Kind: Any
else:
    _Kind = object


def constant_breaches(policy: SelectionPolicy, brokers: int) -> Iterator[str]:
    """What is wrong with that which stays the same of a selection policy."""
    if not policy.reacts_to <= REACTIONS:
        yield f"reacts_to is {sorted(policy.reacts_to)}, allowed are {sorted(REACTIONS)}"
    if policy.exchange is not None:
        yield from _exchange_breaches(policy.exchange, brokers)


def _exchange_breaches(exchange: Exchange, brokers: int) -> Iterator[str]:
    if not 0 < exchange.period < float("inf"):
        yield f"exchange.period is {exchange.period} s, expected a finite time above 0"
    if exchange.cluster.shape != (brokers,) or exchange.cluster.dtype.kind not in "iu":
        yield f"exchange.cluster is {exchange.cluster.dtype}{exchange.cluster.shape}, expected an integer for each broker"


def selection_breach(selection: object, brokers: int) -> str | None:
    """What is wrong with what `select` returned."""
    broker = selection.broker if isinstance(selection, Selection) else None
    if not isinstance(broker, int) or isinstance(broker, bool):
        return f"select returned {selection!r}, expected Selection(an int)"
    return None if 0 <= broker < brokers else f"select decided for broker {broker} of {brokers}"


class WatchedSelection(_Kind):  # type: ignore[misc]
    """Stands before a selection policy's class and raises PluginError where it decides for no broker."""

    def __init__(self, parameters: Any, setting: SelectionSetting) -> None:
        self._watched_brokers = setting.brokers
        super().__init__(parameters, setting)

    def check_promises(self) -> None:
        """Raises PluginError where what stays the same is not as it should be."""
        for breach in constant_breaches(self, self._watched_brokers):
            raise PluginError(f"{described(type(self))}: {breach}")

    def select(self, view: SelectionView) -> Selection:
        selection: Selection = super().select(view)
        if breach := selection_breach(selection, self._watched_brokers):
            raise PluginError(f"{described(type(self))}: {breach}, for user {view.user} at {view.time:g} s")
        return selection


class WatchedReconfiguration(_Kind):  # type: ignore[misc]
    """Stands before a reconfiguration policy's class and raises PluginError where it decides nothing."""

    def reconfigure(self, problem: Any) -> Reconfiguration:
        decision = super().reconfigure(problem)
        if not isinstance(decision, Reconfiguration):
            raise PluginError(f"{described(type(self))}: reconfigure returned {decision!r}, expected a Reconfiguration")
        return decision


class WatchedOffloading(_Kind):  # type: ignore[misc]
    """Stands before an offloading policy's class and raises PluginError where it decides nothing."""

    def decide(self, problem: Any, previous: Decision | None = None) -> Decision:
        decision = super().decide(problem, previous)
        if not isinstance(decision, Decision):
            raise PluginError(f"{described(type(self))}: decide returned {decision!r}, expected a Decision")
        return decision
