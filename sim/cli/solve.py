"""`brokersim solve`: single design problems, without a simulation."""

from __future__ import annotations

import typer

from sim.cli import solve_offloading, solve_overlay, solve_reconfiguration

app = typer.Typer(no_args_is_help=True, help="Solve single design problems, without a simulation.")
app.command()(solve_overlay.overlay)
app.command()(solve_reconfiguration.reconfiguration)
app.command()(solve_offloading.offloading)
