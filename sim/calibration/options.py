"""What measurements of brokers may do, declared once for the functions and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import InputError
from sim.experiments.options import declared


@dataclass(frozen=True)
class MeasuringOptions:
    """Which process the broker is, whether it may be on another host, and limits in time and messages."""

    pid: int | None = declared(
        "N", "The broker's process on this machine, whose time on a core is measured (Linux).", None, min=1
    )
    remote: bool = declared("--remote", "Allow a broker on another host: load is put on it and on the network.", False)
    seconds: float = declared("S", "How long load may be put on the broker, in seconds.", 60.0, min=1, max=3600)
    messages: int = declared("N", "How many messages the broker may receive and send.", 5_000_000, min=1000)

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= 3600:
            raise InputError(f"seconds: expected 1 to 3600 (found {self.seconds:g})")
        if self.messages < 1000:
            raise InputError(f"messages: expected 1000 or more (found {self.messages})")
