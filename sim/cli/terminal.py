"""Terminal output: names and other text from files can never control the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

# Any: Typer's own Click and Rich, whose types it does not export.
from typing import TYPE_CHECKING, Any, TextIO

from typer.core import TyperCommand

from sim.base.escaping import printable
from sim.base.naming import RawValue

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 100
"""Width of tables that are not printed on a terminal."""


class _Printable:
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


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make all output printable while the body runs; styles and bars come from a `console`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Printable(sys.stdout), _Printable(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def printable_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception as Python does, but printable."""
    with printable_streams():
        sys.__excepthook__(kind, error, trace)


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
    plain = stream.stream if isinstance(stream, _Printable) else stream
    return Printable(file=plain, highlight=False, markup=False, width=None if plain.isatty() else width)


def listing(title: str, entries: Callable[[], Iterable[tuple[str, str]]]) -> type[TyperCommand]:
    """A command class whose help ends with a list of names and descriptions, computed on demand."""

    class Listing(TyperCommand):
        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            with formatter.section(title):
                formatter.write_dl(list(entries()))

    return Listing


def print_json(value: RawValue) -> None:
    """Print a command's result as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def speaker(quiet: bool) -> Callable[[str], None]:
    """A function that prints lines on standard error, or nothing when quiet."""

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    return say


def plain_table(heads: Sequence[str], rows: Iterable[Iterable[str]], left: Container[str] = ("",)) -> Table:
    """A table of numbers, except for the text columns in `left`; without heads it has two text columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_header=bool(heads))
    for head in heads or ("", ""):
        table.add_column(head, justify="left" if head in left else "right", vertical="bottom")
    for row in rows:
        table.add_row(*row)
    return table
