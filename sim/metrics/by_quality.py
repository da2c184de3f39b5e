"""The metrics of quality of service between clients and brokers."""

from __future__ import annotations

from sim.metrics.metric import Metric

_COUNTED = {
    "puback_messages": ("messages", "acknowledgements between clients and brokers (quality of service 1)"),
    "pubrec_messages": ("messages", "receipts between clients and brokers (quality of service 2, the first answer)"),
    "pubrel_messages": (
        "messages",
        "releases between clients and brokers (quality of service 2, of what was received)",
    ),
    "pubcomp_messages": ("messages", "completions between clients and brokers (quality of service 2, the last answer)"),
    "client_retransmissions": ("messages", "messages, and releases, between clients and brokers that were sent again"),
    "client_duplicates": (
        "count",
        "messages of quality of service 1 that a user, or a publisher's broker, received again",
    ),
}
BY_QUALITY = [
    Metric(name, unit, description, integer=True, windows="sum", counted=True)
    for name, (unit, description) in _COUNTED.items()
] + [
    Metric("publishing_delay", "s", "mean time from a user's publication until its broker has received it"),
    Metric("unpublished", "count", "publications of users that had not reached their broker by the end", integer=True),
]
"""All of them."""
