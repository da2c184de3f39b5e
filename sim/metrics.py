"""The scalar metrics that a run reports: names, units and meanings, in one place for recorder, scenario and report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "neutral"]


@dataclass(frozen=True)
class Metric:
    """One scalar metric: its unit ("–" where it has none), a line that says what it counts, and which way is better.

    `integer` tells counts (int64 in the results) from measures (float64). `got_through`: it is measured on what got through, or gets
    worse only later, so that it looks better than it is where a broker is saturated.
    """

    name: str
    unit: str
    description: str
    better: Better = "lower"
    integer: bool = False
    got_through: bool = False


def _count(name: str, unit: str, description: str, better: Better = "lower", got_through: bool = False) -> Metric:
    return Metric(name, unit, description, better, True, got_through)


def _seconds(name: str, description: str) -> Metric:
    """A delay, or a part of one."""
    return Metric(name, "s", description, got_through=True)


def _delay(name: str, description: str) -> list[Metric]:
    """A mean, its quantiles (from bins 1 % wide) and its exact maximum."""
    return [
        _seconds(name, description),
        *(_seconds(f"{name}_p{q}", f"{q} % quantile of {name} (bins 1 % wide)") for q in (50, 95, 99)),
        _seconds(f"{name}_max", f"largest {name}"),
    ]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in [
        _count("broker_subscription_changes", "count", "times that a broker began or ceased to want a topic"),
        _count(
            "subscription_overhead",
            "messages",
            "control messages between brokers: tree joins, leaves, state exchange",
        ),
        *_delay(
            "notification_delay",
            "publisher's broker until the due broker has served it, mean over delivered (publication, broker) pairs",
        ),
        _seconds("arrival_delay", "notification delay without wait and service at the due broker itself"),
        _seconds("user_notification_delay", "notification delay weighted by due users"),
        _seconds("tree_delay", "root of the tree until the due broker has served it, mean over delivered pairs"),
        _seconds("user_tree_delay", "tree delay weighted by due users"),
        Metric("tree_hops", "hops", "mean hops from the root to a due broker"),
        Metric("uplink_hops", "hops", "mean hops from the publisher's broker to the root"),
        _count("notification_overhead", "messages", "messages between brokers below the root"),
        _count("internal_overhead", "messages", "those received by brokers that subscribe"),
        _count("external_overhead", "messages", "those received by unrelated relays (relay traffic)"),
        _count("uplink_messages", "messages", "messages on the way from publisher's broker to root"),
        Metric("messages_per_publication", "messages", "messages between brokers below the root per publication"),
        _count("notification_bytes", "bytes", "bytes of the messages below the root"),
        _count("internal_bytes", "bytes", "bytes of those received by brokers that subscribe"),
        _count("external_bytes", "bytes", "bytes of those received by unrelated relays"),
        _count("uplink_bytes", "bytes", "bytes of the messages on the way to the root"),
        _count("cross_region_bytes", "bytes", "bytes of messages between brokers of different regions"),
        _count("handovers", "count", "times that a user's broker changed", "neutral"),
        _count("handover_messages", "messages", "request, reply, leave and join of each handover"),
        _count("reconfigurations", "count", "times that brokers changed places on the overlay", "neutral"),
        _count("reconfigured_brokers", "count", "brokers that changed places, over all reconfigurations", "neutral"),
        _count(
            "reconfiguration_overhead",
            "messages",
            "messages by which brokers change places, but those of the drain, or links that follow interests change",
        ),
        Metric("reconfiguration_bound", "messages", "what the reconfigurations begun were to cost (DYNATOPS eq. 11)"),
        _count("drain_messages", "messages", "reports by brokers that nothing is on its way before they change places"),
        Metric("ssbr_cost", "–", "SSBR cost (DYNATOPS eq. 6) of the configurations, mean over the periods' ends"),
        Metric(
            "satisfied_subscribers",
            "count",
            "users whom the back end satisfies in a period, mean over periods",
            "higher",
        ),
        Metric(
            "satisfaction",
            "–",
            "share of what a user needs that the back end delivers, mean over users and periods",
            "higher",
        ),
        Metric(
            "backend_load",
            "notifications",
            "expected notifications per period that the back end keeps, mean over decisions",
        ),
        Metric("backend_capacity", "notifications", "those that it could keep, mean over decisions", "neutral"),
        Metric(
            "approximation_ratio",
            "–",
            "objective of the decision relative to the best proven bound, mean over decisions",
            "higher",
        ),
        _count("offload_churn", "count", "times that a topic with subscribers was offloaded or taken back"),
        _count("offload_messages", "messages", "messages that told brokers so"),
        _count(
            "bootstrap_messages",
            "messages",
            "control messages of the initial joining: tree joins, links, state exchange",
        ),
        Metric("load_stddev", "–", "standard deviation of the brokers' shares of subscriptions relative to their mean"),
        Metric("load_jain", "–", "Jain's fairness index of the brokers' shares of subscriptions", "higher"),
        _count("publications", "count", "publications published", "neutral"),
        _count(
            "publications_dropped",
            "count",
            "publications, or their copies, that a full queue on the way to the root dropped; what was due is lost",
        ),
        _count("due", "count", "(publication, broker) pairs that became due", "neutral"),
        _count("delivered", "count", "due pairs delivered: served by the due broker", "higher", True),
        _count("lost", "count", "due pairs lost", got_through=True),
        _count("lost_joining", "count", "pairs lost because the broker was not on the tree yet, or no longer"),
        _count("lost_queue_full", "count", "pairs lost because a broker's queue was full", got_through=True),
        _count(
            "lost_offloaded", "count", "pairs lost because the topic was offloaded and the best-effort channel failed"
        ),
        _count("best_effort_deliveries", "count", "delivered pairs that came by the best-effort channel", "neutral"),
        _count("in_flight", "count", "due pairs on their way, or waiting at a broker, at the end", "neutral"),
        _count("duplicates", "count", "arrivals of a publication at a broker that had it already (flooding, content)"),
        _count(
            "false_positive_messages",
            "count",
            "arrivals of content at a broker that subscribes to its predicate, but has no match there",
        ),
        Metric("delivery_ratio", "–", "delivered of due (publication, user) pairs", "higher", got_through=True),
        Metric(
            "path_stretch", "–", "arrival delay by the tree relative to the direct latency from the publisher's broker"
        ),
        _seconds("queue_wait", "mean wait in a broker's queue"),
        Metric("utilisation", "–", "share of time that brokers are busy, mean over brokers", "neutral"),
        _count(
            "saturated_brokers",
            "count",
            "brokers that cannot keep up: more work arrives than they can do, and delays are of what got through",
        ),
        _count("edges", "count", "links of the overlay at the end, whichever way they go"),
        Metric("average_degree", "–", "brokers that a broker is linked to at the end, mean over brokers"),
        _count("maximum_degree", "count", "most brokers that a broker is linked to at the end"),
        _count(
            "diameter", "hops", "largest diameter of a topic's own links at the end, of topics with two brokers or more"
        ),
        Metric("mean_topic_diameter", "hops", "mean diameter of the topics' own links at the end"),
        _count("tree_state", "count", "children, or members below, that brokers keep for topic trees at the end"),
    ]
}
