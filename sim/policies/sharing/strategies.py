"""The strategies of today's brokers (EMQX, HiveMQ, NATS) for shared subscriptions and queue groups."""

from __future__ import annotations

import numpy as np

from sim import plugins
from sim.base.randomness_kernels import keyed_uniform
from sim.policies.sharing.view import SharingSetting, SharingView


class _Strategy:
    """A strategy without parameters that sees no load."""

    class Parameters(plugins.Parameters):
        pass

    observes: frozenset[str] = frozenset()

    def __init__(self, parameters: Parameters, setting: SharingSetting) -> None:
        self._key = setting.key

    def _drawn(self, identity: int, view: SharingView) -> int:
        """A member at random, the same for the same identity, group and number of members."""
        return int(keyed_uniform(self._key, identity, view.group) * len(view.members))


class RandomMember(_Strategy):
    """Any member, at random for each publication, as NATS does."""

    def choose(self, view: SharingView) -> int:
        return self._drawn(view.publication, view)


class RoundRobin(_Strategy):
    """The members in turn, in the order of their numbers."""

    def choose(self, view: SharingView) -> int:
        return int(np.searchsorted(view.members, view.last, side="right")) % len(view.members)


class Sticky(_Strategy):
    """The same member as before while it is there, at first a random one."""

    def choose(self, view: SharingView) -> int:
        place = int(np.searchsorted(view.members, view.last))
        if place < len(view.members) and view.members[place] == view.last:
            return place
        return self._drawn(view.publication, view)


class HashClient(_Strategy):
    """The same member for all publications of a client, as long as the members are the same; those from outside are of one client."""

    def choose(self, view: SharingView) -> int:
        return self._drawn(view.publisher, view)


class HashTopic(_Strategy):
    """The same member for all publications on a topic, as long as the members are the same."""

    def choose(self, view: SharingView) -> int:
        return self._drawn(view.topic, view)


class LocalFirst(_Strategy):
    """A random member among those at the broker where it was published, or among all if there is none."""

    def choose(self, view: SharingView) -> int:
        local = np.flatnonzero(view.hosts == view.origin)
        if not len(local):
            return self._drawn(view.publication, view)
        return int(local[int(keyed_uniform(self._key, view.publication, view.group) * len(local))])


class LeastLoaded(_Strategy):
    """The member for whom the fewest messages wait or are not acknowledged; of several, the next in turn."""

    observes = frozenset({"load"})

    def choose(self, view: SharingView) -> int:
        least = np.flatnonzero(view.load == view.load.min())
        turn = np.searchsorted(view.members[least], view.last, side="right")
        return int(least[turn % len(least)])
