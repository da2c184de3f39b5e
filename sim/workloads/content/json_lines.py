"""Subscriptions and publications as JSON lines, for other systems to read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sim.content.conjunctions import Conjunctions

SUBSCRIPTIONS, PUBLICATIONS_FILE = "subscriptions.jsonl", "publications.jsonl"
_AT_ONCE = 10_000


def subscription_lines(conjunctions: Conjunctions) -> Iterator[str]:
    """`{"subscription": id, "owner": id, "predicates": {field: value, …}}` for each; fields are strings, as keys in JSON are."""
    for start in range(0, len(conjunctions), _AT_ONCE):
        stop = min(start + _AT_ONCE, len(conjunctions))
        bounds = conjunctions.indptr[start : stop + 1]
        fields = conjunctions.field[bounds[0] : bounds[-1]].tolist()
        values = conjunctions.value[bounds[0] : bounds[-1]].tolist()
        places = (bounds - bounds[0]).tolist()
        for row, owner in enumerate(conjunctions.owner[start:stop].tolist()):
            pairs = zip(fields[places[row] : places[row + 1]], values[places[row] : places[row + 1]], strict=True)
            yield json.dumps({"subscription": start + row, "owner": owner, "predicates": dict(pairs)})


def publication_lines(values: NDArray[np.int32], targets: Iterable[NDArray[np.int32]]) -> Iterator[str]:
    """`{"publication": id, "values": {field: value, …}, "targets": [subscription ids]}` for each."""
    for publication, target in enumerate(targets):
        carried = dict(enumerate(values[publication].tolist()))
        yield json.dumps({"publication": publication, "values": carried, "targets": target.tolist()})
