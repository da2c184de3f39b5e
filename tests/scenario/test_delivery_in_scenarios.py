"""Guarantees in scenarios: how [network.delivery] is read, and what is refused before anything is simulated."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from sim.base.errors import InputError
from sim.brokers.fabric.delivery import NO_GUARANTEE, DeliverySetting
from sim.files.toml import read
from sim.scenario.reader import load_scenario
from sim.scenario.schema import json_schema
from sim.simulation import build, prepare_workload

BASE = """\
[workload]
kind = "poisson"
users = 4
horizon = "1h"
[network]
brokers = 3
[[variant]]
name = "base"
"""
FULL = """\
[network.delivery]
guarantee = "exactly-once"
timeout = "500ms"
backoff = 1.5
longest = "10s"
attempts = 4
store = "memory"
"""


def read_scenario(tmp_path: Path, text: str) -> DeliverySetting:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    jsonschema.Draft202012Validator(json_schema()).validate(read(path)[0])
    scenario = load_scenario(path).points[0].variants["base"]
    return build(scenario, prepare_workload(scenario, 0, None), 0).setting.delivery


def test_all_of_it_reaches_the_brokers(tmp_path: Path) -> None:
    assert read_scenario(tmp_path, BASE) == NO_GUARANTEE
    assert read_scenario(tmp_path, BASE + FULL) == DeliverySetting("exactly-once", 0.5, 1.5, 10.0, 4, "memory")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('guarantee = "at-most-once"', "best-effort"),
        ('timeout = "0s"', "timeout"),
        ('timeout = "2min"', "timeout: expected at most the longest wait (1 min), found 2 min"),
        ("backoff = 0.5", "backoff"),
        ("attempts = 0", "attempts"),
        ('store = "disk"', "persistent"),
        ('timout = "1s"', "timeout"),
        (
            'expire_after = "1s"',
            "expire_after: has no effect on best-effort delivery (allowed with: network.delivery.guarantee)",
        ),
    ],
)
def test_impossible_guarantees_are_refused_in_a_sentence(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(f"{BASE}[network.delivery]\n{line}\n")
    with pytest.raises(InputError) as error:
        load_scenario(path)
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) <= 2


def test_without_a_guarantee_nobody_serves_acknowledgements(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(BASE)
    cost = ["brokers.service={ kind = 'deterministic', time = '1ms', acknowledgement = '1us' }"]
    with pytest.raises(InputError, match=r"brokers\.service\.acknowledgement: has no effect on best-effort delivery"):
        load_scenario(path, cost)
    kept = load_scenario(path, [*cost, "network.delivery.guarantee='exactly-once'"])
    assert kept.base.brokers.service.acknowledgement == 1e-6


def test_keys_of_guarantees_serve_the_variants_that_have_one(tmp_path: Path) -> None:
    variants = """
[network.delivery]
attempts = 2
[[variant]]
name = "kept"
network.delivery.guarantee = "at-least-once"
[[variant]]
name = "not"
"""
    path = tmp_path / "scenario.toml"
    path.write_text(BASE + variants)
    assert load_scenario(path).variants["not"].network.delivery.attempts == 2


def test_a_strategy_of_sharing_without_shared_subscriptions_is_noted() -> None:
    network = {"brokers": 2, "sharing": {"kind": "sticky"}}
    scenario = load_scenario({"workload": {"kind": "poisson", "users": 4, "topics": 9}, "network": network}).base
    made = build(scenario, prepare_workload(scenario, 0, None), 0)
    assert made.notes == ("network.sharing has no effect, as no subscription of the workload is shared.",)
