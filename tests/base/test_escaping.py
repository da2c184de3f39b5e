"""Names have no effect where they are shown."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.escaping import all_printable, csv_cell, printable, xml_text


def test_controls_are_shown_as_json_writes_them() -> None:
    assert printable("a\x1b[31mb\x9b\x7f\rc\td\ne") == "a\\u001b[31mb\\u009b\\u007f\\u000dc\td\ne"
    assert printable("file\u202egpj.exe \u2066x\u2069 \ud800") == "file\\u202egpj.exe \\u2066x\\u2069 \\ud800"
    assert printable("Zürich 東京 שלום 🙂") == "Zürich 東京 שלום 🙂"
    assert all_printable({"a\x1b": ["b\x1b", {"c": 1}]}) == {"a\\u001b": ["b\\u001b", {"c": 1}]}


@given(st.text(st.characters(exclude_categories=())))
def test_json_stays_what_it_is(text: str) -> None:
    shown = printable(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps({text: text}))
    assert not any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in shown)
    shown.encode()


@given(st.text(st.characters(exclude_categories=())))
def test_any_name_makes_xml_that_parses_and_one_that_xml_can_hold_stays(name: str) -> None:
    element = ElementTree.Element("data")
    element.text = xml_text(name)
    read = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8")).text or ""
    assert read == xml_text(name)
    if name.isprintable():
        assert read == name


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("http://x","y")', "+1+1", "-1+cmd|'/c calc'!A0", "@SUM(1)", "\t=1+1", " =1"]
)
def test_a_spreadsheet_computes_nothing_from_a_name(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["similarity", "-3", "+1.5", "-1e-05", "", "a=b", -3, 0.5, None, True])
def test_names_and_numbers_in_a_table_stay_as_they_are(cell: object) -> None:
    assert csv_cell(cell) is cell or csv_cell(cell) == cell
