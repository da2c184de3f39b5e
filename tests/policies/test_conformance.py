"""The conformance check passes the project's own policies and finds each way of breaking the interface."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from sim import plugins
from sim.policies.conformance import NotConforming, check_selection
from sim.policies.selection.fixed import StaticSelection
from sim.policies.views import Exchange, Selection, SelectionSetting, SelectionView


@pytest.mark.parametrize("name", plugins.names("selection"))
@pytest.mark.parametrize("seed", [1, 2])
def test_own_policies_conform(name: str, seed: int) -> None:
    check_selection(plugins.load("selection", name), seed=seed)


@pytest.mark.parametrize("parameters", [{"similarity": "jaccard"}, {"similarity": "mean-user", "cluster_size": 3}])
def test_parameters_are_handed_on(parameters: dict[str, Any]) -> None:
    check_selection(plugins.load("selection", "similarity"), parameters)


def test_static_in_order_conforms() -> None:
    check_selection(StaticSelection, {"assign": "in-order"})


class Loose(StaticSelection.Parameters, extra="ignore"):
    pass


class NoParameters(StaticSelection):
    Parameters = None  # type: ignore[assignment, misc]


class LooseParameters(StaticSelection):
    Parameters = Loose  # type: ignore[assignment, misc]


class Beyond(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return Selection(self._brokers)


class Nowhere(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return Selection(view.current)


class Unfinished(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        return None  # type: ignore[return-value]


class Meddling(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        view.exchanged.load[0] = 0
        return super().select(view)


class Moody(StaticSelection):
    asked = 0

    def select(self, view: SelectionView) -> Selection:
        self.asked += 1
        return Selection(self.asked % self._brokers)


class OrderBound(StaticSelection):
    """Remembers what it said of each user, but what it says first depends on who asks first."""

    def __init__(self, parameters: StaticSelection.Parameters, setting: SelectionSetting) -> None:
        super().__init__(parameters, setting)
        self.said: dict[tuple[int, int], int] = {}

    def select(self, view: SelectionView) -> Selection:
        return Selection(self.said.setdefault((view.user, view.current), len(self.said) % self._brokers))


class Global(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        random.random()
        return super().select(view)


class GlobalNumpy(StaticSelection):
    def select(self, view: SelectionView) -> Selection:
        np.random.random()  # noqa: NPY002
        return super().select(view)


class Deaf(StaticSelection):
    reacts_to = frozenset({"moving"})


class Restless(StaticSelection):
    exchange = Exchange(0.0, np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("policy", "breach"),
    [
        (NoParameters, "no nested class Parameters"),
        (LooseParameters, "take keys that they do not know"),
        (Beyond, "decided for broker 12 of 12"),
        (Nowhere, "decided for broker -1"),
        (Unfinished, r"expected Selection\(an int\)"),
        (Meddling, "read-only"),
        (Moody, "when it is asked the same again"),
        (OrderBound, "in another order"),
        (Global, "global random state"),
        (GlobalNumpy, "global random state"),
        (Deaf, r"reacts_to is \['moving'\]"),
        (Restless, "exchange.period is 0.0 s"),
        (Restless, r"exchange.cluster is int32\(3,\)"),
    ],
)
def test_each_breach_is_found(policy: Any, breach: str) -> None:
    with pytest.raises(NotConforming, match=breach):
        check_selection(policy)
