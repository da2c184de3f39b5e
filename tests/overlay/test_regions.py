"""Round-trip times between regions: the times from a table, and messages about missing ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from sim.base.errors import ScenarioError
from sim.base.validation import problems, validate
from sim.overlay.latency import LatencySetting
from sim.overlay.regions import RegionLatency
from sim.overlay.sites import Sites

TABLE = {"eu": {"eu": "2ms", "us": "85ms"}, "us": {"us": "3ms"}, "asia": {"eu": "200ms", "us": "150ms"}}


def model(regions: tuple[str, ...] | None, table: dict[str, Any] = TABLE, brokers: int = 4) -> RegionLatency:
    nowhere = np.full(brokers, np.nan)
    where = Sites(tuple(f"b{i}" for i in range(brokers)), nowhere, nowhere, regions)
    return RegionLatency(validate(RegionLatency.Parameters, {"round_trips": table}), LatencySetting(where, 1))


def test_times_hold_both_ways_and_a_broker_is_at_no_distance_from_itself() -> None:
    made = model(("us", "eu", "asia", "us"))
    assert (1000 * np.asarray(made.round_trips)).round(9).tolist() == [
        [0, 85, 150, 3],
        [85, 0, 200, 85],
        [150, 200, 0, 150],
        [3, 85, 150, 0],
    ]


def test_what_is_said_twice_must_be_the_same() -> None:
    same = {**TABLE, "us": {"us": "3ms", "eu": 0.085}}
    assert model(("us", "eu", "eu", "us"), same).round_trips[0, 1] == 0.085
    with pytest.raises(ValidationError) as error:
        model(None, {**TABLE, "us": {"eu": "90ms"}})
    assert problems(error.value, RegionLatency.Parameters) == [
        (("round_trips", "us", "eu"), "expected 85 ms, as from 'eu' to 'us', found 90 ms")
    ]


@pytest.mark.parametrize(
    ("regions", "said"),
    [
        (("eu", "asia", "us", "asia"), "no time between brokers of 'asia' (regions there: asia, eu, us)"),
        (
            ("eu", "asai", "us", "eu"),
            "no time between 'asai' and 'eu', 'asai' and 'us', did you mean 'asia' by 'asai'? (regions there: asia, eu, us)",
        ),
    ],
)
def test_a_time_that_is_needed_and_missing_names_both_regions(regions: tuple[str, ...], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        model(regions)
    assert str(error.value) == f"network.latency.round_trips: {said}"


def test_brokers_need_regions() -> None:
    with pytest.raises(
        ScenarioError, match=r'"regions" needs the regions of brokers.*CSV file with the columns broker and region'
    ):
        model(None)
