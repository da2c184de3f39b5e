"""Quiet changes that are known ahead, and enacted many at a time, give the same bytes as changes enacted one at a time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least, tried
from generated import difference
from test_offloading import KEY, Drawn
from test_reconfiguration import PAYS, Shuffle

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.control.offloading import OffloadingSetting
from sim.brokers.fabric.stations import NO_TIME, StationSetting
from sim.brokers.network import Network, NetworkSetting
from sim.brokers.users import ahead
from sim.overlay.chord import Chord
from sim.overlay.geometry import GeometrySetting
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.reconfiguration.process import ProcessParameters
from sim.policies.selection.fixed import LocationSelection, StaticSelection
from sim.policies.selection.similarity import SimilaritySelection
from sim.policies.views import Exchange, Selection, SelectionPolicy, SelectionSetting, SelectionView
from sim.workloads.format.workload import Workload

STEP, STEPS = 0.5, 120  # s; most changes lie on these, so that several happen at once
POLICIES = ("static", "in-order", "location", "similarity", "placed similarity", "jaccard", "mean user", "plug-in")


class OneByOne:
    """Another policy's decisions, for one user at a time."""

    def __init__(self, policy: SelectionPolicy) -> None:
        self.reacts_to, self.exchange, self.select = policy.reacts_to, policy.exchange, policy.select


class Fickle:
    """A plug-in that decides for one user at a time, and hands some of them over."""

    reacts_to: frozenset[str] = frozenset({"movement"})
    exchange: Exchange | None = None

    def __init__(self, brokers: int) -> None:
        self._brokers = brokers

    def select(self, view: SelectionView) -> Selection:
        moves = view.current < 0 or (view.user + int(view.time)) % 7 == 0
        return Selection((view.user + int(view.time)) % self._brokers if moves else view.current)


def made(name: str, brokers: int, places: np.ndarray, seed: int, relative: float) -> SelectionPolicy:
    nowhere = np.full((brokers, 2), np.nan)
    latitude, longitude = (places if "placed" in name or name == "location" else nowhere).T
    setting = SelectionSetting(1000, latitude, longitude, None, seed, np.ones(brokers))
    if name in ("static", "in-order"):
        assign = "random" if name == "static" else "in-order"
        return StaticSelection(StaticSelection.Parameters(assign=assign), setting)
    if name == "location":
        return LocationSelection(LocationSelection.Parameters(), setting)
    if name == "plug-in":
        return Fickle(brokers)
    formula = {"jaccard": "jaccard", "mean user": "mean-user"}.get(name, "overlap")
    given = {"similarity": formula, "cluster_size": 3, "update_period": 7.0, "hysteresis": relative}
    return SimilaritySelection(SimilaritySelection.Parameters(**given), setting)


def world(rng: random.Random, brokers: int, places: np.ndarray) -> Workload:
    """So many users on so few topics that most changes make no difference to brokers."""
    users, topics, horizon = rng.choice((8, 30, 60)), rng.randint(1, 5), STEP * STEPS
    wants = [{topic for topic in range(topics) if rng.random() < 0.6} for _ in range(users)]
    held, events = [set(some) for some in wants], []

    def times(many: int) -> list[float]:
        return sorted(
            STEP * rng.randrange(STEPS) if rng.random() < 0.7 else rng.uniform(0, horizon) for _ in range(many)
        )

    for time in times(rng.choice((0, 100, 300))):
        user = rng.randrange(users)
        for topic in rng.sample(range(topics), min(topics, rng.choice((1, 1, 2)))):
            events.append((time, user, topic, -1 if topic in held[user] else 1))
            held[user] ^= {topic}
    near = [places[rng.randrange(brokers)] + [rng.gauss(0, 3), rng.gauss(0, 3)] for _ in range(users)]
    movements = []
    for time in times(rng.choice((0, 50, 200))):
        user = rng.randrange(users)
        if rng.random() < 0.1:
            near[user] = places[rng.randrange(brokers)]
        movements.append((time, user, *(near[user] + [rng.gauss(0, 0.5), rng.gauss(0, 0.5)])))
    published = [(time, rng.randrange(topics), rng.randrange(-1, users), 100) for time in times(rng.choice((5, 100)))]
    return tiny.workload(wants, published, events, movements, topics=topics, horizon=horizon)


def networks(seed: int, name: str, plane: str) -> tuple[Network, Network]:
    """The same network twice; the second enacts all changes one at a time, and asks its policy for one user at a time."""

    def network(one_by_one: bool) -> Network:
        rng = random.Random(f"{seed} {name}")
        brokers = rng.randint(1, 5)
        places = np.array([(rng.uniform(-60, 60), rng.uniform(-150, 150)) for _ in range(brokers)])
        workload = world(rng, brokers, places)
        policy = made(name, brokers, places, seed, rng.choice((0.0, 0.2)))
        setting: dict[str, Any] = {"join": rng.choice(("instant", "message")), "subscribers": rng.random() < 0.3}
        setting |= {"warm_up": rng.choice((0.0, 11.0)), "window": rng.choice((10.0, 13.0))}
        setting |= {"horizon": rng.choice((workload.horizon, 37.3))}
        if rng.random() < 0.25:
            parameters = OffloadingParameters(capacity="60%", tau=3, period=9.0)
            setting["offloading"] = OffloadingSetting(Drawn(), parameters, KEY)
        if rng.random() < 0.25:
            process = ProcessParameters().model_copy(update={"threshold": 1.0, "constants": PAYS, "period": 15.0})
            setting["reconfiguration"] = ReconfigurationSetting(Shuffle(3), process, seed)
        timed = plane != "folded" and rng.random() < 0.5
        hop = np.full((brokers, brokers), rng.choice((0.0, 0.25, STEP, 1.3)))
        np.fill_diagonal(hop, 0.0)
        made_of = NetworkSetting(
            overlay=Chord(Chord.Parameters(), GeometrySetting(brokers, len(workload.topics), seed)),
            node_of=np.random.default_rng(seed).permutation(brokers).astype(np.int32),
            hop_delay=hop,
            jitter=0.0,
            policy=OneByOne(policy) if one_by_one else policy,
            stations=StationSetting("exponential", 0.05) if timed else NO_TIME,
            plane=plane,
            **setting,
        )
        found = Network(made_of, workload, Streams(seed))
        if one_by_one:
            found.users.look_ahead = lambda event, movement, until: (event, movement)
            found.users._turn_together = lambda changing: False
        return found

    return network(False), network(True)


@pytest.mark.parametrize("plane", ["folded", "compiled"])
@pytest.mark.parametrize("name", POLICIES)
def test_changes_known_ahead_come_to_the_same_bytes(name: str, plane: str) -> None:
    tally: Counter[str] = Counter()

    for seed in range(tried(60)):
        together, apart = networks(seed, name, plane)

        def watched(event: int, movement: int, until: float, look: Any = together.users.look_ahead) -> tuple[int, int]:
            found = look(event, movement, until)
            tally["ahead"] += sum(found) - event - movement
            tally["looks"] += 1
            return found

        together.users.look_ahead = watched
        together.run()
        apart.run()
        assert difference(together, apart) is None, seed
        metrics = apart.metrics()
        tally["handovers"] += metrics["handovers"]
        tally["transitions"] += metrics["broker_subscription_changes"]
        tally["delivered"] += metrics["delivered"]
    assert tally["ahead"] > least(1000), tally
    assert min(tally["looks"], tally["delivered"]) > least(200), tally
    assert tally["transitions"] > least(50), tally
    assert tally["handovers"] > least(30) or name in ("static", "in-order"), tally


@pytest.mark.parametrize("name", ["similarity", "placed similarity"])
def test_many_small_batches_come_to_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where policies are asked for at most two users at once, looks end in the middle of everything."""
    monkeypatch.setattr(ahead, "_MOST", 2)
    monkeypatch.setattr(ahead, "_FEWEST", 1)
    for seed in range(tried(30)):
        together, apart = networks(seed, name, "folded")
        together.run()
        apart.run()
        assert difference(together, apart) is None, seed


def test_a_mistake_of_the_workload_is_told_when_its_time_comes() -> None:
    events = [(1.0, 0, 1, 1), (2.0, 1, 0, -1), (3.0, 2, 0, 1), (4.0, 0, 1, -1)]
    workload = tiny.workload([{0}] * 4 + [{1}], [(0.5, 0, 0, 1)], events, topics=2)
    network = tiny.network(workload, tiny.graph([(0, 1)], [0, 0]), [0] * 5, plane="folded", trace=False)
    message = r"row 2: user 2 subscribes to topic 0 but wants it already"
    with pytest.raises(WorkloadError, match=message):
        network.run()
    assert network.clock.now == 3.0
