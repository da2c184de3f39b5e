"""Read, write and check content in the workload format: the tables `predicates` and `values`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.content.conjunctions import MOST_FIELDS, Conjunctions
from sim.content.predicates import Content, interests, occurring
from sim.files.parquet import read_columns
from sim.workloads.format.checks import Checks

_MOST_VALUES = 2**31 - 1
_PREDICATE = {"field": pa.int32(), "value": pa.int32()}
CONTENT_TYPES = {
    "predicates": {"subscription": pa.int32(), "owner": pa.int32(), **_PREDICATE},
    "values": {"publication": pa.int32(), **_PREDICATE},
}


def counts(content: Content) -> dict[str, int]:
    """The counts in the manifest: `fields` and `values` are the numbers of possible fields and values, numbered from 0."""
    wanted = content.conjunctions
    return {"subscriptions": len(wanted), "fields": wanted.fields, "values": wanted.values}


def columns(content: Content) -> dict[str, Columns]:
    """The two tables."""
    wanted, published = content.conjunctions, content.values
    subscription = np.repeat(np.arange(len(wanted), dtype=np.int32), np.diff(wanted.indptr))
    publication, field = np.divmod(np.arange(published.size, dtype=np.int32), np.int32(wanted.fields))
    return {
        "predicates": {
            "subscription": subscription,
            "owner": wanted.owner[subscription],
            "field": wanted.field,
            "value": wanted.value,
        },
        "values": {"publication": publication, "field": field, "value": published.ravel()},
    }


def read_content(folder: Path, counted: Raw) -> Content:
    """The content of a workload's folder, with the counts of its manifest.

    Raises WorkloadError where a table is not readable or rows are in the wrong order.
    """
    for name, most in (("fields", MOST_FIELDS), ("values", _MOST_VALUES)):
        if type(counted.get(name)) is not int or not 1 <= counted[name] <= most:
            raise WorkloadError(
                f"{folder / 'manifest.json'}: counts.{name} is {counted.get(name)!r}, expected a whole number from 1 to {most}"
            )
    wanted, published = (read_columns(folder / f"{name}.parquet", CONTENT_TYPES[name]) for name in CONTENT_TYPES)
    subscription, owner = wanted["subscription"], wanted["owner"]
    checks = Checks(f"{folder / 'predicates.parquet'}")
    before = np.concatenate([np.full(min(1, len(subscription)), -1, np.int32), subscription[:-1]])
    starts = subscription != before
    starts[:1] = True
    checks.reject(
        starts & (subscription != before + 1),
        lambda row: f"subscription is {subscription[row]}, expected {_next(int(before[row]))}",
    )
    first = np.flatnonzero(starts)
    checks.reject(
        owner != owner[first][subscription],
        lambda row: (
            f"owner is {owner[row]}, but subscription {subscription[row]} belongs to {owner[first[subscription[row]]]}"
        ),
    )
    fields = counted["fields"]
    publication, field = np.divmod(np.arange(len(published["value"])), fields)
    checks = Checks(f"{folder / 'values.parquet'}")
    checks.equal("publication", published["publication"], publication)
    checks.equal("field", published["field"], field)
    if len(field) % fields:
        raise WorkloadError(f"{checks.file}: {len(field):,} rows, expected {fields} for each publication")
    return Content(
        Conjunctions(
            np.append(first, len(subscription)),
            wanted["field"],
            wanted["value"],
            owner[first],
            fields,
            counted["values"],
        ),
        published["value"].reshape(-1, fields),
    )


def _next(subscription: int) -> str:
    return " or ".join(str(number) for number in (subscription, subscription + 1) if number >= 0)


def check_content(
    content: Content,
    folder: Path,
    *,
    users: int,
    publications: int,
    topics: pa.StringArray,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
) -> None:
    """Check the content, and that topics (by name) and interests (CSR) follow from it.

    Raises WorkloadError for the first wrong row.
    """
    wanted, published = content.conjunctions, content.values
    checks = Checks(f"{folder / 'predicates.parquet'}")
    empty = np.flatnonzero(np.diff(wanted.indptr) <= 0)
    if len(empty):
        raise WorkloadError(f"{checks.file}: subscription {empty[0]} has no predicate, expected one or more")
    checks.between("owner", np.repeat(wanted.owner, np.diff(wanted.indptr)), 0, users - 1)
    checks.between("field", wanted.field, 0, wanted.fields - 1)
    checks.between("value", wanted.value, 0, wanted.values - 1)
    fallen = np.diff(wanted.field, prepend=-1) <= 0
    fallen[wanted.indptr[:-1]] = False
    checks.reject(
        fallen, lambda row: f"field {wanted.field[row]} is not above the previous one of the same subscription"
    )
    checks = Checks(f"{folder / 'values.parquet'}")
    if published.shape != (publications, wanted.fields):
        raise WorkloadError(
            f"{checks.file}: values of {len(published):,} publications in {published.shape[1]} fields, "
            f"expected {publications:,} in {wanted.fields}"
        )
    checks.between("value", published.ravel(), 0, wanted.values - 1)

    predicates = occurring(content)
    names = predicates.names()
    if topics.to_pylist() != names:
        found, expected = next(
            pair for pair in zip([*topics.to_pylist(), None], [*names, None], strict=False) if pair[0] != pair[1]
        )
        row = names.index(expected) if expected else len(names)
        raise WorkloadError(
            f"{folder / 'topics.parquet'}: row {row}: {_told(found)}, expected {_told(expected)}: "
            "the topics are all predicates, by field and value"
        )
    expected_indptr, expected_indices = interests(content, predicates, users)
    rows = np.repeat(np.arange(users), np.diff(expected_indptr)) << 32 | expected_indices
    found_rows = np.repeat(np.arange(users), np.diff(indptr)) << 32 | indices
    if not np.array_equal(rows, found_rows):
        least = min(len(rows), len(found_rows))
        differ = rows[:least] != found_rows[:least]
        row = int(differ.argmax()) if differ.any() else least
        wrong = _pair(found_rows, row), _pair(rows, row)
        raise WorkloadError(
            f"{folder / 'interests'}: row {row}: {wrong[0]}, expected {wrong[1]}: "
            "an interest is an owner and the most selective predicate of a subscription"
        )


def _told(name: str | None) -> str:
    return "nothing" if name is None else f"name '{name}'"


def _pair(rows: NDArray[np.int64], row: int) -> str:
    return f"user {rows[row] >> 32}, topic {rows[row] & 0xFFFFFFFF}" if row < len(rows) else "nothing"
