"""Every command and snippet in README and docs is run, in the order of the page, and prints what is shown."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel
from reader import DEMO, ROOT, Reader

import sim
from docs import gallery
from docs.links import dead_links
from docs.metrics import PAGE, renewed, table
from sim import plugins
from sim.metrics import METRICS
from sim.scenario.model import Precision, Report, Scenario
from sim.scenario.sweep import OPTIONS, RANGE
from sim.scenario.tuning import Tune
from sim.workloads.traces import events, follow_tables, layouts

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = "```console long"
LANGUAGES = {"console", "sh", "python", "toml", "json", "text"}


@dataclass(frozen=True)
class Block:
    """A fenced block: `file=NAME` after the language writes it there, `long` leaves it to `-m long`."""

    page: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        return next((mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None)


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
    for first, last in zip(fences[::2], fences[1::2], strict=True):
        language, *marks = lines[first].strip().removeprefix("```").split() or [""]
        yield Block(page.name, first + 1, language, tuple(marks), "\n".join(lines[first + 1 : last]) + "\n")


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block (`$ …`, continued by a backslash) with the lines shown below it."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if command.endswith("\\"):
            command += "\n" + line
        elif line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        else:
            assert command, f"{block.place}: a console block starts with a command"
            shown.append(line)
    yield command, shown


def assert_printed(output: str, shown: list[str], place: str) -> None:
    """The shown lines stand in the output, in this order; `…` stands for anything on a line, alone for any lines."""
    found = [" ".join(line.split()) for line in output.splitlines()]
    start = 0
    for line in shown:
        line = " ".join(line.split())
        if line in ("", "…"):
            continue
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in line.split("…")))
        start = next((n + 1 for n in range(start, len(found)) if pattern.search(found[n])), -1)
        assert start > 0, f"{place}: not printed, or not in this order: {line!r}\n--- output:\n{output}"


def check_block(block: Block, reader: Reader) -> None:
    if block.file:
        if (ROOT / block.file).exists():
            assert block.text == (ROOT / block.file).read_text(), f"{block.place}: {block.file} has another text"
        (reader.folder / block.file).write_text(block.text)
    if block.language == "console":
        for command, shown in commands(block):
            assert_printed(reader.type(command, block.place), shown, block.place)
    elif block.language == "sh":
        reader.type(block.text.strip(), block.place)
    elif block.language == "python" and not block.file:
        snippet = compile(block.text, block.place, "exec")
        reader.here(lambda: exec(snippet, {"__name__": "__main__"}), block.text, block.place)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_does_what_it_shows(page: Path, reader: Reader) -> None:
    try:
        for block in blocks(page):
            if "long" not in block.marks:
                check_block(block, reader)
    finally:
        reader.forget_plugins()


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if LONG in page.read_text()], ids=lambda page: page.name)
def test_long_commands_of_the_page(page: Path, reader: Reader) -> None:
    for block in blocks(page):
        if "long" in block.marks:
            check_block(block, reader)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_say_their_language_and_links_lead_somewhere(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: a block needs one of the languages {sorted(LANGUAGES)}"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: the link to {target} leads nowhere"


def test_readme_begins_with_the_two_commands() -> None:
    assert [block.text for block in blocks(PAGES[0])][:2] == [f"{DEMO}\n", "./brokersim test\n"]


def test_formats_name_every_key_metric_and_column(reader: Reader) -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    words = set(re.findall(r"[\w.]+", text))
    keys = {key for model in _models(Scenario) for key in model.model_fields}
    keys |= {*Report.model_fields, *Precision.model_fields, *OPTIONS, *RANGE}
    keys |= Tune.model_fields.keys() - {"vary"}
    keys |= {key for kind in ("similarity",) for key in plugins.load("selection", kind).Parameters.model_fields}
    assert keys | set(METRICS) <= words
    columns = {
        name
        for folder in ("workload", "results")
        for file in (reader.folder / "demo" / folder).rglob("*.parquet")
        for name in pq.read_schema(file).names
    }
    assert columns <= words
    series = next((reader.folder / "demo" / "results").rglob("timeseries.parquet"))
    section = text.partition("The columns of `timeseries.parquet`")[2].partition("The columns of `load.parquet`")[0]
    assert set(pq.read_schema(series).names) <= set(re.findall(r"\w+", section))
    manifests = (reader.folder / "demo" / folder / "manifest.json" for folder in ("workload", "results"))
    assert {key for manifest in manifests for key in json.loads(manifest.read_text())} <= words


def test_the_table_of_metrics_is_that_of_their_declarations() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert table() in page
    assert renewed(page) == page


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _models(field.annotation)


def test_docs_name_every_layout_of_traces_and_every_file_of_data_sets() -> None:
    formats, follows = ((ROOT / "docs" / f"{page}.md").read_text().replace("`", "") for page in ("formats", "follows"))
    for layout in layouts.LAYOUTS.values():
        assert f"| {layout.name} | {layout.text} |" in formats
    for preset in follow_tables.PRESETS.values():
        files = dict.fromkeys(part.file for part in (*preset.tables, preset.labels) if part)
        assert f"| {preset.name} | {', '.join(files)} |" in follows
    for layout in events.EVENT_LAYOUTS.values():
        assert f"--format {layout.name} reads {layout.text}" in (ROOT / "docs" / "events.md").read_text().replace(
            "`", ""
        )


def test_versions_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_links_of_the_site_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="deep/b.html#there"></a><a href="https://x.org/no"></a><a href="deep/#no"></a>'
    )
    (tmp_path / "deep" / "b.html").write_text('<h2 id="there"><a href="../"></a><img src="c.png"><a href="#where"></a>')
    assert list(dead_links(tmp_path)) == ["deep/b.html: #where", "deep/b.html: c.png", "index.html: deep/#no"]


def test_the_gallery_shows_every_shipped_scenario_and_small_pictures() -> None:
    text = gallery.PAGE.read_text(encoding="utf-8")
    assert text == gallery.page()
    entries = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    assert set(entries) == set(sim.list_scenarios())
    for name in {*gallery.DRAWN, *gallery.REPRODUCED}:
        (picture,) = re.findall(r"\]\((.*\.svg)\)", entries[name])
        content = (ROOT / "docs" / picture).read_bytes()
        assert content.startswith(b"<svg")
        assert len(content) <= 100_000
    for name, entry in entries.items():
        assert f"brokersim scenarios copy {name}\n" in entry
        assert "brokersim run" not in sim.list_scenarios()[name]  # the question alone
        assert "\n![" in entry or "data that you download" in entry
    undrawn = set(entries) - {*gallery.DRAWN, *gallery.REPRODUCED}
    assert undrawn == {"ciaodvd", "combined", "gowalla-world", "lastfm", "overlays/real"}


@pytest.mark.long
def test_a_picture_of_the_gallery_is_that_of_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.loads(gallery.TEXTS.read_text(encoding="utf-8"))
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    chart = gallery.draw_picture("quickstart", tmp_path)
    assert chart.description == said["quickstart"]
    assert gallery.picture_of("quickstart").read_text().count("<path") > 10
