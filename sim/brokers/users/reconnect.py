"""How users whose broker has crashed come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ReconnectSetting:
    """A user notices a crash after `detection` (s), and tries to connect `to` the same broker or to the one that the policy selects.

    It waits (s) after each attempt that fails, always as long, or twice as long after each, the `longest` at most; less a share of
    that, drawn from 0 to `jitter`. A broker accepts `connection_rate` connections per second (None: any number).
    """

    detection: float = 0.0
    to: Literal["same", "policy"] = "same"
    backoff: Literal["fixed", "exponential"] = "fixed"
    wait: float = 1.0
    longest: float = 60.0
    jitter: float = 0.0
    connection_rate: float | None = None


EVERY_SECOND = ReconnectSetting()
"""Users try the same broker at once, and then each second."""
