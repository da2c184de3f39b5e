"""The topics and interests of a content workload, made of what its users subscribe to and of what is published."""

from __future__ import annotations

import numpy as np

from sim.content.predicates import Content, carried, interests, occurring
from sim.files.parquet import repeated, strings
from sim.workloads.format.workload import DAY, Interests, Topics


def route(content: Content, users: int, horizon: float, period: float = DAY) -> tuple[Topics, Interests]:
    """Every predicate as a topic, and the interests; event rates are those of publications that carry the predicate.

    Rates count in `period`, publications come over `horizon` (both s).
    """
    predicates = occurring(content)
    nowhere = np.full(len(predicates), np.nan)
    topics = Topics(
        strings(predicates.names()),
        repeated("predicate", len(predicates)),
        carried(content, predicates).astype(np.float64) * (period / horizon),
        nowhere,
        nowhere,
    )
    return topics, Interests(*interests(content, predicates, users))
