"""Scenarios: the values read from a file, and messages about all mistakes."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import scenarios
from sim import plugins
from sim.base.errors import ScenarioError
from sim.files.inputs import File
from sim.files.toml import read
from sim.metrics import METRICS
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario, merge
from sim.scenario.schema import json_schema

SHIPPED = sorted(Path(scenarios.__file__).parent.glob("*.toml"))

COMPARISON = """\
seed = 3
replications = 2
horizon = "2h"
[workload]
kind = "poisson"
users = 10
[network]
brokers = 4
geometry = { kind = "chord", bits = 16 }
[selection]
kind = "similarity"
update_period = "30min"
[[variant]]
name = "static"
selection = { kind = "static" }
[[variant]]
name = "small"
selection.cluster_size = 2
[[variant]]
name = "even"
[variant.network]
geometry = { ids = "even" }
[report]
metrics = ["due"]
"""


def written(folder: Path, text: str, name: str = "s.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def mistakes(source: Any, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        load_scenario(source, overrides)
    return str(error.value).splitlines()


def test_everything_but_one_key_may_go_without_saying(tmp_path: Path) -> None:
    experiment = load_scenario(written(tmp_path, "seed = 1", "plain.toml"))
    base = experiment.base
    assert experiment.variants == {"base": base}
    assert experiment.report.baseline == "base"
    assert (base.title, base.seed, base.replications) == ("plain", 1, 1)
    assert (base.horizon, base.warm_up, base.window, base.trace) == (None, 0.0, 3600.0, False)
    assert (base.workload.kind, base.workload.path, base.workload.resample_users) == ("prepared", None, False)
    assert (base.network.brokers, base.network.geometry.kind, base.network.latency.kind) == ("cells", "chord", "unit")
    assert (base.brokers.service.kind, base.brokers.queue, base.selection.kind) == ("none", None, "static")


def test_variants_override_the_base(tmp_path: Path) -> None:
    experiment = load_scenario(written(tmp_path, COMPARISON))
    static, small, even = experiment.variants.values()
    assert list(experiment.variants) == ["static", "small", "even"]
    assert static.selection.dump() == {"kind": "static", "assign": "random"}  # another kind replaces the table
    assert small.selection.dump()["update_period"] == 1800.0  # the same kind keeps its keys
    assert small.selection.dump()["cluster_size"] == 2
    assert even.network.geometry.dump() == {"kind": "chord", "ids": "even", "bits": 16, "state": "children"}
    assert even.network.brokers == 4
    assert small.horizon == 7200.0
    assert experiment.report.baseline == "static"
    assert experiment.report.metrics == ("due",)


def test_a_table_of_another_kind_is_replaced_and_others_merge() -> None:
    below = {"a": {"kind": "x", "p": 1, "q": {"r": 1}}, "b": {"c": 1}}
    assert merge(below, {"a": {"p": 2, "q": {"s": 2}}}) == {
        "a": {"kind": "x", "p": 2, "q": {"r": 1, "s": 2}},
        "b": {"c": 1},
    }
    assert merge(below, {"a": {"kind": "y"}, "b": 3}) == {"a": {"kind": "y"}, "b": 3}
    assert below == {"a": {"kind": "x", "p": 1, "q": {"r": 1}}, "b": {"c": 1}}


def test_the_command_line_overrides_by_the_same_paths(tmp_path: Path) -> None:
    overrides = [
        "network.brokers=9",
        "warm_up=1h",
        "variant.small.selection.cluster_size=3",
        'title="a b"',
        "trace=true",
    ]
    experiment = load_scenario(written(tmp_path, COMPARISON), [*overrides, "selection.hysteresis=0.5"])
    assert {scenario.network.brokers for scenario in experiment.variants.values()} == {9}
    small = experiment.variants["small"]
    assert (small.warm_up, small.title, small.trace) == (3600.0, "a b", True)
    assert (small.selection.dump()["cluster_size"], small.selection.dump()["hysteresis"]) == (3, 0.5)


def test_a_workload_takes_the_place_of_a_generator(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    experiment = load_scenario(written(tmp_path, COMPARISON), workload=tmp_path / "w")
    assert experiment.variants["even"].workload.path == tmp_path / "w"
    assert experiment.base.workload.dump() == {"kind": "prepared", "path": "w", "resample_users": False}


def test_a_workload_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    path = written(tmp_path, 'workload = { kind = "prepared", path = "w", resample_users = true }')
    table = load_scenario(path).base.workload
    assert table.path == tmp_path / "w"
    assert table.resample_users
    (tmp_path / "w").rmdir()
    assert mistakes(path) == [f"{path}:1: workload.path: no such folder (found '{tmp_path / 'w'}')"]


BROKERS = "broker,latitude,longitude,region,capacity\nparis,48.86,2.35,eu,2\nnew york,40.7,-74,us,\n"


def test_brokers_are_read_from_a_file_that_is_relative_to_the_scenario(tmp_path: Path) -> None:
    path = written(tmp_path, 'network.brokers = "sites/b.csv"\n[[variant]]\nname = "few"\nnetwork.brokers = 1')
    (tmp_path / "sites").mkdir()
    brokers = written(tmp_path / "sites", BROKERS, "b.csv")
    base = load_scenario(path).base
    assert isinstance(base.network.brokers, File)
    assert base.network.brokers.content.names == ("paris", "new york")
    assert load_scenario(path).variants["few"].network.brokers == 1
    assert load_scenario(tmp_path / "s.toml", [f"network.brokers={brokers}"]).base == base
    again = pickle.loads(pickle.dumps(base))
    assert again == base
    assert again.network.brokers.content.latitude.tolist() == [48.86, 40.7]


def test_a_file_counts_by_its_content(tmp_path: Path) -> None:
    def identity(folder: str, text: str) -> Any:
        (tmp_path / folder).mkdir()
        brokers = written(tmp_path / folder, text, "b.csv")
        return load_scenario({"network": {"brokers": str(brokers)}}).base.identity()

    assert identity("here", BROKERS) == identity("there", BROKERS)
    assert identity("other", BROKERS.replace("48", "49")) != identity("third", BROKERS)
    dumped = identity("fourth", BROKERS)["network"]["brokers"]
    assert dumped == {"name": "b.csv", "sha256": hashlib.sha256(BROKERS.encode()).hexdigest()}


def test_a_mistake_in_a_file_is_told_with_both_places(tmp_path: Path) -> None:
    brokers = written(tmp_path, "broker\na\na\n", "b.csv")
    path = written(tmp_path, '[network]\nbrokers = "b.csv"')
    assert mistakes(path) == [f"{path}:2: network.brokers: {brokers}, line 3: broker: 'a' is already on line 2"]
    override = f"network.brokers={tmp_path / 'bs.csv'}"
    assert mistakes(path, override) == [
        f"--set {override}: network.brokers: no such file, did you mean '{brokers}'? (found '{tmp_path / 'bs.csv'}') (allowed: a "
        "number of brokers (1 or more), 'cells' (one per visited cell) or a CSV file)"
    ]


MISTAKES = """\
seed = -1
replications = "3"
horizon = "1h"
warm_up = "2h"
windw = 3
[network]
brokers = 0
hop_cost = "oneway"
geometry = { kind = "chrod", bits = 3 }
latency = { kind = "unit", rtt = nan }
data_plain = "auto"
[brokers]
service = { kind = "exponential" }
queue = -1
[selection]
kind = "similarity"
load_weight = true
cluster_sise = 3
[reconfiguration]
kind = "lsab"
[[variant]]
name = "a"
seed = 4
[[variant]]
name = "a"
[[variant]]
name = "b"
selection = { kind = "static", foo = 1 }
[variant.network]
brokers = 1.5
[[variant]]
selection = "static"
[report]
baseline = "c"
metrics = [
    "due",
    "los",
]
[sweep]
"""

FILE_KEYS = (
    "variant, report, precision, sweep, tune, title, seed, replications, horizon, warm_up, window, trace, subscribers, "
    "topic_delays, metrics, "
    "workload, faults, network, brokers, selection, reconfiguration, offloading"
)
SIMILARITY_KEYS = "kind, load_weight, load, similarity, update_period, cluster_size, cluster, hysteresis"


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, MISTAKES)
    network_keys = (
        "brokers, geometry, latency, links, clients, reconnect, delivery, healing, sessions, qos, sharing, "
        "delay_until, hop_cost, join, control_count, data_plane"
    )
    reconfigurations = ", ".join(sorted(["none", *plugins.names("reconfiguration")]))
    assert mistakes(path, "network.brokrs=3", "variant.b.selection.bar=x") == [
        f"{path}:{line}"
        for line in [
            "1: seed: expected a value greater than or equal to 0 (found -1)",
            "2: replications: expected a valid integer (found '3')",
            "4: warm_up: expected less than the horizon (3600 s), found 7200 s",
            f"5: windw: unknown key, did you mean 'window'? (allowed: {FILE_KEYS}) (found 3)",
            "7: network.brokers: expected a number of brokers (1 or more), 'cells' (one per visited cell) or a CSV file, "
            "found 0",
            "8: network.hop_cost: unknown value, did you mean 'one_way'? (allowed: one_way, rtt) (found 'oneway')",
            "9: network.geometry.kind: unknown kind, did you mean 'chord'? "
            f"(allowed: {', '.join(plugins.names('geometry'))}) (found 'chrod')",
            "10: network.latency.rtt: expected a finite duration, found nan",
            f"11: network.data_plain: unknown key, did you mean 'data_plane'? (allowed: {network_keys}) (found 'auto')",
            "13: brokers.service: kind 'exponential' needs a time above 0",
            "14: brokers.queue: expected a number of messages (1 or more) or 'unbounded', found -1",
            "17: selection.load_weight: expected a valid number (found true)",
            f"18: selection.cluster_sise: unknown key, did you mean 'cluster_size'? (allowed: {SIMILARITY_KEYS}) (found 3)",
            f"20: reconfiguration.kind: unknown kind, did you mean 'lsap'? (allowed: {reconfigurations}) (found 'lsab')",
            "23: variant.a.seed: variants share this key; set it once, above them",
            "25: variant[1].name: another variant has the same name (found 'a')",
            "28: variant.b.selection.foo: unknown key (allowed: kind, assign) (found 1)",
            "30: variant.b.network.brokers: expected a number of brokers (1 or more), 'cells' (one per visited cell) or a CSV "
            "file, found 1.5",
            "31: variant[3].name: every variant needs a name (found null)",
            "32: variant[3].selection: expected a table such as { kind = \"static\" }, found 'static'",
            "34: report.baseline: no such variant (allowed: a, [1], b, [3]) (found 'c')",
            "37: report.metrics[1]: unknown metric, did you mean 'lost'? "
            f"(there are {len(METRICS)}, such as 'broker_subscription_changes') (found 'los')",
            '39: sweep: no key is swept: expected keys with lists of values, such as "network.brokers" = [10, 20]',
        ]
    ] + [
        f"--set network.brokrs=3: network.brokrs: unknown key, did you mean 'brokers'? (allowed: {network_keys}) (found 3)",
        "--set variant.b.selection.bar=x: variant.b.selection.bar: unknown key (allowed: kind, assign) (found 'x')",
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("network.brokers", "expected key=value, such as network.brokers=200"),
        ("a..b=1", "expected key=value, such as network.brokers=200"),
        ("variant.evn.seed=1", "expected variant.NAME.key=value, did you mean 'even'? (allowed: static, small, even)"),
        ("variant.even.seed=2", "'seed' cannot be set for a single variant"),
        ("variant.even.name=odd", "'name' cannot be set for a single variant"),
        ("network=3", "network: expected a table (found 3)"),
        ("sweep.seed=3", "sweep.seed: 'seed' is the same for all runs and cannot be swept"),
        ("brokers.service.kind=exponential", "brokers.service: kind 'exponential' needs a time above 0"),
        ("warm_up=-1s", "warm_up: expected a value greater than or equal to 0 (found '-1s')"),
        (
            "warm_up=3 days",
            "warm_up: expected a duration such as '90s', '10h' or '7d' (units: us, ms, s, min, h, d, w), found '3 days'",
        ),
    ],
)
def test_overrides_that_cannot_be(tmp_path: Path, override: str, message: str) -> None:
    assert mistakes(written(tmp_path, COMPARISON), override) == [f"--set {override}: {message}"]


def test_a_warm_up_as_long_as_the_run_leaves_nothing_to_measure(tmp_path: Path) -> None:
    path = written(tmp_path, 'horizon = "2h"\nwarm_up = "2h"\n')
    assert mistakes(path) == [f"{path}:2: warm_up: expected less than the horizon (7200 s), found 7200 s"]
    assert load_scenario(written(tmp_path, 'horizon = "2h"\nwarm_up = "119min"\n')).base.warm_up == 7140.0


def test_a_run_does_not_draw_a_workload_that_it_hardly_uses(tmp_path: Path) -> None:
    """A gigabyte of events for two seconds was drawn before; a short run of a small workload remains possible."""
    busy = 'network.brokers = 4\nworkload = { kind = "poisson", topics = 50, publication_rate = 36_000 }\n'
    assert mistakes(path := written(tmp_path, f'horizon = "2s"\n{busy}')) == [
        f"{path}:1: horizon: a run ends after 2 s, but all 1.8e+08 events of the workload's 4.17 d are drawn first: "
        "set workload.horizon to the same"
    ]
    for text in (busy, f'horizon = "90h"\n{busy}', 'horizon = "2s"\n' + busy.replace("36_000", "1")):
        assert load_scenario(written(tmp_path, text)).base.workload.kind == "poisson"


@pytest.mark.parametrize("text", ["", "\n# to be written\n"])
def test_a_file_that_says_nothing_is_told(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    assert mistakes(path) == [f"{path}: the file is empty: expected keys and tables such as [workload]"]


def test_a_dict_is_a_scenario_too() -> None:
    assert load_scenario({"network": {"brokers": 3}}).base.network.brokers == 3
    assert mistakes({"network": {"brokers": "three"}}) == [
        "scenario: network.brokers: no such file (found 'three') (allowed: a number of brokers (1 or more), 'cells' (one per visited "
        "cell) or a CSV file)"
    ]
    assert mistakes({"variant": {"name": "a"}}) == [
        'scenario: variant: expected tables [[variant]], found {"name": "a"}'
    ]


def test_reading_a_dict_leaves_it_alone() -> None:
    source = {"selection": {"kind": "similarity"}, "variant": [{"name": "a", "selection": {"cluster_size": 3}}]}
    before = json.dumps(source)
    load_scenario(source, ["selection.load_weight=2"])
    assert json.dumps(source) == before


def test_what_is_resolved_can_be_read_again(tmp_path: Path) -> None:
    for scenario in load_scenario(written(tmp_path, COMPARISON)).variants.values():
        again = load_scenario(scenario.model_dump(mode="json")).base
        assert again == scenario
        assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_queue_may_be_bounded_and_services_take_time() -> None:
    brokers = load_scenario({"brokers": {"queue": 1, "service": {"kind": "deterministic", "time": "5ms"}}}).base.brokers
    assert (brokers.queue, brokers.service.time) == (1, 0.005)
    assert mistakes({"brokers": {"service": {"time": "5ms"}}}) == [
        "scenario: brokers.service: kind 'none' takes no time above 0"
    ]


def test_what_services_cost_and_how_they_vary(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("seconds,count\n0.002,3\n0.001,1\n")
    costs = {"time": "2us", "send": "9us", "send_client": "1us", "per_byte": 1e-9, "wake_up": "85us"}
    measured = {"kind": "histogram", "file": str(tmp_path / "times.csv"), **costs}
    brokers = {"service": measured, "servers": 4, "queue_bytes": 100, "order": "fifo", "overflow": "drop-oldest"}
    made = load_scenario({"brokers": brokers}).base.brokers
    assert made.service.file is not None
    assert made.service.file.content == ((0.001, 0.002), (1.0, 3.0))
    assert (made.service.send, made.service.wake_up, made.queue_bytes) == (9e-6, 85 * 1e-6, 100)


def test_rates_of_links_have_units() -> None:
    links = {"bandwidth": "10MB/s", "interface": "0.3 Gb/s", "loss": 0.5, "buffer": 3}
    made = load_scenario({"network": {"links": links}}).base.network.links
    assert (made.bandwidth, made.interface, made.loss, made.buffer, made.buffer_bytes) == (8e7, 3e8, 0.5, 3, None)


@pytest.mark.parametrize(
    ("links", "mistake"),
    [
        ({"bandwidth": 0}, "network.links.bandwidth: expected a value greater than 0 (found 0)"),
        ({"interface": "-1Mb/s"}, "network.links.interface: expected a value greater than 0 (found '-1Mb/s')"),
        (
            {"bandwidth": "3 Mbps"},
            "network.links.bandwidth: expected a rate such as '0.3Gb/s' or '10MB/s' (units: b/s, B/s, kb/s, kB/s, Mb/s, MB/s, "
            "Gb/s, GB/s), found '3 Mbps'",
        ),
        ({"loss": 1.1}, "network.links.loss: expected a value less than or equal to 1 (found 1.1)"),
        (
            {"buffer": 9},
            "network.links: buffer without a rate, so that no message waits (allowed with: bandwidth, interface)",
        ),
        ({"bandwith": 9}, "network.links"),
    ],
)
def test_mistakes_in_what_limits_links_are_one_sentence(links: dict[str, Any], mistake: str) -> None:
    (found,) = mistakes({"network": {"links": links}})
    assert found.startswith(f"scenario: {mistake}")


def test_the_way_to_users_has_units_and_slow_ones_differ_in_what_is_said() -> None:
    way = {
        "latency": "40ms",
        "rate": "2Mb/s",
        "window": 20,
        "buffer": 100,
        "overflow": "disconnect",
        "reconnect_after": "30s",
    }
    slow = {"share": 0.01, "rate": "50kb/s"}
    made = load_scenario({"network": {"clients": {**way, "slow": slow}, "delay_until": "client"}}).base.network
    assert (made.clients.latency, made.clients.rate, made.clients.reconnect_after) == (0.04, 2e6, 30.0)
    assert (made.clients.slow.share, made.clients.slow.rate, made.clients.slow.latency) == (0.01, 5e4, None)
    assert made.delay_until == "client"
    assert not load_scenario({"network": {"clients": {}}}).base.network.clients.takes_time


@pytest.mark.parametrize(
    ("clients", "mistake"),
    [
        ({"window": 0, "latency": "1s"}, ".window: expected a value greater than or equal to 1 (found 0)"),
        ({"rate": 0}, ".rate: expected a value greater than 0 (found 0)"),
        ({"latency": "-1s"}, ".latency: expected a value greater than or equal to 0 (found '-1s')"),
        ({"window": 3}, ": window without a latency, so that it has no effect (allowed with: latency, per_km)"),
        ({"jitter": 0.1}, ": jitter without a latency, so that it has no effect (allowed with: latency, per_km)"),
        ({"buffer": 9}, ": buffer without a limit, so that no message waits (allowed with: rate, window)"),
        (
            {"buffer_bytes": 9, "latency": "1s"},
            ": buffer_bytes without a limit, so that no message waits (allowed with: rate, window)",
        ),
        (
            {"rate": "1Mb/s", "overflow": "disconnect"},
            ": overflow 'disconnect' without a limit, so that it has no effect (allowed with: buffer, buffer_bytes)",
        ),
        (
            {"rate": "1Mb/s", "reconnect_after": "1s"},
            ": overflow 'drop-newest' takes no reconnect_after (allowed with: 'disconnect')",
        ),
        (
            {"overflow": "disconect"},
            ".overflow: unknown value, did you mean 'disconnect'? (allowed: drop-newest, drop-oldest, disconnect)",
        ),
        (
            {"slow": {"rate": "1Mb/s"}},
            ".slow: rate without a share above 0, so that no user is slow (allowed with: share, first)",
        ),
        (
            {"slow": {"share": 0.1}},
            ".slow: share without a slow value (allowed with: latency, rate, window)",
        ),
        ({"slow": {"share": 1.5, "rate": 9}}, ".slow.share: expected a value less than or equal to 1 (found 1.5)"),
    ],
)
def test_mistakes_in_the_way_to_users_are_one_sentence(clients: dict[str, Any], mistake: str) -> None:
    (found,) = mistakes({"network": {"clients": clients}})
    assert found.startswith(f"scenario: network.clients{mistake}")


def test_delays_count_to_clients_only_where_there_is_a_way_to_them() -> None:
    assert mistakes({"network": {"delay_until": "client"}}) == [
        "scenario: network: delay_until 'client' without legs to users that take time "
        "(allowed with: clients.latency, clients.per_km, clients.rate)"
    ]
    (found,) = mistakes({"network": {"delay_until": "clients"}})
    assert found.startswith(
        "scenario: network.delay_until: unknown value, did you mean 'client'? (allowed: broker, served, client)"
    )


def test_a_preset_gives_costs_that_are_not_said() -> None:
    """As measured: 100 B to one subscriber of a light broker take 11.7 µs of CPU; a bus with ten subscribers sends 4.74 M copies/s."""
    service = load_scenario(
        {"brokers": {"service": {"kind": "gamma", "preset": "light", "wake_up": 0}}}
    ).base.brokers.service
    assert service.wake_up == 0.0
    assert service.time + service.send_client + 100 * service.per_byte == pytest.approx(11.7e-6)
    bus = load_scenario({"brokers": {"service": {"preset": "bus", "kind": "exponential"}}}).base.brokers.service
    assert 10 / (bus.time + 10 * bus.send) == pytest.approx(4_739_830, rel=0.01)
    assert mistakes({"brokers": {"service": {"preset": "bus"}}}) == [
        "scenario: brokers.service: preset 'bus' needs a kind (allowed: any but 'none')"
    ]
    (found,) = mistakes({"brokers": {"service": {"preset": "lite"}}})
    assert "'light'" in found


def test_a_preset_may_be_a_file_of_costs(tmp_path: Path) -> None:
    """Beside the scenario; its content is part of a run's identity."""
    text = '[brokers.service]\nkind = "gamma"\ntime = "1us"\npreset = "mine.toml"\n'
    (tmp_path / "s.toml").write_text(text)
    (tmp_path / "mine.toml").write_text('[costs]\ntime = "3us"\nwake_up = 5e-5\n[measured]\non = "a desk"\n')
    base = load_scenario(tmp_path / "s.toml").base
    assert (base.brokers.service.time, base.brokers.service.wake_up) == (1e-6, 5e-5)
    assert base.identity()["brokers"]["service"]["preset"]["name"] == "mine.toml"
    (tmp_path / "mine.toml").write_text(
        '[costs]\ntime = "3us"\nwake_up = 5e-5\nwake_up_half = "1ms"\nwake_up_least = "9us"\nwake_up_slowdown = 0.5\n'
    )
    service = load_scenario(tmp_path / "s.toml").base.brokers.service
    assert (service.wake_up_half, service.wake_up_least, service.wake_up_slowdown) == (1e-3, 9e-6, 0.5)
    (tmp_path / "s.toml").write_text(text + "wake_up_half = 0\n")  # all of it, after any idle time
    assert load_scenario(tmp_path / "s.toml").base.brokers.service.wake_up_least == 0.0
    (tmp_path / "s.toml").write_text(text + "wake_up = 0\n")  # then there is nothing to take half of
    service = load_scenario(tmp_path / "s.toml").base.brokers.service
    assert (service.wake_up_half, service.wake_up_least, service.wake_up_slowdown) == (0.0, 0.0, 0.0)
    (tmp_path / "s.toml").write_text(text.replace("mine", "thine"))
    with pytest.raises(
        ScenarioError, match=r"s.toml:4: brokers.service.preset: no such file, did you mean '.*mine.toml'"
    ):
        load_scenario(tmp_path / "s.toml")
    for costs, wrong in (
        ("", r"no table \[costs\]"),
        ("[costs]\ntim = 1", "costs: unknown cost 'tim', did you mean 'time'"),
        ("[costs]\ntime = -1", "costs.time: expected 0 to 1 h, found -1"),
        ('[costs]\ntime = "soon"', "costs.time: expected a duration"),
        ("[costs]\nwake_up_slowdown = '1us'", "costs.wake_up_slowdown: expected a number, found '1us'"),
        ("[costs]\nwake_up_slowdown = -1", "costs.wake_up_slowdown: expected 0 to 100, found -1"),
        ("[costs", "not valid TOML"),
    ):
        (tmp_path / "thine.toml").write_text(costs)
        with pytest.raises(ScenarioError, match=rf"brokers.service.preset: .*thine.toml, {wrong}"):
            load_scenario(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("brokers", "mistake"),
    [
        ({"queue": 9}, "brokers: queue without a service time, so that no message waits (allowed with: service.kind)"),
        (
            {"servers": 2},
            "brokers: servers without a service time, so that no message waits (allowed with: service.kind)",
        ),
        (
            {"service": {"kind": "gamma", "time": 1}, "overflow": "drop-oldest"},
            "brokers: overflow 'drop-oldest' without a limit, so that it has no effect (allowed with: queue, queue_bytes)",
        ),
        ({"service": {"kind": "gamma"}}, "brokers.service: kind 'gamma' needs a time above 0"),
        ({"service": {"send": "1us"}}, "brokers.service: kind 'none' takes no send above 0"),
        (
            {"service": {"kind": "gamma", "time": 1, "wake_up_half": 1}},
            "brokers.service: wake_up_half without a wake_up, so that it has no effect (allowed with: wake_up)",
        ),
        (
            {"service": {"kind": "gamma", "time": 1, "wake_up_slowdown": 1}},
            "brokers.service: wake_up_slowdown without a wake_up (allowed with: wake_up)",
        ),
        (
            {"service": {"kind": "gamma", "time": 1, "wake_up": 1, "wake_up_least": 1}},
            "brokers.service: wake_up_least without a wake_up_half, so that it has no effect (allowed with: wake_up_half)",
        ),
        (
            {"service": {"kind": "gamma", "time": 1, "wake_up": 1, "wake_up_half": 1, "wake_up_least": 2}},
            "brokers.service: wake_up_least of 2 s is above wake_up, 1 s (allowed: up to it)",
        ),
        (
            {"service": {"kind": "deterministic", "time": 1, "variation": 2}},
            "brokers.service: kind 'deterministic' takes no variation (allowed with: 'gamma', 'lognormal')",
        ),
        (
            {"service": {"kind": "gamma", "time": 1, "variation": 0}},
            "brokers.service.variation: expected a value greater than 0 (found 0)",
        ),
        ({"service": {"kind": "histogram", "time": 1}}, "brokers.service: kind 'histogram' needs a file"),
        (
            {"service": {"kind": "gamma", "time": 1, "send": -1}},
            "brokers.service.send: expected a value greater than or equal to 0 (found -1)",
        ),
        ({"servers": 0}, "brokers.servers: expected a value greater than or equal to 1 (found 0)"),
        (
            {"queue_bytes": -1},
            "brokers.queue_bytes: expected a number of bytes (1 or more) or 'unbounded', found -1",
        ),
        ({"overflow": "drop-new"}, "brokers.overflow"),
        ({"order": "lifo"}, "brokers.order"),
    ],
)
def test_mistakes_in_what_brokers_do_are_one_sentence(brokers: dict[str, Any], mistake: str) -> None:
    (found,) = mistakes({"brokers": brokers})
    assert found.startswith(f"scenario: {mistake}")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("seconds,count\n", "no rows"),
        ("seconds,count\n0,1\n", "all seconds are 0 (allowed: at least one above 0)"),
        ("seconds,count\n1,0\n", "line 2: count: expected a number above 0, found '0'"),
        ("second,count\n1,1\n", "line 1: no column 'seconds', did you mean 'second'?"),
    ],
)
def test_mistakes_in_measured_service_times_name_their_line(tmp_path: Path, text: str, mistake: str) -> None:
    (tmp_path / "times.csv").write_text(text)
    service = {"kind": "histogram", "time": 1, "file": str(tmp_path / "times.csv")}
    (found,) = mistakes({"brokers": {"service": service}})
    assert mistake in found


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_shipped_scenarios_are_valid(path: Path) -> None:
    experiment = load_scenario(path)
    expected = {
        "content": ["static", "similarity", "star"],
        "three-regions": ["chord", "full-mesh", "star"],
        "sweep": ["location", "similarity"],
        "combined": [next(iter(experiment.variants))],
        **{name: ["none", "b3m", "fb3m", "portfolio", "popular"] for name in ("lastfm", "ciaodvd")},
    }
    assert list(experiment.variants) == expected.get(path.stem, ["static", "location", "similarity"])
    assert experiment.title
    runs = {"combined": 1, "lastfm": 3, "ciaodvd": 3, "sweep": 3}
    assert experiment.base.replications == runs.get(path.stem, 5)


def test_a_report_that_says_no_metrics_shows_satisfaction_where_it_is_measured() -> None:
    silent = load_scenario({}).report.metrics
    for table in ({"kind": "b3m"}, {"kind": "none", "tau": 3}):
        shown = load_scenario({"variant": [{"name": "all"}, {"name": "some", "offloading": table}]}).report.metrics
        assert shown == (*silent, "satisfied_subscribers", "satisfaction")
        said = {"offloading": table, "report": {"metrics": ["handovers"]}}
        assert load_scenario(said).report.metrics == ("handovers",)


def schema_errors(values: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft202012Validator(json_schema())
    return [error.json_path for error in validator.iter_errors(values)]


def test_the_schema_accepts_what_is_valid(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    for path in (*SHIPPED, written(tmp_path, COMPARISON)):
        assert schema_errors(read(path)[0]) == []
    assert schema_errors(load_scenario(written(tmp_path, COMPARISON)).base.model_dump(mode="json")) == []
    assert schema_errors({"warm_up": "detect", "sweep": {"selection": {"cluster_size": [1]}, "window": ["1h"]}}) == []


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"windw": 3}, "$"),
        ({"seed": -1}, "$.seed"),
        ({"window": "3 parsecs"}, "$.window"),
        ({"network": {"brokers": 0}}, "$.network.brokers"),
        ({"network": {"geometry": {"kind": "chrod"}}}, "$.network.geometry"),
        ({"network": {"geometry": {"kind": "chord", "bits": 99}}}, "$.network.geometry"),
        ({"selection": {"kind": "static", "cluster_size": 3}}, "$.selection"),
        ({"variant": [{"selection": {"kind": "static"}}]}, "$.variant[0]"),
        ({"variant": [{"name": "a", "selection": {"kind": "sttic"}}]}, "$.variant[0].selection"),
        ({"variant": [{"name": "a", "seed": 3}]}, "$.variant[0]"),
        ({"report": {"metrics": ["los"]}}, "$.report.metrics[0]"),
        ({"precision": {"metric": "los"}}, "$.precision.metric"),
        ({"sweep": {"network.brokers": []}}, "$.sweep['network.brokers']"),
        ({"sweep": {"network": {"brokers": {"from": 1, "to": 2, "steps": 1}}}}, "$.sweep.network"),
        ({"sweep": {"window": [1], "sample": "grit"}}, "$.sweep.sample"),
    ],
)
def test_the_schema_refuses_what_is_not(values: dict[str, Any], where: str) -> None:
    assert schema_errors(values) == [where]
    mistakes(values)


def test_identity_is_what_tells_runs_apart() -> None:
    base = Scenario()
    assert Scenario(title="other", replications=9).identity() == base.identity()
    for other in (Scenario(seed=2), Scenario(window=60.0), Scenario(trace=True)):
        assert other.identity() != base.identity()


TUNED = {"variant": [{"name": "static"}, {"name": "alike", "selection": {"kind": "similarity"}}]}


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"network.brokes": [2, 4]}, "tune.network.brokes: unknown key, did you mean 'brokers'?"),
        (
            {"network": {"brokers": {"from": 0, "to": 4}}},
            "tune.network.brokers: expected a number of brokers (1 or more)",
        ),
        ({"selection.hysteresis": ["much", 0.5]}, "tune.selection.hysteresis: unknown key"),
    ],
)
def test_what_cannot_be_tuned_is_told_with_all_else(vary: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        load_scenario({**TUNED, "tune": {"minimise": "notification_delay", **vary}})
    assert message in str(error.value)


def test_what_one_variant_knows_can_be_tuned() -> None:
    tune = {"minimise": "notification_delay", "selection.hysteresis": {"from": 0.0, "to": 0.5}}
    assert load_scenario({**TUNED, "tune": tune}).tune is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("report.baseline = 2020-01-01", "1: report.baseline: no such variant (allowed: base) (found '2020-01-01')"),
        ('report.metrics = ["due", ["x"]]', "1: report.metrics[1]: unknown metric (there are "),
        ('tune.minimise = [["x"]]', "1: tune.minimise[0]: unknown metric (there are "),
        (
            "replications = 1_000_000_000",
            "1: replications: expected a value less than or equal to 1000000 (found 1000000000)",
        ),
        (
            'replications = 500_000\n[[variant]]\nname = "a"\n[[variant]]\nname = "b"\n[sweep]\nwindow = [1, 2]',
            "1: replications: 500,000 replications of each of 4 points and variants are 2,000,000 runs (allowed: 1,000,000)",
        ),
        (
            'precision.max_replications = 600_000\n[[variant]]\nname = "a"\n[[variant]]\nname = "b"',
            "1: precision.max_replications: 600,000 replications of each of 2 points and variants are 1,200,000 runs "
            "(allowed: 1,000,000)",
        ),
        (
            "network.brokers = 2147483648",
            "1: network.brokers: expected fewer than 2,147,483,648 brokers, found 2,147,483,648",
        ),
        (
            "network.brokers = 9223372036854775808",
            "1: network.brokers: expected a 64-bit integer, found 9223372036854775808",
        ),
        (
            '[reconfiguration]\nkind = "sweep"\ndelay_weight = 1e308',
            "3: reconfiguration.delay_weight: expected a value less than or equal to 9007199254740992 (found 1e+308)",
        ),
        ('horizon = "1e300d"', "1: horizon: expected a value less than or equal to 9000000000 (found '1e300d')"),
    ],
)
def test_what_no_run_can_hold_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    (mistake,) = mistakes(path)
    assert mistake.startswith(f"{path}:{message}")


OFTEN = [
    ("window", "windows"),
    ('network.geometry.kind = "topic-connected"\nnetwork.geometry.period', "periods"),
    ('selection.kind = "similarity"\nselection.update_period', "periods"),
    ('reconfiguration.kind = "anneal"\nreconfiguration.period', "periods"),
    ('offloading.kind = "b3m"\noffloading.period', "periods"),
    ("offloading.tau = 1\noffloading.period", "periods"),
]


@pytest.mark.parametrize(("text", "steps"), OFTEN)
@pytest.mark.parametrize("end", ['horizon = "1h"', 'workload = { kind = "poisson", horizon = "1h" }'])
def test_what_is_done_too_often_up_to_the_horizon_is_refused(tmp_path: Path, end: str, text: str, steps: str) -> None:
    key = text.rpartition("\n")[2]
    end += "\nnetwork.brokers = 4"
    assert load_scenario(written(tmp_path, f'{end}\n{text} = "3600us"'))
    path = written(tmp_path, f'{end}\n{text} = "1us"')
    assert mistakes(path) == [
        f"{path}:{3 + text.count(chr(10))}: {key}: 1,000,000 {steps} at most, so 0.0036 s or more up to 3600 s, found 1e-06 s"
    ]


@pytest.mark.parametrize("key", ["rate", "slow.rate"])
def test_tables_with_mistakes_are_not_checked_against_others(key: str) -> None:
    """Users' legs are there, though with a mistake: that delays cannot end with users would be a second, wrong sentence."""
    legs = {"network": {"clients": {"rate": "1Mb/s"}, "delay_until": "client"}, "variant": [{"name": "a"}]}
    with pytest.raises(ScenarioError) as error:
        load_scenario(legs, [f"network.clients.{key}=0"])
    assert str(error.value) == (
        f"--set network.clients.{key}=0: network.clients.{key}: expected a value greater than 0 (found 0)"
    )


@pytest.mark.parametrize(
    "key",
    [
        *("brokers.queue", "brokers.queue_bytes", "network.links.buffer", "network.links.buffer_bytes"),
        *(
            "network.clients.buffer",
            "network.clients.buffer_bytes",
            "network.sessions.queue",
            "network.sessions.queue_bytes",
        ),
    ],
)
def test_no_queue_has_room_for_nothing(key: str) -> None:
    """A limit of 0 is none at all with some brokers, so that it is not guessed what it means."""
    rates = {
        "network": {"links": {"bandwidth": "1Mb/s"}, "clients": {"rate": "1Mb/s"}},
        "brokers": {"service": {"kind": "deterministic", "time": "1ms"}},
    }
    load_scenario(rates, [f"{key}=1"])
    with pytest.raises(ScenarioError) as error:
        load_scenario(rates, [f"{key}=0"])
    what = "bytes" if key.endswith("bytes") else "messages"
    assert str(error.value) == f"--set {key}=0: {key}: expected a number of {what} (1 or more) or 'unbounded', found 0"
