"""A small fictitious paper and its table of runs, for the tests of the papers' pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sim.papers.claims import FALLS, Claim, ClaimBound, ClaimReading, Lesson, Misprint, Reason, in_readings, near
from sim.papers.overlays.claims import GAP
from sim.papers.page import Reproduction, SectionRuns
from sim.papers.paper import Chart, Paper, PaperTable, Section
from sim.papers.quantities import extreme_step, largest_ratio, metric_value

READINGS = ("strict", "loose")
SAID = "1: There are twice as many."
CHARTS = (
    Chart("average_degree", "nodes", "nodes", by="reading"),
    Chart("edges", "variant", "design", colour="reading"),
    Chart("edges", "nodes", "nodes", relative_to="old"),
)


def table(nodes: tuple[int, ...] = (10, 20, 40), replications: int = 4, noise: float = 0.02) -> pd.DataFrame:
    """Two designs: the old one has twice the degree of the new one, which falls by a tenth from point to point."""
    rng = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for reading in sorted(READINGS):
        for place, n in enumerate(nodes):
            for variant, factor in (("old", 2.0), ("new", 1.0)):
                for replication in range(replications):
                    degree = 10 * factor * 0.9**place * (1 + noise * rng.standard_normal())
                    rows.append(
                        {
                            "point": f"{n} nodes, {reading}",
                            "nodes": n,
                            "reading": reading,
                            "variant": variant,
                            "replication": replication,
                            "seed": 1,
                            "average_degree": degree,
                            "edges": round(degree * n / 2),
                            "lower_bound": n - 1,
                        }
                    )
    return pd.DataFrame(rows)


def paper(title: str = "A small paper", text: str = "") -> Paper:
    """Four claims: one holds, one does not, one needs runs that were not made, and one is not the paper's."""
    ratio, step = largest_ratio("average_degree", "old", "new", "nodes"), extreme_step("edges", "new", "nodes", True)
    why, readings = Reason("as it should", "there are more nodes"), dict.fromkeys(READINGS, "2: Nodes are nodes.")
    seven = ClaimReading(metric_value("edges", "new", "there"))
    bound = ClaimBound("No overlay has fewer links", largest_ratio("edges", "new", "new", "nodes"))
    impossible = ClaimReading(largest_ratio("edges", "new", "new", "nodes"), bound=bound)
    return Paper(
        title,
        "Somebody",
        text,
        (
            Section(
                "main", "The figure", "What it shows.", CHARTS, (PaperTable("Links", ("edges", "gap"), "variant"),)
            ),
            Section("more", "More of it", "What is not there."),
        ),
        (
            Claim("main", "fig. 1", "twice as many", SAID, in_readings(ratio, readings), near(2, 0.3), why),
            Claim("main", "fig. 1", "fewer links", SAID, in_readings(step, readings), FALLS, why),
            Claim("more", "fig. 2", "seven", SAID, (seven,), near(7, 0), why),
            Claim("main", "fig. 1", "two", SAID, (impossible,), near(2, 0.5), why, (ratio,), ours=True),
        ),
        (Misprint("p. 1", "seven", "eight", "tests/a.py::test_b"),),
        lambda setting: (),
        (GAP,),
        (Lesson("main", "The old one has {} as many links.", (ratio,)), Lesson("more", "{} is not known.", (ratio,))),
    )


def reproduction(runs: pd.DataFrame | None = None, scale: float = 1.0, **changed: Any) -> Reproduction:
    """All its runs, and one section that was not run."""
    runs = table() if runs is None else runs
    made = SectionRuns(
        runs, "scenarios/small.toml", list(dict.fromkeys(runs["point"])), 4, scale, "0.1.0", ("Read this.",)
    )
    return Reproduction(paper(**changed), {"main": made}, "brokersim reproduce small", "0.1.0", scale)
