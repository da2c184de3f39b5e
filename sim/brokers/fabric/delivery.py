"""Guarantees of delivery between brokers: how long a sender keeps a copy, and when it sends it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DeliverySetting:
    """What brokers do about copies that are lost between them.

    With any `guarantee` but "best-effort", a sender keeps a copy until it is acknowledged. It sends it again after `timeout` (s), and
    each time `backoff` times as long after, at most `longest` (s); in all at most `attempts` times, and until `expire_after` (s) the
    publication, None for no limit. `store` says whether what a broker keeps survives its crash. With "qos" each publication has the
    guarantee of its own quality of service: 0 best effort, 1 at least once, 2 exactly once.
    """

    guarantee: Literal["best-effort", "at-least-once", "exactly-once", "qos"] = "best-effort"
    timeout: float = 1.0
    backoff: float = 2.0
    longest: float = 60.0
    attempts: int | None = None
    store: Literal["persistent", "memory"] = "persistent"
    expire_after: float | None = None

    @property
    def guarantees(self) -> bool:
        """Whether copies are acknowledged, some at least."""
        return self.guarantee != "best-effort"

    @property
    def quality(self) -> int | None:
        """The quality of service between brokers of all publications; None where each has its own."""
        return _QUALITIES.get(self.guarantee)

    def quality_of(self, qos: int) -> int:
        """The quality of service between brokers of a publication with this one of its own; 1 where that is not known (-1)."""
        return abs(qos) if self.quality is None else self.quality


_QUALITIES = {"best-effort": 0, "at-least-once": 1, "exactly-once": 2}

NO_GUARANTEE = DeliverySetting()
"""The setting in which what is lost is lost."""


ATTEMPT = 1 << 40
"""In keyed draws, the identity of the copy that is sent for the k-th time, from 0, is that of its flight plus k times this."""
