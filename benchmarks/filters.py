"""Topics per second matched against filters of MQTT by the compiled trie, and by paho's `MQTTMatcher` if it is installed.

And how fast millions of filters come and go, and the memory that they take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim.content.topic_filters import MQTT_FILTERS, TopicIndex

COUNT, TOPICS = 100_000, 1_000_000
BAR, COMPARED, TIMES = 1_000_000, 20_000, 4
MANY, CHANGES, BYTES = 2_000_000, 500_000, 300
KINDS = ("temperature", "humidity", "co2", "motion", "power")


def building_topics(count: int, generator: np.random.Generator) -> list[str]:
    """Topics such as `site/17/floor3/device42/power`, of ten million, drawn at random."""
    drawn = (generator.integers(0, most, count).tolist() for most in (1000, 10, 200, len(KINDS)))
    return [
        f"site/{site}/floor{floor}/device{device}/{KINDS[kind]}"
        for site, floor, device, kind in zip(*drawn, strict=True)
    ]


def building_filters(count: int, generator: np.random.Generator) -> list[str]:
    """Filters of such topics: three quarters without wildcards, the others with one. Each once, so perhaps fewer."""
    filters = list[str]()
    for topic, drawn in zip(building_topics(count, generator), generator.random(count).tolist(), strict=True):
        levels = topic.split("/")
        if drawn < 0.2:
            levels[2 + (drawn < 0.1)] = "+"
        elif drawn < 0.25:
            levels[4:] = ["#"]
        elif drawn < 0.2501:
            levels[2:] = ["#"]
        filters.append("/".join(levels))
    return list(dict.fromkeys(filters))


def figures() -> Iterator[Figure]:
    """Topics/s on one core, texts included."""
    generator = np.random.default_rng(1)
    filters, topics = building_filters(11 * COUNT // 10, generator)[:COUNT], building_topics(TOPICS, generator)
    index = TopicIndex(filters, MQTT_FILTERS)
    index.match_all(topics[:1])  # compiles the kernels
    rate = median(_rate(index, topics) for _ in range(5))
    yield Figure(f"matching against {len(filters):,} MQTT filters: topics/s", f"{rate:,.0f}", f"≥ {BAR:,}", rate >= BAR)
    if paho := _paho(filters):
        some = topics[:COMPARED]
        assert np.diff(index.match_all(some).indptr).tolist() == [len(list(paho.iter_match(topic))) for topic in some]
        _, theirs, ratio = alternate(lambda: _rate(index, topics), lambda: _rate_of_paho(paho, some))
        text = f"{ratio:,.0f} × ({theirs:,.0f}/s)"
        yield Figure("the same, of paho's MQTTMatcher", text, f"≥ {TIMES} ×", ratio >= TIMES)

    yield from _changing(generator)


def _changing(generator: np.random.Generator) -> Iterator[Figure]:
    """Filters that come and go in random order, in changes/s, and bytes of each."""
    filters, found = building_filters(12 * MANY // 10, generator)[:MANY], list[TopicIndex]()
    seconds = cpu_seconds(lambda: found.append(TopicIndex(filters, MQTT_FILTERS)))
    [index] = found
    order = generator.permutation(MANY)
    rate = 2 * MANY / (cpu_seconds(lambda: index.remove(order)) + cpu_seconds(lambda: index.add(order)))
    yield Figure(f"{MANY:,} MQTT filters come and go: changes/s", f"{rate:,.0f}", f"≥ {CHANGES:,}", rate >= CHANGES)
    text = f"{index.nbytes / MANY:.0f} B ({seconds:.1f} s to build it)"
    yield Figure("the same: memory of a filter", text, f"≤ {BYTES} B", index.nbytes <= BYTES * MANY)


def _rate(index: TopicIndex, topics: Sequence[str]) -> float:
    return len(topics) / cpu_seconds(lambda: index.match_all(topics))


def _rate_of_paho(matcher: Any, topics: Sequence[str]) -> float:
    return len(topics) / cpu_seconds(lambda: [list(matcher.iter_match(topic)) for topic in topics])


def _paho(filters: Sequence[str]) -> Any:
    try:
        from paho.mqtt.matcher import MQTTMatcher
    except ImportError:
        return None
    matcher = MQTTMatcher()
    for position, filter_ in enumerate(filters):
        matcher[filter_] = position
    return matcher
