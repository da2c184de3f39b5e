"""`--append`: the rows of a new day join a workload, with the same bytes as all days at once, and the old days are not read again."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sim.base.errors import WorkloadError
from sim.workloads.format.folder import load_workload
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
from sim.workloads.traces.follow_tables import free_trace
from sim.workloads.traces.layouts import CSV, GOWALLA, lay_over
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.traces.user_filters import UserFilters

FEW = UserFilters(min_visits=2)
Prepare = Callable[[Sequence[Path], Path, bool], object]


def checkins(files: Sequence[Path], out: Path, append: bool) -> object:
    layout = lay_over(CSV, columns="user,time,latitude,longitude")
    return prepare_checkins(None, files, out, layout, CheckinOptions(filters=FEW, append=append), partitions=2)


def events(files: Sequence[Path], out: Path, append: bool) -> object:
    layout = lay_over(CSV, columns="time,action,client,topic")
    return prepare_events(None, files, out, layout, EventOptions(append=append))


def follows(files: Sequence[Path], out: Path, append: bool) -> object:
    """Each file of follows has one of events beside it."""
    beside = [path.with_suffix(".events") for path in files]
    who, what = (lay_over(CSV, columns=columns) for columns in ("user,topic,since", "time,topic,publisher"))
    return prepare_follows(None, free_trace((who, files), (what, beside)), out, FollowOptions(append=append))


def days(folder: Path) -> list[Path]:
    """Three files of each kind, with duplicates across days, names that only later days have, and rows of no use."""
    rng = random.Random(5)
    for kind in ("checkins", "events", "follows"):
        (folder / kind).mkdir()
    for day in range(1, 4):
        times = [f"2010-03-0{day}T{hour:02}:{rng.randrange(60):02}" for hour in range(24)]
        who = [rng.choice(["7", "07", "Ann", f"new{day}", ""]) for _ in times]
        where = [f"{rng.choice([48, 49, 49, 49, 91])}.5,{rng.choice([2, 3])}.5" for _ in times]
        rows = [f"{user},{time},{place}" for user, time, place in zip(who, times, where, strict=True)]
        (folder / "checkins" / f"{day}.csv").write_text("\n".join([*rows, "Ann,2010-03-01T00:00,48.5,2.5", "broken"]))
        actions = [rng.choice(["connect", "subscribe", "publish", "publish", "deliver", "ping"]) for _ in times]
        log = [
            f"{time},{what},{user},t{rng.randrange(3)}" for time, what, user in zip(times, actions, who, strict=True)
        ]
        (folder / "events" / f"{day}.csv").write_text("\n".join(log))
        said = [f"{user},t{rng.randrange(4)},{rng.choice(['', '2010-03-02'])}" for user in who]
        (folder / "follows" / f"{day}.csv").write_text("\n".join(said))
        sent = [f"{time},t{rng.randrange(5)},{user}" for time, user in zip(times, who, strict=True)]
        (folder / "follows" / f"{day}.events").write_text("\n".join(sent))
    return [folder / "checkins" / f"{day}.csv" for day in range(1, 4)]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a workload."""
    inside = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in inside if path.parent.name != "rows"}


@pytest.mark.parametrize("prepare", [checkins, events, follows])
def test_days_that_join_one_by_one_make_the_workload_of_all_at_once(tmp_path: Path, prepare: Prepare) -> None:
    days(tmp_path)
    files = sorted((tmp_path / prepare.__name__).glob("*.csv"))
    prepare(files, tmp_path / "whole", False)
    prepare(files[:1], tmp_path / "grown", True)
    for number in (2, 3):
        prepare(files[number - 1 : number], tmp_path / "grown", True)
        for path in files[number - 1].parent.glob(f"{number}.*"):
            path.write_text("it is not read again\n")
    assert contents(tmp_path / "grown") == contents(tmp_path / "whole")
    load_workload(tmp_path / "grown")


def test_a_pattern_takes_only_the_days_that_are_new(tmp_path: Path) -> None:
    files = days(tmp_path)
    checkins(files, tmp_path / "whole", False)
    checkins(files[:2], tmp_path / "grown", True)
    checkins([tmp_path / "checkins" / "*.csv"], tmp_path / "grown", True)
    assert contents(tmp_path / "grown") == contents(tmp_path / "whole")


def test_a_real_trace_grows_to_the_same_bytes(shared_data: Path, tmp_path: Path) -> None:
    (packed,) = (shared_data / "gowalla-head").glob("*.gz")
    lines = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
    parts = [tmp_path / f"part-{number}" for number in range(3)]
    for number, part in enumerate(parts):
        part.write_bytes(b"".join(lines[number * 3400 : (number + 1) * 3400]))
    prepare_checkins(None, parts, tmp_path / "whole", GOWALLA)
    for part in parts:
        prepare_checkins(None, [part], tmp_path / "grown", GOWALLA, CheckinOptions(append=True))
    assert contents(tmp_path / "grown") == contents(tmp_path / "whole")


@pytest.fixture
def grown(tmp_path: Path) -> list[Path]:
    files = days(tmp_path)
    checkins(files[:1], tmp_path / "w", True)
    return files


def refused(tmp_path: Path, prepare: Callable[[], object]) -> str:
    """Why something cannot join the workload, which stays as it is."""
    before = contents(tmp_path / "w")
    with pytest.raises(WorkloadError) as raised:
        prepare()
    assert contents(tmp_path / "w") == before
    return str(raised.value)


def test_what_cannot_join_is_told_in_one_sentence(tmp_path: Path, grown: list[Path]) -> None:
    out = tmp_path / "w"
    assert refused(tmp_path, lambda: checkins(grown[:1], out, True)) == (
        f"{grown[0]}: is in the workload already, as all files named are"
    )
    with grown[0].open("a") as file:
        file.write("\nAnn,2010-03-09T00:00,48.5,2.5\n")
    assert "has changed since its rows joined the workload" in refused(tmp_path, lambda: checkins(grown[:1], out, True))
    said = refused(tmp_path, lambda: events([tmp_path / "events" / "1.csv"], out, True))
    assert f'{out}: was prepared with kind "checkins", now it is "events"; --append takes the same' in said
    layout = lay_over(CSV, columns="user,time,latitude,longitude")
    for options, told in (
        (CheckinOptions(filters=FEW, append=True, friends=9), "with friends 4, now it is 9"),
        (CheckinOptions(append=True), "with filters.min_visits 2, now it is 0"),
    ):
        assert told in refused(tmp_path, lambda o=options: prepare_checkins(None, grown[1:2], out, layout, o))


def test_a_day_in_another_layout_is_told_even_if_it_is_short(tmp_path: Path, grown: list[Path]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("Ann;2010-03-09T00:00;48.5;2.5\n")
    assert f"{bad}: line 1: expected 4 fields" in refused(tmp_path, lambda: checkins([bad], tmp_path / "w", True))


def test_without_rows_or_with_other_ones_nothing_joins(tmp_path: Path, grown: list[Path]) -> None:
    rows = min((tmp_path / "w" / "rows").glob("*.usable"))
    rows.write_bytes(b"x")
    said = refused(tmp_path, lambda: checkins(grown[1:2], tmp_path / "w", True))
    assert re.fullmatch(rf"{rows}: missing, or changed since it was written; prepare all files again", said)
    checkins(grown[:1], tmp_path / "w", False)
    assert not (tmp_path / "w" / "rows").exists()
    assert "without --append" in refused(tmp_path, lambda: checkins(grown[1:2], tmp_path / "w", True))
