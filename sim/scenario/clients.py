"""The [network.clients] table: the legs from brokers to users, and what happens if a user is too slow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim.base.units import BitRate, Duration, Sigma
from sim.scenario.brokers import BoundedBytes, BoundedMessages, check_overflow
from sim.scenario.fixed_table import FixedTable

_Window = Annotated[int, Field(ge=1, le=2**31 - 1)]


class SlowClients(FixedTable):
    """Some users with other values, a random share or the first ones; values not given are as for all users."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The probability that a user is slow."""
    first: Annotated[int, Field(ge=0, lt=2**31, exclude_if=lambda first: not first)] = 0
    """How many users are slow, those with the lowest numbers, beside the random share."""
    latency: Duration | None = None
    """The time from the broker to a slow user."""
    rate: BitRate | None = None
    """The rate at which a slow user receives messages."""
    window: _Window | None = None
    """How many unacknowledged messages may be on their way to a slow user."""

    @model_validator(mode="after")
    def _differs(self) -> SlowClients:
        own = [key for key in ("latency", "rate", "window") if getattr(self, key) is not None]
        some = "share" if self.share else "first" if self.first else None
        if own and some is None:
            raise ValueError(f"{own[0]} without a share above 0, so that no user is slow (allowed with: share, first)")
        if some and not own:
            raise ValueError(f"{some} without a slow value (allowed with: latency, rate, window)")
        return self


class ClientsTable(FixedTable):
    """The leg from a broker to each of its users, who take one message after the other, each with a buffer at the broker."""

    latency: Duration = 0.0
    """The time from the broker to a user, and of an acknowledgement back."""
    per_km: Duration = Field(default=0.0, exclude_if=lambda time: not time)
    """The further time per kilometre between a user's place and its broker, of messages either way."""
    jitter: Sigma = 0.0
    """The σ of a lognormal factor with mean 1 on the latency of each message to a user; they keep their order."""
    rate: BitRate | None = None
    """The rate at which a user receives messages; unlimited by default."""
    window: _Window | None = None
    """How many unacknowledged messages may be on their way to a user; unlimited by default."""
    buffer: BoundedMessages = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait for a user."""
    buffer_bytes: BoundedBytes = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many bytes of messages may wait for a user."""
    overflow: Literal["drop-newest", "drop-oldest", "disconnect"] = "drop-newest"
    """What is lost if the buffer is full: the message arriving, those that have waited longest, or all, as the user is disconnected."""
    reconnect_after: Duration = 0.0
    """How long a disconnected user stays away; messages for it are lost meanwhile."""
    slow: SlowClients = SlowClients()
    """A share of users who are slower than the others."""

    @model_validator(mode="after")
    def _makes_sense(self) -> ClientsTable:
        if not self._have_latency:
            for key in ("jitter", "window"):
                if getattr(self, key) or (key == "window" and self.slow.window):
                    raise ValueError(
                        f"{key} without a latency, so that it has no effect (allowed with: latency, per_km)"
                    )
        for key in ("buffer", "buffer_bytes"):
            if getattr(self, key) is not None and not self.limits:
                raise ValueError(f"{key} without a limit, so that no message waits (allowed with: rate, window)")
        check_overflow(self.overflow, buffer=self.buffer, buffer_bytes=self.buffer_bytes)
        if self.reconnect_after and self.overflow != "disconnect":
            raise ValueError(f"overflow '{self.overflow}' takes no reconnect_after (allowed with: 'disconnect')")
        return self

    @property
    def limits(self) -> bool:
        """Whether messages may have to wait for a user."""
        return any(part is not None for part in (self.rate, self.window, self.slow.rate, self.slow.window))

    @property
    def takes_time(self) -> bool:
        """Whether users receive a message later than their broker has served it."""
        return self.limits or self._have_latency

    @property
    def _have_latency(self) -> bool:
        return bool(self.latency or self.slow.latency or self.per_km)
