"""The pages of a calibration and of a validation, each one HTML file that works offline."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.charts import Figure, by_colour, spec_of, write_atomically
from analysis.formatting import number, quantity
from analysis.page import render, section
from sim.base.naming import Raw
from sim.calibration.calibrate import CalibratedBroker
from sim.calibration.fit import MEANINGS, SLOWDOWN, Residual
from sim.calibration.samples import LONGEST_WAIT
from sim.calibration.steps import FAN_OUTS, LOADED_STEPS, SIZES, LoadStep
from sim.calibration.validate import ValidatedScenario

_VERDICTS = {True: "agrees", False: "differs", None: "–"}


def write_calibration(found: CalibratedBroker, path: Path) -> None:
    """Write the page of a calibration atomically."""
    charts = [*_costs_charts(found), _load_chart(found)]
    text = render(
        "broker.html.jinja",
        charts,
        kind="brokersim calibration",
        title=f"{found.broker} at {found.url}",
        version=version("brokersim"),
        sentences=calibration_sentences(found),
        tables=[("Costs", _costs_table(found)), ("Steps", _steps_table(found))],
        sections=[section("calibration", charts)],
        facts=[
            ("broker", found.broker),
            ("machine", found.machine),
            ("date", found.date),
            ("version", f"brokersim {version('brokersim')}"),
            ("a busy broker's time", _accounts(found)),
            ("cores", _cores(found)),
        ],
    )
    write_atomically(path, text.encode())


def calibration_sentences(found: CalibratedBroker) -> list[str]:
    """What came out, in sentences."""
    worst = {
        kind: max((one for one in found.fit.residuals if one.step.kind == kind), key=lambda one: abs(one.relative))
        for kind in ("saturated", "idle")
    }
    busiest = found.busiest_client
    limit = "may have limited" if found.client_limits else "did not limit"
    ran = "" if busiest.broker is None else f", and the broker ran {busiest.broker:.0%}"
    bundles = (
        []
        if found.bundles is None
        else [
            f"Below saturation a copy takes up to {found.bundles:.1f} times as long as at it, where the broker sends several at once, "
            "so that these costs do not hold below it: Nagle's algorithm does this (with Mosquitto: set_tcp_nodelay true)."
        ]
    )
    return [
        f"{found.clean:.0%} of samples were taken while neither broker nor client waited for a core more than "
        f"{quantity(LONGEST_WAIT, 's')}; the rest does not count.",
        f"The fitted time of a saturated broker is off by {worst['saturated'].relative:+.0%} at most ({worst['saturated'].step.name}), "
        f"the median delay at an idle one by {worst['idle'].relative:+.0%} ({worst['idle'].step.name}).",
        f"The client {limit} the throughput: in the step in which it had most to do, {busiest.name}, that was {busiest.client:.0%} of "
        f"the time{ran}.",
        *bundles,
    ]


def _accounts(found: CalibratedBroker) -> str:
    return (
        f"the kernel's accounts of process {found.process}"
        if found.process
        else "the slope of the delay over the publications under way"
    )


def _cores(found: CalibratedBroker) -> str:
    return (
        "broker and client each on a core of its own" if found.cores.apart else "the broker may use the client's core"
    )


def cost(key: str, value: float) -> str:
    """A cost with its unit."""
    return f"{value:.0%}" if key == SLOWDOWN else quantity(value, "s")


def _costs_table(found: CalibratedBroker) -> Raw:
    rows = [
        (key, MEANINGS[key], *(cost(key, value) for value in (one.value, one.low, one.high)))
        for key, one in found.fit.costs.items()
    ]
    return {
        "caption": "Fitted costs with 95 % confidence intervals",
        "columns": ["cost", "meaning", "fitted", "from", "to"],
        "rows": rows,
    }


def _steps_table(found: CalibratedBroker) -> Raw:
    fitted = {id(one.step): one for one in found.fit.residuals}
    return {
        "caption": "Load steps: time per publication of a saturated broker, median delay of others",
        "columns": _STEP_COLUMNS,
        "rows": [_step_row(step, fitted.get(id(step))) for step in found.steps],
    }


_STEP_COLUMNS = [
    *("step", "publications/s", "measured", "fitted", "residual"),
    *("p99 of delays", "clean samples", "broker ran", "client had to do"),
]


def _step_row(step: LoadStep, known: Residual | None) -> tuple[str, ...]:
    measured = step.busy if step.kind == "saturated" else step.quantile(0.5)
    return (
        step.name,
        number(step.rate),
        quantity(measured, "s"),
        quantity(known.fitted, "s") if known else "–",
        f"{100 * known.relative:+.1f} %" if known else "–",
        "–" if step.kind == "saturated" else quantity(step.quantile(0.99), "s"),
        f"{step.clean:.0%} of {step.samples:,}",
        "–" if step.broker is None else f"{step.broker:.0%}",
        f"{step.client:.0%}",
    )


def _costs_charts(found: CalibratedBroker) -> list[Figure]:
    """The time of a busy broker and the delay at an idle one over copies, and residuals."""
    import altair as alt

    names = [f"{size:,} B" for size in SIZES]
    rows = pd.DataFrame(
        [
            {
                "kind": one.step.kind,
                "copies": one.step.fan_out,
                "variant": f"{one.step.size:,} B",
                "measured": 1e6 * one.measured,
                "fitted": 1e6 * one.fitted,
                "residual": 100 * one.relative,
            }
            for one in found.fit.residuals
            if one.step.kind != "loaded"
        ]
    )
    what = {
        "saturated": ("Time of a busy broker per publication", "time per publication (µs)"),
        "idle": ("Median delay at an idle broker", "median delay to the last copy (µs)"),
    }
    charts = []
    for kind, (title, axis) in what.items():
        base = alt.Chart(rows[rows["kind"] == kind].drop(columns="kind").round(4)).encode(
            x=alt.X("copies:Q", title="subscribers", axis=alt.Axis(values=list(FAN_OUTS))), color=by_colour(names)
        )
        points = base.mark_point(filled=True, size=60, opacity=1).encode(
            y=alt.Y("measured:Q", title=axis), tooltip=["variant:N", "copies:Q", "measured:Q", "fitted:Q", "residual:Q"]
        )
        chart = alt.layer(base.mark_line(strokeWidth=1.8).encode(y=alt.Y("fitted:Q", title=axis)), points)
        charts.append(
            Figure(
                kind,
                "calibration",
                title,
                "",
                f"{title} over the number of subscribers.",
                {**spec_of(chart), "height": 240},
            )
        )
    spread = alt.Chart(rows.round(4)).mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("residual:Q", title="fitted above measured (%)"), y=alt.Y("kind:N", title=""), color=by_colour(names),
        tooltip=["variant:N", "copies:Q", "residual:Q"],
    )  # fmt: skip
    title = "Residuals"
    charts.append(
        Figure(
            "residuals", "calibration", title, "", "Relative residuals of all steps.", {**spec_of(spread), "height": 90}
        )
    )
    return charts


def _load_chart(found: CalibratedBroker) -> Figure:
    """Delays over load, from idle to near saturation."""
    import altair as alt

    steps = [one for one in found.steps if one.kind != "saturated" and (one.fan_out, one.size) == LOADED_STEPS]
    rows = [
        {"rate": step.rate, "variant": name, "delay": 1e6 * step.quantile(share)}
        for step in steps
        for name, share in (("median", 0.5), ("p99", 0.99))
        if len(step.delays)
    ]
    chart = (
        alt.Chart(pd.DataFrame(rows, columns=["rate", "variant", "delay"]).round(3))
        .mark_line(point=True)
        .encode(
            x=alt.X("rate:Q", title="publications per second"),
            y=alt.Y("delay:Q", title="delay to the last copy (µs)", scale=alt.Scale(type="log")),
            color=by_colour(["median", "p99"]),
        )
    )
    caption = (
        f"{LOADED_STEPS[0]} subscribers, {LOADED_STEPS[1]} B, Poisson arrivals; up to {rows[-1]['rate']:,.0f} publications/s."
        if rows
        else ""
    )
    return Figure(
        "load", "calibration", "Delays over load", caption, "Delays over load.", {**spec_of(chart), "height": 240}
    )


def validation_rows(found: ValidatedScenario) -> list[tuple[str, ...]]:
    """A row per quantity: measured, simulated, difference, allowed difference, verdict."""
    return [
        (
            one.name,
            quantity(one.measured, one.unit),
            quantity(one.simulated, one.unit),
            f"{100 * one.difference:+.1f} %" if np.isfinite(one.difference) else "–",
            "any" if one.allowed is None else f"{100 * one.allowed:g} %",
            _VERDICTS[one.agrees],
        )
        for one in found.quantities
    ]


def validation_sentence(found: ValidatedScenario) -> str:
    """The samples that count, in a sentence."""
    return (
        f"{found.publications:,} publications; {found.clean:.0%} of samples were taken while neither broker nor client waited for a "
        f"core, and only these count for delays; the client had something to do {found.client:.0%} of the time."
    )


def write_validation(found: ValidatedScenario, path: Path) -> None:
    """Write the page of a validation atomically."""
    import altair as alt

    shares = np.linspace(0.0, 0.999, 200)
    rows = pd.DataFrame({"share": shares, "delay": 1e6 * np.quantile(found.delays, shares), "variant": "measured"})
    known = {"median delay": 0.5, "p90 of delays": 0.9, "p99 of delays": 0.99}
    points = [
        {"share": known[one.name], "delay": 1e6 * one.simulated, "variant": "simulated"}
        for one in found.quantities
        if one.name in known and np.isfinite(one.simulated)
    ]
    colour = by_colour(["measured", "simulated"])
    x, y = (
        alt.X("share:Q", title="share of deliveries"),
        alt.Y("delay:Q", title="delay (µs)", scale=alt.Scale(type="log")),
    )
    chart = alt.layer(
        alt.Chart(rows.round(4)).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour),
        alt.Chart(pd.DataFrame(points).round(4))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=x, y=y, color=colour),
    )
    title = "Delays"
    charts = [Figure("delays", "validation", title, "", "Quantiles of delays.", {**spec_of(chart), "height": 260})]
    table = {
        "caption": "Measured and simulated",
        "columns": ["quantity", "measured", "simulated", "difference", "allowed", "verdict"],
        "rows": validation_rows(found),
    }
    text = render(
        "broker.html.jinja",
        charts,
        kind="brokersim validation",
        title=f"{found.title} on {found.broker}",
        version=version("brokersim"),
        sentences=[validation_sentence(found), *found.notes],
        tables=[("Measured and simulated", table)],
        sections=[section("validation", charts)],
        facts=[
            ("broker", f"{found.broker} at {found.url}"),
            ("machine", found.machine),
            ("variant", found.variant),
            ("replayed", quantity(found.seconds, "s")),
            ("version", f"brokersim {version('brokersim')}"),
        ],
    )
    write_atomically(path, text.encode())
