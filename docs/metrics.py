"""The table of metrics in docs/formats.md, from their declarations.

Run in the project's folder as `python -m docs.metrics`, it rewrites the table there.
"""

from __future__ import annotations

from pathlib import Path

from sim.metrics import OURS, Metric, Ratio

PAGE = Path(__file__).parent / "formats.md"
HEAD = "| metric | unit | better | over windows | meaning |\n| --- | --- | --- | --- | --- |\n"


def table() -> str:
    """A row for each metric, in their order."""
    rows = (f"| `{m.name}` | {m.unit} | {_better(m)} | {_windows(m)} | {m.description} |\n" for m in OURS.values())
    return HEAD + "".join(rows)


def _better(metric: Metric) -> str:
    return "–" if metric.better == "neutral" else metric.better


def _windows(metric: Metric) -> str:
    match metric.windows:
        case Ratio(above, below, less):
            below = " − ".join(f"`{name}`" for name in (below, *less))
            return f"`{above}` / " + (f"({below})" if less else below)
        case None:
            return "–"
        case rule:
            return rule


def renewed(page: str) -> str:
    """The page with the table of metrics as it is now."""
    before, _, rest = page.partition("| metric | unit |")
    _, _, after = rest.partition("\n\n")
    return f"{before}{table()}\n{after}"


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
