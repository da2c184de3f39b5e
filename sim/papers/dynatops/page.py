"""“DYNATOPS” (Y. Zhao, K. Kim, N. Venkatasubramanian), reproduced."""

from __future__ import annotations

from pathlib import Path

from sim.papers.dynatops.claims import claims
from sim.papers.dynatops.lessons import lessons
from sim.papers.dynatops.runs import sweeps
from sim.papers.paper import read_paper

PAPER = read_paper(Path(__file__).parent, claims(), sweeps, lessons=lessons())
