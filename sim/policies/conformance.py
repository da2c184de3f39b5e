"""What every policy must keep to, as checks that those who write one run in their own tests.

`check_selection(MyPolicy)`, `check_reconfiguration(MyPolicy)` and `check_offloading(MyPolicy)`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from sim import plugins
from sim.base.errors import InputError, ScenarioError
from sim.overlay.chord import chord_routes
from sim.policies.offloading import problem as offloading
from sim.policies.offloading.problem import Decision, OffloadingPolicy
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.promises import constant_breaches, selection_breach
from sim.policies.reconfiguration.cost import Objective
from sim.policies.reconfiguration.problem import Problem, Reconfiguration, ReconfigurationPolicy
from sim.policies.reconfiguration.process import ProcessParameters
from sim.policies.views import BrokerStates, SelectionPolicy, SelectionSetting, SelectionView

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


def check_offloading(
    policy: Callable[..., OffloadingPolicy], parameters: Mapping[str, Any] | None = None, *, seed: int = 1
) -> None:
    """Check an offloading policy (a class) against `OffloadingPolicy` on random problems, with and without a decision before.

    `parameters` are those that its `Parameters` need; `seed` draws other problems. Raises NotConforming where the policy does not
    validate its parameters, has no objective, keeps topics that do not exist, twice or beyond the capacity, changes what it sees, uses
    global random state, or decides otherwise when asked the same again, or in another order.
    """
    _tell(policy, "OffloadingPolicy", _offloading_breaches(policy, dict(parameters or {}), seed))


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
    yield from constant_breaches(first, setting.brokers)
    views = _views(setting, seed)
    state = _global_random_state()
    decided: list[int] = []
    for view in views:
        try:
            selection = first.select(view)
        except Exception as error:
            yield f"select raised {error!r} for {_describe(view)}"
            return
        if breach := selection_breach(selection, setting.brokers):
            yield f"{breach}, for {_describe(view)}"
            return
        decided.append(selection.broker)
    if [first.select(view).broker for view in views] != decided:
        yield "select decides otherwise when it is asked the same again: it must be a pure function of the view"
    elif [second.select(view).broker for view in reversed(views)] != decided[::-1]:
        yield "select decides otherwise when it is asked in another order: it must be a pure function of the view"
    if _global_random_state() != state:
        yield "select draws from the global random state; draw by identity: sim.base.randomness.uniform(setting.key, view.user)"


def _describe(view: SelectionView) -> str:
    return f"user {view.user} at broker {view.current} that wants {len(view.topics)} topics"


def _global_random_state() -> tuple[object, ...]:
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  (to see that nobody uses it)
    return random.getstate(), np.asarray(keys).tobytes(), rest


def _reconfiguration_breaches(policy: Any, parameters: dict[str, Any], seed: int) -> Iterator[str]:
    yield from (mistakes := list(_parameter_breaches(policy, ProcessParameters, parameters)))
    if mistakes:
        return
    policies = [policy(policy.Parameters(**parameters)) for _ in range(2)]
    problems = {name: (problem,) for name, problem in _problems(seed).items()}
    yield from _solving_breaches(policies, "reconfigure", problems, _decision_breach, lambda decision: decision.node_of)


def _offloading_breaches(policy: Any, parameters: dict[str, Any], seed: int) -> Iterator[str]:
    yield from (mistakes := list(_parameter_breaches(policy, OffloadingParameters, parameters)))
    if mistakes:
        return
    policies = [policy(policy.Parameters(**parameters)) for _ in range(2)]
    if (objective := getattr(policies[0], "objective", None)) not in get_args(offloading.Objective):
        yield f"its objective is {objective!r}, allowed are {', '.join(get_args(offloading.Objective))}"
    yield from _solving_breaches(
        policies, "decide", _short_of_capacity(seed), _keeping_breach, lambda kept: kept.topics
    )


def _solving_breaches(
    policies: list[Any],
    method: str,
    problems: dict[str, tuple[Any, ...]],
    breach_of: Callable[[Any, Any], str | None],
    told: Callable[[Any], NDArray[Any]],
) -> Iterator[str]:
    """Breaches of a policy, made twice, whose method decides problems, each with what else it gets; `told` is what it decides."""
    first, second = policies
    state = _global_random_state()
    decided: dict[str, list[int]] = {}
    for name, arguments in problems.items():
        try:
            decision = getattr(first, method)(*arguments)
        except InputError:
            continue  # it says that this problem is too much for it
        except Exception as error:
            yield f"{name}: {method} raised {error!r}"
            continue
        if breach := breach_of(arguments[0], decision):
            yield f"{name}: {breach}"
        else:
            decided[name] = told(decision).tolist()
    if not decided:
        yield "it decides no problem in a way that can be used"
    for policy, names in ((first, list(decided)), (second, list(decided)[::-1])):
        for name in names:
            if told(getattr(policy, method)(*problems[name])).tolist() != decided[name]:
                yield f"{name}: {method} decides otherwise when asked again: it must be a pure function of the problem"
    if _global_random_state() != state:
        yield f"{method} draws from the global random state; draw by numpy.random.default_rng(problem.key)"


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


def _keeping_breach(problem: offloading.Problem, decision: object) -> str | None:
    if not isinstance(decision, Decision):
        return f"decide returned {decision!r}, expected a Decision"
    topics = np.asarray(decision.topics)
    if topics.dtype.kind not in "iu" or len(set(topics.tolist()) & set(range(problem.topics))) != len(topics):
        return f"decide kept topics {topics.tolist()}, expected some of the {problem.topics}, each once"
    cost = float(problem.cost[topics].sum())
    if cost > problem.capacity * (1 + 1e-9):
        return f"decide kept topics that cost {cost:g}, more than the capacity of {problem.capacity:g}"
    return None


def _short_of_capacity(seed: int) -> dict[str, tuple[Any, ...]]:
    rng = np.random.default_rng(seed)

    def problem(n: int, topics: int, share: float, rates: Any = None, **more: Any) -> offloading.Problem:
        wants = rng.random((n, topics)) < 0.3
        indptr = np.append(0, wants.sum(axis=1).cumsum())
        rates = rng.integers(0, 20, topics) if rates is None else rates
        cost = more.get("cost", rates * wants.sum(axis=0))
        given: dict[str, Any] = {
            "tau": 15,
            "key": int(rng.integers(2**62)),
            "cost": _frozen(cost.astype(np.float64)),
            **more,
        }
        indices = np.nonzero(wants)[1].astype(np.int32)
        return offloading.Problem.of(
            _frozen(indptr), _frozen(indices), _frozen(rates), share * float(cost.sum()), **given
        )

    once = problem(20, 12, 0.3)
    return {
        "one threshold": (once, None),
        "a threshold for each": (problem(15, 10, 0.2, tau=rng.integers(0, 40, 15)), None),
        "rates that are no whole numbers": (problem(15, 10, 0.4, rng.lognormal(1, 1, 10)), None),
        "costs of any kind": (problem(12, 9, 0.5, cost=rng.uniform(0, 5, 9)), None),
        "no capacity": (problem(6, 5, 0.0), None),
        "room for all": (problem(6, 5, 1.0), None),
        "no subscribers": (problem(0, 4, 0.5), None),
        "no topics": (problem(3, 0, 0.5), None),
        "less capacity than before": (once.with_capacity(once.capacity / 2), Decision(np.arange(6, dtype=np.int32))),
        "all is new": (problem(20, 12, 0.3), Decision(np.arange(12, dtype=np.int32)[::-1])),
    }


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
