"""The [network.links] table: what limits the links between brokers beside their latency."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sim.base.units import BitRate
from sim.scenario.brokers import BoundedBytes, BoundedMessages
from sim.scenario.fixed_table import FixedTable


class LinksTable(FixedTable):
    """Rates, losses and buffers of links, for messages with publications: control messages have no bytes and are not lost."""

    bandwidth: BitRate | None = None
    """The rate of a link, in each direction; by default any number of messages pass at a time."""
    interface: BitRate | None = None
    """The rate of a broker's interface, in each direction, which all of its links share; likewise."""
    loss: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The probability with which a link loses a message."""
    buffer: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait for a link to be free; those that come then are dropped."""
    buffer_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait for a link to be free."""

    @model_validator(mode="after")
    def _buffers_where_needed(self) -> LinksTable:
        for key in ("buffer", "buffer_bytes"):
            if getattr(self, key) is not None and self.bandwidth is None and self.interface is None:
                raise ValueError(f"{key} without a rate, so that nothing waits (allowed with: bandwidth, interface)")
        return self
