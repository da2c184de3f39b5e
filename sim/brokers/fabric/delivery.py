"""Guarantees of delivery between brokers: how long a sender keeps a copy, and when it sends it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DeliverySetting:
    """What brokers do about copies that are lost between them.

    With any `guarantee` but "best-effort", a sender keeps a copy until it is acknowledged. It sends it again after `timeout` (s), and
    each time `backoff` times as long after, at most `longest` (s); in all at most `attempts` times, and until `expire_after` (s) the
    publication, None for no limit. `store` says whether what a broker keeps survives its crash.
    """

    guarantee: Literal["best-effort", "at-least-once", "exactly-once"] = "best-effort"
    timeout: float = 1.0
    backoff: float = 2.0
    longest: float = 60.0
    attempts: int | None = None
    store: Literal["persistent", "memory"] = "persistent"
    expire_after: float | None = None

    @property
    def guarantees(self) -> bool:
        """Whether copies are acknowledged."""
        return self.guarantee != "best-effort"


NO_GUARANTEE = DeliverySetting()
"""The setting in which what is lost is lost."""


ATTEMPT = 1 << 40
"""In keyed draws, the identity of the copy that is sent for the k-th time, from 0, is that of its flight plus k times this."""
