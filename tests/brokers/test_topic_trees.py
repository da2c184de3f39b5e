"""The tree of the busiest topic, as it is kept around faults."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sim.brokers.control.topic_trees import MOST_STATES
from sim.scenario.reader import load_scenario
from sim.simulation import RunRecord, prepare_workload, simulate

SCENARIO: dict[str, Any] = {
    "horizon": "1h",
    "window": "1min",
    "workload": {"kind": "interests", "users": 30, "topics": 2, "per_user": 2, "publication_rate": 60},
    "network": {"brokers": 6, "data_plane": "events", "geometry": {"kind": "chord"}, "healing": {"period": "10s"}},
}


def run(**changes: Any) -> RunRecord:
    scenario = load_scenario({**SCENARIO, **changes}).base
    return simulate(scenario, prepare_workload(scenario, 0, None), 0)


def test_a_broker_is_on_the_tree_before_it_crashes_and_not_while_it_is_down() -> None:
    record = run(faults=[{"brokers": 3, "at": "20min", "for": "10min"}])
    steps = pd.DataFrame(record.tables["tree_steps"])
    on = {time / 60: 3 in set(own["broker"]) for time, own in steps.groupby("time")}
    assert on == {20: True, 21: False, 30: False, 31: on[31], 60: on[60]}
    last = steps[steps["time"] == 3600].drop(columns="time").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, pd.DataFrame(record.tables["tree"])[[*last]])


def test_of_many_faults_the_first_and_the_end_are_kept() -> None:
    steps = run(faults=[{"kind": "lifetimes", "up": {"mean": "20min"}, "down": {"mean": "1min"}}]).tables["tree_steps"][
        "time"
    ]
    assert len(set(steps)) == MOST_STATES
    assert max(steps) == 3600


def test_nothing_is_kept_where_nothing_fails() -> None:
    assert "tree_steps" not in run().tables
