"""The mobility workload: the walk, the facts it should match, and raw files with invalid rows."""

from __future__ import annotations

import gzip
import itertools
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mobility as oracle
from pydantic import ValidationError
from scipy import stats

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.workloads.format.validation import validate_workload
from sim.workloads.models.location import Visits, VisitShares, visit_shares, visits_of
from sim.workloads.synthetic.checkins import write_checkins
from sim.workloads.synthetic.mobility import MobilityWorkload
from sim.workloads.synthetic.mobility_kernels import fold, walk

BOX = (30.0, -126.0, 50.0, -66.0)


def mobility(**parameters: Any) -> MobilityWorkload:
    return MobilityWorkload(MobilityWorkload.Parameters(**parameters))


@settings(max_examples=tried(100), deadline=None)
@given(st.floats(-500, 500), st.floats(-90, 80), st.floats(0.5, 100))
def test_positions_are_reflected_at_the_edges(value: float, low: float, width: float) -> None:
    folded = fold(value, low, low + width)
    assert folded == pytest.approx(oracle.fold(value, low, low + width), abs=1e-9)
    assert low - 1e-9 <= folded <= low + width + 1e-9


@settings(max_examples=tried(200), deadline=None)
@given(st.data())
def test_the_walk_equals_the_oracle(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    home_share, rho, gamma = data.draw(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2)))
    draws = np.random.default_rng(data.draw(st.integers(0, 999))).random((4, sum(lengths)))
    draws[2:] = (draws[2:] - 0.5) * 3000
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    latitude, longitude = np.zeros((2, sum(lengths)))
    latitude[indptr[:-1]], longitude[indptr[:-1]] = 40.5, -73.5
    place = walk(indptr, latitude, longitude, BOX, (home_share, rho, gamma), draws)
    for start, stop in itertools.pairwise(indptr):
        expected = oracle.walk((40.5, -73.5), BOX, home_share, rho, gamma, draws[:, start + 1 : stop].T.tolist())
        walked = list(zip(latitude[start:stop], longitude[start:stop], strict=True))
        np.testing.assert_allclose(walked, expected, rtol=0, atol=1e-9)
        assert place[start:stop].tolist() == [start + expected.index(position) for position in expected]


def test_it_shows_what_the_paper_saw() -> None:
    made = mobility(users=1500).generate(Streams(1))
    validate_workload(made, Path("w"))
    shares = visit_shares(visits_of(made))
    assert shares.single_visits == pytest.approx(1 / 3, abs=0.04)
    assert shares.stays_under_day == pytest.approx(0.5, abs=0.04)
    assert shares.stays_over_week == pytest.approx(0.1, abs=0.03)


def test_shares_are_counted_by_pair_and_by_stay() -> None:
    hours = np.array([0, 1, 20, 30, 300, 310])
    user, cell = np.array([0, 1, 0, 0, 0, 1], np.int32), np.array([7, 7, 8, 7, 9, 8], np.int32)
    visits = Visits(hours * 3600.0, user, cell, np.zeros(6), np.zeros(6))
    # user 0 stays 20, 10 and 270 hours, user 1 309 hours; only (0, 7) comes twice, among five pairs
    assert visit_shares(visits) == VisitShares(6, 5, single_visits=0.8, stays_under_day=0.5, stays_over_week=0.5)
    nothing = visit_shares(visits.rows(slice(0, 0)))
    assert math.isnan(nothing.single_visits)
    assert math.isnan(nothing.stays_over_week)


def test_check_ins_are_on_the_land_in_order_and_at_whole_seconds() -> None:
    made = mobility(users=200, horizon="10d", box=(10, 20, 12, 21), city_radius=500).checkins(Streams(1))
    assert set(np.unique(made.user)) == set(range(200))
    assert (np.diff(made.time)[np.diff(made.user) == 0] > 0).all()
    assert ((made.time == np.floor(made.time)) & (made.time >= 0) & (made.time < 864000)).all()
    assert 10 <= made.latitude.min() <= made.latitude.max() < 12
    assert 20 <= made.longitude.min() <= made.longitude.max() < 21
    positions = {(place, lat) for place, lat in zip(made.place.tolist(), made.latitude.tolist(), strict=True)}
    assert len(positions) == made.place.max() + 1  # a place has one position


def test_gaps_are_lognormal_around_the_median() -> None:
    made = mobility(users=2000, horizon="92d", gap="2h", gap_sigma=1.0, pace_sigma=0).checkins(Streams(1))
    gaps = np.diff(made.time)[np.diff(made.user) == 0]
    # the horizon cuts off long gaps, a little
    assert np.median(gaps) == pytest.approx(7200, rel=0.02)
    assert np.log(gaps).std() == pytest.approx(1.0, rel=0.02)


def test_bigger_cities_have_more_homes() -> None:
    made = mobility(users=6000, cities=3, city_radius=1, city_exponent=1, gap="100d", horizon="1d").checkins(Streams(2))
    homes = made.latitude[np.searchsorted(made.user, np.arange(6000))]
    apart = np.flatnonzero(np.diff(np.sort(homes)) > 0.1) + 1  # the spread around a city is 0.01 degrees
    towns = np.sort(np.diff(np.concatenate([[0], apart, [6000]])))[::-1]
    for share, count in zip((6 / 11, 3 / 11, 2 / 11), towns, strict=True):
        assert abs(count - 6000 * share) < 5 * math.sqrt(6000 * share * (1 - share))


def test_publications_per_check_in() -> None:
    parameters = {"users": 50, "horizon": "10d"}
    visits = mobility(**parameters).generate(Streams(1))
    checkins = mobility(publications="per-check-in", size=7, **parameters).generate(Streams(1))
    validate_workload(checkins, Path("w"))
    assert len(checkins.publications) == len(mobility(**parameters).checkins(Streams(1)))
    assert set(checkins.publications.size) == {7}
    np.testing.assert_equal(vars(checkins.movements), vars(visits.movements))
    np.testing.assert_equal(vars(visits.publications)["time"], visits.movements.time)


def test_any_user_may_be_the_publisher() -> None:
    parameters = {"users": 50, "horizon": "40d"}
    visitors, anybody = (mobility(publisher=who, **parameters).generate(Streams(1)) for who in ("visitor", "any"))
    validate_workload(anybody, Path("w"))
    np.testing.assert_equal(vars(anybody.movements), vars(visitors.movements))
    np.testing.assert_equal(anybody.publications.topic, visitors.publications.topic)
    counts = np.bincount(anybody.publications.publisher, minlength=50)
    assert stats.chisquare(counts).pvalue > 0.001
    assert stats.chisquare(np.bincount(visitors.publications.publisher, minlength=50)).pvalue < 1e-6


def test_parameters_of_other_things_do_not_move_people() -> None:
    base, other = mobility(users=40, horizon="9d"), mobility(users=40, horizon="9d", friends=2, cell=0.5)
    np.testing.assert_equal(vars(base.checkins(Streams(1))), vars(other.checkins(Streams(1))))
    again = base.checkins(Streams(1, replication=1))
    assert not np.array_equal(base.checkins(Streams(1)).latitude, again.latitude)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"box": (50, -126, 30, -66)}, "south < north"),
        ({"box": (30, -126, 90, -66)}, "without a pole"),
        ({"origin": "yesterday"}, "Invalid isoformat"),
        ({"origin": "0001-01-01T00:00:00+05:00"}, "years 1 to 9999"),
        ({"cell": 1e-9}, "greater than or equal to 0.0001"),
        ({"horizon": "10000w", "gap": "1s"}, r"give 6\.05e\+12 check-ins, allowed: fewer than 1e\+09"),
        ({"gap": "-1h"}, "greater than 0"),
        ({"rho": 1.5}, "less than or equal to 1"),
        ({"publications": "never"}, "per-check-in"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MobilityWorkload.Parameters(**parameters)


def reason(line: str, seen: set[tuple[str, ...]], horizon_days: int) -> str:
    """Why a line cannot be used, judged anew from the words of the format."""
    fields = tuple(line.split("\t"))
    if len(fields) != 5:
        return "unparsable"
    try:
        time = np.datetime64(fields[1].removesuffix("Z"), "s")
        assert not np.isnat(time)
    except (ValueError, AssertionError):
        return "bad_time"
    try:
        latitude, longitude = float(fields[2]), float(fields[3])
        assert abs(latitude) <= 90
        assert abs(longitude) <= 180
    except (ValueError, AssertionError):
        return "bad_position"
    if latitude == longitude == 0:
        return "null_island"
    if not (BOX[0] <= latitude < BOX[2] and BOX[1] <= longitude < BOX[3]):
        return "outside_box"
    if time >= np.datetime64("2010-08-01") + np.timedelta64(horizon_days, "D"):
        return "outside_window"
    if fields in seen:
        return "duplicate"
    seen.add(fields)
    return "good"


@pytest.mark.parametrize("dirt", [0.0, 0.0001, 0.2])
def test_raw_files_hold_every_kind_of_dirt(tmp_path: Path, dirt: float) -> None:
    made = mobility(users=60, horizon="30d").checkins(Streams(1))
    told = write_checkins(tmp_path / "a.tsv.gz", made, dirt, np.random.default_rng(1))
    write_checkins(tmp_path / "b.tsv", made, dirt, np.random.default_rng(1))
    content = (tmp_path / "b.tsv").read_bytes()
    assert gzip.decompress((tmp_path / "a.tsv.gz").read_bytes()) == content
    assert (tmp_path / "a.tsv.gz").read_bytes()[4:8] == bytes(4)  # no time in the gzip header
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv.gz", "b.tsv"]

    lines = content.decode().splitlines()
    seen: set[tuple[str, ...]] = set()
    reasons = [reason(line, seen, 30) for line in lines]
    assert Counter(reasons) == Counter({name: count for name, count in told.items() if count})
    assert told["good"] == len(made)
    spoilt = len(lines) - len(made)
    assert spoilt == (max(7, round(len(made) * dirt / (1 - dirt))) if dirt else 0)
    good = [line.split("\t") for line, why in zip(lines, reasons, strict=True) if why == "good"]
    assert [int(row[0]) for row in good] == sorted(made.user.tolist())
    assert all(a[1] > b[1] for a, b in itertools.pairwise(good) if a[0] == b[0])
    back = np.array([[float(row[2]), float(row[3])] for row in good])
    newest_first = np.lexsort((-made.time, made.user))
    np.testing.assert_equal(back, np.column_stack([made.latitude, made.longitude])[newest_first])


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    made = mobility(users=2, horizon="1d").checkins(Streams(1))
    (tmp_path / "taken").mkdir()
    with pytest.raises(WorkloadError, match=r"taken: cannot be written \(Is a directory\)"):
        write_checkins(tmp_path / "taken", made, 0.0, np.random.default_rng(1))
    (tmp_path / "file").touch()
    with pytest.raises(WorkloadError, match="cannot be written"):
        write_checkins(tmp_path / "file" / "c.tsv", made, 0.0, np.random.default_rng(1))


def test_files_are_the_same_under_any_hash_seed(tmp_path: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from sim.base.randomness import Streams
        from sim.workloads.synthetic.checkins import write_checkins
        from sim.workloads.synthetic.mobility import MobilityWorkload
        from sim.workloads.format.folder import write_workload
        out, streams = Path(sys.argv[1]), Streams(5)
        made = MobilityWorkload(MobilityWorkload.Parameters(users=30, horizon="9d"))
        write_workload(made.generate(streams), out / "w")
        write_checkins(out / "c.tsv.gz", made.checkins(streams), 0.05, streams.generator("workload.dirt"))
        assert "pandas" not in sys.modules
    """
    contents = []
    for hash_seed in ("1", "2"):
        out = tmp_path / hash_seed
        subprocess.run([sys.executable, "-c", script, out], check=True, env={"PYTHONHASHSEED": hash_seed})
        files = sorted(path for path in out.rglob("*") if path.is_file())
        contents.append([(path.relative_to(out), path.read_bytes()) for path in files])
    assert len(contents[0]) == 8
    assert contents[0] == contents[1]
