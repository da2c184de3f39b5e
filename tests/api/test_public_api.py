"""What `import sim` offers: every name is documented with an example that runs, and the command line uses nothing else."""

from __future__ import annotations

import doctest
import inspect
import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import rich.console
from reader import ROOT

import sim
from sim import plugins
from sim.api.progress import display

PUBLIC = {name: getattr(sim, name) for name in sim.__all__}
WITHOUT_EXAMPLES = {f"CalibratedPreset.{key}" for key in ("costs", "steps", "sentences")} | {
    f"ComparedBroker.{key}" for key in ("agrees", "table")
}
"""What there is only once a broker has been measured, which other tests do."""
OPTIONAL = {"ExperimentResults.polars": "polars", "ExperimentResults.duckdb": "duckdb"}
"""What needs a library that may not be installed."""


def documented() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, and the public methods of these and of what functions return."""
    for name, found in PUBLIC.items():
        yield name, found
        returned = inspect.signature(found).return_annotation if inspect.isfunction(found) else found
        kind = getattr(inspect.getmodule(found), str(returned), None) if isinstance(returned, str) else returned
        if inspect.isclass(kind) and kind.__module__.startswith("sim.api"):
            own = ((key, value) for key, value in vars(kind).items() if not key.startswith("_"))
            yield from (
                (f"{kind.__name__}.{key}", value)
                for key, value in own
                if callable(value) or isinstance(value, property | classmethod)
            )


DOCUMENTED = dict(documented())
REPRODUCED = cache(sim.reproduce)
"""Several examples look at the same page, which takes seconds to draw."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current folder of all examples: what one has run, the next one finds."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    return folder


def test_help_lists_all_of_it() -> None:
    text = io.StringIO()
    with redirect_stdout(text):
        help(sim)
    for name in sim.__all__:
        assert name in text.getvalue()
    assert sim.__version__.count(".") == 2


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_docstrings_run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    monkeypatch.setattr(sim, "reproduce", REPRODUCED, raising=False)
    found = DOCUMENTED[name]
    tests = doctest.DocTestFinder(recurse=False).find(found, name, globs={"sim": sim})
    examples = [example for test in tests for example in test.examples]
    assert inspect.getdoc(found)
    assert bool(examples) == (name not in WITHOUT_EXAMPLES)
    report = io.StringIO()
    with patch.dict(plugins._registered):
        for test in tests:
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write)
    plugins.load.cache_clear()
    assert report.getvalue() == ""


def test_every_parameter_is_described() -> None:
    for name in sim.__all__:
        if inspect.isfunction(PUBLIC[name]):
            doc = inspect.getdoc(PUBLIC[name]) or ""
            for parameter in inspect.signature(PUBLIC[name]).parameters:
                assert f"{parameter}: " in doc or len(inspect.signature(PUBLIC[name]).parameters) < 3, (
                    f"{name}: {parameter}"
                )


def test_a_notebook_shows_results_and_comparisons_with_names_that_are_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    results = sim.run({**sim.example(), "title": "<b>Example"}, "results/example")
    for shown in (results, sim.compare("results/example")):
        html = shown._repr_html_()
        assert "&lt;b&gt;Example" in html
        assert "<b>" not in html
        assert html.count("<table>") == len(results.manifest["report"]["metrics"])
        assert html.count("<svg ") == 1
        assert "<script" not in html


def test_a_library_that_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(sim.InputError, match=r"^polars is not installed: pip install polars$"):
        sim.run(sim.example(), "results/example").polars()


def test_bars_are_drawn_in_a_notebook_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich draws them there with ipywidgets; without these, there are lines."""
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    experiment = sim.load_scenario(sim.example())
    for there, kind in ((None, "_Plain"), (object(), "_Live")):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, there=there: there)
        monkeypatch.setattr("sim.api.progress._live", nullcontext)
        monkeypatch.setattr("sim.api.progress._Live", lambda *_: type("_Live", (), {})())
        with display(experiment) as shown:
            assert type(shown).__name__ == kind
