"""The computations for "Generating Subscriptions and Publications": targets counted, matched, and missed as printed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.base.naming import Raw
from sim.base.randomness import Streams
from sim.content.matching import MatchingIndex
from sim.papers.content.claims import MATCHES
from sim.papers.sweeps import Computed, SweepSetting
from sim.scenario.reader import load_scenario
from sim.workloads.content import diversity
from sim.workloads.content.designs import Design, Grid, Subsets, design_subsets
from sim.workloads.content.generator import ContentWorkload
from sim.workloads.content.sizes import Sizes, constant, poisson

SCENARIO = "content/targets.toml"
SAMPLED = 2000
"""The number of a grid's targets that are tried for each z, as there are too many to try all."""
FIGURES = {
    "7.1": [("three sets, v = 2", 17, 2)],
    "7.2": [("overlapping", 22, 2), ("disjoint", 21, 0)],
}
"""The subscriptions drawn in each figure, and how many two sets have in common; each set has seven."""
DRAWN_FIELDS, DRAWN_SIZE = 10, 4
TRIED = 100
"""The number of the printed algorithm's targets that are tried for each z."""
PRINTED = {"m = 2": constant(2), "m = 4": constant(4), "Poisson 4": poisson(4)}


def sweeps(setting: SweepSetting) -> Iterator[Computed]:
    """All that the page shows, by the folders of its tables."""
    path, count = setting.scenarios / SCENARIO, setting.replications(10)
    for section, variants in (("table-1", ("v = 0",)), ("table-2", ())):
        yield Computed(section, SCENARIO, f"{count}", partial(_counted, path, variants, count))
    yield Computed("across", SCENARIO, f"{count}", partial(_across, path, count))
    yield Computed("figures", SCENARIO, "", _drawn)
    yield Computed("printed", SCENARIO, f"{count}", partial(_printed, count))


def _counted(path: Path, variants: Sequence[str], replications: int) -> pd.DataFrame:
    """Alpha and beta of full subsets, by trying all their targets and by formula, and of an ideal (impossible) set."""
    experiment = load_scenario(path)
    rows: list[Raw] = []
    for variant, replication in itertools.product(experiment.variants, range(replications)):
        if variants and variant not in variants:
            continue
        scenario = experiment.variants[variant]
        p, streams = scenario.workload.parameters, Streams(scenario.seed, replication)
        assert isinstance(p, ContentWorkload.Parameters)
        design = ContentWorkload(p).design(streams)
        generator = streams.generator("workload.values")
        members = diversity.subset_size(p.fields, int(p.size))
        subsets = diversity.full_subsets(p.subscriptions, members, p.overlap)
        full = _full(design, subsets)
        for match in MATCHES:
            tried, disjoint = _targets(full, match, streams.generator("workload.targets")), full.disjoint_targets(match)
            hit, disjoint_hit = _hit(design, tried, generator), _hit(design, disjoint, generator)
            grid = isinstance(design, Grid)
            rows.append(
                {
                    "variant": variant,
                    "point": f"z = {match}",
                    "z": match,
                    "replication": replication,
                    "seed": scenario.seed,
                    "alpha": full.alpha(match) if grid else hit,
                    "beta": disjoint_hit,
                    "alpha_formula": math.nan if grid else diversity.alpha(subsets, members, match, p.overlap),
                    "beta_formula": p.subscriptions // match
                    if grid
                    else diversity.beta(subsets, members, match, p.overlap),
                    "optimal_alpha": math.comb(p.subscriptions, match),
                    "optimal_beta": p.subscriptions // match,
                    "tried": len(tried) + len(disjoint),
                    "missed": len(tried) + len(disjoint) - hit - disjoint_hit,
                }
            )
    return pd.DataFrame(rows)


def _across(path: Path, replications: int) -> pd.DataFrame:
    """Targets of two and three within subsets, compared with all sets without contradictions."""
    experiment = load_scenario(path)
    rows: list[Raw] = []
    for variant, replication in itertools.product(experiment.variants, range(replications)):
        scenario = experiment.variants[variant]
        assert isinstance(scenario.workload.parameters, ContentWorkload.Parameters)
        design = ContentWorkload(scenario.workload.parameters).design(Streams(scenario.seed, replication))
        rows += [
            {
                "variant": variant,
                "point": f"z = {match}",
                "z": match,
                "replication": replication,
                "seed": scenario.seed,
                "alpha": design.alpha(match),
                "compatible": found,
                "optimal_alpha": math.comb(len(design.conjunctions), match),
            }
            for match, found in _compatible(design).items()
        ]
    return pd.DataFrame(rows)


def _full(design: Design, subsets: int) -> Design:
    """The design without its last subset if that has fewer members than the others, as counted in the paper."""
    if not isinstance(design, Subsets):
        return design
    rows = design.indptr[subsets]
    return replace(
        design,
        indptr=design.indptr[: subsets + 1],
        members=design.members[:rows],
        carried=design.carried[:subsets],
    )


def _targets(design: Design, match: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """All distinct targets of subsets; `GRID_TARGETS` random ones of a grid."""
    if not isinstance(design, Subsets):
        return design.targets(match, SAMPLED, generator, likely="targets")
    chosen = [
        np.array(list(itertools.combinations(np.sort(design.members[start:stop]), match)), np.int32)
        for start, stop in itertools.pairwise(design.indptr.tolist())
    ]
    return np.unique(np.concatenate(chosen), axis=0)


def _hit(design: Design, targets: NDArray[np.int32], generator: np.random.Generator) -> int:
    """How many of these targets a publication has matched exactly, among all subscriptions."""
    matches = MatchingIndex(design.conjunctions).match_all(design.publish(targets, generator))
    counts = np.diff(matches.indptr)
    if (counts == targets.shape[1]).all():
        return int((matches.subscription.reshape(targets.shape) == targets).all(axis=1).sum())
    found = np.split(matches.subscription, matches.indptr[1:-1])
    return sum(np.array_equal(one, target) for one, target in zip(found, targets, strict=True))


def _compatible(design: Design) -> dict[int, float]:
    """The number of sets of two and of three subscriptions without contradictions."""
    wanted = design.conjunctions
    asked = np.full((len(wanted), wanted.fields), -1)
    asked[np.repeat(np.arange(len(wanted)), np.diff(wanted.indptr)), wanted.field] = wanted.value
    both = (asked[:, None] >= 0) & (asked[None] >= 0)
    agree = ~(both & (asked[:, None] != asked[None])).any(axis=2)
    np.fill_diagonal(agree, False)
    pairs = agree.astype(np.float64)
    return {2: float(pairs.sum()) / 2, 3: float(np.trace(pairs @ pairs @ pairs)) / 6}


def _drawn() -> pd.DataFrame:
    """The subscriptions of figures 7.1 and 7.2, the sets that each is in, and the target of two that it has been dealt to."""
    rows: list[Raw] = []
    for figure, pictures in FIGURES.items():
        for variant, subscriptions, overlap in pictures:
            generator = Streams(1).generator("workload.subscriptions")
            design = design_subsets(subscriptions, DRAWN_FIELDS, 20, constant(DRAWN_SIZE), generator, overlap)
            target = np.full(subscriptions, -1)
            for number, pair in enumerate(design.disjoint_targets(2)):
                target[pair] = number
            for subset, (start, stop) in enumerate(itertools.pairwise(design.indptr.tolist())):
                for place, member in enumerate(design.members[start:stop].tolist()):
                    rows.append(
                        {
                            "variant": variant,
                            "point": f"figure {figure}",
                            "replication": 0,
                            "seed": 1,
                            "subset": subset,
                            "subscription": member,
                            "carried": place < design.carried[subset],
                            "target": target[member],
                            "beta": int(target.max()) + 1,
                        }
                    )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Printed:
    """The result of algorithm 2 as printed, with counted subscriptions: field → value of each."""

    subscriptions: list[dict[int, int]]
    subsets: list[list[int]]

    @classmethod
    def made(cls, subscriptions: int, fields: int, sizes: Sizes, generator: np.random.Generator) -> Printed:
        """Make `count` subscriptions, with an unlimited supply of values."""
        drawn = iter(np.minimum(sizes(generator, 4 * subscriptions), fields).tolist())
        made: list[dict[int, int]] = []
        subsets: list[list[int]] = []
        used = [0] * fields
        following = next(drawn)
        while len(made) < subscriptions:
            longest = following
            wanted: list[int] = []
            while fields - longest + 1 > len(wanted) and len(wanted) < subscriptions - len(made):
                wanted.append(following)
                following = next(drawn)
                longest = max(longest, following)
            pairs: dict[int, int] = {}
            subset = []
            for size in sorted(wanted, reverse=True):
                shared = min(len(pairs), size - 1)
                chosen = {field: pairs[field] for field in _some(list(pairs), shared, generator)}  # step (d)(ii)
                for field in _some([field for field in range(fields) if field not in pairs], size - shared, generator):
                    chosen[field] = pairs[field] = used[field]
                    used[field] += 1
                subset.append(len(made))
                made.append(chosen)
            subsets.append(subset)
        return cls(made, subsets)

    def matched(self, target: Sequence[int]) -> list[int]:
        """All subscriptions that match every publication with all predicates of a target."""
        carried = {field: value for member in target for field, value in self.subscriptions[member].items()}
        return [s for s, wants in enumerate(self.subscriptions) if wants.items() <= carried.items()]


def _some(items: list[int], count: int, generator: np.random.Generator) -> list[int]:
    return [items[place] for place in generator.permutation(len(items))[:count]]


def _printed(replications: int) -> pd.DataFrame:
    """The share of the printed algorithm's targets, drawn as in the paper, that another subscription matches too."""
    rows: list[Raw] = []
    for (name, sizes), replication in itertools.product(PRINTED.items(), range(replications)):
        generator = Streams(1, replication).generator("workload.subscriptions")
        printed = Printed.made(100, 11, sizes, generator)
        for match in MATCHES[:-1]:  # few subsets of Poisson sizes have eight members
            enough = [subset for subset in printed.subsets if len(subset) >= match]
            places = generator.integers(len(enough), size=TRIED).tolist() if enough else []
            targets = [sorted(_some(enough[place], match, generator)) for place in places]
            missed = [printed.matched(target) != target for target in targets]
            rows.append(
                {
                    "variant": name,
                    "point": f"z = {match}",
                    "z": match,
                    "replication": replication,
                    "seed": 1,
                    "missed_targets": 100 * float(np.mean(missed)) if missed else math.nan,
                }
            )
    return pd.DataFrame(rows)
