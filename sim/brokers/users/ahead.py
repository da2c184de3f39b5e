"""Look-ahead for quiet changes, which make no difference to brokers: found many at a time, and enacted later in compiled code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim.base.arrays import Columns, frozen
from sim.brokers.users.ahead_kernels import MOVEMENTS, TOPICS, VIEWS, begin_instant, end_ahead, look_ahead, view_instant
from sim.brokers.users.state import UserState
from sim.brokers.users.subscriptions import Subscriptions
from sim.policies.views import BrokerStates, SelectionPolicy, SelectionViews, many_at_once
from sim.workloads.format.workload import Workload

_FEWEST, _MOST = 8, VIEWS  # views of users that a policy is asked about at once
_MOST_MISSES = 6

_ASKED = (
    "view_time",
    "view_user",
    "view_current",
    "view_latitude",
    "view_longitude",
    "view_own_topics",
    "view_own_load",
    "view_own_users",
    "view_total_load",
)
"""The arrays with an entry for each view."""


HandOver = Callable[[int, int, slice], None]


class Ahead:
    """Finds the quiet changes that come next: no broker begins or ceases to want a topic by them, and no user is handed over.

    If the policy reacts to changes, it is asked about many users at once by `select_all`; without that, the look-ahead ends there.
    `interest_changed(user, topic, action)`, if given, is called for each event once it is enacted.
    """

    def __init__(
        self,
        workload: Workload,
        policy: SelectionPolicy,
        subscriptions: Subscriptions,
        interest_changed: Callable[[int, int, int], None] | None,
    ) -> None:
        self._subscriptions, self._state = subscriptions, subscriptions.state
        self._events = workload.subscription_events
        self._select_all = many_at_once(policy)
        self._most, self._misses, self._skipped = _MOST, 0, 0
        self._interest_changed = interest_changed
        subscriptions.caught_up = None if interest_changed is None else self.report
        self._state.set(asks=self._select_all is not None)
        self._state.set(**{f"by_{reaction}": reaction in policy.reacts_to for reaction in ("subscription", "movement")})
        _make_room(self._state)
        # what policies see of them: read-only, and so is each part
        self._each, self._all = (
            {name.removeprefix("view_"): frozen(self._state.arrays[name].view()) for name in names}
            for names in (_ASKED, ("view_topics", "view_own_wanted"))
        )
        self._bounds = frozen(self._state.arrays["view_indptr"].view())

    def look(self, event: int, movement: int, until: float, exchanged: BrokerStates) -> tuple[int, int]:
        """Look at the changes from these rows on that happen before `until` (s); returns the rows after the quiet ones."""
        if self._skipped < self._misses**2 // 4:  # if most changes are not quiet, not every look is worthwhile
            self._skipped += 1
            return event, movement
        records = self._state.records
        views, *end, following = look_ahead(records, event, movement, until, self._most)
        if views and (moved := self._first_moved(views, exchanged)) is not None:
            *end, following = end_ahead(records, moved)
        self._subscriptions.next_change = following
        self._skipped, self._misses = 0, 0 if end > [event, movement] else min(self._misses + 1, _MOST_MISSES)
        return end[0], end[1]

    def _first_moved(self, views: int, exchanged: BrokerStates) -> int | None:
        """Ask the policy; returns the first view whose user it hands over."""
        moved, _ = self._ask(views, exchanged)
        self._most = max(_FEWEST, min(2 * (views if moved is None else moved), _MOST))
        return moved

    def _ask(self, views: int, exchanged: BrokerStates) -> tuple[int | None, int]:
        """Ask the policy; returns the first view whose user it hands over, and to which broker."""
        assert self._select_all is not None
        asked = self._views(views, exchanged)
        chosen = self._select_all(asked)
        moved = np.flatnonzero(chosen != asked.current)
        return (int(moved[0]), int(chosen[moved[0]])) if len(moved) else (None, -1)

    def _views(self, views: int, exchanged: BrokerStates) -> SelectionViews:
        """The recorded views, read-only."""
        topics = self._bounds.item(views)
        each: Columns = {name: array[:views] for name, array in self._each.items()}
        each |= {name: array[:topics] for name, array in self._all.items()}
        return SelectionViews(**each, indptr=self._bounds[: views + 1], exchanged=exchanged)

    def enact(
        self, changing: list[int], moving: list[int], now: float, exchanged: BrokerStates, hand_over: HandOver
    ) -> bool:
        """Enact the events and movements of an instant if compiled code can, user by user: policies are asked as for one by one.

        `hand_over(user, broker, rows)` hands a user over, with its events in these rows.
        """
        first, end, move, moved = changing[0], changing[-1] + 1, *((moving[0], moving[-1] + 1) if moving else (0, 0))
        records, state = self._state.records, self._state.record
        asks = state["by_subscription"] or (state["by_movement"] and moving)
        if end - first > len(changing) or moved - move > len(moving) or (asks and self._select_all is None):
            return False
        if not begin_instant(records, first, end, move, moved):
            return False
        self.report(first, end)
        users = self._events.user[first:end].tolist()
        row = first
        while row < end:
            self._subscriptions.wanted.reserve(3 * (end - row))  # for what is tried, undone and enacted
            views = view_instant(records, row, end, move, moved, now) if asks else 0
            view, broker = self._ask(views, exchanged) if views else (None, -1)
            if view is None:
                self._subscriptions.enact(row, end, now)
                break
            user = self._state.arrays["view_user"].item(view)
            found = first + users.index(user)
            if found > row:
                self._subscriptions.enact(row, found, now)
            row = found + users.count(user)
            hand_over(user, broker, slice(found, row))
        return True

    def report(self, first: int, end: int) -> None:
        """Call `interest_changed` for events that have been enacted."""
        if self._interest_changed is None:
            return
        rows = self._events.rows(slice(first, end))
        for user, topic, action in zip(rows.user.tolist(), rows.topic.tolist(), rows.action.tolist(), strict=True):
            self._interest_changed(user, topic, action)


def use_workload(workload: Workload, state: UserState) -> None:
    """Give kernels the addresses of a workload's changes."""
    for name, table in (("event", workload.subscription_events), ("movement", workload.movements)):
        state.set(**{f"{name}s": len(table)})
        state.use(**{f"{name}_{column}": array for column, array in vars(table).items()})


def _make_room(state: UserState) -> None:
    """Make room for views."""
    sizes: dict[str, tuple[int, type[np.generic]]] = dict.fromkeys(
        (*_ASKED, "view_event", "view_movement"), (VIEWS, np.int64)
    )
    sizes |= dict.fromkeys(("view_time", "view_latitude", "view_longitude"), (VIEWS, np.float64))
    sizes |= dict.fromkeys(("view_user", "view_current"), (VIEWS, np.int32))
    sizes |= {"view_topics": (TOPICS, np.int32), "view_own_wanted": (TOPICS, np.int32)}
    sizes |= {"view_indptr": (VIEWS + 1, np.int64)}
    sizes |= dict.fromkeys(("left_latitude", "left_longitude"), (MOVEMENTS, np.float64))
    state.use(**{name: np.zeros(size, dtype) for name, (size, dtype) in sizes.items()})
