"""Texts about the number of replications and the warm-up, fixed by a scenario or determined from runs."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison import label
from analysis.formatting import number
from sim.base.naming import Raw
from sim.base.units import format_duration

_LISTED = 8


def replications_of(manifest: Raw, point: int) -> int:
    """The number of replications that a point should have."""
    precision = manifest.get("precision")
    return int(precision["points"][point]["replications"] if precision else manifest["replications"])


def precision_said(manifest: Raw, point: int | None = None) -> str:
    """The requested precision and whether it was reached, at one or all points; "" where none was requested."""
    asked = manifest.get("precision")
    if not asked:
        return ""
    said = (
        f"{label(asked['metric'])} to within {100 * asked['relative']:g}\u00a0% with {100 * asked['confidence']:g}\u00a0% confidence, "
        f"or {number(asked['max_replications'])} replications"
    )
    found = asked["points"]
    if point is not None or len(found) == 1:
        one = found[point or 0]
        return f"{said}: {'reached' if one['reached'] else 'not reached'} with {number(one['replications'])}"
    counts = [one["replications"] for one in found]
    missed = [number_ for number_, one in enumerate(found) if not one["reached"]]
    span = number(counts[0]) if min(counts) == max(counts) else f"{number(min(counts))} to {number(max(counts))}"
    if not missed:
        return f"{said}: reached at all points, with {span}"
    if len(missed) == len(found):
        return f"{said}: reached at no point, with {span}"
    return f"{said}: reached at {number(len(found) - len(missed))} of {number(len(found))} points, with {span}; not at {_list(missed)}"


def warm_up_said(manifest: Raw, point: int | None = None) -> str:
    """The warm-up and how it was determined, at one or all points; "" where the scenario fixes it."""
    found = manifest.get("warm_up")
    if not found:
        return ""
    shown = found if point is None else found[point : point + 1]
    seconds = [one["seconds"] for one in shown]
    ends = [format_duration(second) for second in (min(seconds), max(seconds))]
    said = f"{ends[0] if ends[0] == ends[1] else ' to '.join(ends)}, detected by MSER-5"
    missed = [number_ for number_, one in enumerate(shown) if not one["detected"]]
    if not missed:
        return said
    if len(missed) == len(shown):
        return f"{ends[0] if ends[0] == ends[1] else ' to '.join(ends)}, half of the run, as MSER-5 found no end of it"
    return f"{said}; no end of it found at {_list(missed)}, where the first half of the run is left out"


def _list(points: Sequence[int]) -> str:
    more = f" and {number(len(points) - _LISTED)} more" if len(points) > _LISTED else ""
    return f"point{'s' if len(points) > 1 else ''} {', '.join(map(str, points[:_LISTED]))}{more}"
