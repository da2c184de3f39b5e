"""Common random numbers and reproducible bytes: draws of one part do not shift others."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tiny

from sim.brokers.network import Network
from sim.policies.views import Selection, SelectionView
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import RunRecord, build, prepare_workload, simulate
from sim.workloads.format.workload import Workload

BASE: dict[str, Any] = {
    "seed": 7,
    "trace": True,
    "workload": {
        "kind": "poisson",
        "users": 40,
        "topics": 12,
        "topics_per_user": 3,
        "change_rate": 1.0,
        "publication_rate": 4.0,
        "horizon": "5h",
    },
    "network": {"brokers": 9, "join": "message", "data_plane": "events"},
    "brokers": {"service": {"kind": "exponential", "time": "20s"}, "queue": 1},
}
SIMILARITY = {"kind": "similarity", "cluster_size": 3, "update_period": "20min"}


def scenario(**over: Any) -> Scenario:
    return load_scenario({**BASE, **over}).base


def digest(record: RunRecord) -> str:
    """A hash of all metrics and all tables of a run, by their bytes."""
    state = hashlib.sha256(repr(list(record.metrics.items())).encode())
    for name, columns in record.tables.items():
        for column, values in columns.items():
            array = np.asarray(values)
            content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
            state.update(f"{name}/{column}/{array.dtype}/{array.shape}".encode() + content)
    return state.hexdigest()


def record(**over: Any) -> RunRecord:
    what = scenario(selection=SIMILARITY, **over)
    return simulate(what, prepare_workload(what, 0, None), 0)


def driven(network: Network) -> tuple[list[tuple[Any, ...]], dict[tuple[int, int, int], float]]:
    """Runs; what was published (row, topic, bytes, time), and the service times of publications by (row, broker, stage)."""
    published, services = [], {}
    plane = network.engine
    publish, service = plane.publish, plane._carrier._service

    def spy_on_publications(first: int, brokers: list[int]) -> None:
        rows = network.workload.publications
        published.append((first, rows.topic[first], rows.size[first], network.clock.now))
        publish(first, brokers)

    def spy_on_service(number: int, broker: int, stage: int, increments: int) -> float:
        seconds = services[number, broker, stage] = service(number, broker, stage, increments)
        return seconds

    plane.publish, plane._carrier._service = spy_on_publications, spy_on_service
    network.run()
    return published, services


def same_workload(one: Workload, other: Workload) -> bool:
    return all(
        np.array_equal(np.asarray(getattr(getattr(one, table), column)), np.asarray(values))
        for table in ("interests", "subscription_events", "publications", "movements")
        for column, values in vars(getattr(other, table)).items()
    )


def test_variants_see_identical_arrivals_and_service_times() -> None:
    variants = [scenario(), scenario(selection=SIMILARITY)]
    workloads = [prepare_workload(variant, 0, None) for variant in variants]
    assert same_workload(*workloads)
    networks = [build(variant, workload, 0) for variant, workload in zip(variants, workloads, strict=True)]
    assert networks[0].node_of.tolist() == networks[1].node_of.tolist()
    assert networks[0].setting.overlay.ids.tolist() == networks[1].setting.overlay.ids.tolist()
    (published, services), (others_published, others_services) = map(driven, networks)
    assert published == others_published
    assert len(published) > 100
    shared = services.keys() & others_services.keys()
    assert len(shared) > 50
    assert all(services[key] == others_services[key] for key in shared)
    assert len({services[key] for key in shared}) == len(shared)  # each has a draw of its own
    assert networks[0].metrics()["delivered"] != networks[1].metrics()["delivered"]  # the policies do differ


class Restless:
    """Selection that draws from its own generator and from Python's global one, a different number of times each call."""

    exchange = None
    reacts_to = frozenset({"subscription"})

    def __init__(self, brokers: int) -> None:
        self.brokers, self.own = brokers, np.random.default_rng(5)

    def select(self, view: SelectionView) -> Selection:
        draws = [self.own.random() for _ in range(1 + view.user % 3)]
        random.random()
        return Selection(int(draws[-1] * self.brokers))


def test_what_a_policy_draws_shifts_nothing_else() -> None:
    """
    0 ── 1 ── 2     publications from outside too: where they enter is drawn
    """
    world = tiny.workload(
        [{0}, {0}, set()],
        [(0.1 * n, 0, n % 4 - 1, 1) for n in range(90)],
        [(1.0 + n, 2, 0, 1 if n % 2 == 0 else -1) for n in range(8)],
    )

    def network(policy: Any) -> Network:
        return tiny.network(
            world,
            tiny.graph([(0, 1), (1, 2)], [1]),
            policy,
            hop=0.1,
            jitter=0.5,
            service="exponential",
            service_time=0.05,
            plane="events",
        )

    calm, restless = network([0, 1, 2]), network(Restless(3))
    (published, services), (others_published, others_services) = driven(calm), driven(restless)
    assert restless.metrics()["handovers"] > 0
    assert published == others_published
    shared = services.keys() & others_services.keys()
    assert len(shared) > 50
    assert all(services[key] == others_services[key] for key in shared)

    def enters(run: Network) -> dict[int, int]:
        rows = run.tables()["trace"]
        hops = zip(rows["publication"], rows["kind"], rows["source"], strict=True)
        return {number: source for number, kind, source in hops if kind == "uplink" and number % 4 == 0}

    assert enters(calm) == enters(restless)
    assert len(enters(calm)) > 5


def test_the_same_run_twice_in_one_process_gives_the_same_bytes() -> None:
    first = record()
    other = record(seed=8)
    assert digest(first) == digest(record())
    assert digest(first) != digest(other)
    assert first.metrics["handovers"] > 0
    assert first.metrics["lost"] > 0


def test_the_hash_seed_of_python_changes_no_byte() -> None:
    here = Path(__file__).parent
    code = "import test_determinism as t; print(t.digest(t.record()))"
    paths = os.pathsep.join([str(here), str(here.parent), str(here.parents[1])])
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    outputs = [run.communicate()[0].strip() for run in runs]
    assert outputs == [digest(record())] * 2
