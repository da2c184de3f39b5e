"""What a sharing policy sees of a group of subscribers, one of whom gets a publication, and the protocol of such policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SharingSetting:
    """The constants of a run. `key` is for the policy's own draws, by identity: they do not shift other draws."""

    users: int
    brokers: int
    key: int


@dataclass(frozen=True, eq=False)
class SharingView:
    """A group at the moment at which a publication leaves the root of its tree.

    `publication` is its number, `publisher` the user who published it, -1 for one from outside, and `origin` the broker there.
    `members` (ascending) are the users of the group who subscribe to the `topic` now and are connected, at least one, `hosts` their
    brokers, and `load` the messages that wait for each, are being sent to it or not acknowledged, where the policy observes that, else
    0. `turn` is how many publications the group has got before, and `last` the member that got the latest, -1 at first.
    """

    time: float
    publication: int
    topic: int
    publisher: int
    origin: int
    group: int
    members: NDArray[np.int64]
    hosts: NDArray[np.int32]
    load: NDArray[np.int64]
    turn: int
    last: int


class SharingPolicy(Protocol):
    """Which member of a group gets a publication: a pure function of the view. Plug-in group `brokersim.sharing`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is created by `Policy(parameters, setting)` with a
    SharingSetting. `observes` names what costs time to find out: "load".
    """

    observes: frozenset[str]

    def choose(self, view: SharingView) -> int:
        """The position of the chosen one among the members."""
