"""One word, one thing: replaced words and riddles do not come back where a user or a developer reads them."""

from __future__ import annotations

import ast
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
    # what nobody says in English
    r"[Ss]o many(?! (?:of|that|as))": "the number, by its name",
    r"anew": "again, re-…, from scratch",
    r"as [`\w.]+ has it": "as in",
    r"be (?:it|they)": "even if, including",
    r"[Ll]est": "so that … not",
    r"for good": "permanently, always",
    r"(?:go|goes|going|went) on(?! (?:the|a|one) )": "continues, is in progress",
    r"in place of": "instead of",
    r"on its way any more": "in transit",
    r"comes? out as it does": "outcome",
    r"do(?:es)? runs": "performs runs",
    r"takes? .{0,20} over(?:,|\.| and)": "replaces",
    r"what is not (?:to|of|in)": "the thing, by a noun",
}
OLD = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b")


def texts() -> Iterator[Path]:
    for folder in ("sim", "analysis", "docs", "benchmarks", "scenarios"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".jinja", ".toml"})
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "brokersim"))


def test_private_vocabulary_does_not_come_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r} (write {instead(match.group())!r})"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in OLD.finditer(line.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " "))
    ]
    assert found == []


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    """A first word that refers to something outside, as in "Those after the warm-up.", makes the sentence a riddle."""
    unsaid = re.compile(r"(?:Of|That|Those|It|Likewise|Such|So|Have|Never:|Nothing:)\b")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value.value[:60]!r}"
        for path in texts()
        if path.suffix == ".py" and "docs" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if unsaid.match(node.value.value.strip())
    ]
    assert found == []


def test_pages_link_terms_to_the_section_of_the_glossary_that_defines_them() -> None:
    section, defined = "", dict[str, str]()
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines():
        section = line[3:].lower().replace(" ", "-") if line.startswith("## ") else section
        defined |= {
            stem: defined.get(stem, "") + section for term in re.findall(r"\*([^*]+)\*", line) for stem in stems(term)
        }
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    links = {
        page: re.findall(r"\[([^]]+)]\((?:docs/)?glossary\.md(?:#([\w-]+))?\)", page.read_text()) for page in pages
    }
    assert {page.stem for page in pages if not links[page]} <= {"gallery", "glossary", "install"}
    wrong = [
        f"{page.name}: [{text}](#{anchor})"
        for page, found in links.items()
        for text, anchor in found
        if anchor and not any(anchor in defined.get(stem, "") for stem in stems(text))
    ]
    assert wrong == []


def stems(text: str) -> list[str]:
    """The beginnings of the words in a text: `heals` and `Healing` have the same."""
    return [word[:4] for word in re.findall(r"\w+", text.lower())]


def instead(word: str) -> str:
    return next(new for old, new in INSTEAD.items() if re.fullmatch(old, word))
