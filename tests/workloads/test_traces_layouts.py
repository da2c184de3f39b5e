"""Layout options of the command line, applied to a preset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import WorkloadError
from sim.workloads.traces.layouts import CSV, GOWALLA, JSONL, PARQUET, TSV, Layout, guess_layout, lay_over


def test_fields_are_named_in_order_or_by_name() -> None:
    assert lay_over(CSV, columns="user, time,_,latitude").columns == ("user", "time", "_", "latitude")
    assert lay_over(CSV, columns="user=label,time", header=True).columns == {"user": "label", "time": "time"}
    assert lay_over(PARQUET, columns="user,time=ts,_").columns == {"user": "user", "time": "ts"}


def test_quoting_follows_the_delimiter_unless_said() -> None:
    assert [lay_over(TSV, delimiter=delimiter).quote for delimiter in (",", ";", "tab")] == [True, False, False]
    assert lay_over(TSV, quote=True).quote
    assert not lay_over(CSV, quote=False).quote
    assert lay_over(CSV, delimiter=r"\t").delimiter == lay_over(CSV, delimiter="tab").delimiter == "\t"


def test_what_is_not_said_is_left() -> None:
    assert lay_over(GOWALLA) == GOWALLA
    assert lay_over(GOWALLA, time_zone="+02:00").time_formats == GOWALLA.time_formats


@pytest.mark.parametrize(
    ("content", "name", "layout"),
    [
        (b"PAR1....", "x.csv", PARQUET),
        (b"{}", "x.NDJSON", JSONL),
        (b"\x1f\x8b", "x.json.gz", JSONL),
        (b"a", "x.tsv", TSV),
        (b"", "x", CSV),
    ],
)
def test_a_layout_is_guessed_from_a_file(tmp_path: Path, content: bytes, name: str, layout: object) -> None:
    (tmp_path / name).write_bytes(content)
    assert guess_layout(tmp_path / name) is layout


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"columns": "user,,time"}, "--columns 'user,,time': an empty name; _ skips a field"),
        ({"columns": "user,time,user"}, "--columns 'user,time,user': user is named twice"),
        ({"columns": "user=label"}, "columns user=label: fields without a --header have no names"),
        ({"delimiter": ""}, "--delimiter '': expected characters"),
        ({"delimiter": '"'}, "neither quotes nor ends of a line"),
        ({"time_zone": "Europe/Pari"}, "--time-zone 'Europe/Pari': no such zone, did you mean 'Europe/Paris'?"),
        ({"time_zone": "+2"}, "--time-zone '+2': no such zone"),
        ({"time_formats": ["HH:mm"]}, "--time-format 'HH:mm': it lacks a year, month or day"),
        ({"time_formats": ["yyyy-MM-dd EEE"]}, "a weekday (E) may only stand at its start"),
        (
            {"time_formats": ["unix"]},
            "--time-format 'unix': 'u' means nothing in it; expected a datetime pattern of Spark",
        ),
        ({"time_formats": ["%Y-%m-%d"]}, "--time-format '%Y-%m-%d'"),
    ],
)
def test_what_makes_no_layout_is_told(said: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        lay_over(TSV, **said)
    assert message in str(raised.value)


@pytest.mark.parametrize("layout", [TSV, JSONL, PARQUET])
def test_columns_are_told_by_the_option_that_said_them(layout: Layout) -> None:
    with pytest.raises(WorkloadError, match=r"^--follows-columns 'user,user': user is named twice"):
        lay_over(layout, columns="user,user", option="--follows-columns")


def test_text_alone_has_delimiters() -> None:
    with pytest.raises(WorkloadError, match="--header: has no effect with --format parquet"):
        lay_over(PARQUET, header=True)


def test_a_field_that_is_needed_is_missed() -> None:
    with pytest.raises(
        WorkloadError, match=r"--columns usr,time: no user, did 'usr' mean it\? \(check-ins need user, time\)"
    ):
        lay_over(CSV, columns="usr,time").require("check-ins", ("user", "time"))


def test_a_field_without_a_meaning_is_refused() -> None:
    allowed = "allowed: user, time, place, date, year, month, day, weekday, clock, minute, _, which skips a field"
    with pytest.raises(WorkloadError) as refused:
        lay_over(CSV, columns="user,time,plaec").require("check-ins", ("user", "time"), others=("place",))
    assert str(refused.value) == f"--columns user,time,plaec: unknown field 'plaec', did you mean 'place'? ({allowed})"
    lay_over(CSV, columns="user,_,clock,time,_,place").require("check-ins", ("user", "time"), others=("place",))


def test_what_has_its_place_is_not_taken_for_another_field() -> None:
    with pytest.raises(WorkloadError, match=r"--columns time,latitude: no longitude \(check-ins need"):
        lay_over(CSV, columns="time,latitude").require("check-ins", ("time", "latitude", "longitude"))
