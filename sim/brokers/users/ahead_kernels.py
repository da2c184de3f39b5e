"""Compiled look-ahead: finds quiet changes, which make no difference to brokers, and enacts them when their time comes.

An instant is quiet where no broker begins or ceases to want a topic and no user is handed over. Handovers are decided by the
policy: the views for otherwise quiet instants are recorded, as they will be if all earlier instants are quiet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import integers, reals, small_integers, tiny_integers
from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.base.sparse_kernels import count_at, sparse_at
from sim.brokers.statistics.balance import balance_at, changed
from sim.brokers.users.change_kernels import count, touch, wants

VIEWS, TOPICS, MOVEMENTS = 1024, 1 << 14, 4096
"""The most views recorded at once, their total topics, and the movements tried out."""
_ROWS = 64  # an instant with more events or movements ends the look-ahead


@kernel
def _time(state: Item, event: int, movement: int) -> float:
    """The time of the next of these rows (s)."""
    time = np.inf
    if event < state.events:
        time = reals(state.event_time, state.events)[event]
    if movement < state.movements:
        time = min(time, reals(state.movement_time, state.movements)[movement])
    return float(time)


@kernel
def _ends(state: Item, time: float, event: int, movement: int) -> tuple[int, int]:
    """The first rows after those of an instant."""
    times, moves = reals(state.event_time, state.events), reals(state.movement_time, state.movements)
    while event < state.events and times[event] == time:
        event += 1
    while movement < state.movements and moves[movement] == time:
        movement += 1
    return event, movement


@kernel
def _hold(state: Item, row: int, step: int) -> None:
    """Apply an event to a user's interests, or undo it (`step` -1)."""
    user, topic = small_integers(state.event_user, row + 1)[row], small_integers(state.event_topic, row + 1)[row]
    first = integers(state.room, user + 1)[user]
    many = small_integers(state.held_many, user + 1)
    size = many[user]
    held = small_integers(state.held + 4 * first, size + 1)
    place = 0
    while place < size and held[place] < topic:
        place += 1
    change = step * tiny_integers(state.event_action, row + 1)[row]
    if change > 0:
        for i in range(size, place, -1):
            held[i] = held[i - 1]
        held[place] = topic
    else:
        for i in range(place, size - 1):
            held[i] = held[i + 1]
    many[user] = size + change


@kernel
def _count(state: Item, row: int, step: int) -> bool:
    """Count an event at the user's broker; returns whether the broker begins or ceases to want the topic."""
    user, topic = small_integers(state.event_user, row + 1)[row], small_integers(state.event_topic, row + 1)[row]
    change = step * tiny_integers(state.event_action, row + 1)[row]
    integers(state.version, topic + 1)[topic] += step
    return count(state, topic, small_integers(state.host, user + 1)[user], change) == (0 if change > 0 else 1)


@kernel
def _turn(state: Item, row: int, step: int) -> None:
    """Apply and count events; a user's rows are applied in turn, as there is room for its interests after each."""
    _hold(state, row, step)
    _count(state, row, step)


@kernel
def _is_quiet(state: Item, first: int, end: int) -> bool:
    """Whether no broker begins or ceases to want a topic by these events of an instant; also false if that is hard to determine."""
    users, topics = small_integers(state.event_user, end), small_integers(state.event_topic, end)
    actions, host = tiny_integers(state.event_action, end), small_integers(state.host, state.users_many)
    for i in range(first, end):
        broker, leaving = host[users[i]], 0
        for j in range(first, end):
            leaving += topics[j] == topics[i] and actions[j] < 0 and host[users[j]] == broker
        if count_at(sparse_at(state.wanted, 0), topics[i], broker) <= leaving:
            return False
    return _is_plain(state, first, end)


@kernel
def _is_plain(state: Item, first: int, end: int) -> bool:
    """Whether the events of an instant are few, valid, and without repeated pairs of user and topic."""
    users, topics = small_integers(state.event_user, end), small_integers(state.event_topic, end)
    actions = tiny_integers(state.event_action, end)
    if end - first > _ROWS:
        return False
    for i in range(first, end):
        has = False
        for topic in wants(state, users[i]):
            has |= topic == topics[i]
        if has == (actions[i] > 0):
            return False  # a mistake of the workload
        for j in range(first, i):
            if users[j] == users[i] and topics[j] == topics[i]:
                return False
    return True


@kernel
def _has_room(state: Item, views: int, event: int, event_end: int, movement: int, movement_end: int) -> bool:
    """Whether there is room for the views of an instant."""
    rows, topics = event_end - event + movement_end - movement, integers(state.view_indptr, VIEWS + 1)[views]
    for row in range(event, event_end):
        topics += wants(state, small_integers(state.event_user, event_end)[row]).size + rows
    for row in range(movement, movement_end):
        topics += wants(state, small_integers(state.movement_user, movement_end)[row]).size + rows
    return bool(views + rows <= VIEWS and topics <= TOPICS and movement_end - state.movement <= MOVEMENTS)


@kernel
def _view(state: Item, number: int, user: int, time: float, total: int) -> None:
    """Record the view of a user whose interests have already changed."""
    topics, broker = wants(state, user), small_integers(state.host, user + 1)[user]
    ends = integers(state.view_indptr, VIEWS + 1)
    first = ends[number]
    ends[number + 1] = first + topics.size
    reals(state.view_time, VIEWS)[number] = time
    small_integers(state.view_user, VIEWS)[number] = user
    small_integers(state.view_current, VIEWS)[number] = broker
    asked, own = small_integers(state.view_topics, TOPICS), small_integers(state.view_own_wanted, TOPICS)
    wanted, alone = sparse_at(state.wanted, 0), 0
    for i in range(topics.size):
        others = count_at(wanted, topics[i], broker) - 1
        asked[first + i], own[first + i] = topics[i], others
        alone += others == 0
    reals(state.view_latitude, VIEWS)[number] = reals(state.latitude, user + 1)[user]
    reals(state.view_longitude, VIEWS)[number] = reals(state.longitude, user + 1)[user]
    integers(state.view_own_topics, VIEWS)[number] = integers(state.topics, broker + 1)[broker] - alone
    integers(state.view_own_load, VIEWS)[number] = integers(state.load, broker + 1)[broker] - topics.size
    integers(state.view_own_users, VIEWS)[number] = integers(state.users, broker + 1)[broker] - 1
    integers(state.view_total_load, VIEWS)[number] = total


@kernel
def _move(state: Item, first: int, end: int, tried: int) -> None:
    """Move users; `tried` is the number of the first movement that is undone later, -1 for none."""
    users = small_integers(state.movement_user, end)
    latitude, longitude = reals(state.latitude, state.users_many), reals(state.longitude, state.users_many)
    for row in range(first, end):
        user = users[row]
        if tried >= 0:
            place = tried + row - first
            reals(state.left_latitude, MOVEMENTS)[place] = latitude[user]
            reals(state.left_longitude, MOVEMENTS)[place] = longitude[user]
        latitude[user] = reals(state.movement_latitude, end)[row]
        longitude[user] = reals(state.movement_longitude, end)[row]


@kernel
def _occurs(users: NDArray[np.int32], user: int, first: int, end: int) -> bool:
    """Whether a user is among those of these rows."""
    found = False
    for row in range(first, end):
        found |= users[row] == user
    return found


@kernel
def _try_events(
    state: Item, views: int, time: float, event: int, event_end: int, movement: int, movement_end: int
) -> int:
    """Try the events of an instant, and record the views of their users in order; returns the number of views then."""
    users, movers = small_integers(state.event_user, event_end), small_integers(state.movement_user, movement_end)
    for row in range(event, event_end):
        user, total = users[row], state.total
        if _occurs(users, user, event, row):
            continue
        for other in range(row, event_end):
            if users[other] == user:
                _turn(state, other, 1)
        if state.by_subscription or (state.by_movement and _occurs(movers, user, movement, movement_end)):
            _view(state, views, user, time, total)
            views += 1
    return views


@kernel
def _try(state: Item, views: int, time: float, event: int, event_end: int, movement: int, movement_end: int) -> int:
    """Try an instant, and record the views of its users in order; returns the number of views then."""
    users, movers = small_integers(state.event_user, event_end), small_integers(state.movement_user, movement_end)
    _move(state, movement, movement_end, movement - state.movement)
    views = _try_events(state, views, time, event, event_end, movement, movement_end)
    for row in range(movement, movement_end if state.by_movement else movement):
        user = movers[row]
        if not (_occurs(users, user, event, event_end) or _occurs(movers, user, movement, row)):
            _view(state, views, user, time, state.total)
            views += 1
    return views


@kernel
def look_ahead(states: Items, event: int, movement: int, until: float, most: int) -> tuple[int, int, int, float]:
    """Find the instants from these rows on and before `until` (s) that are quiet as far as known.

    It ends at about `most` views to be decided. Returns their number, the rows after the last quiet ones, and the time of these.
    All else is unchanged.
    """
    state, views = states[0], 0
    state.event, state.movement = event, movement
    while views < most:
        time = _time(state, event, movement)
        if time >= until:
            break
        event_end, movement_end = _ends(state, time, event, movement)
        asks = (state.by_subscription and event_end > event) or (state.by_movement and movement_end > movement)
        if (asks and not state.asks) or event_end - event > _ROWS or movement_end - movement > _ROWS:
            break
        if not _has_room(state, views, event, event_end, movement, movement_end):
            break
        if not _is_quiet(state, event, event_end):
            break
        known = views
        views = _try(state, views, time, event, event_end, movement, movement_end)
        for i in range(known, views):
            integers(state.view_event, VIEWS)[i] = event
            integers(state.view_movement, VIEWS)[i] = movement
        event, movement = event_end, movement_end
    _undo(state, event, movement)
    _end(state, event, movement)
    return views, event, movement, float(state.next)


@kernel
def end_ahead(states: Items, view: int) -> tuple[int, int, float]:
    """End the quiet rows before the instant of a user who is handed over; returns the rows as `look_ahead` does."""
    state = states[0]
    event, movement = integers(state.view_event, VIEWS)[view], integers(state.view_movement, VIEWS)[view]
    _end(state, event, movement)
    return event, movement, float(state.next)


@kernel
def _end(state: Item, event: int, movement: int) -> None:
    state.event_end, state.movement_end = event, movement
    left = event > state.event or movement > state.movement
    state.next = _time(state, state.event, state.movement) if left else np.inf


@kernel
def _undo(state: Item, event: int, movement: int) -> None:
    """Undo what was tried before these rows, in reverse."""
    latitude, longitude = reals(state.latitude, state.users_many), reals(state.longitude, state.users_many)
    for row in range(movement - 1, state.movement - 1, -1):
        user, place = small_integers(state.movement_user, movement)[row], row - state.movement
        latitude[user] = reals(state.left_latitude, MOVEMENTS)[place]
        longitude[user] = reals(state.left_longitude, MOVEMENTS)[place]
    for row in range(event - 1, state.event - 1, -1):
        _turn(state, row, -1)


@kernel
def enact_ahead(states: Items, until: float) -> float:
    """Enact the quiet changes up to and including a time (s); returns when the rest begins."""
    state = states[0]
    while state.next <= until:
        time = state.next
        event_end, movement_end = _ends(state, time, state.event, state.movement)
        for row in range(state.event, event_end):
            user = small_integers(state.event_user, event_end)[row]
            touch(state, small_integers(state.host, user + 1)[user], time)
            _turn(state, row, 1)
        _move(state, state.movement, movement_end, -1)
        if event_end > state.event or (state.by_movement and movement_end > state.movement):
            changed(balance_at(state.balance, 0), time, state.brokers, state.total, state.squares)
        state.event, state.movement = event_end, movement_end
        _end(state, state.event_end, state.movement_end)
    return float(state.next)


@kernel
def begin_instant(states: Items, event: int, event_end: int, movement: int, movement_end: int) -> bool:
    """Whether these rows of an instant can be enacted user by user in compiled code; if so, users are moved.

    They can if events are few, valid, and in order of users, who are all connected, and if only users with events move.
    """
    state, users = states[0], small_integers(states[0].event_user, event_end)
    movers = small_integers(state.movement_user, movement_end)
    if movement_end - movement > _ROWS or not _is_plain(state, event, event_end):
        return False
    for row in range(event, event_end):
        if row > event and users[row] != users[row - 1] and _occurs(users, users[row], event, row):
            return False
        if small_integers(state.host, state.users_many)[users[row]] < 0:
            return False
    for row in range(movement, movement_end):
        if not _occurs(users, movers[row], event, event_end):
            return False
    state.movement = movement
    if not _has_room(state, 0, event, event_end, movement, movement_end):
        return False
    _move(state, movement, movement_end, -1)
    return True


@kernel
def view_instant(states: Items, event: int, event_end: int, movement: int, movement_end: int, now: float) -> int:
    """Record the views of the users of these events, of an instant whose users have moved; returns their number."""
    state = states[0]
    views = _try_events(state, 0, now, event, event_end, movement, movement_end)
    for row in range(event_end - 1, event - 1, -1):
        _turn(state, row, -1)
    return views


@kernel
def enact_events(states: Items, first: int, end: int, now: float) -> tuple[bool, NDArray[np.int32]]:
    """Enact events of an instant without decisions, user by user: first topics that it begins to want, then those it ceases to want.

    Returns whether that was possible (the events are few and plain), and topic, broker and ±1 for each topic that a broker begins
    or ceases to want.
    """
    state, turned, many = states[0], np.empty((end - first, 3), np.int32), 0
    if not _is_plain(state, first, end):
        return False, turned[:0]
    users, topics = small_integers(state.event_user, end), small_integers(state.event_topic, end)
    actions, done = tiny_integers(state.event_action, end), np.zeros(end - first, np.bool_)
    for row in range(first, end):
        _hold(state, row, 1)
    for start in range(first, end):
        user = users[start]
        broker = small_integers(state.host, user + 1)[user]
        if not done[start - first]:
            touch(state, broker, now)
        while True:
            following = -1
            for row in range(start, end):
                if users[row] == user and not done[row - first]:
                    sooner = following < 0 or actions[row] > actions[following]
                    if sooner or (actions[row] == actions[following] and topics[row] < topics[following]):
                        following = row
            if following < 0:
                break
            done[following - first] = True
            if _count(state, following, 1):
                turned[many, 0], turned[many, 1], turned[many, 2] = topics[following], broker, actions[following]
                many += 1
    changed(balance_at(state.balance, 0), now, state.brokers, state.total, state.squares)
    return True, turned[:many]
