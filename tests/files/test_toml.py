"""Every key of a TOML file is found on its line, whatever surrounds it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import ScenarioError
from sim.base.naming import Keys
from sim.files import toml

# In these texts every number is the number of the line it stands on, and every key path has one.
EVERYTHING = '''\
title = 1
"a key" = 2
site."google.com".'x y' = 3

[table] # [not.a.table] = 9
text = """
key = 99 \\"""
[x]""" # ends
other = 9
literal = \'\'\'
'c' = 7\'\'\'
list = [
    13, # a comment, with ] and }
    14,

    [16, 16],
    { a = 17, b.c = 17, d = [17] },
]
last = "]#[" # an end
number = 20

[[array]]
name = 23
[array.inner]
key = 25
[[array]]
name = 27
[array.inner]
deep = { inside = 29 }
[[array.nested]]
one = 31
[[array.nested]]
two = 33
'''


def leaves(value: Any, path: Keys = ()) -> Iterator[tuple[Keys, int]]:
    if isinstance(value, int):
        yield path, value
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def test_every_form_of_toml() -> None:
    lines = toml.lines(EVERYTHING)
    numbers = dict(leaves(tomllib.loads(EVERYTHING)))
    assert len(numbers) == 18
    assert {path: lines[path] for path in numbers} == numbers
    assert lines["array", 1] == 26
    assert lines["table", "text"] == 6
    assert lines["table", "last"] == 19


FILLER = ["", "# key = [1", 'text{n} = "a = [#"', "text{n} = '''\na = 1\n]'''", 'text{n} = """\\\n\\"""\n[b]\n"""']
KEYS = [
    "key{n} = {line}",
    "dotted.key{n} . 'x.y' = {line}",
    '"key {n}" = {line} # why',
    "inline{n} = {{ a = {line}, 'b' = [{line}], c = {{ }} }}",
    "list{n} = [ {line}, 'x', 2020-01-01 00:00:00, [{line}],]",
    "[table{n}]",
    "[table{n}.sub]",
    "[[array]]",
    "[array.table{n}]",
    "[[array.more{n}]]",
]


@given(st.lists(st.sampled_from(FILLER + KEYS), max_size=30))
def test_any_order_of_statements(statements: list[str]) -> None:
    text, array = "", False
    for n, statement in enumerate(statements):
        if statement.startswith(("[array.", "[[array.")) and not array:
            continue
        array = array or statement == "[[array]]"
        line = text.count("\n") + 1
        text += (statement if statement in FILLER[:2] else statement.replace("{n}", str(n))).replace("{{", "{").replace(
            "}}", "}"
        ).replace("{line}", str(line)) + "\n"
    lines = toml.lines(text)
    for path, line in leaves(tomllib.loads(text)):
        assert lines[path] == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = = 2\n", "bad.toml:2: not valid TOML: invalid value"),
        ("a = 1\na = 2\n", "bad.toml:2: not valid TOML: cannot overwrite a value"),
        ("a = [1,\n\n", "bad.toml:3: not valid TOML: "),
    ],
)
def test_mistakes_of_syntax_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ScenarioError) as error:
        toml.read(tmp_path / "bad.toml")
    assert message in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: cannot be read: No such file"):
        toml.read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"a = 1\n# caf\xe9\n")
    with pytest.raises(ScenarioError, match=r"latin\.toml:2: not UTF-8 text"):
        toml.read(tmp_path / "latin.toml")
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 5000}{']' * 5000}")
    with pytest.raises(ScenarioError, match=r"deep\.toml: values are nested too deeply"):
        toml.read(tmp_path / "deep.toml")


def test_a_mark_before_the_text_and_lines_of_windows_are_read_over(tmp_path: Path) -> None:
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\n[b]\r\nc = 2\r\n")
    values, lines = toml.read(tmp_path / "windows.toml")
    assert values == {"a": 1, "b": {"c": 2}}
    assert lines == {("a",): 1, ("b",): 2, ("b", "c"): 3}


def test_values_and_paths_of_the_command_line() -> None:
    assert toml.value("5") == 5
    assert toml.value("[1, 2]") == [1, 2]
    assert toml.value('{ kind = "x" }') == {"kind": "x"}
    assert toml.value("12h") == "12h"
    assert toml.value("1\nb = 2") == "1\nb = 2"
    assert toml.split('a."b.c".d') == ("a", "b.c", "d")
    for wrong in ("", "a..b", "a b", "a."):
        with pytest.raises(ValueError):  # noqa: PT011
            toml.split(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"\nseed = {'9' * 5000}", ":2: not valid TOML: expected a 64-bit integer, found one of thousands of digits"),
        (f"\n[a]\nseed = {'9' * 500}", ":3: a.seed: expected a 64-bit integer, found one of about 500 digits"),
        ("a = [1, [-9223372036854775809]]", ":1: a[1][0]: expected a 64-bit integer, found -9223372036854775809"),
        (f"{'.'.join('a' * 5000)} = 1", ": a.a.a.a.a…: nested too deeply (allowed: 50 levels)"),
        (f"a = {'[' * 100}{']' * 100}", ": a[0][0][0][0]…: nested too deeply (allowed: 50 levels)"),
    ],
)
def test_what_no_key_can_hold_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ScenarioError) as error:
        toml.read(tmp_path / "s.toml")
    assert str(error.value) == f"{tmp_path / 's.toml'}{message}"
    assert toml.value(text) == text


def test_dates_and_times_are_the_texts_of_them(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("a = 2020-01-02\nb = [2020-01-02T03:04:05Z, { c = 03:04:05 }]")
    assert toml.read(tmp_path / "s.toml")[0] == {
        "a": "2020-01-02",
        "b": ["2020-01-02T03:04:05+00:00", {"c": "03:04:05"}],
    }
    assert toml.value("2020-01-02") == "2020-01-02"
