"""Orders by several columns are those of numpy, whatever fits into a key."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.ordering import lex_order

rng = np.random.default_rng(1)
N = 3000
COLUMNS = {
    "few": rng.integers(-3, 3, N).astype(np.int32),
    "seconds": rng.integers(-(10**9), 10**9, N) * 10**6,
    "micros": rng.integers(-(10**15), 10**15, N),
    "wide": rng.integers(-(2**63), 2**63 - 1, N),
    "degrees": np.round(rng.normal(0, 2, N), 1) * rng.choice([-1.0, 1.0], N),
    "zeros": rng.choice([-0.0, 0.0, 1.0], N),
    "same": np.zeros(N, np.int8),
    "floats": rng.normal(0, 1e6, N),
}


@pytest.mark.parametrize("names", [rng.choice(list(COLUMNS), 4, replace=False).tolist() for _ in range(60)])
def test_rows_are_in_the_order_of_lexsort(names: list[str]) -> None:
    columns = [COLUMNS[name] for name in names]
    assert lex_order(*columns).tolist() == np.lexsort(columns[::-1]).tolist()
    ordered = [column[lex_order(*columns)] for column in columns]
    assert lex_order(*ordered).tolist() == list(range(N))


def test_no_rows_and_one() -> None:
    for n in (0, 1):
        assert lex_order(np.zeros(n, np.int64), np.zeros(n)).tolist() == list(range(n))
