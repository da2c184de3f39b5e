"""Hooks of the docs site: the generated reference, and links that leave the docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Any: MkDocs is an extra, and not imported by anything else.
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference."""
    from mkdocs.structure.files import File

    from docs.reference import pages

    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the path instead of a link to a file of the source, which the site does not have; and only the language of a block.

    What follows a block's language is for the tests that run it. The site would not take such a line for the beginning of a block.
    """
    markdown = re.sub(r"^( *```\w+) .*$", r"\1", markdown, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?:(?:\.\./)+|(?=example-plugin))([^)]*)\)", r"\1 (`\2`)", markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Lead the links of notebooks, which are written for files, to pages."""
    return (
        re.sub(r'href="(\.\./[\w/-]+)\.md\b', r'href="\1.html', html) if page.file.src_uri.endswith(".ipynb") else html
    )
