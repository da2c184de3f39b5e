"""The [network.delivery] table: what brokers do about copies that are lost between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim.base.units import PositiveDuration, format_duration
from sim.scenario.brokers import Service
from sim.scenario.fixed_table import FixedTable


class DeliveryTable(FixedTable):
    """What brokers do about copies that are lost between them."""

    guarantee: Literal["best-effort", "at-least-once", "exactly-once", "qos"] = "best-effort"
    """Whether a sender keeps a copy until it is acknowledged, and whether users may get the same publication again; "qos": by each
    publication's quality of service, 0, 1 or 2."""
    timeout: PositiveDuration = 1.0
    """How long a sender waits for an acknowledgement before it sends a copy again."""
    backoff: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    """The factor by which each wait is longer than the last."""
    longest: PositiveDuration = 60.0
    """The longest wait before a copy is sent again."""
    attempts: Annotated[int, Field(ge=1)] | None = None
    """How often a copy is sent at most; any number of times by default."""
    expire_after: PositiveDuration | None = None
    """How long after its publication a copy may still be sent again; without limit by default."""
    store: Literal["persistent", "memory"] = "persistent"
    """Whether what a broker keeps for others survives its crash."""

    @model_validator(mode="after")
    def _waits_no_longer_than_the_longest(self) -> DeliveryTable:
        if self.timeout > self.longest:
            timeout, longest = format_duration(self.timeout), format_duration(self.longest)
            raise ValueError(f"timeout: expected at most the longest wait ({longest}), found {timeout}")
        return self


WITHOUT_GUARANTEE = "has no effect on best-effort delivery (allowed with: network.delivery.guarantee)"
"""What is wrong with the keys of `without_guarantee`."""


def without_guarantee(variants: Iterable[tuple[DeliveryTable, Service]]) -> list[tuple[str, ...]]:
    """The keys about sending again that some variants set, if none has a guarantee under which anything is."""
    found = list(variants)
    tables = [table for table, _ in found]
    if any(table.guarantee != "best-effort" for table in tables):
        return []
    keys = DeliveryTable.model_fields.keys() - {"guarantee", "store"}
    default = DeliveryTable()
    changed = sorted(key for key in keys if any(getattr(table, key) != getattr(default, key) for table in tables))
    served = [("brokers", "service", "acknowledgement")] if any(service.acknowledgement for _, service in found) else []
    return [*(("network", "delivery", key) for key in changed), *served]
