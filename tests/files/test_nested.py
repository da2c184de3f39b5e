"""Nested values in one file: what is read is what was written, and nothing in such a file is run."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.files.nested import read_nested, write_nested

SINGLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = SINGLE | st.tuples(SINGLE, SINGLE)
VALUES = st.recursive(
    SINGLE,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.builds(Counter, st.lists(KEYS))
    ),
)


@given(VALUES)
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "nested"
    write_nested(path, value)
    found = read_nested(path)
    assert found == value
    assert type(found) is type(value)


def test_arrays_keep_their_types_and_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nested"
    written = {"days": (3, np.arange(4, dtype=np.int32)), ("a", None): [np.float64(0.1), np.zeros((0, 2))]}
    write_nested(path, written)
    found = read_nested(path)
    days = found["days"][1]
    assert (days.tolist(), days.dtype, found["a", None][0], found["a", None][1].shape) == (
        [0, 1, 2, 3],
        np.int32,
        0.1,
        (0, 2),
    )
    with pytest.raises(TypeError, match="arrays of objects"):
        write_nested(path, [np.array([{}])])
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_nested(path, {1, 2})
    path.write_bytes(pickle.dumps(written))
    with pytest.raises(ValueError, match="contains pickled"):
        read_nested(path)
