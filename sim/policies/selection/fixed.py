"""Selection regardless of subscriptions: a fixed broker, random or in order, or the broker of the user's place."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.errors import refuse
from sim.base.randomness_kernels import keyed_uniform
from sim.overlay.sites import Sites
from sim.policies.selection.kernels import drawn_brokers
from sim.policies.selection.places import PlaceIndex
from sim.policies.views import Exchange, Selection, SelectionSetting, SelectionView, SelectionViews


class StaticSelection:
    """A user is assigned one broker permanently, at random (DYNATOPS IV-B, "static selection") or in the order of their numbers."""

    class Parameters(plugins.Parameters):
        assign: Literal["random", "in-order"] = "random"
        """A uniformly random broker, or broker i modulo the number of brokers for user i."""

    reacts_to: frozenset[str] = frozenset()
    exchange: Exchange | None = None

    def __init__(self, parameters: Parameters, setting: SelectionSetting) -> None:
        self._in_order = parameters.assign == "in-order"
        self._brokers, self._key = setting.brokers, setting.key

    def select(self, view: SelectionView) -> Selection:
        if view.current >= 0:
            return Selection(view.current)
        if self._in_order:
            return Selection(view.user % self._brokers)
        return Selection(int(keyed_uniform(self._key, view.user, 0) * self._brokers))

    def select_all(self, views: SelectionViews) -> NDArray[np.int32]:
        users = views.user
        first = users % self._brokers if self._in_order else drawn_brokers(users, self._key, self._brokers)
        return np.where(views.current >= 0, views.current, first)


_NO_PLACES = (
    'selection.kind: "location" needs brokers with positions, which this workload does not have '
    '(allowed without positions: "static", "similarity")'
)


class LocationSelection:
    """Each broker serves the users of its region, who are handed over when they leave it (DYNATOPS IV-B, "location-based selection").

    The region is the broker's cell where brokers are cells, otherwise all places to which no other broker is nearer.
    """

    class Parameters(plugins.Parameters):
        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            return None if sites is None or sites.have_places else _NO_PLACES

    reacts_to: frozenset[str] = frozenset({"movement"})
    exchange: Exchange | None = None

    def __init__(self, parameters: Parameters, setting: SelectionSetting) -> None:
        """Raises ScenarioError where brokers have no positions."""
        refuse(None if setting.has_places else _NO_PLACES)
        self._places = PlaceIndex(setting)
        self._brokers, self._key = setting.brokers, setting.key

    def select(self, view: SelectionView) -> Selection:
        if not math.isnan(view.latitude):
            return Selection(self._places.broker(view.latitude, view.longitude))
        if view.current >= 0:
            return Selection(view.current)
        return Selection(int(keyed_uniform(self._key, view.user, 0) * self._brokers))

    def select_all(self, views: SelectionViews) -> NDArray[np.int32]:
        found = np.where(views.current >= 0, views.current, drawn_brokers(views.user, self._key, self._brokers))
        known = np.flatnonzero(~np.isnan(views.latitude))
        near = zip(views.latitude[known].tolist(), views.longitude[known].tolist(), strict=True)
        found[known] = [self._places.broker(*place) for place in near]
        return found
