"""What cannot go together is refused before the first run, in one sentence, at every point of a sweep and in every variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny

import sim
from sim.base.errors import InputError, ScenarioError
from sim.scenario.reader import load_scenario
from sim.workloads.format.folder import write_workload

POISSON = {"kind": "poisson", "users": 5, "topics": 20}
CONTENT = {"kind": "content", "subscriptions": 20, "publications": 30}
NO_BYTES = "no publication of the workload has a size (allowed: publications with bytes, or no"


def network(**keys: Any) -> dict[str, Any]:
    return {"network": {"brokers": 3, **keys}}


REGIONS = {"kind": "regions", "round_trips": {"a": {"a": "1ms"}}}
EMPTY = {"workload": {**POISSON, "size": 0}}
KEYS = [
    (network(links={"bandwidth": "1Mb/s"}) | EMPTY, f"network.links.bandwidth: {NO_BYTES} bandwidth)"),
    (network(links={"interface": "1Mb/s"}) | EMPTY, f"network.links.interface: {NO_BYTES} interface)"),
    (network(clients={"rate": "1Mb/s"}) | EMPTY, f"network.clients.rate: {NO_BYTES} rate)"),
    (network(clients={"slow": {"share": 0.5, "rate": "1kb/s"}}) | EMPTY, f"network.clients.slow.rate: {NO_BYTES} rate)"),
    (network(brokers="cells"), 'network.brokers: "cells" needs topics with places'),
    (network(latency={"kind": "distance"}), 'network.latency: kind "distance" needs the brokers\' positions'),
    (network(latency=REGIONS), 'network.latency: kind "regions" needs the regions of brokers'),
    (network(geometry={"kind": "geographic"}), 'network.geometry: kind "geographic" needs positions'),
    (network(geometry={"kind": "chord", "bits": 1}), "network.geometry.bits: a ring of 2^1 ids is too small for 3 brokers"),
    (network(geometry={"kind": "tapestry", "digits": 1, "base": 2}), "network.geometry.digits: 2^1 ids for 3 brokers"),
    (network(geometry={"kind": "star", "hub": "x"}), "network.geometry.hub: unknown broker 'x'"),
    (network(geometry={"kind": "full-mesh"}, join="message"), 'network.join: "message" asks the root'),
    ({"selection": {"kind": "location"}}, 'selection.kind: "location" needs brokers with positions'),
    ({"horizon": "200h", "warm_up": "200h"}, "warm_up: expected less than the horizon (720000 s), found 720000 s"),
    ({"workload": {**POISSON, "horizon": "1h"}, "warm_up": "1h"}, "warm_up: expected less than the horizon (3600 s)"),
    ({"workload": CONTENT, "offloading": {"kind": "b3m"}}, 'offloading.kind: "b3m" applies to topics, but a content'),
    (network(sessions={"retained": "all"}) | {"workload": CONTENT}, "network.sessions.retained: applies to topics, but a content"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "wrong"), KEYS, ids=lambda value: value.partition(":")[0] if isinstance(value, str) else ""
)
def test_what_does_not_fit_is_refused_when_the_scenario_is_read(keys: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ScenarioError) as error:
        load_scenario({"workload": POISSON, **network(), **keys})
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"scenario: {wrong}")


def test_every_point_and_variant_is_checked_before_the_first_run(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'horizon = "1h"\nworkload = { kind = "poisson", users = 5, topics = 9 }\nnetwork.brokers = 2\n'
        "[sweep]\nworkload.size = [100, 0]\n"
        '[[variant]]\nname = "fast"\n[[variant]]\nname = "slow"\nnetwork.links.bandwidth = "1Mb/s"\n'
    )
    wrong = f"{path}:10: variant.slow.network.links.bandwidth: {NO_BYTES} bandwidth)"
    for ask in (sim.plan, lambda source: sim.run(source, tmp_path / "r")):
        with pytest.raises(ScenarioError) as error:
            ask(path)
        assert str(error.value) == wrong
    assert not (tmp_path / "r").exists()
    assert len(load_scenario(path, ["sweep.where=workload.size > 0"]).points) == 1  # what is left out is not refused


def test_a_base_that_is_not_run_may_lack_what_all_variants_have() -> None:
    several = [{"name": "two", "network": {"brokers": 2}}, {"name": "three", "network": {"brokers": 3}}]
    assert len(load_scenario({"workload": POISSON, "variant": several}).variants) == 2


def test_a_prepared_workload_is_asked_before_the_first_run(tmp_path: Path) -> None:
    write_workload(tiny.workload([[0], [0]], [(1.0, 0, 0, 0)]), tmp_path / "w")
    raw = {
        "workload": {"kind": "prepared", "path": str(tmp_path / "w")},
        "network": {"brokers": 2},
        "sweep": {"network.links.bandwidth": ["1Mb/s", "2Mb/s"]},
    }
    for ask in (sim.plan, lambda source: sim.run(source, tmp_path / "r")):
        with pytest.raises(InputError) as error:
            ask(raw)
        assert str(error.value).endswith(f"variant base: network.links.bandwidth: {NO_BYTES} bandwidth)")
    assert not (tmp_path / "r").exists()
