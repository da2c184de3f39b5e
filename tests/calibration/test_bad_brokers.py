"""A broker that refuses, hangs, disconnects, answers slowly, or is something else: one sentence each, in bounded time."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import fake_brokers as fake
import pytest

import sim
from sim.calibration import calibrate as calibration
from sim.calibration import mqtt

Brokersim = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of patience, and next to none with a version, which the servers here don't have."""
    monkeypatch.setattr(calibration, "VERSION_WITHIN", 0.02)
    monkeypatch.setattr(mqtt, "ANSWERS_WITHIN", 0.5)


BAD = {
    "silent": (fake.silent, "no answer of an MQTT broker within 0.5 s"),
    "http": (fake.http, "what listens there does not speak MQTT (it answered 'HTTP/1.1 400 Bad Request')"),
    "hangs up": (fake.hangs_up, "the connection was closed without an answer of an MQTT broker"),
    "password": (
        fake.wants_a_password,
        "the broker refuses the connection: it does not let clients in without a user name and a password "
        "(with Mosquitto: allow_anonymous true)",
    ),
    "slow": (fake.answers_byte_by_byte, "no answer of an MQTT broker within 0.5 s"),
    "no subscriptions": (fake.refuses_subscriptions, "the broker refuses the subscription to '"),
    "no confirmation": (fake.confirms_nothing, "no answer of an MQTT broker within 0.5 s"),
    "hangs later": (fake.FakeBroker(lambda number: number < 3), "deliveries are missing 0.5 s after the last one"),
    "drops some": (fake.FakeBroker(lambda number: number % 7 != 0), "deliveries are missing 0.5 s after the last one"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_sentence_says_what_is_wrong(name: str, brokersim: Brokersim, tmp_path: Path) -> None:
    behaviour, sentence = BAD[name]
    with fake.listening(behaviour) as url:
        status, out, err = brokersim("calibrate", url, "--seconds", "1", "--quiet")
    assert (status, out) == (2, "")
    assert err.startswith(f"brokersim: error: {url}: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("installed", "hint"),
    [
        ("/usr/sbin/mosquitto", "is the broker running?"),
        (None, "is a broker installed, and running? (on Debian: apt-get install mosquitto)"),
    ],
)
def test_nobody_listens(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, installed: str | None, hint: str
) -> None:
    monkeypatch.setattr(mqtt.shutil, "which", lambda name, path: installed)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"mqtt://127.0.0.1:{server.getsockname()[1]}"
    assert brokersim("calibrate", url) == (
        2,
        "",
        f"brokersim: error: {url}: no connection (Connection refused); {hint}\n",
    )


def test_a_broker_that_ends_connections_in_the_middle(brokersim: Brokersim) -> None:
    broker = fake.FakeBroker()

    def ends(number: int) -> bool:
        if number == 3:
            for one in [one for those in broker.wanting.values() for one in those]:
                one.shutdown(socket.SHUT_RDWR)
        return number < 3

    broker.keeps = ends
    with fake.listening(broker) as url:
        status, _, err = brokersim("calibrate", url, "--seconds", "1", "--quiet")
    assert status == 2
    assert f"{url}: the broker closed a connection after 2 deliveries" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("mqtt://192.0.2.1",),
            "mqtt://192.0.2.1: '192.0.2.1' is another host, on which load is put only with --remote",
        ),
        (("mqtts://127.0.0.1",), "mqtts://127.0.0.1: not the address of an MQTT broker (allowed: mqtt://HOST:PORT)"),
        (("mqtt://127.0.0.1:99999",), "mqtt://127.0.0.1:99999: not the address of an MQTT broker"),
        (("mqtt://[::1]:1", "--pid", "999999999"), "--pid 999999999: no such process on this machine"),
        (("mqtt://127.0.0.1", "--out", "preset.json"), "preset.json: a preset is a file that ends in .toml"),
        (("mqtt://127.0.0.1", "--out", "no/preset.toml"), "no/preset.toml: no such folder 'no'"),
        (("mqtt://127.0.0.1", "--page", "page.pdf"), "page.pdf: a page is a file that ends in .html"),
    ],
)
def test_what_is_asked_for_is_checked_first(brokersim: Brokersim, arguments: tuple[str, ...], sentence: str) -> None:
    status, _, err = brokersim("calibrate", *arguments)
    assert status == 2
    assert err.startswith(f"brokersim: error: {sentence}")


def test_a_busy_machine_is_refused(brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LEAST_CLEAN", 1.1)
    with fake.listening(fake.FakeBroker()) as url:
        status, _, err = brokersim("calibrate", url, "--seconds", "1", "--messages", "1000", "--quiet")
    assert status == 2
    assert "the machine is too busy, or the measurement too short" in err
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    broker = fake.FakeBroker()
    with fake.listening(broker) as url:
        with pytest.raises(KeyboardInterrupt):
            sim.calibrate(url, tmp_path / "p.toml", seconds=1, messages=1000, progress=interrupt)
        for one in {one for those in broker.wanting.values() for one in those}:
            one.settimeout(5)
            assert one.recv(1 << 16)[-2:] in (b"", b"\xe0\x00")  # the client has said goodbye
    assert list(tmp_path.iterdir()) == []
    assert os.sched_getaffinity(0) == before
