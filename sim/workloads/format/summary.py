"""Summary of a workload: counts, rates, distributions, movement of users, and the rows of its trace."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from sim.base.naming import Raw
from sim.base.units import SECONDS
from sim.workloads.format.workload import DAY, Workload
from sim.workloads.models.location import visit_shares, visits_of

_QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}
CLASSES = {"none": 0, "1 to 9": 1, "10 to 99": 10, "100 to 999": 100, "1,000 and more": 1000}


def summarise_workload(workload: Workload) -> Raw:
    """Summarise a workload, in JSON types; undefined values (a mean over no users, the time of no event) are None.

    Times are ISO 8601 in UTC, `horizon` and `period` seconds, `cell` degrees; rates have their unit in their name.
    `distributions` are over all users or all topics, interests and subscribers are those at time 0; `users_by_changes` counts
    users by their subscription changes; `movement`, of location workloads, is `sim.workloads.models.location.VisitShares`.
    """
    users, topics = len(workload.users), len(workload.topics)
    events, published, moves = workload.subscription_events, workload.publications, workload.movements
    delivered = workload.deliveries
    changes = np.bincount(events.user, minlength=users)
    on_topics = workload.published()
    hours, days = workload.horizon / SECONDS["h"], workload.horizon / DAY
    rates = {
        "publications_per_hour": _ratio(len(published), hours),
        "publications_per_topic_day": _ratio(int(on_topics.sum()), topics * days),
        "subscription_changes_per_user_hour": _ratio(len(events), users * hours),
    }
    distributions = {
        "interests_per_user": np.diff(workload.interests.indptr).astype(np.int64),
        "subscription_changes_per_user": changes,
        "subscribers_per_topic": workload.interests.per_topic(topics),
        "publications_per_topic": on_topics,
    }
    if len(moves):
        rates["movements_per_user_day"] = _ratio(len(moves), users * days)
        distributions["movements_per_user"] = np.bincount(moves.user, minlength=users)
    if len(workload.sessions):
        distributions["sessions_per_user"] = np.bincount(workload.sessions.user, minlength=users)
    if len(delivered):
        rates["deliveries_per_publication"] = _ratio(len(delivered), len(published))
        distributions["deliveries_per_user"] = np.bincount(delivered.subscriber, minlength=users)
    if workload.content is not None:
        wanted = workload.content.conjunctions
        distributions["subscriptions_per_user"] = np.bincount(wanted.owner, minlength=users)
        distributions["predicates_per_subscription"] = np.diff(wanted.indptr).astype(np.int64)
    tables = (events, published, moves, delivered)
    times = [float(time) for table in tables if len(table) for time in table.time[[0, -1]]]
    classes = np.bincount(np.digitize(changes, list(CLASSES.values())) - 1, minlength=len(CLASSES))
    return {
        "hash": workload.hash,
        "kind": workload.kind,
        "generator": dict(workload.generator),
        "seed": workload.seed,
        "sources": [dict(source) for source in workload.sources],
        "span": {
            "origin": workload.origin,
            "end": _at(workload, workload.horizon),
            "first_event": _at(workload, min(times)) if times else None,
            "last_event": _at(workload, max(times)) if times else None,
        },
        "horizon": workload.horizon,
        "period": workload.period,
        "cell": workload.cell,
        "counts": workload.counts,
        "rates": rates,
        "distributions": {name: _distribution(values) for name, values in distributions.items()},
        "users_by_changes": dict(zip(CLASSES, classes.tolist(), strict=True)),
        "movement": _movement(workload),
        "rows": None if workload.rows is None else dict(workload.rows),
    }


def _at(workload: Workload, seconds: float) -> str:
    time = datetime.fromisoformat(workload.origin) + timedelta(seconds=seconds)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _ratio(count: int, of: float) -> float | None:
    return count / of if of else None


def _distribution(values: NDArray[np.int64]) -> dict[str, float | int | None]:
    if not len(values):
        return dict.fromkeys(("mean", "minimum", *_QUANTILES, "maximum"))
    quantiles = np.quantile(values, list(_QUANTILES.values())).tolist()
    return {
        "mean": float(values.mean()),
        "minimum": int(values.min()),
        **dict(zip(_QUANTILES, quantiles, strict=True)),
        "maximum": int(values.max()),
    }


def _movement(workload: Workload) -> dict[str, float | int | None] | None:
    if workload.kind != "location":
        return None
    shares = asdict(visit_shares(visits_of(workload)))
    return {name: None if math.isnan(value) else value for name, value in shares.items()}
