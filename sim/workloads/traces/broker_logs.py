"""The logs of brokers that are read as they are: a layout, the wildcards of subscriptions, and a reader for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.readers.broker_lines import LogEvent, LogReader
from sim.workloads.traces.readers.emqx import EmqxReader
from sim.workloads.traces.readers.mosquitto import MosquittoReader
from sim.workloads.traces.readers.nats import NatsReader
from sim.workloads.traces.readers.tshark import TsharkReader


@dataclass(frozen=True)
class BrokerLog:
    """A log whose lines `reader` turns into events; `filters` names the grammar of subscriptions.

    `queues_qos_0`: whether the broker keeps messages of quality of service 0 for clients who are away.
    """

    name: str
    text: str
    time_formats: tuple[str, ...]
    filters: str
    reader: Callable[[], LogReader]
    queues_qos_0: bool = False

    @property
    def layout(self) -> Layout:
        """The layout of its events."""
        return Layout(self.name, LogEvent._fields, "log", time_formats=self.time_formats, text=self.text)


_NATS = "a NATS server's trace (-DV), answers of /connz, and advisories on connections"
BROKER_LOGS = {
    log.name: log
    for log in (
        BrokerLog("mosquitto", "Mosquitto's log, with log_type all", ("epoch", "iso"), "mqtt", MosquittoReader),
        BrokerLog(
            "emqx",
            "traces of EMQX 5, or its log at level debug, as JSON or text",
            ("iso", "epoch-ms"),
            "mqtt",
            EmqxReader,
            queues_qos_0=True,
        ),
        BrokerLog("nats", _NATS, ("iso",), "nats", NatsReader),
        BrokerLog(
            "tshark", "the MQTT fields of a capture, as tshark -T fields writes them", ("epoch",), "mqtt", TsharkReader
        ),
    )
}


def default_filters(layout: Layout) -> str:
    """The grammar of subscriptions in a layout; files of tables do not say, so their filters are exact."""
    return BROKER_LOGS[layout.name].filters if layout.kind == "log" else "exact"
