"""The docs site's reference has every command, option, key, metric and public name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer.main
from reader import ROOT

import sim
from docs.hooks import on_page_content, on_page_markdown
from docs.reference import pages
from sim.cli.app import app
from sim.metrics import OURS

PAGES = pages()


def options(command: Any, name: str) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        yield from ((name, option) for option in parameter.opts if option.startswith("-"))
    for key, inner in getattr(command, "commands", {}).items():
        yield from options(inner, f"{name} {key}")


def test_every_option_of_every_command_is_there() -> None:
    sections = {part.splitlines()[0]: part for part in PAGES["commands"].split("\n## ")[1:]}
    found = list(options(typer.main.get_command(app), "brokersim"))
    assert len(found) > 150
    for command, option in found:
        assert re.search(rf"`[^`]*{option}\b", sections[command]), (command, option)


def test_every_key_metric_and_public_name_is_there() -> None:
    for key in sim.scenario_keys():
        assert f"| `{key.key}` |" in PAGES["keys"]
    schema = sim.json_schema()
    for table in (schema, *schema["$defs"].values()):
        assert not [key for key in {*table.get("properties", {})} - {"kind"} if f"{key}` |" not in PAGES["keys"]]
    for name in OURS:
        assert f"| `{name}` |" in PAGES["metrics"]
    for name in sim.__all__:
        assert re.search(rf"^::: sim\.[\w.]+\.{name}$", PAGES["api"], re.MULTILINE)


def test_tables_have_as_many_cells_in_all_rows() -> None:
    for text in PAGES.values():
        for line in text.splitlines():
            if line.startswith("| "):
                cells = len(re.findall(r"(?<!\\)\|", line)) - 1
                assert cells in (2, 4, 5), line


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    said = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert re.search(rf"- {page.name}$", said, re.MULTILINE), page.name
    for name in PAGES:
        assert f"reference/{name}.md" in said
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(line.startswith("mkdocs-material") for line in extras["docs"])


def test_the_site_is_searched_without_a_network() -> None:
    """The theme fetches a script from a network unless one of this name is given."""
    (script,) = re.findall(r"^extra: \{polyfills: \[(.*)\]\}$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert Path(script).name == "iframe-worker.js"
    assert "window.Worker" in (ROOT / "docs" / script).read_text()


def test_links_out_of_the_docs_become_paths() -> None:
    assert on_page_markdown("see [views](../sim/policies/views.py) and [x](x.md)") == (
        "see views (`sim/policies/views.py`) and [x](x.md)"
    )
    assert on_page_markdown("in [a plug-in](example-plugin)") == "in a plug-in (`example-plugin`)"


@pytest.mark.parametrize(("source", "ending"), [("notebooks/sweep.ipynb", "html"), ("sweep.md", "md")])
def test_links_of_notebooks_lead_to_pages(source: str, ending: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    assert on_page_content('<a href="../python.md#tables">', page) == f'<a href="../python.{ending}#tables">'


def test_blocks_of_the_site_leave_out_what_only_tests_read() -> None:
    assert on_page_markdown("```console long\n$ ls\n```\n") == "```console\n$ ls\n```\n"
