"""The topics and interests of a content workload, derived from its subscriptions and publications."""

from __future__ import annotations

import numpy as np

from sim.content.predicates import Content, carried, interests, occurring
from sim.files.parquet import strings
from sim.workloads.format.workload import DAY, Interests, Topics


def route(content: Content, users: int, horizon: float, period: float = DAY) -> tuple[Topics, Interests]:
    """Every predicate as a topic, and the interests; event rates are those of publications that carry the predicate.

    Rates are per `period`, publications are spread over `horizon` (both s).
    """
    predicates = occurring(content)
    rates = carried(content, predicates).astype(np.float64) * (period / horizon)
    topics = Topics.without_places(strings(predicates.names()), "predicate", rates)
    return topics, Interests(*interests(content, predicates, users))
