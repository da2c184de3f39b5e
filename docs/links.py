"""The links of the docs site, once it is built: `python -m docs.links site` names those within it that lead nowhere, with status 1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The names of places in a page, and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        self.links |= {found[name] for name in ("href", "src") if name in found}


def dead_links(site: Path) -> Iterator[str]:
    """Each link within a site to a file or a place in a page that is not there, with the page that has it."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.resolve().rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":  # that page is shown at any address
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                yield f"{path.relative_to(site.resolve())}: {link}"


if __name__ == "__main__":
    found = list(dead_links(Path(sys.argv[1])))
    print(*(f"leads nowhere: {link}" for link in found), sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
