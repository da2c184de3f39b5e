"""The scalar metrics that a run reports, each declared once: recorder, scenario, report and documentation follow from it."""

from __future__ import annotations

from sim.metrics.by_quality import BY_QUALITY
from sim.metrics.causes import CAUSES
from sim.metrics.metric import Better, Metric, Ratio, Windows


def _count(name: str, unit: str, description: str, better: Better = "lower", got_through: bool = False) -> Metric:
    """A count of publications or their messages, summed over windows."""
    return Metric(name, unit, description, better, True, got_through, "sum")


def _event(name: str, unit: str, description: str, better: Better = "lower", integer: bool = True) -> Metric:
    """A count of events, or the sum of their costs, recorded by name when they happen."""
    return Metric(name, unit, description, better, integer, windows="sum", counted=True)


def _total(name: str, unit: str, description: str) -> Metric:
    """A count over the whole run, or at its start or end."""
    return Metric(name, unit, description, integer=True)


def _seconds(name: str, description: str, windows: Windows | None = None) -> Metric:
    """A delay, or part of one, in seconds."""
    return Metric(name, "s", description, got_through=True, windows=windows)


QUANTILES = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
"""Names and per mille of the quantiles of delays."""


LATER = ("session_deliveries", "retained_deliveries")
"""Deliveries to users that metrics of delays leave out, as they say how long users were away, or when they subscribed."""


def _delay(name: str, over: str, description: str, less: tuple[str, ...] = ()) -> list[Metric]:
    """A mean delay per unit of the column `over` without those of `less`, and its quantiles."""
    return [
        _seconds(name, description, Ratio(f"{name}_sum", over, less)),
        *(
            _seconds(f"{name}_{quantile}", f"{permille / 10:g}th percentile of {name}, to 0.4 % (log-linear histogram)")
            for quantile, permille in QUANTILES.items()
        ),
    ]


OURS: dict[str, Metric] = {
    metric.name: metric
    for metric in [
        _event(
            "broker_subscription_changes", "count", "times that a broker subscribed to a topic or unsubscribed from it"
        ),
        _event(
            "subscription_overhead",
            "messages",
            "control messages between brokers: tree joins, tree leaves and state exchange",
        ),
        *_delay(
            "notification_delay",
            "delivered",
            "time from the publisher's broker until the due broker has served it, mean over delivered (publication, broker) pairs",
        ),
        _seconds("notification_delay_max", "largest notification_delay"),
        _seconds(
            "last_delivery_delay",
            "notification delay of the last due broker, mean over publications (or copies of content) that a tree or flood delivered",
            windows=Ratio("last_delivery_delay_sum", "publications_delivered"),
        ),
        _seconds(
            "arrival_delay",
            "notification delay without queueing and service at the due broker itself",
            windows=Ratio("arrival_delay_sum", "delivered"),
        ),
        *_delay(
            "user_notification_delay",
            "delivered_users",
            "time from the publisher's broker (up to clients, with `clients.per_km`: from the publisher) to the moment of "
            "`delay_until`, mean over delivered (publication, user) pairs",
            LATER,
        ),
        _seconds(
            "tree_delay",
            "time from the root of the tree until the due broker has served it, mean over delivered pairs",
            windows=Ratio("tree_delay_sum", "delivered", ("best_effort_deliveries",)),
        ),
        _seconds(
            "user_tree_delay",
            "time from the root of the tree to the moment of `delay_until`, mean over delivered (publication, user) pairs",
            windows=Ratio("user_tree_delay_sum", "delivered_users", ("best_effort_users", *LATER)),
        ),
        Metric(
            "tree_hops",
            "hops",
            "mean hops from the root to a due broker",
            windows=Ratio("tree_hops_sum", "delivered", ("best_effort_deliveries",)),
        ),
        Metric(
            "uplink_hops",
            "hops",
            "mean hops from the publisher's broker to the root",
            windows=Ratio("uplink_hops_sum", "publications_rooted"),
        ),
        _count("notification_overhead", "messages", "messages between brokers below the root"),
        _count("internal_overhead", "messages", "messages below the root received by subscribing brokers"),
        _count(
            "external_overhead",
            "messages",
            "messages below the root received by relays that do not subscribe (relay traffic)",
        ),
        _count("uplink_messages", "messages", "messages on the way from the publisher's broker to the root"),
        Metric(
            "messages_per_publication",
            "messages",
            "messages between brokers below the root per publication",
            windows=Ratio("notification_overhead", "publications"),
        ),
        _count("notification_bytes", "bytes", "bytes of the messages below the root"),
        _count("internal_bytes", "bytes", "bytes of the messages below the root received by subscribing brokers"),
        _count(
            "external_bytes", "bytes", "bytes of the messages below the root received by relays that do not subscribe"
        ),
        _count("uplink_bytes", "bytes", "bytes of the messages on the way to the root"),
        _total("cross_region_bytes", "bytes", "bytes of messages between brokers of different regions"),
        _event("handovers", "count", "times that a user's broker changed", "neutral"),
        _event("handover_messages", "messages", "messages of handovers: request, reply, leave and join each"),
        _event("reconfigurations", "count", "times that brokers were moved to other nodes of the overlay", "neutral"),
        _event(
            "reconfigured_brokers",
            "count",
            "brokers that moved to another node, summed over all reconfigurations",
            "neutral",
        ),
        _event(
            "reconfiguration_overhead",
            "messages",
            "messages that move brokers (without the drain), or that change links which follow interests",
        ),
        _event(
            "reconfiguration_bound",
            "messages",
            "predicted cost of the reconfigurations that began (DYNATOPS eq. 11)",
            integer=False,
        ),
        _event("drain_messages", "messages", "reports by brokers, before they move, that no message is in transit"),
        Metric(
            "ssbr_cost",
            "–",
            "SSBR cost (DYNATOPS eq. 6) of the configuration, mean over the ends of periods",
            windows=Ratio("ssbr_cost_sum", "ssbr_cost_count"),
        ),
        Metric(
            "satisfied_subscribers",
            "count",
            "users whom the back end satisfies in a period, mean over periods",
            "higher",
            windows=Ratio("satisfied_subscribers_sum", "periods"),
        ),
        Metric(
            "satisfaction",
            "–",
            "share of a user's need that the back end delivers, mean over users and periods",
            "higher",
            windows=Ratio("satisfaction_sum", "periods"),
        ),
        Metric(
            "backend_load",
            "notifications",
            "expected notifications per period on the topics that the back end keeps, mean over decisions",
            windows=Ratio("backend_load_sum", "decisions"),
        ),
        Metric(
            "backend_capacity",
            "notifications",
            "notifications per period that the back end has capacity for, mean over decisions",
            "neutral",
        ),
        Metric(
            "approximation_ratio",
            "–",
            "objective of the decision relative to the best proven bound, mean over decisions",
            "higher",
        ),
        _event("offload_churn", "count", "times that a topic with subscribers was offloaded or taken back"),
        _event("offload_messages", "messages", "messages that inform brokers of topics offloaded or taken back"),
        _event("crashes", "count", "times that a broker crashed", "neutral"),
        Metric(
            "broker_availability",
            "–",
            "share of time that a broker is up, mean over brokers",
            "higher",
            windows="average",
        ),
        Metric(
            "user_unavailability",
            "–",
            "share of time that a user is connected to no broker, mean over users",
            windows="average",
        ),
        _event("connection_attempts", "count", "attempts of users to connect again after their broker had crashed"),
        _event("reconnections", "count", "times that a user was connected again", "neutral"),
        _event("resubscriptions", "messages", "subscriptions that users send again once they are connected again"),
        _event("drained_users", "count", "users moved away from brokers that are drained", "neutral"),
        _event("drained_brokers", "count", "times that a broker was drained of its users", "neutral"),
        _seconds(
            "drain_time",
            "time from the beginning of a broker's drain until it has no users, mean over drained brokers",
            Ratio("drain_time_sum", "drained_brokers"),
        ),
        _event("broker_arrivals", "count", "brokers that joined as planned", "neutral"),
        _event("broker_departures", "count", "brokers that left as planned", "neutral"),
        _event("moved_users", "count", "users who moved because brokers leave or have joined as planned", "neutral"),
        _event("moved_topics", "count", "topics whose root moved because brokers left or joined as planned", "neutral"),
        _event(
            "moved_trees",
            "count",
            "topics with one root in whose trees brokers got other parents because brokers left or joined as planned",
            "neutral",
        ),
        _event(
            "membership_messages",
            "messages",
            "messages by which overlays and topics follow brokers that leave and join as planned, without those of users",
        ),
        _event("fault_messages", "messages", "control messages by which brokers that restart leave topic trees"),
        _event("stabilisation_messages", "messages", "messages by which brokers check each other, where overlays heal"),
        _event(
            "healing_messages", "messages", "messages by which overlays route around brokers and through them again"
        ),
        _event(
            "unhealed_crashes",
            "count",
            "crashes of brokers that the overlay could not route around when it noticed them",
        ),
        _total(
            "bootstrap_messages",
            "messages",
            "control messages before the run starts: initial tree joins, links and state exchange",
        ),
        Metric(
            "load_stddev",
            "–",
            "standard deviation of the brokers' shares of subscriptions, relative to their mean",
            windows="average",
        ),
        Metric(
            "load_jain",
            "–",
            "Jain's fairness index of the brokers' shares of subscriptions",
            "higher",
            windows="average",
        ),
        _count("publications", "count", "publications published", "neutral"),
        _count(
            "publications_dropped",
            "count",
            "publications, or copies of them, dropped by a full queue or lost by a link before the root; the pairs due are lost",
        ),
        _count("due", "count", "(publication, broker) pairs that became due", "neutral"),
        _count("delivered", "count", "due pairs delivered, that is, served by the due broker", "higher", True),
        _count("lost", "count", "due pairs lost", got_through=True),
        *(
            _count(
                f"lost_{name}",
                "count",
                f"{'(publication, user) ' if cause.of_users else ''}pairs lost because {cause.why}",
                got_through=cause.of_users or name == "queue_full",
            )
            for name, cause in CAUSES.items()
        ),
        _count("best_effort_deliveries", "count", "delivered pairs that arrived by the best-effort channel", "neutral"),
        _count("in_flight", "count", "due pairs in transit, or waiting at a broker, at the end", "neutral"),
        _event(
            "duplicates",
            "count",
            "arrivals of a publication at a broker that already had it (flooding, content, copies sent again)",
        ),
        _event("retransmissions", "messages", "copies that brokers sent again as they were not acknowledged in time"),
        _event("acknowledgements", "messages", "acknowledgements of copies between brokers"),
        _event(
            "duplicate_deliveries",
            "count",
            "(publication, user) pairs that were served to the user again, by copies sent again",
        ),
        _total(
            "remembered_identities",
            "count",
            "most publications that a broker remembered at once, in order to serve each only once to its users",
        ),
        *BY_QUALITY,
        _event(
            "false_positive_messages",
            "count",
            "arrivals of content at a broker that subscribes to its predicate but has no matching subscription",
        ),
        Metric(
            "delivery_ratio",
            "–",
            "share of the due (publication, user) pairs that were delivered",
            "higher",
            got_through=True,
            windows=Ratio("delivered_users", "due_users"),
        ),
        Metric(
            "path_stretch",
            "–",
            "arrival delay along the tree, relative to the direct latency from the publisher's broker",
            windows=Ratio("path_stretch_sum", "path_stretch_count"),
        ),
        _seconds("queue_wait", "mean waiting time in a broker's queue"),
        _seconds(
            "client_wait",
            "time that a publication waits at the broker until it is sent to the user, mean over delivered (publication, user) pairs",
            windows=Ratio("client_wait_sum", "delivered_users", LATER),
        ),
        _count(
            "session_deliveries",
            "count",
            "(publication, user) pairs delivered after the user's return, as they had waited in its session",
            "neutral",
        ),
        _seconds(
            "session_delay",
            "time from publication until delivery, mean over session_deliveries",
            Ratio("session_delay_sum", "session_deliveries"),
        ),
        _count("resumed_sessions", "count", "returns of users for whom messages waited", "neutral"),
        _seconds(
            "catch_up_time",
            "time from a user's return until nothing waits for it any more, mean over resumed_sessions",
            Ratio("catch_up_time_sum", "resumed_sessions"),
        ),
        _total("session_queue_max", "count", "most messages that waited in one session"),
        _count(
            "retained_deliveries",
            "count",
            "(publication, user) pairs delivered as the user subscribed, of publications that were retained",
            "neutral",
        ),
        _seconds(
            "retained_delay",
            "time from the subscription until delivery, mean over retained_deliveries",
            Ratio("retained_delay_sum", "retained_deliveries"),
        ),
        _event("disconnects", "count", "times that a user was disconnected for being slow"),
        Metric("utilisation", "–", "share of time that a broker is busy, mean over brokers", "neutral"),
        _total(
            "saturated_brokers",
            "count",
            "brokers that cannot keep up with the work that arrives; delays then cover only what was delivered",
        ),
        _total(
            "saturated_links",
            "count",
            "links, and interfaces in one direction, that cannot carry what is sent over them; delays cover only what was delivered",
        ),
        _total("edges", "count", "undirected links of the overlay at the end"),
        Metric("average_degree", "–", "links of a broker at the end, mean over brokers"),
        _total("maximum_degree", "count", "largest number of links of a broker at the end"),
        _total(
            "diameter",
            "hops",
            "largest diameter of a topic's subgraph at the end, over topics with two brokers or more",
        ),
        Metric("mean_topic_diameter", "hops", "mean diameter of the topics' subgraphs at the end"),
        _total(
            "tree_state",
            "count",
            "entries that brokers keep for topic trees at the end: children, or all members below",
        ),
    ]
}
