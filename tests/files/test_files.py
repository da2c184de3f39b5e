"""Files that parameters name: reading, independence of the location, and messages about mistakes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import pickle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from sim.base.validation import problems, validate
from sim.files.inputs import File, InputFile, csv_rows
from sim.plugins import Parameters
from sim.scenario.kinds import Kinds


def numbers(text: str) -> NDArray[np.float64]:
    return np.array([row.number("x", 0, 9) for row in csv_rows(text, ["x"])])


class Curve(Parameters):
    """A plug-in's parameters, one of them a file."""

    file: Annotated[File[NDArray[np.float64]], InputFile(numbers)]
    """The curve."""
    other_file: Annotated[File[NDArray[np.float64]], InputFile(numbers)] | None = None


KINDS = Kinds("curve", own={"curve": Curve})


def complaint(path: Any) -> str:
    with pytest.raises(ValidationError) as error:
        validate(Curve, {"file": str(path) if isinstance(path, Path) else path})
    ((keys, text),) = problems(error.value, Curve)
    assert keys == ("file",)
    return text


def written(folder: Path, data: str | bytes, name: str = "curve.csv") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_file_is_read_and_parsed_plain_or_compressed_whatever_its_name(tmp_path: Path) -> None:
    plain = written(tmp_path, "\ufeffx\r\n1\r\n\r\n 2.5 \r\n", "plain.gz")
    data = plain.read_bytes()
    zstd = bytes(pa.compress(data, "zstd"))
    packed = [
        written(tmp_path, content, f"{number}.csv")
        for number, content in enumerate((gzip.compress(data), bz2.compress(data), lzma.compress(data), zstd))
    ]
    for path in (plain, *packed):
        curve = validate(Curve, {"file": str(path)})
        assert curve.file.content.tolist() == [1.0, 2.5]
        assert curve.model_dump(mode="json") == {
            "file": {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
            "other_file": None,
        }


def test_content_counts_and_place_does_not(tmp_path: Path) -> None:
    here, there, other = (
        KINDS.read({"file": str(written(tmp_path / folder, text))})
        for folder, text in zip("abc", ("x\n1", "x\n1", "x\n2"), strict=True)
    )
    assert here == there
    assert hash(here) == hash(there)
    assert here != other
    assert len({here, there, other}) == 2
    again = pickle.loads(pickle.dumps(here))
    assert again == here
    assert again.parameters.file.content.tolist() == [1.0]


def test_the_schema_says_string() -> None:
    properties = Curve.model_json_schema()["properties"]
    assert properties["file"] == {"type": "string", "format": "path", "title": "File", "description": "The curve."}
    assert {"type": "string", "format": "path"} in properties["other_file"]["anyOf"]


def test_a_file_that_cannot_be_read_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    path = written(tmp_path, "x\n1\n")
    assert complaint(tmp_path / "curv.csv") == f"no such file, did you mean '{path}'? (found '{tmp_path / 'curv.csv'}')"
    assert complaint(tmp_path / "a" / "b.csv") == f"no such file (found '{tmp_path / 'a' / 'b.csv'}')"
    assert complaint(f"/{'x' * 300}") == f"no such file (found '/{'x' * 300}')"  # longer than a name may be
    assert complaint(tmp_path) == f"expected a file, '{tmp_path}' is a folder"
    assert complaint(3) == "expected the path of a file, found 3"
    os.mkfifo(tmp_path / "pipe")
    assert complaint(tmp_path / "pipe") == f"expected a file, '{tmp_path / 'pipe'}' is a pipe or a device"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "no rows (expected a header with x, and rows below it)"),
        ("x\n", "no rows (expected a header with x, and rows below it)"),
        ("x\n1\n1,2\n", "line 3: expected 1 fields, found 2"),
        ("x\n1\n\n\ntwo\n", "line 5: x: expected a number from 0 to 9, found 'two'"),
        ("x\n10\n", "line 2: x: expected a number from 0 to 9, found '10'"),
        ("x\nnan\n", "line 2: x: expected a number from 0 to 9, found 'nan'"),
        ('x\n""\n1\n""\n', None),
        ("xx,y\n1,2\n", "line 1: no column 'x', did you mean 'xx'? (columns found: xx, y)"),
        ("y\n1\n", "line 1: no column 'x' (columns found: y)"),
        ("x,y\n1,2\n", "line 1: unknown column 'y' (allowed: x)"),
        ("x,x\n1,2\n", "line 1: column 'x' appears twice"),
        ('x\n1\n"2\n', "line 3: not valid CSV: unexpected end of data"),
        (b"x\n1\n\xe9\n", "line 3: not UTF-8 text"),
        (
            gzip.compress(b"x\n1\n", mtime=0)[:-6],
            "not a whole gzip file: Compressed file ended before the end-of-stream marker was reached",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(tmp_path: Path, data: str | bytes, said: str | None) -> None:
    path = written(tmp_path, data)
    if said is None:
        assert validate(Curve, {"file": str(path)}).file.content.tolist() == [1.0]
    else:
        assert complaint(path) == f"{path}, {said}"


def test_other_columns_may_be_there_where_that_is_allowed() -> None:
    rows = list(csv_rows('id,"a, b",,x,\n7,u,,1,\n', ["id"], ["x", "y"], others=True))
    assert [row.fields for row in rows] == [{"id": "7", "x": "1"}]
    with pytest.raises(ValueError, match="line 2: id: missing"):
        next(csv_rows("id,x\n ,1\n", ["id", "x"])).text("id")
