"""“Maximizing the Number of Satisfied Subscribers” (ODS), reproduced."""

from __future__ import annotations

from pathlib import Path

from sim.papers.ods.claims import claims
from sim.papers.ods.runs import sweeps
from sim.papers.paper import read_paper

PAPER = read_paper(Path(__file__).parent, claims(), sweeps)
