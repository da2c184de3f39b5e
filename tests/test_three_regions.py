"""The shipped scenario of three regions: small, but with everything that its comparison rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import scenarios
import sim

SMALL = ["replications=1", "horizon=3h", "workload.users=60", "workload.topics=40"]
HALF = {  # of the round-trip times in the file, ms
    ("europe", "europe"): 8,
    ("america", "europe"): 52,
    ("asia", "europe"): 113,
    ("america", "america"): 20.5,
    ("america", "asia"): 91,
    ("asia", "asia"): 31.5,
}


def test_geometries_between_three_regions(tmp_path: Path) -> None:
    path = Path(scenarios.__file__).parent / "three-regions.toml"
    results = sim.run(path, tmp_path, overrides=SMALL)
    runs = results.runs.set_index("variant")
    assert results.notes == []
    chord, mesh, star = (runs.loc[name] for name in ("chord", "full-mesh", "star"))
    assert mesh["path_stretch"] == pytest.approx(1, abs=0.01)
    assert mesh["notification_delay"] < star["notification_delay"] < chord["notification_delay"]
    assert mesh["cross_region_bytes"] < star["cross_region_bytes"] < chord["cross_region_bytes"]
    assert mesh["external_overhead"] == mesh["uplink_messages"] == star["external_overhead"] == 0
    brokers = results.table(star["run"], "brokers")
    assert brokers["region"].value_counts().to_dict() == {"europe": 4, "america": 4, "asia": 4}
    links = results.table(star["run"], "links")
    hub = links["source"].value_counts().idxmax()
    assert ((links["source"] == hub) | (links["destination"] == hub)).all()
    assert brokers.loc[hub, "region"] == "america"  # between the others


def test_what_a_hop_takes_is_what_the_table_says(tmp_path: Path) -> None:
    path = Path(scenarios.__file__).parent / "three-regions.toml"
    results = sim.run(path, tmp_path, overrides=[*SMALL, "trace=true", "variant.star.network.latency.jitter=0.0"])
    run = results.runs.set_index("variant").loc["star", "run"]
    hops, region = results.table(run, "trace"), results.table(run, "brokers")["region"]
    pairs = [tuple(sorted((region[a], region[b]))) for a, b in zip(hops["source"], hops["destination"], strict=True)]
    assert np.allclose(1000 * (hops["received"] - hops["sent"]), [HALF[pair] for pair in pairs])
