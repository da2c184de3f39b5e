"""Six tasks of a newcomer, each a script that uses only what the docs name: they run to their ends in a fresh folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from reader import ROOT, Reader

SCRIPTS = sorted((Path(__file__).parent / "tasks").iterdir())
DOCS = "\n".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def names(script: Path) -> set[str]:
    """The commands and options of ours, or the functions, that a script uses."""
    text = script.read_text()
    if script.suffix == ".py":
        return {f"sim.{name}" for name in re.findall(r"\bsim\.(\w+)", text)}
    lines = [shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line.startswith("./brokersim ")]
    options = {word for line in lines for word in line if word.startswith("--")}
    return options | {f"brokersim {line[1]}" for line in lines}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_all_that_the_script_names_is_in_the_docs(script: Path) -> None:
    used = names(script)
    assert used
    assert {name for name in used if not re.search(rf"{re.escape(name)}\b", DOCS)} == set()


@pytest.mark.long
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_task_can_be_done(script: Path, tmp_path: Path) -> None:
    command = ["bash", "-euo", "pipefail"] if script.suffix == ".sh" else [".venv/bin/python"]
    print(Reader(tmp_path).start([*command, str(script)], script.name, script.name))
