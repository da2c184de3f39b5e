"""The [network.clients] table: the way from a broker to its users, and what happens where a user is too slow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim.base.units import BitRate, Duration, Sigma
from sim.scenario.brokers import BoundedBytes, BoundedMessages
from sim.scenario.fixed_table import FixedTable

_Window = Annotated[int, Field(ge=1, le=2**31 - 1)]


class SlowClients(FixedTable):
    """A share of users, drawn at random, whose way is another; what is not said is as for all."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The probability with which a user is slow."""
    latency: Duration | None = None
    """The time from the broker to such a user."""
    rate: BitRate | None = None
    """The rate at which such a user receives."""
    window: _Window | None = None
    """How many messages may be on their way to such a user before one is acknowledged."""

    @model_validator(mode="after")
    def _differs(self) -> SlowClients:
        own = [key for key in ("latency", "rate", "window") if getattr(self, key) is not None]
        if own and not self.share:
            raise ValueError(f"{own[0]} without a share above 0, so that nobody is slow (allowed with: share)")
        if self.share and not own:
            raise ValueError("share without anything that is slow (allowed with: latency, rate, window)")
        return self


class ClientsTable(FixedTable):
    """The way from a broker to its users. Each user takes one message after the other, and has its own buffer at the broker."""

    latency: Duration = 0.0
    """The time from the broker to a user, and of an acknowledgement back."""
    jitter: Sigma = 0.0
    """The σ of a lognormal factor with mean 1 on the latency of each message; they keep their order."""
    rate: BitRate | None = None
    """The rate at which a user receives; by default any number of messages at a time."""
    window: _Window | None = None
    """How many messages may be on their way to a user before one is acknowledged; by default any number."""
    buffer: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait for a user."""
    buffer_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait for a user."""
    overflow: Literal["drop-newest", "drop-oldest", "disconnect"] = "drop-newest"
    """What is lost where the buffer is full: the message that comes, those that have waited longest, or all, as the user is cut off."""
    reconnect_after: Duration = 0.0
    """How long a user that was cut off stays away; what comes meanwhile is lost."""
    slow: SlowClients = SlowClients()
    """Users who are slower than the others."""

    @model_validator(mode="after")
    def _makes_sense(self) -> ClientsTable:
        if not self.latency and not self.slow.latency:
            for key in ("jitter", "window"):
                if getattr(self, key) or (key == "window" and self.slow.window):
                    raise ValueError(f"{key} without a latency, so that it changes nothing (allowed with: latency)")
        for key in ("buffer", "buffer_bytes"):
            if getattr(self, key) is not None and not self.limits:
                raise ValueError(f"{key} without a limit, so that nothing waits (allowed with: rate, window)")
        if self.reconnect_after and self.overflow != "disconnect":
            raise ValueError(f"overflow '{self.overflow}' takes no reconnect_after (allowed with: 'disconnect')")
        return self

    @property
    def limits(self) -> bool:
        """Whether messages may have to wait for a user."""
        return any(part is not None for part in (self.rate, self.window, self.slow.rate, self.slow.window))

    @property
    def takes_time(self) -> bool:
        """Whether users have a message later than their broker has served it."""
        return self.limits or bool(self.latency or self.slow.latency)
