"""The positions of check-ins' places: read from files of places, and looked up for whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.files.columns import codes
from sim.files.directories import Directory
from sim.files.parquet import arrow
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.judging import Judged
from sim.workloads.traces.shelves import Shelf

_PLACES = "places"


@dataclass(frozen=True)
class PlaceRules:
    """Rows of places are used as they are."""

    fields: tuple[str, ...]

    def __call__(self, fields: Fields) -> Judged:
        """The texts of the fields."""
        return Judged({name: fields.columns[name] for name in self.fields}, {}, False)


@dataclass(frozen=True)
class StoredPlaces:
    """Places in a file of Arrow in a folder, from which tasks map them."""

    folder: Directory

    def __call__(self, places: pa.StringArray) -> dict[str, pa.Array]:
        """The file's columns for these places; null where it has none of this name."""
        with self.folder.input(_PLACES) as file, pa.ipc.open_file(file) as stored:
            known = stored.get_batch(0)
        at = pc.index_in(places, known["place"])
        return {name: known[name].take(at) for name in known.schema.names if name != "place"}


def store_places(shelf: Shelf, folder: Directory) -> StoredPlaces:
    """Write the first row of each place to a file in a folder."""
    rows = pa.Table.from_batches(
        [batch.drop_columns(["row", "raw"]) for _, _, batch in shelf.usable()]
    ).combine_chunks()
    _, first = np.unique(codes(rows["place"].combine_chunks().dictionary_encode()), return_index=True)
    known = rows.take(arrow(first)).combine_chunks()
    known = known.filter(known["place"].is_valid()).combine_chunks()
    with folder.output(_PLACES) as file, pa.ipc.new_file(file, known.schema) as writer:
        writer.write_batch(known.to_batches()[0])
    return StoredPlaces(folder)
