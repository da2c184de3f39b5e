"""What every policy must keep to, as checks that those who write one run in their own tests: `check_selection(MyPolicy)`, and
`check_reconfiguration(MyPolicy)`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from sim import plugins
from sim.errors import InputError, ScenarioError
from sim.overlay.chord import chord_routes
from sim.policies.reconfiguration.cost import Objective
from sim.policies.reconfiguration.problem import Problem, Reconfiguration, ReconfigurationPolicy
from sim.policies.reconfiguration.process import ProcessParameters
from sim.policies.views import BrokerStates, Exchange, Selection, SelectionPolicy, SelectionSetting, SelectionView

REACTIONS = frozenset({"subscription", "movement"})
_USERS, _TOPICS = 60, 30


class NotConforming(AssertionError):
    """A policy breaks its interface; the message has a line for each breach."""


def check_selection(
    policy: Callable[..., SelectionPolicy], parameters: Mapping[str, Any] | None = None, *, seed: int = 1
) -> None:
    """Check a selection policy (a class) against `SelectionPolicy` on random networks with and without places.

    `parameters` are those that its `Parameters` need; `seed` draws other networks. Raises NotConforming where the policy does not
    validate its parameters, decides for a broker that does not exist, changes what it sees, uses global random state, or decides
    otherwise when asked the same again, or in another order.
    """
    _tell(policy, "SelectionPolicy", _breaches(policy, dict(parameters or {}), seed))


def check_reconfiguration(
    policy: Callable[..., ReconfigurationPolicy], parameters: Mapping[str, Any] | None = None, *, seed: int = 1
) -> None:
    """Check a reconfiguration policy (a class) against `ReconfigurationPolicy` on random problems, by hops and by round-trip times.

    `parameters` are those that its `Parameters` need; `seed` draws other problems. Raises NotConforming where the policy does not
    validate its parameters, puts brokers on nodes that are no permutation, tells swaps that do not lead there at the costs told,
    changes what it sees, uses global random state, or decides otherwise when asked the same again, or in another order.
    """
    _tell(policy, "ReconfigurationPolicy", _reconfiguration_breaches(policy, dict(parameters or {}), seed))


def _tell(policy: Any, interface: str, found: Iterator[str]) -> None:
    if breaches := list(found):
        name = getattr(policy, "__name__", str(policy))
        raise NotConforming("\n".join([f"{name} does not keep to {interface}:", *(f"- {b}" for b in breaches)]))


def _parameter_breaches(policy: Any, base: type[plugins.Parameters], parameters: dict[str, Any]) -> Iterator[str]:
    model = getattr(policy, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, base)):
        yield f"it has no nested class Parameters({base.__module__}.{base.__name__})"
        return
    try:
        model(**{**parameters, "no_such_parameter": 1})
        yield "its Parameters take keys that they do not know (extra must stay forbidden)"
    except ValidationError:
        pass


def _breaches(policy: Any, parameters: dict[str, Any], seed: int) -> Iterator[str]:
    yield from (mistakes := list(_parameter_breaches(policy, plugins.Parameters, parameters)))
    if mistakes:
        return
    accepted = 0
    for name, setting in _settings(seed).items():
        try:
            makers = [policy(policy.Parameters(**parameters), setting) for _ in range(2)]
        except ScenarioError:
            continue  # it says that it needs something which this network has not
        accepted += 1
        for breach in _breaches_in(makers, setting, seed):
            yield f"{name}: {breach}"
    if not accepted:
        yield "it refuses every network, with places and without"


def _breaches_in(policies: list[SelectionPolicy], setting: SelectionSetting, seed: int) -> Iterator[str]:
    first, second = policies
    if not first.reacts_to <= REACTIONS:
        yield f"reacts_to is {sorted(first.reacts_to)}, allowed are {sorted(REACTIONS)}"
    if first.exchange is not None:
        yield from _exchange_breaches(first.exchange, setting)
    views = _views(setting, seed)
    state = _global_random_state()
    decided: list[int] = []
    for view in views:
        try:
            selection = first.select(view)
        except Exception as error:
            yield f"select raised {error!r} for {_describe(view)}"
            return
        broker = selection.broker if isinstance(selection, Selection) else None
        if not isinstance(broker, int) or isinstance(broker, bool):
            yield f"select returned {selection!r}, expected Selection(an int), for {_describe(view)}"
            return
        if not 0 <= broker < setting.brokers:
            yield f"select decided for broker {broker} of {setting.brokers}, for {_describe(view)}"
            return
        decided.append(broker)
    if [first.select(view).broker for view in views] != decided:
        yield "select decides otherwise when it is asked the same again: it must be a pure function of the view"
    elif [second.select(view).broker for view in reversed(views)] != decided[::-1]:
        yield "select decides otherwise when it is asked in another order: it must be a pure function of the view"
    if _global_random_state() != state:
        yield "select draws from the global random state; draw by identity: sim.randomness.uniform(setting.key, view.user)"


def _exchange_breaches(exchange: Exchange, setting: SelectionSetting) -> Iterator[str]:
    if not 0 < exchange.period < float("inf"):
        yield f"exchange.period is {exchange.period} s, expected a finite time above 0"
    if exchange.cluster.shape != (setting.brokers,) or exchange.cluster.dtype.kind not in "iu":
        yield f"exchange.cluster is {exchange.cluster.dtype}{exchange.cluster.shape}, expected an integer for each broker"


def _describe(view: SelectionView) -> str:
    return f"user {view.user} at broker {view.current} that wants {len(view.topics)} topics"


def _global_random_state() -> tuple[object, ...]:
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  (to see that nobody uses it)
    return random.getstate(), np.asarray(keys).tobytes(), rest


def _reconfiguration_breaches(policy: Any, parameters: dict[str, Any], seed: int) -> Iterator[str]:
    yield from (mistakes := list(_parameter_breaches(policy, ProcessParameters, parameters)))
    if mistakes:
        return
    first, second = (policy(policy.Parameters(**parameters)) for _ in range(2))
    state = _global_random_state()
    decided: dict[str, tuple[Problem, list[int]]] = {}
    for name, problem in _problems(seed).items():
        try:
            decision = first.reconfigure(problem)
        except InputError:
            continue  # it says that this problem is too much for it
        except Exception as error:
            yield f"{name}: reconfigure raised {error!r}"
            continue
        if breach := _decision_breach(problem, decision):
            yield f"{name}: {breach}"
        else:
            decided[name] = problem, decision.node_of.tolist()
    if not decided:
        yield "it decides no problem, by hops or by round-trip times, in a way that can be used"
    for policy, names in ((first, list(decided)), (second, list(decided)[::-1])):
        for name in names:
            problem, node_of = decided[name]
            if policy.reconfigure(problem).node_of.tolist() != node_of:
                yield f"{name}: reconfigure decides otherwise when asked again: it must be a pure function of the problem"
    if _global_random_state() != state:
        yield "reconfigure draws from the global random state; draw by numpy.random.default_rng(problem.key)"


def _decision_breach(problem: Problem, decision: object) -> str | None:
    n = len(problem.node_of)
    if not isinstance(decision, Reconfiguration):
        return f"reconfigure returned {decision!r}, expected a Reconfiguration"
    node_of = np.asarray(decision.node_of)
    if node_of.dtype.kind not in "iu" or not np.array_equal(np.sort(node_of), np.arange(n)):
        return f"reconfigure decided for nodes {node_of.tolist()}, expected each of 0 to {n - 1} once"
    objective = Objective(problem)
    for swap in decision.swaps:
        if not (0 <= swap.broker < n and 0 <= swap.partner < n):
            return f"{swap} names a broker that does not exist (there are {n})"
        objective.swap(swap.broker, swap.partner)
        if not math.isclose(swap.cost, objective.cost, rel_tol=1e-9):
            return f"the cost after {swap} is {objective.cost}"
    if decision.swaps and not np.array_equal(objective.node_of, node_of):
        return f"its swaps lead to nodes {objective.node_of.tolist()}, but it decided for {node_of.tolist()}"
    return None


def _problems(seed: int) -> dict[str, Problem]:
    rng = np.random.default_rng(seed)

    def problem(n: int, topics: int, **more: Any) -> Problem:
        ids, hashes = np.sort(rng.choice(1 << 16, n, replace=False)), rng.integers(0, 1 << 16, topics)
        routes = chord_routes(ids, hashes, bits=16)
        given: dict[str, Any] = {
            "parent": routes.parent,
            "hops": routes.hops,
            "roots": routes.roots,
            "wanted": rng.random((topics, n)) < 0.3,
            "publications": rng.integers(0, 40, topics),
            "node_of": rng.permutation(n).astype(np.int32),
            "key": int(rng.integers(2**62)),
            **more,
        }
        for value in given.values():
            if isinstance(value, np.ndarray):
                _frozen(value)
        return Problem(**given)

    times = rng.uniform(0.01, 0.3, (9, 9))
    return {
        "delay in hops": problem(10, 8),
        "delay by round-trip times": problem(9, 7, round_trips=times + times.T, publications=rng.uniform(0, 9, 7)),
        "overhead alone": problem(8, 6, delay_weight=0.0, count_rendezvous=True, constants=None),
        "nothing published": problem(7, 5, publications=np.zeros(5, np.int64)),
        "no topics": problem(5, 0),
        "a single broker": problem(1, 3),
    }


def _settings(seed: int) -> dict[str, SelectionSetting]:
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(rng.choice(100, 12, replace=False), 10)
    nowhere = np.full(7, np.nan)

    def setting(latitude: NDArray[np.float64], longitude: NDArray[np.float64], cell: float | None) -> SelectionSetting:
        key, capacity = int(rng.integers(2**62)), _frozen(rng.choice([1.0, 2.0], len(latitude)))
        return SelectionSetting(_USERS, _frozen(latitude), _frozen(longitude), cell, key, capacity)

    return {
        "brokers that are cells": setting(40 + rows + 0.5, -80 + columns + 0.5, 1.0),
        "brokers with places": setting(rng.uniform(-60, 60, 9), rng.uniform(-180, 180, 9), None),
        "brokers without places": setting(nowhere, nowhere, None),
        "a single broker": setting(np.array([48.5]), np.array([2.5]), None),
    }


def _views(setting: SelectionSetting, seed: int) -> list[SelectionView]:
    """Each user once as it joins and once at a broker; states are those before every third user moved."""
    rng = np.random.default_rng(seed)
    wants = rng.random((_USERS, _TOPICS)) < 0.15
    wants[0] = False  # somebody who wants nothing
    before = rng.integers(0, setting.brokers, _USERS)
    now = np.where(np.arange(_USERS) % 3 == 0, rng.integers(0, setting.brokers, _USERS), before)
    hosted = [wants[before == broker].sum(axis=0) for broker in range(setting.brokers)]
    states = BrokerStates(
        _frozen(np.stack(hosted, axis=1).astype(np.int32)),
        _frozen(np.array([np.count_nonzero(counts) for counts in hosted])),
        _frozen(np.array([counts.sum() for counts in hosted])),
        _frozen(np.bincount(before, minlength=setting.brokers)),
    )
    views = []
    for user in range(_USERS):
        topics = np.flatnonzero(wants[user]).astype(np.int32)
        near = int(rng.integers(setting.brokers))
        place = setting.latitude[near] + rng.normal(), setting.longitude[near] + rng.normal()
        for current in (-1, int(now[user])):
            others = (now == current) & (np.arange(_USERS) != user)
            counts = wants[others].sum(axis=0)
            views.append(
                SelectionView(
                    time=float(user),
                    user=user,
                    current=current,
                    topics=_frozen(topics),
                    latitude=float(place[0]),
                    longitude=float(place[1]),
                    exchanged=states,
                    own_wanted=_frozen(counts[topics].astype(np.int32)),
                    own_topics=int(np.count_nonzero(counts)),
                    own_load=int(counts.sum()),
                    own_users=int(others.sum()),
                    total_load=int(wants.sum()),
                )
            )
    return views


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
