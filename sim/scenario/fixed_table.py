"""Tables of a scenario without a kind, whose keys are always the same."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FixedTable(BaseModel):
    """A table of a scenario with keys of its own, described by the docstrings of its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
