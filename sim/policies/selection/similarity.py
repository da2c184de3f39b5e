"""Similarity-based broker selection (DYNATOPS section III.B, algorithm 1)."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import attrgetter
from typing import Literal
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim import plugins
from sim.base.randomness_kernels import keyed_uniform
from sim.base.units import Period, Quantity
from sim.policies.selection.kernels import JACCARD, MEAN_USER, OVERLAP, ViewArrays, best_broker, best_brokers
from sim.policies.selection.places import PlaceIndex, clusters
from sim.policies.views import BrokerStates, Exchange, Selection, SelectionSetting, SelectionView, SelectionViews

_VIEW_ARRAYS = attrgetter(*ViewArrays._fields)
_FORMULA = {"overlap": OVERLAP, "jaccard": JACCARD, "mean-user": MEAN_USER}


class SimilaritySelection:
    """The broker of the user's cluster with the highest utility Sim - load_weight · L, which groups users with similar interests.

    The user's own broker is seen up to date and without the user's contribution, the others as of the last exchange. Ties: the
    current broker, the lower load, the lower id. A user's cluster is that of its place, or of its broker, or a fixed random one where
    brokers have no places. A user that wants nothing stays where it is.
    """

    class Parameters(plugins.Parameters):
        load_weight: Quantity = 1.0
        """Weight w_l of a broker's load relative to similarity."""
        load: Literal["share", "relative"] = "share"
        """Load L_b: the broker's share of all user subscriptions (mean 1/brokers, as in the paper), or "relative" (mean 1)."""
        similarity: Literal["overlap", "jaccard", "mean-user"] = "overlap"
        """Formula, for the topics S_b of a broker and s of a user: |S_b ∩ s|/|s| ("overlap"), |S_b ∩ s|/|S_b ∪ s| ("jaccard"), or the
        mean over the broker's users ("mean-user")."""
        update_period: Period = 43200.0
        """T_update: time between exchanges of states inside a cluster."""
        cluster_size: int = Field(10, ge=1, lt=2**31)
        """Number of brokers c in a cluster; with cells: the block of c cells, some of which may have no broker."""
        cluster: Literal["place", "joined"] = "place"
        """A user's cluster: that of its place, wherever it goes, or the one that it joined at first."""
        hysteresis: Quantity = 0.0
        """A user moves within its cluster only if the gain in utility exceeds this."""

    reacts_to: frozenset[str] = frozenset({"subscription", "movement"})

    def __init__(self, parameters: Parameters, setting: SelectionSetting) -> None:
        cluster = clusters(setting, parameters.cluster_size)
        self._cluster, self._stays = cluster, parameters.cluster == "joined"
        self._clusters: list[int] = cluster.tolist()  # looked up one by one
        self._members: list[NDArray[np.int32]] = [
            np.flatnonzero(cluster == number).astype(np.int32) for number in range(int(cluster.max()) + 1)
        ]
        self._members_from = np.concatenate([[0], np.cumsum([len(members) for members in self._members])])
        self._all_members = np.concatenate(self._members)
        self._places = PlaceIndex(setting) if setting.has_places else None
        self._key = setting.key
        self._drawn = lru_cache(maxsize=1 << 14)(self._draw)
        load_weight = parameters.load_weight * (setting.brokers if parameters.load == "relative" else 1)
        self._rule = _FORMULA[parameters.similarity], load_weight, parameters.hysteresis
        self.exchange: Exchange | None = Exchange(parameters.update_period, cluster)
        self._states: ref[BrokerStates] | None = None  # only the latest, so that older ones can be freed
        self._sizes = np.empty((3, 0), np.int64)  # of these

    def _candidates(self, view: SelectionView) -> NDArray[np.int32]:
        if self._stays and view.current >= 0:
            return self._members[int(self._cluster[view.current])]
        if self._places is not None and not math.isnan(view.latitude):
            return self._members[self._cluster_at(self._places, view.latitude, view.longitude)]
        return self._members[self._drawn(view.user)]

    def _draw(self, user: int) -> int:
        """The cluster of a user whose place is unknown: random, but always the same one."""
        return int(keyed_uniform(self._key, user, 0) * len(self._members))

    def _cluster_at(self, places: PlaceIndex, latitude: float, longitude: float) -> int:
        """The cluster of a place, -1 where that is unknown."""
        return -1 if math.isnan(latitude) else self._clusters[places.broker(latitude, longitude)]

    def _know(self, states: BrokerStates) -> None:
        if self._states is None or self._states() is not states:
            self._states, self._sizes = ref(states), sizes_of(states)

    def select(self, view: SelectionView) -> Selection:
        if view.current >= 0 and len(view.topics) == 0:
            return Selection(view.current)
        states = view.exchanged
        self._know(states)
        own = view.current, view.own_topics, view.own_load, view.own_users
        wanted, candidates, total_load = states.wanted, self._candidates(view), max(view.total_load, 1)
        found = best_broker(candidates, view.topics, wanted, self._sizes, own, view.own_wanted, total_load, self._rule)
        return Selection(int(found))

    def select_all(self, views: SelectionViews) -> NDArray[np.int32]:
        states = views.exchanged
        self._know(states)
        if self._places is None:
            clusters = np.full(len(views), -1, np.int32)
        else:
            known = zip(views.latitude.tolist(), views.longitude.tolist(), strict=True)
            clusters = np.array([self._cluster_at(self._places, *place) for place in known], np.int32)
        if self._stays:
            clusters = np.where(views.current >= 0, self._cluster[views.current], clusters)
        arrays = ViewArrays(*_VIEW_ARRAYS(views))
        members = self._members_from, self._all_members
        return best_brokers(clusters, *members, arrays, states.wanted, self._sizes, self._key, self._rule)


def sizes_of(states: BrokerStates) -> NDArray[np.int64]:
    """The topics, load and users that brokers reported, in one array (3, brokers)."""
    return np.stack([states.topics, states.load, states.users])
