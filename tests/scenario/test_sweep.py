"""Sweeps: the points of a [sweep] table, and messages about all mistakes."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.errors import ScenarioError
from sim.experiments.plan import plan
from sim.scenario.experiment import Experiment
from sim.scenario.model import Precision
from sim.scenario.reader import load_scenario
from sim.scenario.sweep import ParsedSweep, SweptRange
from sim.scenario.sweep_reader import read_sweep

BASE = """\
replications = 2
horizon = "2h"
[workload]
kind = "poisson"
users = 40
[network]
brokers = 4
[selection]
kind = "similarity"
[[variant]]
name = "static"
selection = { kind = "static" }
[[variant]]
name = "small"
selection.cluster_size = 2
[[variant]]
name = "our own"
"""


def swept(folder: Path, text: str, *overrides: str) -> Experiment:
    (folder / "s.toml").write_text(f"{BASE}[sweep]\n{text}\n")
    return load_scenario(folder / "s.toml", overrides)


def unvaried(folder: Path, text: str) -> Experiment:
    (folder / "s.toml").write_text(f"{BASE[: BASE.index('[[')]}[sweep]\n{text}\n")
    return load_scenario(folder / "s.toml")


def values(experiment: Experiment) -> list[tuple[Any, ...]]:
    return [tuple(point.values.values()) for point in experiment.points]


def mistakes(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        swept(folder, text, *overrides)
    return [line.replace(f"{folder / 's.toml'}:", "") for line in str(error.value).splitlines()]


def read(table: dict[str, Any]) -> ParsedSweep:
    sweep, problems = read_sweep(table, lambda keys: None, lambda keys: False, lambda keys: False)
    assert problems == []
    return sweep


def laid(sweep: ParsedSweep, seed: int = 1) -> list[dict[str, Any]]:
    return [{".".join(map(str, one.keys)): one.value for one in point} for point in sweep.points(seed)]


AXES = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(), min_size=1, max_size=4), max_size=5, min_size=1
)


@given(AXES, st.data())
def test_a_grid_is_every_combination_and_the_last_key_goes_fastest(axes: dict[str, list[int]], data: Any) -> None:
    names = list(axes)
    zipped = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)), label="zip")
    zipped = [name for name in zipped if len(axes[name]) == len(axes[zipped[0]])]
    table = axes | ({"zip": zipped} if len(zipped) > 1 else {})
    found = laid(read(table))
    # slow and obvious: all combinations, without those in which keys that are zipped are not equally far
    places = itertools.product(*(range(len(axes[name])) for name in names))
    together = [p for p in places if len({p[names.index(name)] for name in zipped}) <= 1 or len(zipped) < 2]
    expected = [{name: axes[name][i] for name, i in zip(names, place, strict=True)} for place in together]
    assert sorted(map(repr, map(sorted, map(dict.items, found)))) == sorted(
        map(repr, map(sorted, map(dict.items, expected)))
    )
    if len(zipped) < 2:
        assert found == expected
    assert len(found) == read(table).count


NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)


@given(NUMBERS, NUMBERS, st.integers(2, 40), st.booleans())
def test_a_range_goes_from_end_to_end(start: float, stop: float, steps: int, log: bool) -> None:
    if log:
        start, stop = abs(start) + 1, abs(stop) + 1
    if start == stop:
        return
    found = SweptRange(start, stop, steps, log).values()
    assert (found[0], found[-1]) == (start, stop)
    assert found == sorted(set(found), reverse=start > stop)
    assert len(found) <= steps
    if isinstance(start, int) and isinstance(stop, int):
        assert all(isinstance(value, int) for value in found)
    elif abs(stop - start) > 1:
        assert len(found) == steps
        gaps = [math.log(b / a) if log else b - a for a, b in itertools.pairwise(found)]
        assert gaps == pytest.approx([gaps[0]] * len(gaps), rel=1e-6)


def test_ranges_of_numbers_and_of_durations(tmp_path: Path) -> None:
    brokers = '"network.brokers" = { from = 10, to = 1000, steps = 5, scale = "log" }'
    assert values(swept(tmp_path, brokers)) == [(10,), (32,), (100,), (316,), (1000,)]
    assert values(swept(tmp_path, 'warm_up = { from = "30min", to = "1h", steps = 3 }')) == [(1800,), (2700,), (3600,)]
    assert values(swept(tmp_path, '"network.brokers" = { from = 3, to = 1, steps = 9 }')) == [(3,), (2,), (1,)]


@pytest.mark.parametrize(
    ("sweep", "expected"),
    [
        ('"selection.hysteresis" = { from = 0, to = 1, steps = 5 }', [0, 0.25, 0.5, 0.75, 1]),
        ("variant.small.selection.hysteresis = { from = 0, to = 1, steps = 5 }", [0, 0.25, 0.5, 0.75, 1]),
        ('"selection.load_weight" = { from = 1, to = 10, steps = 3, scale = "log" }', [1, 10**0.5, 10]),
        ('"selection.load_weight" = { from = 1, to = 1000, steps = 4, scale = "log" }', [1, 10, 100, 1000]),
        ('"workload.publication_rate" = { from = 0, to = 1, steps = 11 }', [n / 10 for n in range(11)]),
        ('"warm_up" = { from = 0, to = 1, steps = 3 }', [0, 0.5, 1]),
        ('"network.brokers" = { from = 1, to = 5, steps = 3 }', [1, 3, 5]),
        ('"selection.cluster_size" = { from = 1, to = 100, steps = 3, scale = "log" }', [1, 10, 100]),
        ('variant."our own".selection.cluster_size = { from = 1, to = 4, steps = 4 }', [1, 2, 3, 4]),
    ],
)
def test_a_range_of_integers_has_fractions_where_the_key_takes_them(
    tmp_path: Path, sweep: str, expected: list[float]
) -> None:
    found = [value for (value,) in values(swept(tmp_path, sweep))]
    assert found == pytest.approx(expected, rel=1e-14)
    if "size" in sweep or "brokers" in sweep:
        assert all(isinstance(value, int) for value in found)


def test_a_grid_of_two_weights_from_0_to_1_has_all_its_points(tmp_path: Path) -> None:
    grid = """
        "selection.hysteresis" = { from = 0, to = 1, steps = 100 }
        "selection.load_weight" = { from = 0, to = 1, steps = 100 }
    """
    assert len(swept(tmp_path, grid).points) == 10_000


@pytest.mark.parametrize(("sample", "samples"), [("latin-hypercube", 8), ("saltelli", 2)])
def test_samples_of_a_range_of_integers_have_fractions_where_the_key_takes_them(
    tmp_path: Path, sample: str, samples: int
) -> None:
    text = f"""
        "selection.hysteresis" = {{ from = 0, to = 1 }}
        "selection.cluster_size" = {{ from = 1, to = 30 }}
        sample = "{sample}"
        samples = {samples}
    """
    found = values(swept(tmp_path, text))
    assert all(0 < gain < 1 for gain, _ in found)
    assert all(isinstance(size, int) for _, size in found)


def test_a_key_has_the_type_that_it_has_with_the_kinds_that_are_swept(tmp_path: Path) -> None:
    text = """
        workload.kind = "poisson"
        network.brokers = 4
        [selection]
        kind = "static"
        [sweep]
        "selection.kind" = ["similarity"]
        "selection.cluster_size" = { from = 2, to = 4, steps = 3 }
        "selection.hysteresis" = { from = 0, to = 1, steps = 3 }
    """
    (tmp_path / "s.toml").write_text(f'horizon = "1h"\n{text}')
    found = values(load_scenario(tmp_path / "s.toml"))
    assert [repr(size) for _, size, gain in found if gain == 0.5] == ["2", "3", "4"]


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 2**62))
def test_a_latin_hypercube_has_a_point_in_every_stratum(samples: int, seed: int) -> None:
    ends = {"a": (0.0, 1.0), "b": (5.0, -5.0), "c": (1.0, 100.0)}
    table: dict[str, Any] = {key: {"from": start, "to": stop} for key, (start, stop) in ends.items()}
    table["c"]["scale"] = "log"
    points = laid(read({**table, "sample": "latin-hypercube", "samples": samples}), seed)
    assert points == laid(read({**table, "sample": "latin-hypercube", "samples": samples}), seed)
    for key, (start, stop) in ends.items():
        parts = [math.log(p[key]) / math.log(100) if key == "c" else (p[key] - start) / (stop - start) for p in points]
        assert sorted(math.floor(part * samples) for part in parts) == list(range(samples))


@settings(max_examples=16)
@given(st.integers(1, 4), st.integers(0, 3))
def test_saltelli_has_blocks_of_a_and_b_and_what_is_between(dimensions: int, power: int) -> None:
    table: dict[str, Any] = {"abcd"[d]: {"from": 0.0, "to": 1.0} for d in range(dimensions)}
    samples = 2**power
    sweep = read({**table, "sample": "saltelli", "samples": samples})
    points = [list(point.values()) for point in laid(sweep)]
    size = 2 * dimensions + 2
    assert len(points) == sweep.count == samples * size
    for block in (
        itertools.batched(points, size) if hasattr(itertools, "batched") else zip(*[iter(points)] * size, strict=True)
    ):
        a, b = block[0], block[-1]
        for d in range(dimensions):
            assert block[1 + d] == [*a[:d], b[d], *a[d + 1 :]]
            assert block[1 + dimensions + d] == [*b[:d], a[d], *b[d + 1 :]]


def test_samples_divide_lists_evenly_and_keep_zips_together(tmp_path: Path) -> None:
    text = """
        "selection.cluster_size" = [2, 4, 8]
        "workload.users" = { from = 10, to = 30 }
        "network.brokers" = { from = 30, to = 10 }
        zip = ["workload.users", "network.brokers"]
        sample = "latin-hypercube"
        samples = 9
    """
    experiment = swept(tmp_path, text)
    assert sorted(point.values["selection.cluster_size"] for point in experiment.points) == [2, 2, 2, 4, 4, 4, 8, 8, 8]
    assert {users + brokers for _, users, brokers in values(experiment)} == {40}
    assert values(swept(tmp_path, text, "seed=2")) != values(experiment)
    whole = swept(tmp_path, text, "sweep.sample=saltelli", "sweep.samples=2")
    assert len(whole.points) == 2 * (2 * 2 + 2)  # those that are the same stay: an analysis needs them all


def test_points_are_laid_over_the_base_and_variants_over_them(tmp_path: Path) -> None:
    experiment = swept(tmp_path, 'selection.cluster_size = [5, 9]\n"network.brokers" = [1, 2]')
    assert experiment.parameters == ["selection.cluster_size", "network.brokers"]
    assert values(experiment) == [(5, 1), (5, 2), (9, 1), (9, 2)]
    assert [point.label for point in experiment.points][1] == "selection.cluster_size = 5, network.brokers = 2"
    sizes = [
        [variant.selection.dump().get("cluster_size") for variant in point.variants.values()]
        for point in experiment.points
    ]
    assert sizes == [[None, 2, 5], [None, 2, 5], [None, 2, 9], [None, 2, 9]]
    assert [point.base.network.brokers for point in experiment.points] == [1, 2, 1, 2]
    runs = plan(experiment, {})
    assert len(runs) == 4 * 3 * 2
    assert len({run.hash for run in runs}) == (2 + 2 + 4) * 2  # a variant that overrides a swept key is the same run


def test_a_key_of_one_variant(tmp_path: Path) -> None:
    text = 'variant."our own".selection.cluster_size = [3, 4]\n"variant.small.network.brokers" = [7]'
    experiment = swept(tmp_path, text)
    assert experiment.parameters == ['variant."our own".selection.cluster_size', "variant.small.network.brokers"]
    assert values(experiment) == [(3, 7), (4, 7)]
    own = [point.variants["our own"].selection.dump()["cluster_size"] for point in experiment.points]
    assert own == [3, 4]
    assert [point.variants["small"].network.brokers for point in experiment.points] == [7, 7]
    assert {point.base.network.brokers for point in experiment.points} == {4}


def test_values_are_what_they_resolve_to(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("broker\na\nb\n")
    (tmp_path / "more.csv").write_text("broker\na\nb\nc\n")
    experiment = unvaried(
        tmp_path,
        """
        selection = [{ kind = "static" }, { kind = "similarity", cluster_size = 3 }, { kind = "similarity" }]
        "network.brokers" = ["few.csv", "more.csv", 3, 4]
        "network.sessions.queue" = [1, "unbounded"]
        horizon = ["1h", 7200]
        """,
    )
    found = {key: list(dict.fromkeys(p.values[key] for p in experiment.points)) for key in experiment.parameters}
    assert found == {
        "selection": ["static", '{ kind = "similarity", cluster_size = 3 }', '{ kind = "similarity" }'],
        "network.brokers": ["few.csv", "more.csv", 3, 4],
        "network.sessions.queue": [1, "unbounded"],
        "horizon": [3600.0, 7200.0],
    }
    assert experiment.points[0].base.network.brokers.content.names == ("a", "b")  # type: ignore[union-attr]
    assert json.loads(json.dumps(experiment.sweep))["network.brokers"] == ["few.csv", "more.csv", 3, 4]


def test_points_that_are_the_same_are_one(tmp_path: Path) -> None:
    assert values(swept(tmp_path, 'horizon = ["1h", "60min", 3600, "2h"]')) == [(3600,), (7200,)]


def test_where_leaves_points_out(tmp_path: Path) -> None:
    text = (
        '"workload.users" = [10, 20]\n"network.brokers" = [1, 2, 3]\nwhere = "network.brokers <= workload.users / 10"'
    )
    assert values(swept(tmp_path, text)) == [(10, 1), (20, 1), (20, 2)]
    assert values(swept(tmp_path, text, "sweep.where=network.brokers == 3")) == [(10, 3), (20, 3)]
    kinds = "where = \"network.geometry == 'chord' and horizon == '2h' and selection.kind != 'static'\""
    assert values(unvaried(tmp_path, f'selection.kind = ["static", "similarity"]\n{kinds}')) == [("similarity",)]


def test_the_command_line_sweeps_by_the_same_paths(tmp_path: Path) -> None:
    text = '"network.brokers" = [1, 2]\nwarm_up = { from = 0.0, to = "1h", steps = 2 }'
    for path in ('sweep."network.brokers"', "sweep.network.brokers"):
        assert values(swept(tmp_path, text, f"{path}=[5]")) == [(5, 0), (5, 3600)]
    assert values(swept(tmp_path, text, "sweep.warm_up.steps=3", "sweep.network.brokers=[5]")) == [
        (5, 0), (5, 1800), (5, 3600),
    ]  # fmt: skip
    added = swept(tmp_path, text, "sweep.network.brokers=[5]", 'sweep.variant."our own".network.join=["instant"]')
    assert values(added) == [(5, 0, "instant"), (5, 3600, "instant")]
    plain = load_scenario({}, ["sweep.network.brokers={ from = 1, to = 3, steps = 3 }"])
    assert values(plain) == [(1,), (2,), (3,)]


def test_ten_kinds_of_mistakes_are_told_with_the_key_and_the_remedy(tmp_path: Path) -> None:
    text = """\
"network.brokers" = [
    2,
    0,
]
selection.cluster_sise = [1, 2]
workload.users = { from = 0, to = 10, steps = 1, scale = "log" }
horizon = ["1h", "soon"]
window = ["1h", "2h"]
brokers.queue = []
"network.brokers.x" = [1]
seed = [1, 2]
trace = true
subscribers = [true, false, true]
variant.smal.network.join = ["instant"]
zip = [["window", "subscribers"], ["window", "horizn"]]
where = "window < "
sample = "random"
"""
    keys = "kind, load_weight, load, similarity, update_period, cluster_size, cluster, hysteresis"
    expected = [
        "21: sweep.network.brokers[1]: expected a number of brokers (1 or more), 'cells' (one per visited cell) or a CSV "
        "file, found 0",
        f"23: sweep.selection.cluster_sise: unknown key, did you mean 'cluster_size'? (allowed: {keys})",
        "24: sweep.workload.users.from: expected more than 0 on a logarithmic scale, found 0",
        "24: sweep.workload.users.steps: expected a number of steps, 2 or more, found 1",
        "25: sweep.horizon[1]: expected a duration such as '90s', '10h' or '7d' (units: us, ms, s, min, h, d, w), found 'soon'",
        "27: sweep.brokers.queue: an empty list: give at least one value",
        "28: sweep.network.brokers.x: swept twice: network.brokers is swept already",
        "29: sweep.seed: 'seed' is the same for all runs and cannot be swept",
        "30: sweep.trace: expected a list of values, or a range such as { from = 1, to = 9, steps = 5 }, found true",
        "32: sweep.variant.smal.network.join: expected variant.NAME.key, did you mean 'small'? (allowed: static, small, our own)",
        "33: sweep.zip[0]: zipped keys need equally many values: window has 2, subscribers has 3",
        '33: sweep.zip[1][0]: zipped twice (found "window")'.replace('"', "'"),
        "33: sweep.zip[1][1]: no such key is swept, did you mean 'horizon'? (allowed: brokers.queue, horizon, network.brokers, ",
        "34: sweep.where: at the end (character 9): not an expression (allowed: numbers, 'text', true, false, names of keys",
        "35: sweep.sample: unknown value (allowed: grid, latin-hypercube, saltelli) (found 'random')",
    ]
    found = mistakes(tmp_path, text)
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '18: sweep: no key is swept: expected keys with lists of values, such as "network.brokers" = [10, 20]'),
        ('"net work" = [1]', "19: sweep.net work: expected the path of a key, such as network.brokers"),
        (
            "selektion.kind = ['static']",
            "19: sweep.selektion.kind: selektion: unknown key, did you mean 'selection'? (allow",
        ),
        (
            "window = { from = '1h', to = '10%', steps = 2 }",
            "sweep.window.to: expected a number or a duration such as '10h', ",
        ),
        (
            "window = { from = 1, to = true, steps = 2 }",
            "sweep.window.to: expected a number or a duration such as '10h', found",
        ),
        (
            "window = { from = 1, to = 9 }",
            "sweep.window: missing key 'steps': expected a range such as { from = 1, to = 9, st",
        ),
        ("window = { from = 1, to = 1, steps = 2 }", "sweep.window.to: expected a number other than 'from', found 1"),
        (
            "window = { from = 1, to = 2, steps = 2, scal = 1 }",
            "sweep.window.scal: unknown key, did you mean 'scale'? (allowed: from, ",
        ),
        (
            "window = { from = 1.0, to = 2, steps = 9999999 }",
            "sweep.window.steps: expected 100,000 steps at most, found 9,9",
        ),
        (
            "window = [1]\nsamples = 4",
            "sweep.samples: a grid has no samples: set sample, too (allowed: latin-hypercube, salt",
        ),
        (
            "window = [1]\nsample = 'saltelli'\nsamples = 12",
            "sweep.samples: expected a power of two, such as 8 or 16, found 12",
        ),
        ("window = [1]\nsample = 'saltelli'", "sweep.samples: expected a number of samples, 1 or more, found null"),
        (
            "window = [1]\nsample = 'saltelli'\nsamples = 4\nwhere = 'true'",
            "sweep.where: Sobol indices need all of Saltelli's",
        ),
        ("window = [1]\nwhere = 3", "sweep.where: expected an expression in quotes, found 3"),
        (
            "window = [1]\nwhere = 'windw < 3'",
            "sweep.where: at 'windw < 3' (character 1): unknown key, did you mean 'window'?",
        ),
        (
            "window = [1]\nwhere = 'window'",
            "sweep.where: at 'window' (character 1): expected a comparison, which is true or f",
        ),
        ("window = [1]\nwhere = 'window > 3'", "20: sweep.where: no point is left (of 1)"),
        (
            "window = [1]\nzip = 'window'",
            "sweep.zip: expected a list of two or more swept keys, found 'window'",
        ),
        (
            "window = [1]\nzip = ['window']",
            'sweep.zip: expected a list of two or more swept keys, found ["window"]',
        ),
        ("variant.small = [{ trace = true }]", "19: sweep.variant.small: expected variant.NAME.key"),
        ("variant.small.warm_up = ['detect']", "19: sweep.variant.small.warm_up[0]: expected a duration such as "),
        (
            "network.geometry = ['chord']",
            "19: sweep.network.geometry[0]: expected a table such as { kind = \"chord\" }, found 'chord'",
        ),
        (
            "network.latency = [{ kind = 'unit', a = 1 }]",
            "19: sweep.network.latency[0].a: unknown key (allowed: kind, rtt) (found 1)",
        ),
        ("warm_up = ['1h', '3h']", "19: sweep.warm_up[1]: expected less than the horizon (7200 s), found 10800 s"),
        (
            "window = { from = 1, to = 99999, steps = 99999 }\nwarm_up = { from = 1, to = 100, steps = 100 }",
            "18: sweep: 9,999,900 points are too many (allowed: 100,000); give fewer values, or samples",
        ),
    ],
)
def test_sweeps_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    (found,) = mistakes(tmp_path, text)
    assert message in found


def test_what_is_wrong_at_many_points_is_told_once(tmp_path: Path) -> None:
    text = "network.brokers = [0, 1, 2, -1]\nwarm_up = { from = 1, to = 50, steps = 50 }"
    assert [line[:29] for line in mistakes(tmp_path, text)] == [f"19: sweep.network.brokers[{i}]:" for i in (0, 3)]
    (one,) = mistakes(tmp_path, "network.geometry.kind = ['tapestry', 'chrod']", "sweep.trace=[true, false]")
    assert one.startswith("19: sweep.network.geometry.kind[1]: unknown kind, did you mean 'chord'?")
    (override,) = mistakes(tmp_path, "", "sweep.network.brokers=[0]")
    assert override.startswith(
        "--set sweep.network.brokers=[0]: sweep.network.brokers[0]: expected a number of brokers"
    )


def test_what_is_set_is_not_swept(tmp_path: Path) -> None:
    """Beside others it leaves the sweep, with what it was zipped with; a point that is set whole is the only one."""
    text = """
        network.brokers = [2, 3]
        "workload.users" = { from = 10, to = 20, steps = 2 }
        warm_up = ["1h", "0h"]
        "variant.small.selection.cluster_size" = [4, 5]
        zip = ["network.brokers", "workload.users", "warm_up"]
    """
    one = swept(tmp_path, text, "network.brokers=7")
    assert one.parameters == ["workload.users", "warm_up", "variant.small.selection.cluster_size"]
    assert values(one) == [(10, 3600, 4), (10, 3600, 5), (20, 0, 4), (20, 0, 5)]
    assert {point.base.network.brokers for point in one.points} == {7}
    two = swept(tmp_path, text, "variant.small.selection.cluster_size=9", "workload.users=8", "warm_up=1h")
    assert values(two) == [(2,), (3,)]
    assert two.variants["small"].selection.parameters.cluster_size == 9
    table = swept(tmp_path, "workload.users = [1, 2]\nworkload.topics = [3, 4]", 'workload={kind="poisson"}')
    assert (table.parameters, table.sweep, len(table.points)) == ([], {}, 1)
    whole = swept(tmp_path, 'network.brokers = [2, 3]\nsample = "latin-hypercube"\nsamples = 9', "network.brokers=2")
    assert (len(whole.points), whole.base.network.brokers) == (1, 2)
    again = swept(tmp_path, text, "network.brokers=7", "sweep.network.brokers=[1, 9]")
    assert len(again.points) == 8


@pytest.mark.parametrize("table", ['sweep."selection.cluster_size"=[4, 5]', "sweep={selection.cluster_size=[4, 5]}"])
@pytest.mark.parametrize("beside", ["selection.cluster_size=3", 'selection={kind="similarity"}'])
def test_what_is_swept_on_the_command_line_is_not_dropped_there(tmp_path: Path, table: str, beside: str) -> None:
    assert len(swept(tmp_path, "", 'selection={kind="similarity"}', table, "selection.update_period=2h").points) == 2
    message = f"--set {beside}: --set {table} sweeps that: give only one of them, or the sweep last"
    with pytest.raises(ScenarioError, match=re.escape(message)):
        swept(tmp_path, "", table, beside)


def test_a_precision_and_a_warm_up_that_is_detected() -> None:
    experiment = load_scenario({"warm_up": "detect", "precision": {"metric": "tree_delay", "relative": 0.1}})
    assert experiment.precision == Precision(metric="tree_delay", relative=0.1)
    assert (experiment.precision.confidence, experiment.precision.max_replications) == (0.95, 50)
    assert experiment.detects_warm_up
    assert experiment.base.warm_up == 0.0
    plain = load_scenario({})
    assert (plain.precision, plain.detects_warm_up, plain.sweep, len(plain.points)) == (None, False, {}, 1)
    assert load_scenario({}, ["precision.relative=0.5", "warm_up=detect"]).precision == Precision(relative=0.5)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"precision": {"metric": "tree_dely"}}, "precision.metric: unknown metric, did you mean 'tree_delay'?"),
        ({"precision": {"relative": 2}}, "precision.relative: expected a value less than 1 (found 2)"),
        ({"precision": {"relativ": 0.1}}, "precision.relativ: unknown key, did you mean 'relative'?"),
        ({"precision": 0.1}, "precision: expected a table (found 0.1)"),
        ({"warm_up": "detct"}, "warm_up: expected a duration such as '1d', or 'detect', found 'detct'"),
        ({"variant": [{"name": "a", "precision": {}}]}, "variant.a.precision: variants share this key"),
        ({"variant": [{"name": "a", "warm_up": "detect"}]}, 'variant.a.warm_up: warm_up = "detect" applies to all'),
        ({"warm_up": "detect", "variant": [{"name": "a", "warm_up": "1h"}]}, 'variant.a.warm_up: warm_up = "detect"'),
        (
            {"warm_up": "detect", "sweep": {"warm_up": ["1h"]}},
            'sweep.warm_up: cannot be swept where warm_up = "detect"',
        ),
    ],
)
def test_precisions_and_warm_ups_that_cannot_be(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match="scenario: ") as error:
        load_scenario(source)
    assert message in str(error.value)


def test_tables_that_points_share_are_read_once(tmp_path: Path) -> None:
    first, *others = swept(tmp_path, "network.brokers = [1, 2, 3]\nwindow = ['1h', '2h']").points
    for point in others:
        assert point.base.workload is first.base.workload
        assert point.variants["static"].selection is first.variants["static"].selection
        assert point.base.network.geometry is first.base.network.geometry


def test_a_run_has_one_hash_in_whatever_sweep_it_is(tmp_path: Path) -> None:
    alone = [spec.hash for brokers in (1, 2) for spec in plan(swept(tmp_path, f"network.brokers = [{brokers}]"), {})]
    experiment = swept(tmp_path, "network.brokers = [1, 2]")
    runs = plan(experiment, {})
    assert sorted(alone) == sorted({spec.hash for spec in runs})
    for spec in runs:
        assert spec.scenario.network.brokers == experiment.points[spec.point].values["network.brokers"]
        assert json.loads(spec.scenario.identity_text({})) == spec.scenario.identity()


def test_what_sweeps_say_of_themselves_can_be_read_again(tmp_path: Path) -> None:
    text = """
        "network.brokers" = [1, 2]
        selection.cluster_size = { from = 2, to = 8, steps = 2 }
        zip = ["network.brokers", "selection.cluster_size"]
        window = ["1h", "2h"]
        where = "network.brokers < 3"
    """
    experiment = swept(tmp_path, text)
    (tmp_path / "again").mkdir()
    again = load_scenario({"selection": {"kind": "similarity"}, "network": {"brokers": 9}, "sweep": experiment.sweep})
    assert values(again) == values(experiment) == [(1, 2, 3600), (1, 2, 7200), (2, 8, 3600), (2, 8, 7200)]
    assert again.sweep == experiment.sweep
    label = swept(tmp_path, 'variant."our own".window = ["1h", "2h"]').points[1].label
    assert label == 'variant."our own".window = 2 h'
    assert values(swept(tmp_path, "", f"sweep.{label.replace('2 h', '[60, 61]')}")) == [(60,), (61,)]


def order(points: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [point[0] for point in points]


def test_the_order_is_that_of_the_file(tmp_path: Path) -> None:
    text = "window = ['2h', '1h']\nnetwork.brokers = [3, 1, 2]"
    assert order(values(swept(tmp_path, text))) == [7200] * 3 + [3600] * 3
