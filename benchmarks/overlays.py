"""Topic-connected overlays: CPU time and memory of the designs against networkx, and their quality against the paper's figures."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from statistics import fmean

import networkx as nx
import numpy as np

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim.overlay.topic_connected.bounds import optimum
from sim.overlay.topic_connected.design import ALGORITHMS, Algorithm, design, node_degrees
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips, exactly
from sim.overlay.topic_connected.measures import connected_topics
from sim.overlay.topic_connected.repair import RepairedOverlay

SEEDS = 20
_PEAK = """
import sys
import numpy as np
from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.interests import coin_flips
def memory(key):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(key)))
interests = coin_flips(10_000, 100, 10, np.random.default_rng(1))
interests.by_topic
design(coin_flips(100, 100, 10, np.random.default_rng(1)), sys.argv[1])
before = memory("VmRSS")
design(interests, sys.argv[1])
print(memory("VmHWM") - before)
"""
Model = Callable[[np.random.Generator], BrokerInterests]


def figures() -> Iterator[Figure]:
    """CPU times and memory at the bars' sizes, networkx beside them; then the quality of designs and repair."""
    yield from _times()
    yield from _memory()
    yield _beside_networkx()
    yield from _paper_figures()
    yield from _low_oda()
    yield _greedy_and_optimum()
    yield _repair()


def _times() -> Iterator[Figure]:
    bars: list[tuple[Algorithm, int, float]] = [
        *((algorithm, 1000, 0.1) for algorithm in ALGORITHMS[:3]),
        *((algorithm, 10_000, 5.0) for algorithm in ALGORITHMS[:3]),
        ("cd-oda-ii", 10_000, 0.3),
    ]
    for algorithm, nodes, bar in bars:
        interests = coin_flips(nodes, 100, 10, np.random.default_rng(1))
        design(coin_flips(10, 100, 10, np.random.default_rng(1)), algorithm)  # compiles the kernels
        seconds = min(cpu_seconds(partial(design, interests, algorithm)) for _ in range(3))
        name = f"{algorithm}, {nodes:,} nodes, 100 topics, 10 each: CPU time"
        yield Figure(name, f"{seconds:.3f} s", f"≤ {bar} s", seconds <= bar)


def _memory() -> Iterator[Figure]:
    for algorithm in ALGORITHMS[:3]:
        shown = subprocess.run([sys.executable, "-c", _PEAK, algorithm], check=True, capture_output=True, text=True)
        peak = int(shown.stdout) * 1024 / 1e6
        yield Figure(f"{algorithm}, 10,000 nodes: memory above the input", f"{peak:.0f} MB", "≤ 300 MB", peak <= 300)


def _networkx(interests: BrokerInterests) -> list[tuple[int, int]]:
    """GM in plain networkx: a union-find for each topic, and a dictionary of weights to take the best pair from."""
    rows = [set(interests.row(node).tolist()) for node in range(interests.nodes)]
    subscribers = {topic: [n for n, row in enumerate(rows) if topic in row] for topic in set().union(*rows)}
    parts = {topic: nx.utils.UnionFind(nodes) for topic, nodes in subscribers.items()}
    weight = Counter(pair for nodes in subscribers.values() for pair in itertools.combinations(nodes, 2))
    graph = nx.Graph()
    while weight:
        u, v = max(weight, key=lambda pair: (weight[pair], -pair[0], -pair[1]))
        graph.add_edge(u, v)
        for topic in rows[u] & rows[v]:
            part = parts[topic]
            if part[u] != part[v]:
                one, other = ([x for x in subscribers[topic] if part[x] == part[end]] for end in (u, v))
                for x, y in itertools.product(one, other):
                    pair = min(x, y), max(x, y)
                    weight[pair] -= 1
                    if not weight[pair]:
                        del weight[pair]
                part.union(u, v)
    return sorted((min(edge), max(edge)) for edge in graph.edges)


def _beside_networkx() -> Figure:
    interests = coin_flips(300, 100, 10, np.random.default_rng(1))
    assert _networkx(interests) == sorted((u, v) for u, v in design(interests, "gm").tolist())
    theirs, ours, ratio = alternate(
        lambda: cpu_seconds(lambda: _networkx(interests)), lambda: cpu_seconds(lambda: design(interests, "gm")), 3
    )
    text = f"{ratio:,.0f} times faster ({1000 * ours:.1f} ms against {theirs:.1f} s)"
    return Figure("gm, 300 nodes: beside networkx, the same edges", text, "≥ 100 times", ratio >= 100)


def _paper_figures() -> Iterator[Figure]:
    """Figures 1(a), 1(b) and 2 on coin flips: the largest ratio of CD-ODA-II to GM, and the mean gain over CD-ODA."""
    compared: tuple[Algorithm, ...] = ("gm", "cd-oda", "cd-oda-ii")
    swept: dict[str, tuple[list[tuple[int, int, int]], float, float, float]] = {
        "fig. 1(a)": ([(nodes, 100, 10) for nodes in range(100, 1001, 100)], 2.33, 1.8, 1),
        "fig. 1(b)": ([(100, topics, 20) for topics in range(100, 501, 100)], 1.90, 5.9, 1),
        "fig. 2": ([(100, 100, each) for each in range(10, 51, 10)], 1.88, 17.2, 2),
    }
    for figure, (points, ratio_bar, gain_bar, tolerance) in swept.items():
        ratios, gains = [], []
        for point in points:
            drawn = [coin_flips(*point, np.random.default_rng(seed)) for seed in range(SEEDS)]
            gm, old, new = (fmean(len(design(interests, name)) for interests in drawn) for name in compared)
            ratios.append(new / gm)
            gains.append(100 * (1 - new / old))
        ratio, gain = max(ratios), fmean(gains)
        close = abs(ratio - ratio_bar) <= 0.06
        yield Figure(f"{figure}: largest CD-ODA-II / GM", f"{ratio:.2f}", f"{ratio_bar:.2f} ± 0.06", close)
        close = abs(gain - gain_bar) <= tolerance
        yield Figure(f"{figure}: mean gain over CD-ODA", f"{gain:.1f} %", f"{gain_bar} ± {tolerance} %", close)


def _low_oda() -> Iterator[Figure]:
    models: dict[str, Model] = {
        "10 each": lambda g: exactly(1000, 100, 10, g),
        "coin flips": lambda g: coin_flips(1000, 100, 10, g),
        "zipf": lambda g: exactly(1000, 100, 10, g, exponent=1.0),
    }
    for (name, model), (k, percent) in itertools.product(
        models.items(), ((Fraction(5, 4), 1.0), (Fraction(3, 2), 1.5))
    ):
        average, highest = [], []
        for seed in range(3):
            interests = model(np.random.default_rng(seed))
            gm, low = design(interests, "gm"), design(interests, "low-oda", k)
            average.append(100 * (len(low) / len(gm) - 1))
            highest.append(node_degrees(1000, low).max() / node_degrees(1000, gm).max())
        holds = max(average) <= percent and max(highest) <= 0.5
        text = f"{max(average):+.2f} %, {max(highest):.2f} (the worst of 3)"
        bar = f"≤ +{percent:g} %, ≤ 0.5"
        yield Figure(f"low-oda, k = {float(k)}, {name}: average degree, maximum degree against gm's", text, bar, holds)


def _greedy_and_optimum() -> Figure:
    ratios = []
    for seed in range(10):
        for nodes, topics, mean in ((8, 8, 3), (10, 12, 3), (12, 8, 4), (12, 20, 6)):
            interests = coin_flips(nodes, topics, mean, np.random.default_rng(seed))
            ratios.append(len(design(interests, "gm")) / len(optimum(interests)))
    text = f"{fmean(ratios):.3f} on average, {max(ratios):.3f} at most"
    return Figure("gm / optimum, 8 to 12 nodes", text, "≤ 1.10", fmean(ratios) <= 1.10)


def _repair() -> Figure:
    generator = np.random.default_rng(2)
    overlay = RepairedOverlay(coin_flips(1000, 100, 10, generator))
    costs: list[int] = []
    rebuilt: list[int] = []
    for _ in range(300):
        node = int(generator.integers(1000))
        wants = overlay.interests.row(node).tolist()
        lacks = np.setdiff1d(np.arange(100), wants)
        drop = [int(generator.choice(wants))] if wants else []
        change = overlay.change(node, [int(generator.choice(lacks))], drop)
        (rebuilt if change.rebuilt else costs).append(change.cost)
        assert connected_topics(overlay.interests, overlay.edges).all()
    text = f"{fmean(costs):.2f} (and {len(rebuilt)} rebuilds of {fmean(rebuilt):,.0f} links on average)"
    return Figure("repair, 1,000 nodes, 300 topics replaced: links changed by each", text, "≤ 3", fmean(costs) <= 3)
