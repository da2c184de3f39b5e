"""One word, one thing: words that gave way to the field's own do not come back where a user or a developer reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTEAD = {
    r"books?": "statistics",
    r"told|untold": "reported, called with, named",
    r"made[- ]up|makes? up": "synthetic",
    r"certain difference": "statistically significant difference",
    r"95 % intervals?": "95 % confidence interval",
    r"(?:goes|go|went) on where": "resumes",
    r"nearest (?:right|allowed) name": "closest valid name",
    r"parted by": "separated by",
    r"tolls?": "relocation cost",
    r"anchored": "nodes_are_brokers",
    r"Parcel|Laid|Seen|Asked|Ended": "ControlMessage, Override, RunResults, ReproductionRequest, TrialResult",
}
OLD = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b")


def texts() -> Iterator[Path]:
    for folder in ("sim", "analysis", "docs"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".jinja"})
    yield ROOT / "README.md"


def test_private_vocabulary_does_not_come_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r} (write {instead(match.group())!r})"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in OLD.finditer(line.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " "))
    ]
    assert found == []


def instead(word: str) -> str:
    return next(new for old, new in INSTEAD.items() if re.fullmatch(old, word))
