"""Round-trip times: known distances, symmetry, and messages about missing positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import ScenarioError
from sim.brokers.fabric.links import Links
from sim.overlay import latency
from sim.overlay.latency import EARTH_RADIUS_KM, DistanceLatency, LatencySetting, UnitLatency, great_circle_km
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites

LONDON, PARIS, NEW_YORK = (51.5074, -0.1278), (48.8566, 2.3522), (40.7128, -74.0060)
LOS_ANGELES, TOKYO, SYDNEY = (34.0522, -118.2437), (35.6762, 139.6503), (-33.8688, 151.2093)

positions = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    return float(great_circle_km(np.array([a[0]]), np.array([a[1]]), *b)[0])


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        (LONDON, PARIS, 344),
        (LONDON, NEW_YORK, 5570),
        (NEW_YORK, LOS_ANGELES, 3936),
        (TOKYO, LOS_ANGELES, 8815),  # over the dateline
        (TOKYO, SYDNEY, 7823),  # over the equator
    ],
)
def test_distances_between_cities(a: tuple[float, float], b: tuple[float, float], km: float) -> None:
    assert distance(a, b) == pytest.approx(km, rel=0.003)


def test_quarter_half_and_no_way_round() -> None:
    quarter = EARTH_RADIUS_KM * math.pi / 2
    assert distance((0, 0), (90, 123)) == pytest.approx(quarter)
    assert distance((0, 0), (0, 90)) == pytest.approx(quarter)
    assert distance((0, 10), (0, -170)) == pytest.approx(2 * quarter)
    assert distance((45, 30), (-45, -150)) == pytest.approx(2 * quarter)
    assert distance((12, 34), (12, 34)) == 0
    assert distance((7, 180), (7, -180)) == pytest.approx(0, abs=1e-6)
    assert distance((0, 179.5), (0, -179.5)) == pytest.approx(quarter / 90)


@given(positions, positions)
def test_distance_equals_the_angle_between_vectors(a: tuple[float, float], b: tuple[float, float]) -> None:
    def vector(latitude: float, longitude: float) -> np.ndarray:
        phi, lam = math.radians(latitude), math.radians(longitude)
        return np.array([math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)])

    u, v = vector(*a), vector(*b)
    angle = math.atan2(float(np.linalg.norm(np.cross(u, v))), float(u @ v))
    assert distance(a, b) == pytest.approx(EARTH_RADIUS_KM * angle, rel=1e-6, abs=1e-3)


def setting(places: Sequence[tuple[float, float]]) -> LatencySetting:
    latitude, longitude = np.array(places, float).reshape(-1, 2).T
    return LatencySetting(Sites(tuple(map(str, range(len(places)))), latitude, longitude), key=1)


def test_unit_latency_is_the_same_everywhere_and_needs_no_places() -> None:
    times = UnitLatency(UnitLatency.Parameters(rtt="20ms"), setting([(math.nan, math.nan)] * 3)).round_trips
    assert np.asarray(times).tolist() == [[0, 0.02, 0.02], [0.02, 0, 0.02], [0.02, 0.02, 0]]


def test_distance_latency_is_base_and_a_price_per_kilometre() -> None:
    parameters = DistanceLatency.Parameters(base="1ms", per_km="0.02ms")
    times = DistanceLatency(parameters, setting([LONDON, NEW_YORK])).round_trips
    assert times[0, 1] == pytest.approx(0.001 + 0.00002 * distance(LONDON, NEW_YORK))
    assert times[0, 1] == pytest.approx(0.1124, rel=0.003)


@given(st.lists(positions, min_size=1, max_size=12))
def test_round_trips_are_symmetric_to_the_last_bit_and_zero_to_oneself(places: list[tuple[float, float]]) -> None:
    times = np.asarray(DistanceLatency(DistanceLatency.Parameters(), setting(places)).round_trips)
    assert (times == times.T).all()
    assert (np.diag(times) == 0).all()
    apart = ~np.eye(len(places), dtype=bool)
    assert (times[apart] >= 0.001).all()


@given(st.lists(positions, min_size=1, max_size=12))
def test_many_brokers_times_are_computed_and_the_same_but_for_rounding(places: list[tuple[float, float]]) -> None:
    parameters, where = DistanceLatency.Parameters(), setting(places)
    table = np.asarray(DistanceLatency(parameters, where).round_trips)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "TABULATED", 0)
        computed = DistanceLatency(parameters, where).round_trips
    assert computed.record.places.size == 3 * len(places)
    assert np.asarray(computed) == pytest.approx(table, rel=1e-6)  # antipodes are the hardest
    assert (np.asarray(computed) == np.asarray(computed).T).all()
    assert (np.asarray(computed.times(0.5)) == np.asarray(computed) / 2).all()


def test_times_are_asked_for_by_pair_by_row_and_for_arrays_of_brokers() -> None:
    times = PairTimes.of_groups(np.array([0, 1, 0]), np.array([[2.0, 5.0], [6.0, 3.0]]))
    matrix = [[0.0, 5.0, 2.0], [6.0, 0.0, 6.0], [2.0, 5.0, 0.0]]
    assert (times[1, 0], times[0, 1], times[0, 2], times[2, 2]) == (6.0, 5.0, 2.0, 0.0)
    assert [row.tolist() for row in times] == [times[i].tolist() for i in range(3)] == matrix
    assert times[np.array([0, 1]), np.array([2, 2])].tolist() == [2.0, 6.0]
    assert np.array(times).tolist() == np.array(PairTimes.of(np.array(matrix))).tolist() == matrix


def test_distance_without_places_says_what_is_missing_and_allowed() -> None:
    with pytest.raises(ScenarioError, match=r'network\.latency: kind "distance" needs the brokers\' positions.*"unit"'):
        DistanceLatency(DistanceLatency.Parameters(), setting([(1.0, 1.0), (math.nan, math.nan)]))


def both_ways(time: float) -> PairTimes:
    return PairTimes.of(np.array([[0.0, time], [time, 0.0]]))


class TestJitter:
    def test_factor_is_lognormal_with_mean_one(self) -> None:
        sigma, n = 0.5, 20_000
        links = Links(both_ways(2.0), sigma, key=5)
        factors = np.array([(links.arrival(1e6 * i, 0, 1, i) - 1e6 * i) / 2.0 for i in range(n)])
        deviation = math.sqrt(math.exp(sigma**2) - 1)
        assert abs(factors.mean() - 1) < 4 * deviation / math.sqrt(n)
        logs = np.log(factors)
        assert abs(logs.mean() + sigma**2 / 2) < 4 * sigma / math.sqrt(n)
        assert logs.std() == pytest.approx(sigma, rel=0.03)

    def test_it_belongs_to_message_and_link_and_not_to_the_order_of_asking(self) -> None:
        delays = PairTimes.of_groups(np.zeros(3, int), np.ones((1, 1)))
        hops = [(1e3 * i, i % 3, (i + 1) % 3, i) for i in range(30)]
        one, other = Links(delays, 0.3, key=5), Links(delays, 0.3, key=5)
        forward = {hop: one.arrival(*hop) for hop in hops}
        for _, source, destination, number in hops:  # more messages, on other links
            other.arrival(0.0, destination, source, number)
        assert {hop: other.arrival(*hop) for hop in hops} == forward
        assert len({arrival - hop[0] for hop, arrival in forward.items()}) == len(hops)

    def test_messages_on_one_link_keep_their_order(self) -> None:
        links = Links(both_ways(1.0), 1.0, key=9)
        sent = np.linspace(0, 20, 400)
        arrivals = [links.arrival(time, 0, 1, number) for number, time in enumerate(sent)]
        assert arrivals == sorted(arrivals)
        assert all(arrival > time for arrival, time in zip(arrivals, sent, strict=True))

    def test_none_is_exact(self) -> None:
        links = Links(both_ways(0.25), 0.0, key=9)
        assert links.arrival(3.0, 0, 1, 17) == 3.25
