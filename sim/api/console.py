"""Text for people, on a terminal or in a notebook: names and other text from files can never control the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

# Any: attributes of whichever stream, and Rich's own options.
from typing import TYPE_CHECKING, Any, TextIO

from sim.base.escaping import printable

if TYPE_CHECKING:
    from rich.console import Console

Say = Callable[[str], None]
"""Called with lines about the progress."""
PLAIN_WIDTH = 100
"""Width of tables that are not printed on a terminal."""


class PrintableStream:
    """A stream that makes all text printable."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def console(stderr: bool = False, width: int = PLAIN_WIDTH) -> Console:
    """The console for tables, bars and styles: names are made printable, and never read as markup.

    `width` applies if the output is not a terminal.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class Printable(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # before its width is measured
            return super().render_str(printable(text), **options)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    plain = stream.stream if isinstance(stream, PrintableStream) else stream
    return Printable(file=plain, highlight=False, markup=False, width=None if plain.isatty() else width)


def silent(line: str) -> None:
    """Say nothing."""


def speaker(quiet: bool) -> Say:
    """A function that prints lines on standard error, or nothing when quiet."""

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    return say
