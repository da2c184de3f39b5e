"""Help lists all layouts and data sets of traces, and all papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sim import plugins
from sim.papers.paper import find_paper
from sim.workloads.traces import events, follow_tables, layouts

PLAIN = {layout.name: layout.text for layout in layouts.PLAIN.values()}


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("prepare checkins", {layout.name: layout.text for layout in layouts.LAYOUTS.values()} | PLAIN),
        ("prepare events", {layout.name: layout.text for layout in events.EVENT_LAYOUTS.values()} | PLAIN),
        ("prepare follows", {preset.name: preset.text for preset in follow_tables.PRESETS.values()} | PLAIN),
        ("reproduce", {name: find_paper(name).source for name in plugins.names("paper")}),
    ],
)
def test_help_ends_with_all_names_and_what_they_are(
    brokersim: Callable[..., tuple[int, str, str]], command: str, known: dict[str, str]
) -> None:
    status, out, _ = brokersim(*command.split(), "--help")
    assert status == 0
    listed = "".join(f"{name}{text}" for name, text in known.items())
    assert "".join(out.split()).endswith(f":{''.join(listed.split())}")  # wherever its lines are broken
    assert all(known.values())
