"""Parameters of plug-ins given on the command line."""

from __future__ import annotations

from collections.abc import Sequence

# Any: parameters of whichever plug-in is asked for.
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.base.errors import InputError, cut

if TYPE_CHECKING:
    from pydantic import BaseModel


class Given(NamedTuple):
    """A parameter, the text of its value, and how it was given."""

    key: str
    text: str
    given: str


def settings(texts: Sequence[str]) -> list[Given]:
    """Parameters given as `--set KEY=VALUE`."""
    found = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"--set {cut(text, 300)}: expected KEY=VALUE, such as users=200")
        found.append(Given(key.strip(), value, f"--set {key.strip()}"))
    return found


def options(arguments: Sequence[str]) -> list[Given]:
    """Parameters given as options of their names, `--per-user 5` or `--per-user=5`."""
    found, left = [], list(arguments)
    while left:
        option, equals, value = left.pop(0).partition("=")
        if not option.startswith("--"):
            raise InputError(f"unexpected argument '{option}': parameters are given as --KEY VALUE, after the kind")
        if not equals:
            if not left:
                raise InputError(f"{option}: expected a value after it")
            value = left.pop(0)
        found.append(Given(option.removeprefix("--").replace("-", "_"), value, option))
    return found


def parameters(model: type[BaseModel], given: Sequence[Given]) -> Any:
    """The model's parameters from these texts; later ones override. Raises InputError with all mistakes."""
    from pydantic import ValidationError

    from sim.base.validation import dotted, problems, validate
    from sim.files import toml

    try:
        return validate(model, {one.key: toml.value(one.text.strip()) for one in given})
    except ValidationError as error:
        names: dict[str, str] = {one.key: one.given for one in given}
        found = [
            f"{names.get(str(keys[0]), keys[0])}{dotted(('', *keys[1:]))}: {text}" if keys else text
            for keys, text in problems(error, model)
        ]
        raise InputError("\n".join(found)) from None
