"""The notebooks of the docs: their cells run, in order and without Jupyter, and print and show what is kept in them."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import altair as alt
import pytest
from reader import ROOT

from sim import plugins

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def kept(cell: dict[str, Any]) -> tuple[str, str]:
    """What a cell printed when the notebook was executed, and its last value as text, or the words of its HTML."""
    printed = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    data = [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
    if not data:
        return printed, ""
    html = data[0].get("text/html")
    return printed, words("".join(html)) if html else "".join(data[0]["text/plain"])


def words(html: str) -> str:
    return " ".join(re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", " ", html, flags=re.DOTALL).split())


def shown(value: object) -> str:
    """The last value of a cell, likewise."""
    html = getattr(value, "_repr_html_", lambda: None)()
    if value is None or isinstance(value, alt.Chart):
        return "" if value is None else "alt.Chart(...)"
    return repr(value) if html is None else words(html)


def run(cell: dict[str, Any], names: dict[str, object]) -> tuple[str, str]:
    code, value = ast.parse("".join(cell["source"])), None
    last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "cell", "exec", dont_inherit=True), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval", dont_inherit=True), names)
    return printed.getvalue(), shown(value)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_cells_print_and_show_what_the_notebook_has(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main = ModuleType("__main__")  # classes of a notebook belong to it
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    with patch.dict(plugins._registered, clear=True), alt.renderers.enable("default"):
        for cell in cells:
            assert run(cell, vars(main)) == kept(cell), "".join(cell["source"])
    plugins.load.cache_clear()
    assert len(cells) > 2
