"""Read models from the tables of many similar scenarios: equal tables are read once, and share one object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

# Any: tables are read by models that the group decides.
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from sim.base.naming import Raw
from sim.base.validation import Mistake, Model, problems
from sim.scenario.kinds import Kinds


class Reading:
    """Reads tables as models, and caches the results, mistakes included."""

    def __init__(self) -> None:
        self._read: dict[Any, tuple[Any, list[Mistake]]] = {}
        self._called: dict[Any, tuple[Any, Any]] = {}

    def read(self, model: type[Model], table: Raw, more: tuple[str, ...] = ()) -> tuple[Model | None, list[Mistake]]:
        """The model of a table, or None and its mistakes; strict like `sim.base.validation.validate`.

        `more` are keys that are allowed besides the model's. Missing tables are read as empty ones, unless None stands for them.
        """
        inner = tables_of(model)
        values, found = dict(table), list[Mistake]()
        known: list[object] = [model, repr([(key, value) for key, value in table.items() if key not in inner])]
        for key, kind in inner.items():
            said = table.get(key, _EMPTY)
            if said is _EMPTY and model.model_fields[key].default is None:
                continue
            if isinstance(said, dict):
                values[key], wrong = self._table(kind, said)
                known.append(id(values[key]))
                if wrong:
                    found += [((key, *keys), text) for keys, text in wrong]
                    values[key] = _WRONG
            else:
                known.append(repr(said))
        if found:
            others = self._checked(model, values, more)[1]
            return None, found + [one for one in others if not one[0] or values.get(str(one[0][0])) is not _WRONG]
        place = tuple(known)
        if place not in self._read:
            self._read[place] = self._checked(model, values, more)
        return self._read[place]

    def once(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns, called only once for the same objects, which the tables share."""
        known = function, *map(id, arguments)
        if known not in self._called:
            self._called[known] = function(*arguments), arguments
        return self._called[known][0]

    def _table(self, kind: type[BaseModel] | Kinds, table: Raw) -> tuple[Any, list[Mistake]]:
        if not isinstance(kind, Kinds):
            return self.read(kind, table)
        known = id(kind), repr(table)
        if known not in self._read:
            try:
                self._read[known] = kind.read(table), []
            except PydanticCustomError as error:
                self._read[known] = None, (error.context or {})["problems"]
        return self._read[known]

    @staticmethod
    def _checked(model: type[Model], values: Raw, more: tuple[str, ...]) -> tuple[Model | None, list[Mistake]]:
        try:
            return model.model_validate(values, strict=True), []
        except ValidationError as error:
            return None, problems(error, model, more)


_EMPTY: Raw = {}
_WRONG = object()
"""Stands for a table with mistakes: no model accepts it, so that none checks how its tables fit together."""


@cache
def tables_of(model: type[BaseModel]) -> dict[str, type[BaseModel] | Kinds]:
    """The fields of a model that are tables, and their types."""
    found: dict[str, type[BaseModel] | Kinds] = {}
    for name, field in model.model_fields.items():
        if kinds := [item for item in field.metadata if isinstance(item, Kinds)]:
            found[name] = kinds[0]
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found[name] = field.annotation
    return found
