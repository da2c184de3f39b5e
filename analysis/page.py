"""Common parts of all pages, each one self-contained HTML file that works offline."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

# Any: templates are given values of any type.
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.charts import Figure, script, vega, vega_lite
from analysis.embedding import embedded
from sim.base.escaping import printable
from sim.base.naming import Raw

_SECTIONS: dict[str, Raw] = tomllib.loads(
    (files("analysis") / "templates" / "sections.toml").read_text(encoding="utf-8")
)
"""The title of each section, and the text above its charts."""


def render(template: str, charts: list[Figure], **values: Any) -> str:
    """Render a template with values, charts and the scripts that draw them; `picker` has the variants (name, colour) to pick from."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis"), autoescape=True, finalize=_shown, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template(template).render(
        charts=[{"name": chart.name, "json": script(embedded(chart))} for chart in charts], bundle=_bundle(), **values
    )
    return page.replace("<main>\n", f"{_contents(page)}<main>\n", 1)


def _contents(page: str) -> str:
    """The table of contents: a link to each section of the page."""
    entries = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', page.partition("<script")[0], re.DOTALL)
    links = "".join(f'<li><a href="#{name}">{title}</a></li>\n' for name, title in entries)
    return f'<nav aria-label="Contents">\n<ol>\n{links}</ol>\n</nav>\n' if len(entries) > 2 else ""


def section(name: str, charts: Sequence[Figure]) -> Raw:
    """A section for templates: id, title, text, and its charts."""
    return {"id": name, **_SECTIONS[name], "figures": [chart for chart in charts if chart.section == name]}


def _shown(value: Any) -> Any:
    """Text that is not markup, with control characters escaped."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _bundle() -> Markup:
    """The charts' JavaScript, which takes a second to bundle."""
    return Markup(vega().javascript_bundle("window.vegaEmbed = vegaEmbed;", vega_lite()))  # noqa: S704 - a library's own
