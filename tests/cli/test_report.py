"""`brokersim report` as typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fake_results import write_results

from sim.cli.app import main


def test_it_writes_the_page_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path)
    brokersim("report", str(tmp_path))
    output = capsys.readouterr()
    assert output.out == f"{tmp_path / 'report.html'}\n"
    assert "Reading 15 runs of 'Three ways to choose a broker'" in output.err
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_page_and_pictures_go_where_they_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path / "results", variants=("base",))
    page, pictures = tmp_path / "new" / "page.html", tmp_path / "pictures"
    brokersim("report", str(tmp_path / "results"), "--out", str(page), "--figures", str(pictures), "--quiet")
    output = capsys.readouterr()
    assert (output.out, output.err) == (f"{page}\n", "")
    names = {path.stem for path in pictures.glob("*.svg")}
    assert names == {path.stem for path in pictures.glob("*.png")} == {path.stem for path in pictures.glob("*.pdf")}
    assert {"delay", "load", "tree-0-base", "time-notification_delay", "interval-subscription_overhead"} <= names
    assert not (tmp_path / "results" / "report.html").exists()


@pytest.mark.parametrize(
    "damage", ["nothing there", "no manifest", "unfinished", "another version", "table missing", "runs no list"]
)
def test_what_is_no_result_is_refused_in_one_message(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    if damage != "nothing there":
        write_results(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        changed = {
            "unfinished": {"complete": False},
            "another version": {"format_version": 9},
            "runs no list": {"runs": 7},
        }.get(damage, {})
        (folder / "manifest.json").write_text(json.dumps({**manifest, **changed}))
    if damage == "no manifest":
        (folder / "manifest.json").unlink()
    if damage == "table missing":
        next(folder.glob("runs/*/timeseries.parquet")).unlink()
    brokersim("report", str(folder), "--quiet", status=2)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"brokersim: error: {folder}")
    assert len(output.err.splitlines()) == 1
    assert not list(tmp_path.rglob("*.html*"))


def test_importing_the_command_loads_nothing_heavy() -> None:
    heavy = "{'pandas', 'altair', 'scipy', 'jinja2', 'vl_convert', 'numpy'}"
    code = f"import sim.cli.report, sys; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def brokersim(*arguments: str, status: int = 0) -> None:
    """The command in this process; `main` reads sys.argv."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["brokersim", *arguments])
        try:
            found = main() or 0
        except SystemExit as exit:
            found = exit.code or 0
    assert found == status
