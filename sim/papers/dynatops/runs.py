"""The runs and computations for "DYNATOPS" (Zhao, Kim, Venkatasubramanian): its figures, table II, and open questions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from sim import plugins
from sim.base.naming import Raw
from sim.overlay.trees import RendezvousTrees
from sim.papers.sweeps import Computed, PaperPoint, PaperSweep, SweepSetting, thinned
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import ReconfigurationProblem
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import build, prepare_workload
from sim.workloads.format.workload import DAY
from sim.workloads.models.location import visit_shares, visits_of

USERS, DAYS, CELLS = 40_000, 92, (4, 10, 20, 50)
"""The location model: users, days, and the cells of a cluster."""
POISSON_USERS, TOPICS, MODE, HOURS, WARM_UP = 50_000, 1000, 10, 100, 10
"""The Poisson model: users, topics, topics of a mode, and hours, the first of which are the warm-up."""
RATES = (0.025, 0.05, 0.1, 0.2)
"""Changes per user and hour; the paper names 0.025 and 0.1."""
PATTERNS = {
    "uniform": ("uniform", "replace"),
    "zipf": ("zipf", "replace"),
    "multimodal": ("multimodal", "replace"),
    "multimodal, redrawn": ("multimodal", "redraw"),
}
"""Pattern and kind of change by the name of the point."""
FULL_POISSON = {"workload.users": POISSON_USERS, "workload.topics": TOPICS}
"""Sizes that do not shrink: a pattern without modes has no density that a smaller one would keep."""
PUBLICATION_RATES = (1, 3, 10, 30)
BROKERS = (3, 5, 10, 20)
"""Brokers of a cluster in the Poisson model."""
FREE_DAYS, FREE_HOURS = (2, 7, 14, 28), (5, 10, 20, 30)
"""T_free, which fits at least three times into the horizon after the warm-up."""
LAND, SMALLEST_LAND, CITIES = (20, 60), (10, 12), 50
"""The land (degrees north and east) of full size, the smallest one, and the cities on it."""
SIZES = {"brokers": ((10, 100), (100, 100), (1000, 100)), "topics": ((100, 50), (100, 500), (100, 5000))}
"""Brokers and topics of the points of figure 10 and table II, by the quantity varied."""
GREEDIES = ("DYNATOPS-Greedy", "SSBR-Greedy")
"""The paper's policies of figure 10."""
COMPUTED = 0.1
"""The scale from which on figure 10 and table II have all sizes: policies are asked without a simulation."""
REPLICATIONS, TRACES = 3, 10
"""Replications at any scale, as intervals of two are meaningless; and those of figure 5's trace, which takes no simulation."""
PUBLICATIONS = 1000
"""Publications of each topic where a policy is asked once: those of the scenarios in a reconfiguration-free period."""
TIMES, STAYS = (1, 2, 3, 5, 10, 20, 50), (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 7.0, 14.0, 30.0)
"""Visits to a cell, and days, at which the curves of figure 5 are shown."""
PAPER_SHARES = {
    "checkins_per_user": 3000 / 40,
    "visits_per_user": 450 / 40,
    "pairs_per_user": 160 / 40,
    "single_visits": 1 / 3,
    "stays_under_day": 0.5,
    "stays_over_week": 0.1,
}
"""Published figures of the paper's trace: 3 million check-ins, 450 thousand visits, 160 thousand pairs, 40 thousand users."""


def sweeps(setting: SweepSetting) -> Iterator[PaperSweep | Computed]:
    """All that the page shows, by the folders of its runs."""
    folder = setting.scenarios / "dynatops"
    land, poisson, week = _land(setting), _modes(setting), f"{DAYS}d"
    location = {**land, "workload.horizon": week}
    path = folder / "fig-5.toml"
    yield Computed("fig-5", "dynatops/fig-5.toml", f"{setting.scale}", partial(_visits, path, setting))
    points = [PaperPoint(f"c = {c}", {"c": c}, _clusters(c)) for c in CELLS]
    yield _sweep("fig-6abf", points, location)
    yield _sweep("fig-6cde", [PaperPoint("c = 10", {}, {})], location)
    rates, hours = thinned(RATES, setting.scale), round(setting.lasting(HOURS, WARM_UP + 24))
    spent = {"workload.horizon": f"{hours}h"}
    points = [
        PaperPoint(f"rate {r:g}", {"rate": r, "measured": hours - WARM_UP}, {"workload.change_rate": r}) for r in rates
    ]
    yield _sweep("fig-7", points, poisson | spent)
    points = [
        PaperPoint(name, {"pattern": name}, {"workload.pattern": pattern, "workload.change": change, **sizes})
        for name, (pattern, change) in PATTERNS.items()
        for sizes in [poisson if pattern == "multimodal" else FULL_POISSON]
    ]
    hours = round(setting.lasting(HOURS, WARM_UP + 6))
    yield _sweep("fig-8", points, {"workload.horizon": f"{hours}h"})
    points = [PaperPoint(f"{d} d", {"days": d}, {"reconfiguration.period": f"{d}d"}) for d in FREE_DAYS]
    yield _sweep("fig-9ab", points, location)
    points = [PaperPoint(f"{h} h", {"hours": h}, _periods(h, ("ours: lsap-sweep",))) for h in FREE_HOURS]
    yield _sweep("fig-9cd", points, {**poisson, "workload.horizon": f"{HOURS}h"})
    yield _sweep(
        "clusters",
        [PaperPoint(f"c = {c}", {"c": c}, _clusters(c)) for c in thinned(BROKERS, setting.scale)],
        poisson | spent,
    )
    yield _sweep("flooding", [PaperPoint("0.1", {}, {})], poisson | spent)
    points = [
        PaperPoint(f"{rate:g} an hour", {"publications": rate}, {"workload.publication_rate": rate})
        for rate in thinned(PUBLICATION_RATES, setting.scale)
    ]
    yield _sweep("publication-rate", points, poisson | spent)
    for section, patterns in (("fig-10", ("uniform", "multimodal")), ("table-2", ("multimodal",))):
        path, scale = folder / f"{section}.toml", f"{setting.scale}"
        table = partial(_savings, path, setting, patterns)
        yield Computed(section, f"dynatops/{section}.toml", scale, table)
    table = partial(_savings, folder / "fig-10.toml", setting, ("uniform", "multimodal"), MODE, GREEDIES)
    yield Computed("modes", "dynatops/fig-10.toml", f"{setting.scale}", table)


def _sweep(section: str, points: Sequence[PaperPoint], keys: Raw) -> PaperSweep:
    return PaperSweep(section, f"dynatops/{section}.toml", tuple(points), REPLICATIONS, keys)


def _land(setting: SweepSetting) -> Raw:
    """Users, and land and cities in proportion, so that a cell has as many users as at full size, down to the smallest land."""
    (north, east), (least_north, least_east) = LAND, SMALLEST_LAND
    share = max(setting.scale, least_north * least_east / (north * east))
    height = north if share >= least_east / east else least_north
    width = max(least_east, round(north * east * share / height))
    box = [30.0, -126.0, 30.0 + height, -126.0 + width]
    return {
        "workload.users": setting.sized(USERS),
        "workload.box": box,
        "workload.cities": round(CITIES * height * width / (north * east)),
    }


def _modes(setting: SweepSetting) -> Raw:
    """Users and topics in proportion, so that as many users of a mode are in a cluster as at full size."""
    modes = max(2, round(TOPICS / MODE * setting.scale))
    return {"workload.users": setting.sized(POISSON_USERS), "workload.topics": modes * MODE}


def _clusters(size: int) -> Raw:
    return {"selection.cluster_size": size}


def _periods(hours: float, variants: Sequence[str]) -> Raw:
    tables = ("", *(f'variant."{variant}".' for variant in variants))
    return {f"{table}reconfiguration.period": f"{hours:g}h" for table in tables}


def _visits(path: Path, setting: SweepSetting) -> pd.DataFrame:
    """How often users return and how long they stay: shares of the workload, and the paper's published figures of its trace."""
    rows: list[Raw] = []
    land = _land(setting)
    users = land["workload.users"]
    scenario = load_scenario(path, [f"{key}={value}" for key, value in land.items()]).base
    for replication in range(TRACES):
        workload = prepare_workload(scenario, replication, None)
        visits = visits_of(workload)
        shares = visit_shares(visits)
        ours = {"variant": "mobility generator", "replication": replication, "seed": scenario.seed}
        rows.append(
            {
                **ours,
                "checkins_per_user": len(workload.publications) / users,
                "visits_per_user": shares.visits / users,
                "pairs_per_user": shares.pairs / users,
                "single_visits": shares.single_visits,
                "stays_under_day": shares.stays_under_day,
                "stays_over_week": shares.stays_over_week,
            }
        )
        order = np.lexsort((visits.time, visits.user))
        user, time_of = visits.user[order], visits.time[order]
        stays = np.diff(time_of)[user[1:] == user[:-1]] / DAY
        _, times = np.unique(visits.user.astype(np.int64) << 32 | visits.cell, return_counts=True)
        rows += [{**ours, "times": n, "share_of_pairs": float((times <= n).mean())} for n in TIMES]
        rows += [{**ours, "days": days, "share_of_stays": float((stays < days).mean())} for days in STAYS]
    paper = {"variant": "paper", "replication": 0, "seed": scenario.seed}
    rows.append({**paper, **PAPER_SHARES})
    rows.append({**paper, "times": 1, "share_of_pairs": PAPER_SHARES["single_visits"]})
    rows.append({**paper, "days": 1.0, "share_of_stays": PAPER_SHARES["stays_under_day"]})
    rows.append({**paper, "days": 7.0, "share_of_stays": 1 - PAPER_SHARES["stays_over_week"]})
    return pd.DataFrame(rows).assign(point=f"{users:,} users")


def _savings(
    path: Path, setting: SweepSetting, patterns: Sequence[str], wanted: int = 5, policies: Sequence[str] = ()
) -> pd.DataFrame:
    """The savings of each policy over consistent hashing where a broker wants this many topics, and its CPU time.

    Without `policies`, all of the scenario.
    """
    rows: list[Raw] = []
    for varied, sizes in SIZES.items():
        for pattern, (brokers, topics) in product(patterns, sizes if setting.scale >= COMPUTED else sizes[:2]):
            overrides = (*_sized(brokers, topics, pattern), f"workload.topics_per_user={wanted}")
            experiment = load_scenario(path, overrides)
            for replication in range(experiment.base.replications):
                problem = _problem(experiment.base, replication)
                before = CostModel(problem)
                for variant in policies or experiment.variants:
                    scenario = experiment.variants[variant]
                    table = scenario.reconfiguration
                    policy = plugins.load("reconfiguration", table.kind)(table.parameters)
                    if not rows:
                        policy.reconfigure(problem)  # compiled before it is timed
                    began = time.process_time()
                    after = policy.reconfigure(problem)
                    seconds = time.process_time() - began
                    placed = CostModel(problem)
                    placed.place(after.node_of)
                    rows.append(
                        {
                            "point": f"{brokers} brokers, {topics} topics",
                            "variant": variant,
                            "replication": replication,
                            "seed": scenario.seed,
                            "pattern": pattern,
                            varied: {"brokers": brokers, "topics": topics}[varied],
                            "cost_saved": _saved(before.cost, placed.cost),
                            "overhead_saved": _saved(before.external, placed.external),
                            "delay_saved": _saved(before.delay, placed.delay),
                            "moved": placed.moved,
                            "milliseconds": 1000 * seconds,
                        }
                    )
    return pd.DataFrame(rows)


def _sized(brokers: int, topics: int, pattern: str) -> tuple[str, ...]:
    return (
        f"network.brokers={brokers}",
        f"workload.users={brokers}",
        f"workload.topics={topics}",
        f'workload.pattern="{pattern}"',
        "workload.publication_rate=0",  # the expected ones are given to the policy, not generated
    )


def _saved(before: float, after: float) -> float:
    return 100 * (1 - after / before) if before else 0.0


def _problem(scenario: Scenario, replication: int) -> ReconfigurationProblem:
    """The initial placement of brokers, with the mean number of publications of each topic per period."""
    workload = prepare_workload(scenario, replication, None)
    network = build(scenario, workload, replication)
    network.users.join_all()
    overlay = network.setting.overlay
    assert isinstance(overlay, RendezvousTrees)
    return ReconfigurationProblem(
        overlay.parent,
        overlay.hops,
        np.asarray(overlay.roots, np.int32),
        network.subscriptions.all_serving(),
        np.full(len(workload.topics), PUBLICATIONS),
        network.node_of,
        key=replication,
    )
