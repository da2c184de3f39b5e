"""A selection policy in one file: of a few random brokers, the least loaded one hosts the user."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sim import plugins
from sim.base.randomness_kernels import keyed_uniform
from sim.base.units import PositiveDuration
from sim.policies.views import Exchange, Selection, SelectionSetting, SelectionView


class TwoChoices:
    """Of a few random brokers, the one with the lowest load hosts the user permanently (Mitzenmacher 2001, with two)."""

    class Parameters(plugins.Parameters):
        choices: int = Field(2, ge=1)
        """Brokers that are drawn for each user."""
        update_period: PositiveDuration = 3600.0
        """Time between exchanges of states."""

    reacts_to: frozenset[str] = frozenset()  # a user that has a broker is not asked for again

    def __init__(self, parameters: Parameters, setting: SelectionSetting) -> None:
        self._choices = parameters.choices
        self._brokers, self._key = setting.brokers, setting.key
        # all brokers exchange states: one cluster
        self.exchange: Exchange | None = Exchange(parameters.update_period, np.zeros(setting.brokers, np.int32))

    def select(self, view: SelectionView) -> Selection:
        """The least loaded of the drawn brokers as of the last exchange, the lowest id on ties."""
        if view.current >= 0:
            return Selection(view.current)
        drawn = [int(keyed_uniform(self._key, view.user, choice) * self._brokers) for choice in range(self._choices)]
        return Selection(min(drawn, key=lambda broker: (int(view.exchanged.load[broker]), broker)))
