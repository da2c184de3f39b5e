"""Compiled changes of subscriptions. They take the records of `sim.brokers.users.state`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import integers, reals, small_integers, tiny_integers
from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.base.sparse_kernels import change_at, sparse_at
from sim.brokers.statistics.balance import balance_at, changed


@kernel
def wants(state: Item, user: int) -> NDArray[np.int32]:
    """The topics that a user wants now, ascending, by reference."""
    if state.held_by:
        room = integers(state.room + 8 * user, 2)
        if room[1] > room[0]:
            return small_integers(state.held + 4 * room[0], small_integers(state.held_many + 4 * user, 1)[0])
    indptr = integers(state.indptr + 8 * user, 2)
    return small_integers(state.indices + 4 * indptr[0], indptr[1] - indptr[0])


@kernel
def count(state: Item, topic: int, broker: int, change: int) -> int:
    """Count one more (+1) or fewer (-1) user of the broker for the topic; returns the previous number."""
    brokers, load = state.brokers, integers(state.load, state.brokers)
    before = change_at(sparse_at(state.wanted, 0), topic, broker, change)
    after = before + change
    integers(state.users_wanting, topic + 1)[topic] += change
    state.total += change
    state.squares += change * (2 * load[broker]) + 1
    load[broker] += change
    if before == 0 or after == 0:
        integers(state.topics, brokers)[broker] += change
        integers(state.brokers_wanting, topic + 1)[topic] += change
    place = topic * brokers + broker
    if state.splits and tiny_integers(state.kept, place + 1)[place]:
        integers(state.users_served, topic + 1)[topic] += change
        if before == 0 or after == 0:
            integers(state.brokers_served, topic + 1)[topic] += change
    return before


@kernel
def count_all(states: Items, topics: NDArray[np.int32], broker: int, change: int) -> NDArray[np.int32]:
    """Count one more (+1) or fewer (-1) user of the broker for each topic; returns those that the broker begins or ceases to want."""
    state, turned, many = states[0], np.empty(topics.size, np.int32), 0
    version = integers(state.version, state.topics_many)
    for topic in topics:
        version[topic] += 1
        if count(state, topic, broker, change) == (0 if change > 0 else 1):
            turned[many] = topic
            many += 1
    return turned[:many]


@kernel
def join_all(
    states: Items, first: int, brokers: NDArray[np.int32], interests: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Let users `first`, `first + 1`, … join these brokers, with `interests` in all; returns what brokers begin to want.

    These are topics and, for each, its broker, in the order in which users join.
    """
    state, turned, by, many = states[0], np.empty(interests, np.int32), np.empty(interests, np.int32), 0
    host, users = small_integers(state.host, state.users_many), integers(state.users, state.brokers)
    version = integers(state.version, state.topics_many)
    for i in range(brokers.size):
        broker = brokers[i]
        for topic in wants(state, first + i):
            version[topic] += 1
            if count(state, topic, broker, 1) == 0:
                turned[many], by[many] = topic, broker
                many += 1
        users[broker] += 1
        host[first + i] = broker
    return turned[:many], by[:many]


@kernel
def touch(state: Item, broker: int, now: float) -> None:
    """Integrate a broker's load and users up to now (from the end of the warm-up on)."""
    since = reals(state.since, state.brokers)
    start = max(since[broker], state.warm_up)
    if now > start:
        load, users = integers(state.load, state.brokers), integers(state.users, state.brokers)
        reals(state.load_area, state.brokers)[broker] += load[broker] * (now - start)
        reals(state.users_area, state.brokers)[broker] += users[broker] * (now - start)
    since[broker] = now


@kernel
def touch_broker(states: Items, broker: int, now: float) -> None:
    """`touch`, from outside kernels."""
    touch(states[0], broker, now)


@kernel
def touch_all(states: Items, now: float) -> None:
    """`touch` all brokers."""
    for broker in range(states[0].brokers):
        touch(states[0], broker, now)


@kernel
def load_changed(states: Items, now: float) -> None:
    """Record that the brokers' load has changed."""
    state = states[0]
    changed(balance_at(state.balance, 0), now, state.brokers, state.total, state.squares)


@kernel
def rooms(states: Items, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most topics that each user ever wants, 0 for users who never change; `sizes` (users), the present numbers, are updated."""
    state, most = states[0], np.zeros(sizes.size, np.int64)
    users, actions = small_integers(state.event_user, state.events), tiny_integers(state.event_action, state.events)
    for row in range(state.events):
        user = users[row]
        most[user] = max(most[user], sizes[user], sizes[user] + actions[row])
        sizes[user] += actions[row]
    return most


@kernel
def hold_initial(states: Items) -> None:
    """Copy the initial interests of users whose interests change."""
    state = states[0]
    room, indptr = integers(state.room, state.users_many + 1), integers(state.indptr, state.users_many + 1)
    held, indices = small_integers(state.held, room[-1]), small_integers(state.indices, indptr[-1])
    many = small_integers(state.held_many, state.users_many)
    for user in range(state.users_many):
        if room[user + 1] > room[user]:
            many[user] = indptr[user + 1] - indptr[user]
            for i in range(many[user]):
                held[room[user] + i] = indices[indptr[user] + i]
