"""The [network.links] table: rates, losses and buffers of the links between brokers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sim.base.units import BitRate
from sim.scenario.brokers import BoundedBytes, BoundedMessages
from sim.scenario.fixed_table import FixedTable


class LinksTable(FixedTable):
    """Rates, losses and buffers of links for publications; control messages have no bytes and are not lost."""

    bandwidth: BitRate | None = None
    """The rate of a link, in each direction; unlimited by default."""
    interface: BitRate | None = None
    """The rate of a broker's interface, in each direction, shared by all its links; unlimited by default."""
    loss: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The probability that a link loses a message."""
    buffer: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait for a link; further ones are dropped."""
    buffer_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait for a link."""

    @model_validator(mode="after")
    def _buffers_where_needed(self) -> LinksTable:
        for key in ("buffer", "buffer_bytes"):
            if getattr(self, key) is not None and self.bandwidth is None and self.interface is None:
                raise ValueError(f"{key} without a rate, so that no message waits (allowed with: bandwidth, interface)")
        return self
