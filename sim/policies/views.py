"""The views that selection policies get, and their decisions. Views are frozen and their arrays read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers


@dataclass(frozen=True, eq=False)
class SelectionSetting:
    """The constants of a run: brokers, their positions (degrees, NaN without places), and their relative speeds.

    `cell` is the side (degrees) of the grid cells that brokers stand for, one each, or None where brokers are not cells. `key` is
    for the policy's own draws, by identity (`sim.base.randomness.uniform(key, user)`): they do not shift other draws.
    """

    users: int
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    cell: float | None
    key: int
    capacity: NDArray[np.float64]

    @property
    def brokers(self) -> int:
        return len(self.latitude)

    @property
    def has_places(self) -> bool:
        return not bool(np.isnan(self.latitude).any())


@dataclass(frozen=True, eq=False)
class BrokerStates:
    """The state that brokers reported to each other at the last exchange.

    `wanted` (topics, brokers): users of the broker that want the topic; `topics` (brokers): topics with at least one such user;
    `load` (brokers): user subscriptions hosted; `users` (brokers): users hosted.
    """

    wanted: NDArray[np.int32]
    topics: NDArray[np.int64]
    load: NDArray[np.int64]
    users: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SelectionView:
    """The situation of one user at one moment.

    `current` is the user's broker, -1 for a user that joins; `topics` what the user wants now, ascending; position in degrees, NaN
    where unknown. `exchanged` holds all brokers as of the last exchange; the `own_` figures are the current broker's, up to date
    and **without this user**: `own_wanted` (len(topics)) users that want each of `topics`, `own_topics`, `own_load`, `own_users`.
    `total_load` is the number of user subscriptions in the whole system.
    """

    time: float
    user: int
    current: int
    topics: NDArray[np.int32]
    latitude: float
    longitude: float
    exchanged: BrokerStates
    own_wanted: NDArray[np.int32]
    own_topics: int
    own_load: int
    own_users: int
    total_load: int


@dataclass(frozen=True, eq=False)
class SelectionViews:
    """The views of several users in succession, provided that none is handed over.

    Fields are those of `SelectionView` as arrays with an entry for each, but for `exchanged`, which is the same for all. View i has
    `topics` and `own_wanted` from `indptr[i]` to `indptr[i + 1]`.
    """

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    current: NDArray[np.int32]
    indptr: NDArray[np.int64]
    topics: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    exchanged: BrokerStates
    own_wanted: NDArray[np.int32]
    own_topics: NDArray[np.int64]
    own_load: NDArray[np.int64]
    own_users: NDArray[np.int64]
    total_load: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.user)

    def __iter__(self) -> Iterator[SelectionView]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> SelectionView:
        these = slice(*self.indptr[number : number + 2].tolist())
        return SelectionView(
            self.time.item(number),
            self.user.item(number),
            self.current.item(number),
            self.topics[these],
            self.latitude.item(number),
            self.longitude.item(number),
            self.exchanged,
            self.own_wanted[these],
            self.own_topics.item(number),
            self.own_load.item(number),
            self.own_users.item(number),
            self.total_load.item(number),
        )


@dataclass(frozen=True)
class Selection:
    """The decision: the broker to host the user."""

    broker: int


@dataclass(frozen=True, eq=False)
class Exchange:
    """The exchange of states: every `period` seconds each broker sends its state to the others of its cluster.

    `cluster` (brokers): the number of each broker's cluster.
    """

    period: float
    cluster: NDArray[np.int32]


class SelectionPolicy(Protocol):
    """Which broker hosts a user: a pure function of the view. Plug-in group `brokersim.selection`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is created by `Policy(parameters, setting)` with a
    SelectionSetting. `reacts_to` names the events after which the network asks again for a user that has a broker: "subscription"
    (its interests changed), "movement" (its place changed). `exchange` is None where the policy needs no states of other brokers.
    """

    reacts_to: frozenset[str]
    exchange: Exchange | None

    def select(self, view: SelectionView) -> Selection:
        """Decide for one user."""


class SelectsMany(Protocol):
    """An optional part of a selection policy, for speed: decisions for many users at once.

    Without it, or where a subclass overrides `select` but not `select_all`, the network asks for one user at a time.
    """

    def select_all(self, views: SelectionViews) -> Integers:
        """The broker for each of the views: what `select` returns for it."""


SelectAll = Callable[[SelectionViews], Integers]


def many_at_once(policy: SelectionPolicy) -> SelectAll | None:
    """The `select_all` of a policy, None where there is none that matches its `select`."""
    found: SelectAll | None = getattr(policy, "select_all", None)
    return found if selects_many(type(policy)) else None


def selects_many(kind: type) -> bool:
    """Whether a class has a `select_all` that no subclass has made obsolete by overriding `select`."""
    names = {"select", "select_all"}
    latest: set[str] = next((names & set(vars(each)) for each in kind.__mro__ if names & set(vars(each))), set())
    return "select_all" in latest
