"""Problems in JSON: models that check their keys against one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from sim.base.errors import InputError
from sim.base.naming import Keys, RawValue
from sim.base.validation import Mistake, dotted, nested, problems, show


class Strict(BaseModel):
    """A JSON object with only the model's keys and types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ProblemInstance(Strict):
    """A problem; topics are named by position."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if found := next(self.mistakes(), None):
            raise nested([found])
        return self

    def mistakes(self) -> Iterator[Mistake]:
        """Contradictions between keys."""
        yield from ()

    @classmethod
    def read(cls, content: RawValue, place: Keys = ()) -> Self:
        """The problem of a JSON object. Raises InputError for the first mistake; `place` is the object's position."""
        if not isinstance(content, dict):
            required = [key for key, field in cls.model_fields.items() if field.is_required()]
            text = f"expected an object with the keys {', '.join(required)} (found {show(content)})"
            raise InputError(f"{dotted(place)}: {text}" if place else text)
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            keys, text = problems(error, cls)[0]
            keys = tuple(key for key in keys if not str(key).startswith("("))  # which of two types was taken
            raise InputError(f"{dotted((*place, *keys))}: {text}") from None


def wrong_topics(key: str, rows: Sequence[Sequence[int]], topics: int) -> Iterator[Mistake]:
    """Yield the topics in lists that are out of range."""
    for number, row in enumerate(rows):
        for i, topic in enumerate(row):
            if not 0 <= topic < topics:
                allowed = f"a topic from 0 to {topics - 1}" if topics else "none, as there are no topics"
                yield (key, number, i), f"expected {allowed} (found {topic})"
