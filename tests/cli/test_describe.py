"""`brokersim describe`: the whole text, and the numbers recomputed with pandas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest

from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models.location import Visits, location_workload, number_cells, publish_each
from sim.workloads.synthetic.poisson import PoissonWorkload

Brokersim = Callable[..., tuple[int, str, str]]


def trace() -> Workload:
    """What a pipeline makes of eight rows of two users, who stay two hours and ten days."""
    time = np.array([0.0, 7200, 90000, 954000])
    latitude, longitude = np.array([40.7, 40.2, 41.5, 40.7]), np.array([-73.9, -72.0, -72.5, -73.9])
    cells, cell = number_cells(latitude, longitude, 1.0)
    visits = Visits(time, np.array([0, 0, 1, 1], np.int32), cell, latitude, longitude)
    return location_workload(
        visits,
        cells,
        strings(["17", "23"]),
        publish_each(visits, 100),
        friends=1,
        streams=Streams(1),
        origin="2010-03-01T00:00:00Z",
        horizon=12 * 86400.0,
        generator={"name": "gowalla"},
        sources=[{"file": "checkins.tsv.gz", "sha256": "0", "bytes": 12345}],
        rows={"read": 8, "kept": 5, "quarantined": {"bad_time": 2, "null_island": 1}},
    )


GOLDEN = """
w: a workload of kind location

  from                   2010-03-01 00:00:00 UTC
  to                     2010-03-13 00:00:00 UTC (12 d)
  first and last event   2010-03-01 00:00:00 UTC, 2010-03-12 01:00:00 UTC
  topics                 cells of 1° × 1°
  made by                gowalla, seed 1
  out of                 checkins.tsv.gz (12,345 bytes)
  SHA-256                HASH

Contents

                         count   rate
 ─────────────────────────────────────────────────────────────────────────
  users                      2
  topics                     3
  interests                  4   at the start
  subscription changes       8   0.0139 per user and hour
  publications               4   0.0139 per hour, 0.111 per topic and day
  movements                  4   0.167 per user and day

Distributions

                                           mean   least   median   95 % below   most
 ────────────────────────────────────────────────────────────────────────────────────
  topics that a user wants, at the start      2       2        2            2      2
  subscription changes of a user              4       4        4            4      4
  movements of a user                         2       2        2            2      2
  subscribers of a topic, at the start     1.33       0        2            2      2
  publications on a topic                  1.33       1        1          1.9      2

Users by their number of subscription changes

  changes         users     share
 ─────────────────────────────────
  none                0     0.0 %
  1 to 9              2   100.0 %
  10 to 99            0     0.0 %
  100 to 999          0     0.0 %
  1000 and more       0     0.0 %

How users move

                                                            share
 ─────────────────────────────────────────────────────────────────
  (user, cell) pairs of a single visit, of 4 pairs        100.0 %
  stays of less than a day, until the user's next visit    50.0 %
  stays of more than a week                                50.0 %

Rows of the trace

                             rows    share
 ──────────────────────────────────────────
  read                          8
  kept                          5   62.5 %
  quarantined: bad time         2   25.0 %
  quarantined: null island      1   12.5 %
"""


def test_the_whole_text(brokersim: Brokersim, tmp_path: Path) -> None:
    write_workload(trace(), tmp_path / "w")
    status, out, err = brokersim("describe", "w")
    assert (status, err) == (0, "")
    lines = [re.sub(r"[0-9a-f]{64}", "HASH", line).rstrip() for line in out.splitlines()]
    assert "\n".join(lines).strip() == dedent(GOLDEN).strip()


def test_the_numbers_are_those_of_the_tables(brokersim: Brokersim, tmp_path: Path) -> None:
    parameters = PoissonWorkload.Parameters(users=40, topics=12, horizon="90h", change_rate=0.3)
    write_workload(PoissonWorkload(parameters).generate(Streams(2)), tmp_path / "w")
    status, out, _ = brokersim("describe", "w", "--json")
    told = json.loads(out)
    assert status == 0
    table = {path.stem: pd.read_parquet(path) for path in (tmp_path / "w").glob("*.parquet")}
    interests = pd.read_parquet(tmp_path / "w" / "interests")
    events, published = table["subscription_events"], table["publications"]
    assert told["counts"] == {
        "users": 40,
        "topics": 12,
        "interests": len(interests),
        "subscription_events": len(events),
        "publications": len(published),
        "movements": 0,
    }
    assert told["rates"] == {
        "publications_per_hour": pytest.approx(len(published) / 90),
        "publications_per_topic_day": pytest.approx(len(published) / 12 / 3.75),
        "subscription_changes_per_user_hour": pytest.approx(len(events) / 40 / 90),
    }
    over = {
        "interests_per_user": interests.groupby("user").size().reindex(range(40), fill_value=0),
        "subscription_changes_per_user": events.groupby("user").size().reindex(range(40), fill_value=0),
        "subscribers_per_topic": interests.groupby("topic").size().reindex(range(12), fill_value=0),
        "publications_per_topic": published.groupby("topic").size().reindex(range(12), fill_value=0),
    }
    assert told["distributions"].keys() == over.keys()
    for name, values in over.items():
        found = told["distributions"][name]
        assert [found["mean"], found["minimum"], found["maximum"]] == [values.mean(), values.min(), values.max()]
        assert [found["p5"], found["median"], found["p99"]] == pytest.approx(list(values.quantile([0.05, 0.5, 0.99])))
    changes = over["subscription_changes_per_user"]
    assert told["users_by_changes"]["10 to 99"] == changes.between(10, 99).sum()
    assert sum(told["users_by_changes"].values()) == 40
    assert told["span"]["end"] == "1970-01-04T18:00:00Z"
    assert told["movement"] is told["rows"] is None


def test_a_workload_of_nothing_has_no_means(brokersim: Brokersim, tmp_path: Path) -> None:
    base = trace()
    nobody = Visits(
        *(
            column[:0]
            for column in (
                base.movements.time,
                base.movements.user,
                base.movements.user,
                base.movements.latitude,
                base.movements.longitude,
            )
        )
    )
    cells, _ = number_cells(np.empty(0), np.empty(0), 1.0)
    empty = location_workload(
        nobody, cells, strings([]), publish_each(nobody, 1), friends=4, streams=Streams(1), origin=base.origin,
        horizon=1.0, generator={}, rows={"read": 0, "kept": 0, "quarantined": {}},
    )  # fmt: skip
    write_workload(empty, tmp_path / "w")
    status, out, _ = brokersim("describe", "w", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["rates"]["publications_per_topic_day"] is None
    assert told["distributions"]["interests_per_user"]["median"] is None
    assert told["movement"]["single_visits"] is None
    assert told["span"]["first_event"] is None
    assert "nan" not in brokersim("describe", "w")[1]


def test_what_is_no_workload_is_said(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, err = brokersim("describe", "nothing")
    assert (status, out) == (2, "")
    assert err == "brokersim: error: nothing: not a workload folder, or an unfinished one (it has no manifest.json)\n"
