"""`brokersim validate`, `schema`, `policies` and `--help`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sim import plugins
from sim.scenario.schema import json_schema

Brokersim = Callable[..., tuple[int, str, str]]

GOOD = """\
replications = 3
[[variant]]
name = "a"
[[variant]]
name = "b"
selection = { kind = "location" }
"""
BAD = """\
[network]
brokrs = 3
[selection]
kind = "similarty"
"""


def test_a_valid_file_is_told_so(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(GOOD)
    assert brokersim("validate", "s.toml") == (0, "s.toml: valid, 2 variants × 3 replications = 6 runs\n", "")
    assert brokersim("validate", "s.toml", "--set", "replications=1")[1].endswith(
        "2 variants × 1 replication = 2 runs\n"
    )
    resolved = json.loads(brokersim("validate", "s.toml", "--json")[1])
    assert [variant["selection"]["kind"] for variant in resolved.values()] == ["static", "location"]
    assert resolved["a"]["window"] == 3600.0


def test_a_valid_sweep_is_told_so(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"precision.relative = 0.05\n{GOOD}[sweep]\nnetwork.brokers = [1, 2]\n")
    assert brokersim("validate", "s.toml")[1] == (
        "s.toml: valid, 2 points × 2 variants × 3 replications = 12 runs, and more replications (at most 50) until "
        "notification_delay is known to within 0.05 of its mean\n"
    )
    points = json.loads(brokersim("validate", "s.toml", "--json")[1])
    assert [point["point"] for point in points] == [{"network.brokers": 1}, {"network.brokers": 2}]
    assert [point["variants"]["b"]["network"]["brokers"] for point in points] == [1, 2]


def test_all_mistakes_are_one_message(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(BAD)
    keys = (
        "brokers, geometry, latency, links, clients, reconnect, delivery, healing, sessions, qos, sharing, "
        "delay_until, hop_cost, join, control_count, data_plane"
    )
    assert brokersim("validate", "s.toml") == (
        2,
        "",
        f"brokersim: error: s.toml:2: network.brokrs: unknown key, did you mean 'brokers'? (allowed: {keys}) (found 3)\n"
        "s.toml:4: selection.kind: unknown kind, did you mean 'similarity'? (allowed: location, similarity, static) "
        "(found 'similarty')\n",
    )


def test_the_schema_is_json(brokersim: Brokersim) -> None:
    status, out, err = brokersim("schema")
    assert (status, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(json_schema()))


def test_policies_lists_every_parameter_of_every_plugin(brokersim: Brokersim) -> None:
    status, out, err = brokersim("policies")
    assert (status, err) == (0, "")
    blocks = dict(re.findall(r'  kind = "(.*?)"\n(.*?)(?=\n\n|\Z)', out, re.DOTALL))
    for group in plugins.GROUPS:
        for name in plugins.names(group):
            for key, field in plugins.load(group, name).Parameters.model_fields.items():
                text = " ".join(blocks[name].split())
                assert re.search(rf" {field.alias or key} (= |\(.*required\)|\(.*optional\))", f" {text}")
                assert " ".join(str(field.description).split()) in text
    assert '  kind = "unit"\n    The same round-trip time between any two brokers, so that delays count hops.\n' in out
    assert '    rtt = "1 s" (duration in s)\n        Round-trip time between two brokers.\n' in out
    assert '    ids = "hashed" ("hashed" | "even")\n' in out
    assert "    bits = 32 (integer, at least 1, at most 62)\n" in out
    assert "    file (file, required)\n" in out
    assert "    hosts_file (file, optional)\n" in out
    assert "    round_trips (table, required)\n" in out
    assert "    city_radius = 20.0 (number in km, at least 0)\n" in out


def test_help(brokersim: Brokersim) -> None:
    status, out, _ = brokersim("--help")
    assert status == 0
    assert out.startswith(
        "Usage: brokersim [OPTIONS] COMMAND [ARGS]...\n\n  A discrete-event simulator for publish/subscribe"
    )
    listed = [line.split()[0] for line in out.partition("Commands:\n")[2].splitlines() if line.startswith("  ")]
    assert listed == [
        "demo", "new", "explain", "generate", "describe", "plan", "run", "report", "compare", "best", "export", "prune", "tune",
        "capacity", "calibrate", "validate-against", "reproduce", "validate", "schema", "policies", "doctor", "scenarios",
        "prepare", "solve",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rn"], "Error: No such command 'rn'. Did you mean 'run'?"),
        (["run"], "Error: Missing argument 'SCENARIO'."),
        (["run", "x.toml", "--job", "2"], "Error: No such option: --job"),
    ],
)
def test_what_is_no_command(brokersim: Brokersim, arguments: list[str], message: str) -> None:
    status, out, err = brokersim(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_version(brokersim: Brokersim) -> None:
    status, out, _ = brokersim("--version")
    assert status == 0
    assert out.startswith("brokersim 0.")
