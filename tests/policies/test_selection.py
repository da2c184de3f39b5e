"""Selection policies: similarity against a literal algorithm 1, clusters, places, and the protection of views."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import selection as oracle
from oracles.draws import uniform
from scipy import stats

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.randomness import Streams
from sim.overlay.latency import great_circle_km
from sim.policies.selection.fixed import LocationSelection, StaticSelection
from sim.policies.selection.kernels import JACCARD, MEAN_USER, OVERLAP, best_broker
from sim.policies.selection.places import PlaceIndex, clusters
from sim.policies.selection.similarity import SimilaritySelection, sizes_of
from sim.policies.views import BrokerStates, Selection, SelectionSetting, SelectionView, SelectionViews
from sim.scenario.reader import load_scenario
from sim.simulation import simulate

FORMULA = {"overlap": OVERLAP, "jaccard": JACCARD, "mean-user": MEAN_USER}


def frozen(values: Any, dtype: type) -> NDArray[Any]:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def setting(
    brokers: int = 0,
    places: list[tuple[float, float]] | None = None,
    cell: float | None = None,
    key: int = 1,
    users: int = 10,
) -> SelectionSetting:
    latitude, longitude = np.array(places).T if places else np.full((2, brokers), np.nan)
    return SelectionSetting(users, latitude, longitude, cell, key, np.ones(len(latitude)))


class Case:
    """A random network in which some users have moved or changed their minds since the last exchange of states.

    Few topics and few users per broker, so that many brokers are equally good.
    """

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng(number)
        self.topics = int(rng.integers(1, 9))
        self.brokers = int(rng.integers(1, 9))
        users = int(rng.integers(1, 25))
        likes = rng.uniform(0.1, 0.9)

        def draw_wants() -> set[int]:
            return set(np.flatnonzero(rng.random(self.topics) < likes).tolist())

        hosts, wants = rng.integers(0, self.brokers, users).tolist(), [draw_wants() for _ in range(users)]
        self.then = self._hosted(hosts, wants)
        for user in range(users):
            if rng.random() < 0.3:
                hosts[user] = int(rng.integers(self.brokers))
            if rng.random() < 0.3:
                wants[user] = draw_wants()
        self.user = int(rng.integers(users))
        joins = rng.random() < 0.25
        if joins:  # nobody has seen this one yet
            hosts[self.user] = -1
            self.then[self._host_then()].pop(self.user)
        self.now = self._hosted(hosts, wants)
        self.current = hosts[self.user]
        self.wants = draw_wants() if rng.random() < 0.7 else wants[self.user]
        count = int(rng.integers(1, self.brokers + 1))
        self.candidates = np.sort(rng.choice(self.brokers, count, replace=False)).astype(np.int32)

    def _hosted(self, hosts: list[int], wants: list[set[int]]) -> dict[int, dict[int, set[int]]]:
        return {
            broker: {user: wants[user] for user, host in enumerate(hosts) if host == broker}
            for broker in range(self.brokers)
        }

    def _host_then(self) -> int:
        return next(broker for broker, hosted in self.then.items() if self.user in hosted)

    def view(self) -> SelectionView:
        def wanted(members: list[set[int]]) -> list[int]:
            return [sum(topic in member for member in members) for topic in range(self.topics)]

        told = [list(self.then[broker].values()) for broker in range(self.brokers)]
        own = [topics for user, topics in self.now.get(self.current, {}).items() if user != self.user]
        wants = sorted(self.wants)
        return SelectionView(
            time=0.0,
            user=self.user,
            current=self.current,
            topics=frozen(wants, np.int32),
            latitude=math.nan,
            longitude=math.nan,
            exchanged=BrokerStates(
                frozen(np.array([wanted(members) for members in told]).T, np.int32),
                frozen([np.count_nonzero(wanted(members)) for members in told], np.int64),
                frozen([sum(wanted(members)) for members in told], np.int64),
                frozen([len(members) for members in told], np.int64),
            ),
            own_wanted=frozen([wanted(own)[topic] for topic in wants], np.int32),
            own_topics=np.count_nonzero(wanted(own)),
            own_load=sum(wanted(own)),
            own_users=len(own),
            total_load=sum(len(topics) for hosted in self.now.values() for topics in hosted.values()),
        )


WEIGHTS = [0.0, 1.0, 0.5, 10.0]


@pytest.fixture(scope="module")
def cases() -> list[tuple[Case, SelectionView]]:
    """Cases with the views that the network would give."""
    return [(case, case.view()) for case in map(Case, range(600))]


@pytest.mark.parametrize("similarity", FORMULA)
@pytest.mark.parametrize("load_weight", WEIGHTS)
def test_kernel_equals_algorithm_1(
    cases: list[tuple[Case, SelectionView]], similarity: str, load_weight: float
) -> None:
    outcomes: Counter[str] = Counter()
    for number, (case, view) in enumerate(cases):
        if not case.wants and case.current >= 0:
            continue  # not the kernel's to decide
        states, hysteresis = view.exchanged, (0.0, 0.25)[number % 2]
        decided = best_broker(
            case.candidates,
            view.topics,
            states.wanted,
            sizes_of(states),
            (case.current, view.own_topics, view.own_load, view.own_users),
            view.own_wanted,
            max(view.total_load, 1),
            (FORMULA[similarity], load_weight, hysteresis),
        )
        expected = oracle.select(
            case.user,
            case.wants,
            case.current,
            case.candidates.tolist(),
            case.then,
            case.now,
            Fraction(load_weight),
            similarity=similarity,
            hysteresis=Fraction(hysteresis),
        )
        assert decided == expected, f"case {number}"
        outcomes["joins" if case.current < 0 else "stays" if decided == case.current else "moves"] += 1
    assert min(outcomes[outcome] for outcome in ("joins", "stays", "moves")) > 50


@pytest.mark.parametrize("load", ["share", "relative"])
@pytest.mark.parametrize("similarity", FORMULA)
def test_policy_equals_algorithm_1_in_the_cluster_of_the_user(
    cases: list[tuple[Case, SelectionView]], similarity: str, load: str
) -> None:
    for number, (case, view) in enumerate(cases[:300]):
        size = 1 + number % 8
        load_weight, hysteresis = WEIGHTS[number % 3], (0.0, 0.125)[number % 2]
        parameters = SimilaritySelection.Parameters(
            load_weight=load_weight, load=load, similarity=similarity, cluster_size=size, hysteresis=hysteresis
        )
        policy = SimilaritySelection(parameters, setting(case.brokers, key=number))
        blocks = [range(first, min(first + size, case.brokers)) for first in range(0, case.brokers, size)]
        mine = blocks[int(uniform(number, case.user) * len(blocks))]
        assert policy.select(view).broker == oracle.select(
            case.user,
            case.wants,
            case.current,
            mine,
            case.then,
            case.now,
            Fraction(load_weight),
            load,
            similarity,
            Fraction(hysteresis),
        ), f"case {number}"


def test_equal_utilities_tie_whatever_their_denominators() -> None:
    """2/3 - 5/10 and 1/6 - 0/10 are equal (not so as floats): the lower load wins."""
    none = np.zeros(2, np.int32)
    wanted = np.array([[1, 1], [1, 0]], np.int32)
    sizes = np.array([[3, 5], [5, 0], [1, 1]])  # topics, load, users
    for order in ([0, 1], [1, 0]):
        candidates = np.array(order, np.int32)
        wants, rule = np.array([0, 1], np.int32), (JACCARD, 1.0, 0.0)
        assert best_broker(candidates, wants, wanted, sizes, (-1, 0, 0, 0), none, 10, rule) == 1


def test_all_equal_goes_to_the_current_broker_else_to_the_lowest() -> None:
    none, wants = np.zeros(1, np.int32), np.array([0], np.int32)
    reported = np.zeros((1, 4), np.int32), np.zeros((3, 4), np.int64)
    for formula in FORMULA.values():
        for candidates in (np.array([1, 2, 3], np.int32), np.array([3, 2, 1], np.int32)):
            for current, expected in ((2, 2), (0, 1), (-1, 1)):
                own, rule = (current, 0, 0, 0), (formula, 1.0, 0.0)
                assert best_broker(candidates, wants, *reported, own, none, 1, rule) == expected


def test_a_user_that_wants_nothing_stays(cases: list[tuple[Case, SelectionView]]) -> None:
    idle = [(case, view) for case, view in cases if not case.wants and case.current >= 0]
    assert len(idle) > 10
    for case, view in idle:
        policy = SimilaritySelection(SimilaritySelection.Parameters(load_weight=10), setting(case.brokers))
        assert policy.select(view).broker == case.current


# -- clusters


def grid(rows: int, columns: int, south: int = -10, west: int = -20, cell: float = 1.0) -> list[tuple[float, float]]:
    return [((south + r + 0.5) * cell, (west + c + 0.5) * cell) for r in range(rows) for c in range(columns)]


def same_partition(labels: list[Any], cluster: NDArray[np.int32]) -> bool:
    pairs = set(zip(labels, cluster.tolist(), strict=True))
    return len(pairs) == len(set(labels)) == len(set(cluster.tolist()))


@pytest.mark.parametrize(
    ("size", "height", "width"), [(1, 1, 1), (4, 2, 2), (7, 1, 7), (10, 2, 5), (20, 4, 5), (50, 5, 10)]
)
@pytest.mark.parametrize("cell", [1.0, 0.05])
def test_clusters_of_cells_are_blocks_of_the_grid(size: int, height: int, width: int, cell: float) -> None:
    places = grid(20, 40, cell=cell)
    blocks = [((r - 10) // height, (c - 20) // width) for r in range(20) for c in range(40)]
    cluster = clusters(setting(places=places, cell=cell), size)
    assert same_partition(blocks, cluster)
    assert np.bincount(cluster).max() == size
    # where only some cells have brokers, blocks are still blocks of the grid
    some = np.flatnonzero(np.random.default_rng(size).random(len(places)) < 0.2).tolist()
    cluster = clusters(setting(places=[places[i] for i in some], cell=cell), size)
    assert same_partition([blocks[i] for i in some], cluster)


def test_clusters_of_places_are_balanced_groups_of_neighbours() -> None:
    rng = np.random.default_rng(2)
    for brokers in (1, 2, 7, 50, 133):
        places = list(
            zip(rng.uniform(-60, 60, brokers).tolist(), rng.uniform(-180, 180, brokers).tolist(), strict=True)
        )
        for size in (1, 3, 10, 200):
            sizes = np.bincount(clusters(setting(places=places), size))
            assert sizes.max() <= size
            assert sizes.max() <= 2 * sizes.min()
    corners = [(lat + d, lon + d) for lat in (0, 40) for lon in (0, 40) for d in (0, 1, 2)]
    assert same_partition([i // 3 for i in range(12)], clusters(setting(places=corners), 3))
    mixed = rng.permutation(12).tolist()  # whatever brokers' numbers are
    assert same_partition([i // 3 for i in mixed], clusters(setting(places=[corners[i] for i in mixed]), 3))


def test_places_that_are_all_the_same_still_make_small_clusters() -> None:
    assert clusters(setting(places=[(1.0, 1.0)] * 5), 2).tolist() == [0, 0, 1, 2, 2]


def test_clusters_without_places_are_blocks_of_ids() -> None:
    assert clusters(setting(7), 3).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert clusters(setting(3), 10).tolist() == [0, 0, 0]


def test_clusters_are_numbered_by_their_lowest_broker() -> None:
    places = [(5.5, 5.5), (0.5, 0.5), (5.5, 4.5), (0.5, 1.5), (9.5, 9.5)]
    assert clusters(setting(places=places, cell=1.0), 4).tolist() == [0, 1, 0, 1, 2]


def view(user: int, current: int, brokers: int, place: tuple[float, float] = (math.nan, math.nan)) -> SelectionView:
    """A user that wants topic 0 in a network where nobody else wants anything."""
    zero = frozen(np.zeros(brokers), np.int64)
    return SelectionView(
        time=0.0,
        user=user,
        current=current,
        topics=frozen([0], np.int32),
        latitude=place[0],
        longitude=place[1],
        exchanged=BrokerStates(frozen(np.zeros((1, brokers)), np.int32), zero, zero, zero),
        own_wanted=frozen([0], np.int32),
        own_topics=0,
        own_load=0,
        own_users=0,
        total_load=0,
    )


def test_a_users_random_cluster_is_uniform_and_for_good() -> None:
    brokers, size = 40, 10
    policy = SimilaritySelection(SimilaritySelection.Parameters(cluster_size=size), setting(brokers, key=5))
    joined = [policy.select(view(user, -1, brokers)).broker for user in range(4000)]
    assert stats.chisquare(np.bincount(np.array(joined) // size, minlength=4)).pvalue > 0.001
    for user in range(0, 4000, 97):
        for elsewhere in range(0, brokers, size):  # even if it were hosted in another cluster
            assert policy.select(view(user, elsewhere, brokers)).broker // size == joined[user] // size
    other = SimilaritySelection(SimilaritySelection.Parameters(cluster_size=size), setting(brokers, key=6))
    assert [other.select(view(user, -1, brokers)).broker for user in range(4000)] != joined


def test_a_users_cluster_is_that_of_its_place() -> None:
    places = grid(4, 4, 0, 0)
    policy = SimilaritySelection(SimilaritySelection.Parameters(cluster_size=4), setting(places=places, cell=1.0))
    cluster = clusters(setting(places=places, cell=1.0), 4)
    assert policy.exchange is not None
    assert policy.exchange.cluster.tolist() == cluster.tolist()
    for broker, place in enumerate(places):
        for current in (-1, 0, 5, 10):
            assert cluster[policy.select(view(1, current, 16, place)).broker] == cluster[broker]


def test_a_user_may_stay_in_the_cluster_that_it_joined() -> None:
    places = grid(4, 4, 0, 0)
    at = setting(places=places, cell=1.0)
    policy = SimilaritySelection(SimilaritySelection.Parameters(cluster_size=4, cluster="joined"), at)
    cluster, far = clusters(at, 4), places[15]
    assert cluster[policy.select(view(1, -1, 16, far)).broker] == cluster[15]
    asked = [view(1, current, 16, far) for current in (0, 5, 10, -1)]
    chosen = [policy.select(one).broker for one in asked]
    assert cluster[chosen].tolist() == cluster[[0, 5, 10, 15]].tolist()
    assert len({*cluster[[0, 5, 10, 15]].tolist()}) > 1
    assert policy.select_all(together(asked)).tolist() == chosen


def together(asked: list[SelectionView]) -> SelectionViews:
    """Views of users that want one topic, which nobody else wants, at once."""
    each = ("time", "user", "current", "latitude", "longitude")
    many = {name: np.array([getattr(one, name) for one in asked]) for name in each}
    many |= {name: np.zeros(len(asked), np.int64) for name in ("own_topics", "own_load", "own_users", "total_load")}
    flat = {name: np.zeros(len(asked), np.int32) for name in ("topics", "own_wanted")}
    return SelectionViews(indptr=np.arange(len(asked) + 1), exchanged=asked[0].exchanged, **many, **flat)


def test_users_without_a_place_have_a_random_cluster_also_when_asked_at_once() -> None:
    places, nowhere = grid(4, 4, 0, 0), (math.nan, math.nan)
    at = setting(places=places, cell=1.0)
    policy = SimilaritySelection(SimilaritySelection.Parameters(cluster_size=4), at)
    asked = [view(user, -1, 16, nowhere if user % 4 else places[user]) for user in range(16)]
    chosen = [policy.select(one).broker for one in asked]
    assert len({*clusters(at, 4)[chosen[1::4]].tolist()}) > 1
    assert policy.select_all(together(asked)).tolist() == chosen


# -- what a policy sees


def test_views_are_read_only_by_type(cases: list[tuple[Case, SelectionView]]) -> None:
    seen = cases[0][1]
    for thing in (seen, seen.exchanged, Selection(1), setting(3)):
        for field in dataclasses.fields(thing):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(thing, field.name, 0)


def test_the_network_hands_out_views_whose_arrays_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array of every view and setting that a real run gives to a policy refuses to be written."""
    given: list[Any] = []

    class Spy(SimilaritySelection):
        def __init__(self, parameters: SimilaritySelection.Parameters, setting: SelectionSetting) -> None:
            super().__init__(parameters, setting)
            given.append(setting)

        def select(self, view: SelectionView) -> Selection:
            given.extend((view, view.exchanged))
            return super().select(view)

        def select_all(self, views: SelectionViews) -> NDArray[np.int32]:
            given.extend((views, *views, views.exchanged))
            return super().select_all(views)

    load = plugins.load
    monkeypatch.setattr(plugins, "load", lambda group, kind: Spy if group == "selection" else load(group, kind))
    users, horizon = 30, 3600.0
    PoissonWorkload = plugins.load("workload", "poisson")
    parameters = PoissonWorkload.Parameters(
        users=users, topics=10, topics_per_user=2, change_rate=2.0, publication_rate=1.0, horizon=horizon
    )
    scenario = load_scenario({"network": {"brokers": 4}, "selection": {"kind": "similarity"}}).base
    simulate(scenario, PoissonWorkload(parameters).generate(Streams(1)), 0)
    views = [thing for thing in given if isinstance(thing, SelectionView)]
    assert len(views) > users
    assert {seen.current < 0 for seen in views} == {True, False}
    for thing in given:
        for value in (getattr(thing, field.name) for field in dataclasses.fields(thing)):
            if isinstance(value, np.ndarray) and value.size:
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0


# -- static and location


def test_static_is_uniform_over_brokers_and_for_good() -> None:
    brokers, users = 20, 20_000
    policy = StaticSelection(StaticSelection.Parameters(), setting(brokers, key=3, users=users))
    chosen = [policy.select(view(user, -1, brokers)).broker for user in range(users)]
    assert stats.chisquare(np.bincount(chosen, minlength=brokers)).pvalue > 0.001
    assert set(chosen) == set(range(brokers))
    for user in range(0, users, 501):
        assert policy.select(view(user, -1, brokers, (10.0, 20.0))).broker == chosen[user]
        assert all(policy.select(view(user, current, brokers)).broker == current for current in range(brokers))
    assert not policy.reacts_to


def test_static_in_order_gives_each_user_the_broker_of_its_number() -> None:
    policy = StaticSelection(StaticSelection.Parameters(assign="in-order"), setting(3, users=8))
    assert [policy.select(view(user, -1, 3)).broker for user in range(8)] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert policy.select(view(5, 0, 3)).broker == 0


def test_location_is_the_broker_of_the_cell_and_the_nearest_where_the_cell_has_none() -> None:
    #  cells by (row, column): broker 0 at (0, 0), 1 at (0, 2), 2 at (-1, -1)
    places = [(0.5, 0.5), (0.5, 2.5), (-0.5, -0.5)]
    policy = LocationSelection(LocationSelection.Parameters(), setting(places=places, cell=1.0))
    for place, broker in {
        (0.0, 0.0): 0,
        (0.999, 0.999): 0,
        (-0.001, -0.001): 2,  # cells end at their south-west edge, also below zero
        (0.9, 2.01): 1,
        (0.9, 1.1): 0,  # a cell without a broker
        (0.9, 1.9): 1,
        (-0.1, 0.9): 0,
    }.items():
        assert policy.select(view(0, -1, 3, place)).broker == broker, place
        assert policy.select(view(0, 1, 3, place)).broker == broker, place


def test_location_without_cells_is_the_nearest_broker_over_the_dateline_too() -> None:
    places = [(0.0, 170.0), (0.0, -175.0), (85.0, 0.0), (0.0, 0.0)]
    policy = LocationSelection(LocationSelection.Parameters(), setting(places=places))
    for place, broker in {
        (0.0, 179.0): 1,  # 6° away eastwards, 9° westwards
        (0.0, -180.0): 1,
        (0.0, 180.0): 1,
        (1.0, 177.0): 0,
        (88.0, 179.0): 2,  # over the pole
        (1.0, 2.0): 3,
    }.items():
        assert policy.select(view(0, 3, 4, place)).broker == broker, place


def test_location_of_a_user_whose_place_is_unknown_is_a_broker_for_good() -> None:
    policy = LocationSelection(LocationSelection.Parameters(), setting(places=grid(2, 5), key=8))
    chosen = [policy.select(view(user, -1, 10)).broker for user in range(2000)]
    assert stats.chisquare(np.bincount(chosen, minlength=10)).pvalue > 0.001
    assert policy.select(view(0, 7, 10)).broker == 7


def test_location_without_places_says_what_is_missing_and_allowed() -> None:
    with pytest.raises(ScenarioError, match=r'selection\.kind: "location" needs brokers with positions.*"static"'):
        LocationSelection(LocationSelection.Parameters(), setting(5))


@pytest.mark.parametrize("cell", [None, 1.0, 0.05])
def test_place_index_equals_brute_force(cell: float | None) -> None:
    rng = np.random.default_rng(6)
    side = cell or 1.0
    rows, columns = np.divmod(rng.choice(400, 120, replace=False), 20)
    places = list(zip(((rows - 10.0 + 0.5) * side).tolist(), ((columns - 10.0 + 0.5) * side).tolist(), strict=True))
    index = PlaceIndex(setting(places=places, cell=cell))

    def distance(place: tuple[float, float], other: tuple[float, float]) -> float:
        return float(great_circle_km(np.array([place[0]]), np.array([place[1]]), *other)[0])

    inside = 0
    for place in zip(
        (rng.uniform(-12, 12, 400) * side).tolist(), (rng.uniform(-12, 12, 400) * side).tolist(), strict=True
    ):
        chosen = index.broker(*place)
        own = [
            b
            for b, (lat, lon) in enumerate(places)
            if abs(lat - place[0]) < side / 2 and abs(lon - place[1]) < side / 2
        ]
        if cell is not None and own:
            inside += 1
            assert [chosen] == own
        else:
            assert distance(place, places[chosen]) == min(distance(place, other) for other in places)
    assert cell is None or inside > 50
    assert PlaceIndex(setting(places=[(3.0, 3.0)] * 4)).broker(1.0, 1.0) == 0  # ties: the lowest id
