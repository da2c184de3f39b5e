"""Faults in scenarios: how [[faults]] is read, what is refused before anything is simulated, and the schedule that a run gets."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tiny

from sim.api.runs import run
from sim.base.errors import InputError, ScenarioError
from sim.brokers.control.manager import Manager
from sim.brokers.network import Network
from sim.brokers.users.reconnect import RECONNECT, ReconnectSetting
from sim.files.toml import read
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.scenario.schema import json_schema
from sim.simulation import build, prepare_workload, simulate
from sim.workloads.faults.schedule import CRASH, LOSS, FaultSchedule
from sim.workloads.format.folder import write_workload

SITES = "broker,region\nparis,eu\noslo,eu\nlima,sa\n"
BASE = """\
[workload]
kind = "poisson"
users = 10
horizon = "1h"
[network]
brokers = "sites.csv"
[network.reconnect]
to = "policy"
backoff = "exponential"
detection = "5s"
[brokers]
connection_rate = 50
[[faults]]
kind = "crash"
brokers = "oslo"
at = ["10min", "30min"]
for = "5min"
[[faults]]
kind = "lifetimes"
up = { mean = "30min" }
down = { mean = "1min", distribution = "weibull", shape = 2 }
[[faults]]
kind = "trace"
file = "outages.csv"
[[variant]]
name = "static"
[[variant]]
name = "alike"
selection = { kind = "similarity" }
[[variant]]
name = "lossy"
[[variant.faults]]
kind = "loss"
probability = 0.3
at = 0
[[variant.faults]]
kind = "trace"
file = "outages.csv"
"""


def written(folder: Path, text: str = BASE) -> Path:
    (folder / "sites.csv").write_text(SITES)
    (folder / "outages.csv").write_text("broker,down_from,up_at,other\nlima,60,70,paris\nparis,100,,\n")
    path = folder / "s.toml"
    path.write_text(text)
    return path


def schedule(scenario: Scenario, replication: int = 0) -> FaultSchedule:
    found = build(scenario, prepare_workload(scenario, replication, None), replication).setting.faults
    assert found is not None
    return found


def columns(found: FaultSchedule) -> list[Any]:
    return [found.time.tolist(), found.action.tolist(), found.target.tolist(), found.other.tolist()]


def test_a_scenario_lists_what_fails_and_variants_may_list_something_else(tmp_path: Path) -> None:
    path = written(tmp_path)
    found = load_scenario(path).points[0].variants
    assert [table.kind for table in found["alike"].faults] == ["crash", "lifetimes", "trace"]
    assert [table.kind for table in found["lossy"].faults] == ["loss", "trace"]
    crash = {"kind": "crash", "at": [600.0, 1800.0], "for": 300.0, "every": None, "brokers": ["oslo"]}
    assert found["static"].identity()["faults"][0] == crash
    assert found["static"].model_dump(mode="json")["faults"][0] == crash
    assert columns(schedule(found["static"])) == columns(schedule(found["alike"]))
    assert schedule(found["lossy"]).action.tolist() == [LOSS, 5, 1, CRASH]
    other = load_scenario(path, ['faults=[{ brokers = "paris", at = "1min" }]']).points[0].variants
    assert columns(schedule(other["static"])) == [[60.0], [CRASH], [0], [-1]]
    assert [table.kind for table in other["lossy"].faults] == ["loss", "trace"]
    jsonschema.Draft202012Validator(json_schema()).validate(read(path)[0])


def test_each_replication_draws_its_own_and_a_table_more_shifts_none_before_it(tmp_path: Path) -> None:
    text = BASE.replace('brokers = "oslo"\nat = ["10min", "30min"]', 'brokers = "oslo"\nat = "59min"')
    one = load_scenario(written(tmp_path, text)).base
    first, again, other = (schedule(one, replication) for replication in (0, 0, 1))
    assert columns(first) == columns(again)
    assert columns(first) != columns(other)
    more = '[[faults]]\nkind = "crash"\nbrokers = "lima"\nat = "58min"\nfor = "90s"\n[[variant]]\nname = "static"'
    longer = schedule(load_scenario(written(tmp_path, text.replace('[[variant]]\nname = "static"', more))).base)
    assert set(first.time.tolist()) < set(longer.time.tolist())


def test_how_users_reconnect_reaches_the_network(tmp_path: Path) -> None:
    one = load_scenario(written(tmp_path)).base
    setting = build(one, prepare_workload(one, 0, None), 0).setting
    assert setting.reconnect == ReconnectSetting(5.0, "policy", "exponential", connection_rate=50.0)


def test_without_faults_nothing_is_said_of_them() -> None:
    one = load_scenario({"workload": {"kind": "poisson", "users": 10}, "network": {"brokers": 2}}).base
    setting = build(one, prepare_workload(one, 0, None), 0).setting
    assert setting.faults is None
    assert setting.reconnect == RECONNECT
    dumped = one.model_dump(mode="json")
    assert "faults" not in one.identity()
    assert "faults" not in dumped
    assert "reconnect" not in dumped["network"]
    assert "connection_rate" not in dumped["brokers"]


CRASH_AT_ONE = {"brokers": 1, "at": 1}


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"faults": {"kind": "crash"}}, r"faults: expected tables \[\[faults\]\], found"),
        ({"faults": [{"kind": "crahs"}]}, r"faults\[0\].kind: unknown kind, did you mean 'crash'\?"),
        (
            {"faults": [CRASH_AT_ONE, {**CRASH_AT_ONE, "fro": 3}]},
            r"faults\[1\].fro: unknown key, did you mean 'for'\? \(allowed: kind, at, for, every, brokers\) \(found 3\)",
        ),
        ({"faults": [{"at": 1}]}, r"faults\[0\].brokers: missing"),
        ({"faults": [{"brokers": [], "at": 1}]}, r"faults\[0\].brokers: expected one or more, found none"),
        (
            {"faults": [{"brokers": 1.5, "at": 1}]},
            r"faults\[0\].brokers\[0\]: expected a broker, by number or name",
        ),
        ({"faults": [{"brokers": 1, "at": "1x"}]}, r"faults\[0\].at\[0\]: expected a duration such as"),
        ({"faults": [{"brokers": 1, "at": -1}]}, r"faults\[0\].at\[0\]: expected a value greater than or equal to 0"),
        (
            {"faults": [{"brokers": 1, "at": 1, "for": 0}]},
            r"faults\[0\].for: expected a value greater than 0 \(found 0\)",
        ),
        (
            {"faults": [{"brokers": 1, "at": "2h"}]},
            r"faults\[0\]: at: expected times before the horizon \(1 h\), found 2 h",
        ),
        (
            {"faults": [{"brokers": 1, "at": 1, "every": "1min"}]},
            r"faults\[0\]: every: it lasts permanently \(allowed: as long",
        ),
        (
            {"faults": [{"kind": "loss", "probability": 1, "at": 1, "every": "1min", "for": "2min"}]},
            r"faults\[0\]: every: it lasts for 2 min \(allowed: as long as it lasts, or longer; or no every\)",
        ),
        (
            {"faults": [{"kind": "cut", "links": [[0, 0]], "at": 1}]},
            r"faults\[0\].links\[0\]: expected two brokers, such as \[0, 1\], found \[0, 0\]",
        ),
        ({"faults": [{"kind": "cut", "links": [[0]], "at": 1}]}, r"faults\[0\].links\[0\]: expected two brokers"),
        (
            {"faults": [{"kind": "partition", "at": 1}]},
            r"faults\[0\]: expected either regions or brokers .* found neither",
        ),
        (
            {"faults": [{"kind": "loss", "probability": 1.5, "at": 1}]},
            r"faults\[0\].probability: expected a value less than or equal to 1 \(found 1.5\)",
        ),
        (
            {"faults": [{"kind": "slow", "brokers": 1, "factor": 0.5, "at": 1}]},
            r"faults\[0\].factor: expected a value greater than or equal to 1 \(found 0.5\)",
        ),
        (
            {"faults": [{"kind": "lifetimes", "up": {"mean": 0}, "down": {"mean": 1}}]},
            r"faults\[0\].up.mean: expected a value greater than 0 \(found 0\)",
        ),
        (
            {
                "faults": [
                    {"kind": "lifetimes", "up": {"mean": 1}, "down": {"mean": 1, "distribution": "pareto", "shape": 1}}
                ]
            },
            r"faults\[0\].down: shape: expected more than 1, as a Pareto distribution has no mean otherwise, found 1",
        ),
        (
            {"faults": [{"kind": "lifetimes", "up": {"mean": 1, "distribution": "weibull"}, "down": {"mean": 1}}]},
            r"faults\[0\].up: distribution 'weibull' needs a shape",
        ),
        (
            {"faults": [{"kind": "lifetimes", "up": {"mean": 1, "shape": 2}, "down": {"mean": 1}}]},
            r"faults\[0\].up: distribution 'exponential' takes no shape",
        ),
        (
            {"faults": [{"kind": "drain", "brokers": 1, "at": 1, "rate": 0}]},
            r"faults\[0\].rate: expected a value greater than 0 \(found 0\)",
        ),
        ({"faults": [{"kind": "trace", "file": "nowhere.csv"}]}, r"faults\[0\].file: no such file"),
        (
            {"network": {"brokers": 4, "reconnect": {"backoff": "exponential", "wait": "2min"}}},
            r"network.reconnect: wait: expected at most the longest wait \(1 min\), found 2 min",
        ),
        (
            {"network": {"brokers": 4, "reconnect": {"jitter": 2}}},
            "network.reconnect.jitter: expected a value less than",
        ),
        (
            {"reconfiguration": {"kind": "sweep", "manager_down": [[1, 2]]}},
            r'reconfiguration.manager_down: the manager\'s death is a fault \(allowed: \[\[faults\]\] with kind = "manager"\)$',
        ),
        ({"faults": [{"brokers": 4, "at": 1}]}, r"faults\[0\]: no such broker 4 \(allowed: 0 to 3, or a name\)"),
        (
            {"faults": [{"kind": "lifetimes", "brokers": [1, 7], "up": {"mean": 9}, "down": {"mean": 9}}]},
            r"faults\[0\]: no such broker 7",
        ),
        (
            {"faults": [{**CRASH_AT_ONE, "for": 5}, {"brokers": "1", "at": [0.5, 3]}]},
            r"faults\[0\]: broker 1 is to crash at 1 s, but is down from 500 ms permanently by faults\[1\] \(allowed: outages",
        ),
        (
            {"faults": [{"kind": "partition", "regions": "eu", "at": 1}]},
            r"faults\[0\]: regions: these brokers have none",
        ),
        (
            {"faults": [{"kind": "drain", "brokers": 0, "at": 1}], "network": {"brokers": 1}},
            r"faults\[0\]: a single broker has nowhere to move its users to \(allowed: two brokers or more\)",
        ),
        (
            {"faults": [{"kind": "leave", "brokers": [0, 1], "at": 1}, {"kind": "leave", "brokers": 1, "at": 2}]},
            r"faults\[1\]: broker 1 is to leave at 2 s, but leaves at 1 s by faults\[0\] \(allowed: once\)$",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": [1, 5]}]},
            r"faults\[0\]: broker 1 is to join at 5 s, but joins at 1 s by faults\[0\] \(allowed: once\)$",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": 0}]},
            r"faults\[0\]: broker 1 is to join at 0 s, without having been absent \(allowed: times after 0\)$",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": 5}, {"kind": "leave", "brokers": 1, "at": 2}]},
            r"faults\[0\]: broker 1 is to join at 5 s, but is there until it leaves at 2 s by faults\[1\] \(allowed: a broker",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": 5}, CRASH_AT_ONE]},
            r"faults\[1\]: broker 1 is to crash at 1 s, but only joins at 5 s by faults\[0\] \(allowed: later\)$",
        ),
        (
            {"faults": [{"kind": "leave", "brokers": [0, 1, 2], "at": 1}, {"kind": "leave", "brokers": 3, "at": 2}]},
            r"faults\[1\]: the last broker is to leave at 2 s \(allowed: all but one\)$",
        ),
        (
            {"faults": [{"kind": "join", "brokers": [0, 1, 2, 3], "at": 1}]},
            r"faults\[0\]: all brokers are to join \(4 of 4; allowed: all but one that is there before\)$",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": 1, "users": "region"}]},
            r"faults\[0\]: users: these brokers have no regions \(allowed: \"share\"",
        ),
        (
            {"faults": [{"kind": "join", "brokers": 1, "at": 1, "for": 2}]},
            r"faults\[0\].for: unknown key",
        ),
        (
            {"faults": [{"kind": "lifetimes", "up": {"mean": 9}, "down": {"mean": 9}, "repairers": 0}]},
            r"faults\[0\].repairers: expected a value greater than or equal to 1",
        ),
        (
            {
                "faults": [CRASH_AT_ONE],
                "network": {"brokers": 4, "reconnect": {"backoff": "fixed", "wait": "1ms"}},
            },
            r"network.reconnect.wait: 1,000,000 attempts of a user at most, so 0.0036 s or more up to 3600 s, found 0.001 s",
        ),
        (
            {"faults": [{"kind": "slow", "brokers": 1, "factor": 2, "at": 1}]},
            r"faults: brokers without a service time cannot be slow \(allowed: brokers.service with a kind\)",
        ),
        ({"faults": [{"brokers": "oslo", "at": 1}]}, r"faults\[0\]: unknown broker 'oslo' \(allowed: 0, 1, 2, 3\)"),
        (
            {"faults": [CRASH_AT_ONE, {"kind": "drain", "brokers": [0, 1], "at": 1}]},
            r"faults\[1\]: broker 1 is to be drained at 1 s, but crashes permanently at .* by faults\[0\] \(allowed: a",
        ),
        (
            {"faults": [{"kind": "drain", "brokers": 1, "at": [5, 9]}]},
            r"faults\[0\]: broker 1 is to be drained at 9 s, but is drained permanently at 5 s by faults\[0\] \(allowed: a",
        ),
        (
            {"faults": [{"kind": "drain", "brokers": 1, "at": 9}, {"kind": "leave", "brokers": 1, "at": 5}]},
            r"faults\[0\]: broker 1 is to be drained at 9 s, but leaves at 5 s by faults\[1\] \(allowed: a",
        ),
        ({"brokers": {"connection_rate": 0}}, "brokers.connection_rate: expected a value greater than 0"),
    ],
)
def test_bad_faults_are_refused_when_the_scenario_is_read(more: dict[str, Any], wrong: str) -> None:
    base = {"workload": {"kind": "poisson", "users": 10, "horizon": "1h"}, "network": {"brokers": 4}}
    with pytest.raises(ScenarioError, match=wrong) as error:
        load_scenario({**base, **more})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        (
            {"faults": [CRASH_AT_ONE], "workload": {"kind": "content", "subscriptions": 20, "publications": 30}},
            "faults: a content workload has content, for which faults are not supported yet .allowed: topics",
        ),
    ],
)
def test_faults_of_what_the_network_does_not_have_are_refused_before_it_runs(more: dict[str, Any], wrong: str) -> None:
    base = {"workload": {"kind": "poisson", "users": 10, "horizon": "1h"}, "network": {"brokers": 4}}
    with pytest.raises(ScenarioError, match=wrong) as error:
        load_scenario({**base, **more})
    assert "\n" not in str(error.value)


def test_names_of_brokers_are_checked_where_a_file_has_them(tmp_path: Path) -> None:
    for wrong, says in (
        ('brokers = "osl"', r"faults\[0\]: unknown broker 'osl', did you mean 'oslo'\?"),
        ('brokers = ["oslo", "lima"]', r"faults\[2\]: broker lima is to crash at 1 min, but .*by faults\[0\]"),
    ):
        text = BASE.replace('brokers = "oslo"\nat = ["10min", "30min"]', f'{wrong}\nat = "50s"')
        path = written(tmp_path, text)
        (tmp_path / "outages.csv").write_text("broker,down_from,up_at\nlima,60,70\n")
        with pytest.raises(ScenarioError, match=says):
            load_scenario(path)


def test_names_that_the_workload_gives_are_checked_when_it_is_known(tmp_path: Path) -> None:
    """Nothing is left of a question whose answer is a mistake."""
    workload = {"kind": "mobility", "users": 10, "horizon": "1h", "cities": 5}
    wrong = {"workload": workload, "network": {"brokers": 1}, "faults": [{"brokers": "oslo", "at": 1}]}
    with pytest.raises(ScenarioError, match=r"faults\[0\]: unknown broker 'oslo'"):
        run(wrong, tmp_path / "results")
    assert list(tmp_path.iterdir()) == []


def healing(network: Any, **more: Any) -> Network:
    """Four brokers for ten minutes."""
    workload = {"kind": "poisson", "users": 10, "horizon": "10min"}
    scenario = load_scenario({"workload": workload, **more, "network": {"brokers": 4, **network}}).base
    return build(scenario, prepare_workload(scenario, 0, None), 0)


@pytest.mark.parametrize(
    ("network", "more", "wrong"),
    [
        ({"healing": {"convergence": "5s"}}, {}, "network.healing: convergence without period"),
        ({"healing": {"period": "1ms"}}, {"horizon": "1h"}, "period: 1,000,000 rounds of checks at most"),
        ({"healing": {"period": 0}}, {}, r"period: .* greater than 0|period: expected .*0"),
    ],
)
def test_healing_that_cannot_be_is_refused_in_a_sentence(network: Any, more: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        healing(network, **more)


def test_a_geometry_that_cannot_heal_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.scenario.fitting.Healing", Manager)  # whose methods no geometry has
    with pytest.raises(ScenarioError, match=r'network\.healing: geometry "chord" cannot heal'):
        healing({"healing": {"period": "30s"}})


def test_healing_without_faults_only_takes_rounds() -> None:
    """Four brokers of a ring: 3 + 2 + ⌈½ log₂ 4⌉ + 1 messages each, at 30, 60 … 570 s."""
    network = healing({"healing": {"period": "30s"}}, window="1min")
    network.run()
    metrics = network.metrics()
    assert metrics["stabilisation_messages"] == 19 * 4 * 7
    assert metrics["healing_messages"] == 0
    assert list(network.tables()["timeseries"]["stabilisation_messages"]) == [28] + [56] * 9


@pytest.mark.parametrize("geometry", ["chord", "full-mesh"])
def test_a_run_ends_with_all_tables_where_brokers_stay_down(geometry: str) -> None:
    found = {
        "workload": {"kind": "poisson", "users": 10, "horizon": "10min", "publication_rate": 60},
        "network": {"brokers": 2, "geometry": {"kind": geometry}, "data_plane": "events"},
        "faults": [{"brokers": [0, 1], "at": "5min"}],
    }
    scenario = load_scenario(found).base
    record = simulate(scenario, prepare_workload(scenario, 0, None), 0)
    assert record.metrics["crashes"] == 2
    assert record.metrics["user_unavailability"] == pytest.approx(0.5)
    assert set(record.tables["tree"]["broker"].tolist()) <= {0, 1}


def test_a_dead_manager_decides_nothing_and_brokers_do_not_notice() -> None:
    """Decisions fall at 10, 20, …, 50 min; the manager is dead from 15 to 35 min. Folding stays exact, as no broker fails."""
    scenario = load_scenario(
        {
            "workload": {"kind": "poisson", "users": 10, "horizon": "1h"},
            "network": {"brokers": 4, "data_plane": "folded"},
            "reconfiguration": {"kind": "dynatops-greedy", "period": "10min"},
            "faults": [{"kind": "manager", "at": "15min", "for": "20min"}],
        }
    ).base
    record = simulate(scenario, prepare_workload(scenario, 0, None), 0)
    assert list(record.tables["decisions/reconfiguration"]["time"]) == [600.0, 2400.0, 3000.0]
    assert record.tables["faults"]["what"].to_pylist() == ["manager dead", "manager back"]
    assert record.metrics["crashes"] == 0


def test_what_fails_can_be_swept_and_sent_to_other_processes() -> None:
    lists = [[], [CRASH_AT_ONE], [{"kind": "cut", "links": [[0, "1"]], "at": 1, "every": "1min", "for": "1s"}]]
    base = {"workload": {"kind": "poisson", "users": 10, "horizon": "1h"}, "network": {"brokers": 4}}
    sweep = {"faults": lists, "network.reconnect.wait": ["1s", "5s"]}
    points = load_scenario({**base, "sweep": sweep}).points
    assert [[table.kind for table in point.base.faults] for point in points] == [
        [],
        [],
        ["crash"],
        ["crash"],
        ["cut"],
        ["cut"],
    ]
    assert points[2].label == "faults = [{ brokers = 1, at = 1 }], network.reconnect.wait = 1 s"
    for point in points:
        assert pickle.loads(pickle.dumps(point.base)) == point.base
    identities = {json.dumps(point.base.identity(), sort_keys=True) for point in points}
    assert len(identities) == 6
    with pytest.raises(ScenarioError, match=r"sweep.faults\[0\]\[0\]: at: expected times before the horizon"):
        load_scenario({**base, "sweep": {"faults": [[{"brokers": 1, "at": "2h"}]]}})


def test_times_are_compared_with_the_horizon_of_a_prepared_workload(tmp_path: Path) -> None:
    write_workload(tiny.workload([{0}], [(1.0, 0, 0, 1)]), tmp_path / "workload")
    scenario = {
        "workload": {"path": str(tmp_path / "workload")},
        "network": {"brokers": 2},
        "faults": [{"brokers": 1, "at": "11s"}],
    }
    with pytest.raises(InputError, match=r"faults\[0\]: at: expected times before the horizon \(10 s\), found 11 s"):
        run(scenario, tmp_path / "results")
