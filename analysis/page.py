"""What all pages share: one HTML file that holds everything, for a browser without a network."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from analysis.charts import VEGA_LITE, Figure


def render(template: str, charts: list[Figure], **values: Any) -> str:
    """The page that a template makes of the values, with its charts and what draws them."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        charts=[{"name": chart.name, "json": script(chart.sized())} for chart in charts], bundle=_bundle(), **values
    )


@cache
def _bundle() -> Markup:
    """The charts' JavaScript, which takes a second to put together."""
    return Markup(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE))


def script(value: Any) -> Markup:
    """JSON that can stand in a script element whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))
