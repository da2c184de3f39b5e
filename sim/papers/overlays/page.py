"""“Publish-Subscribe Overlay Network Design” (M. Onus, A. W. Richa), reproduced."""

from __future__ import annotations

from pathlib import Path

from sim.papers.overlays.claims import GAP, claims
from sim.papers.overlays.runs import sweeps
from sim.papers.paper import read_paper

PAPER = read_paper(Path(__file__).parent, claims(), sweeps, (GAP,))
