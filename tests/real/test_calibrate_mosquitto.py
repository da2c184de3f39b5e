"""Mosquitto is measured, and a scenario with the preset delivers as it does."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from servers import free_port, running

from sim.calibration import calibrate, samples

Brokersim = Callable[..., tuple[int, str, str]]

SCENARIO = """\
title = "Desk"
window = "1s"
workload = { kind = "poisson", users = 12, topics = 4, topics_per_user = 2, change_rate = 0, publication_rate = 90000, horizon = "1s" }
network = { brokers = 1, geometry = { kind = "star" }, data_plane = "events" }
brokers = { service = { kind = "deterministic", preset = "mine.toml" } }
"""


def test_a_preset_of_a_broker_and_a_scenario_with_it(
    brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However busy the machine: what is measured of time may be off, deliveries are not."""
    monkeypatch.setattr(samples, "LONGEST_WAIT", 1e6)
    monkeypatch.setattr(calibrate, "FEWEST", 1)
    port = free_port()
    url = f"mqtt://127.0.0.1:{port}"
    with running("mosquitto", "-p", str(port), port=port) as server:
        measured = ("--pid", str(server.pid), "--seconds", "1", "--json", "--quiet")
        status, out, err = brokersim("calibrate", url, "--out", "mine.toml", "--page", "mine.html", *measured)
        assert (status, err) == (0, "")
        found = json.loads(out)
        preset = tomllib.loads((tmp_path / "mine.toml").read_text())
        assert preset["measured"]["broker"].startswith("mosquitto version")
        assert preset["costs"] == found["costs"]
        assert len(found["steps"]) >= 30
        assert "Costs" in (tmp_path / "mine.html").read_text()

        (tmp_path / "desk.toml").write_text(SCENARIO)
        limits = ("--median", "1e6%", "--p99", "1e6%")
        status, out, err = brokersim("validate-against", url, "desk.toml", *limits, "--page", "desk.html", *measured)
        assert (status, err) == (0, "")
        rows = {one["name"]: one for one in json.loads(out)["quantities"]}
        assert rows["deliveries"]["measured"] == rows["deliveries"]["simulated"] > 250
        assert rows["losses"]["measured"] == rows["losses"]["simulated"] == 0
        assert "simulated" in (tmp_path / "desk.html").read_text()

        slow = ("--set", "brokers.service.wake_up=50ms", "--set", "workload.publication_rate=7200", "--quiet")
        status, out, err = brokersim("validate-against", url, "desk.toml", *slow)
        assert (status, err) == (1, "")
        assert "median delay" in out
        assert "differs" in out


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("network.brokers=2", "desk.toml: network.brokers: one URL is one broker, found 2 (allowed: 1)"),
        (
            "brokers.service.kind=none",
            "desk.toml: brokers.service: kind 'none' takes no time, so that there are no delays",
        ),
        ("workload.users=5000", "desk.toml: workload: 5,000 users, each a connection (allowed: 850)"),
        (
            "workload.publication_rate=36e8",
            "messages in the first 1 s (allowed: --messages 5,000,000, or fewer --seconds)",
        ),
        (
            "workload.publication_rate=0",
            "desk.toml: workload: no publication in the first 1 s (allowed with: --seconds)",
        ),
    ],
)
def test_scenarios_that_cannot_be_replayed(brokersim: Brokersim, tmp_path: Path, setting: str, sentence: str) -> None:
    (tmp_path / "desk.toml").write_text(SCENARIO)
    (tmp_path / "mine.toml").write_text('[costs]\ntime = "3us"\n')
    status, _, err = brokersim("validate-against", "mqtt://127.0.0.1:1", "desk.toml", "--set", setting)
    assert status == 2
    assert sentence in err


def test_a_broker_that_wants_a_password(brokersim: Brokersim, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "m.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous false\n")
    with running("mosquitto", "-c", str(tmp_path / "m.conf"), port=port):
        status, _, err = brokersim("calibrate", f"mqtt://127.0.0.1:{port}")
    assert status == 2
    assert "it does not let clients in without a user name and a password (with Mosquitto: allow_anonymous true)" in err
