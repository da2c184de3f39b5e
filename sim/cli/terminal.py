"""Terminal output: names and other text from files can never control the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

# Any: Typer's own Click and Rich, whose types it does not export.
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from sim.api.console import PrintableStream
from sim.api.console import console as console
from sim.api.console import speaker as speaker
from sim.base.naming import RawValue

if TYPE_CHECKING:
    from rich.table import Table


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make all output printable while the body runs; styles and bars come from a `console`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def printable_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception as Python does, but printable."""
    with printable_streams():
        sys.__excepthook__(kind, error, trace)


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
