"""Where a publication's whole path may be computed at once: where nothing contends or fails, and no single hop is looked at."""

from __future__ import annotations

_LIMITS = ("bandwidth", "interface", "loss")


def hindrances(
    service: str,
    jitter: float,
    links: object,
    trace: float,
    floods: bool,
    faults: bool,
    guarantee: str,
    shares: bool = False,
) -> str:
    """What keeps paths from being computed at once, as in messages; empty where nothing does.

    `service` is the kind of service time, `links` has the limits of links as attributes, `trace` is the share of publications traced.
    """
    found = {
        f'brokers.service = "{service}"': service != "none",
        f"jitter {jitter:g}": jitter > 0,
        **{f"network.links.{name}": bool(getattr(links, name)) for name in _LIMITS},
        "trace = true" if trace == 1 else f"trace = {trace:g}": trace > 0,
        "an overlay that floods": floods,
        "faults": faults,
        "shared subscriptions": shares,
        f'network.delivery.guarantee = "{guarantee}"': guarantee != "best-effort",
    }
    return " and ".join(reason for reason, holds in found.items() if holds)


def cannot_fold(why: str) -> str:
    """The message that the folded data plane was asked for where there are `hindrances`."""
    return f'"folded" does not simulate single hops and is not exact with {why} (allowed: "events", "compiled", "auto")'
