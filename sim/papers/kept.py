"""The tables of a reproduction's sections as files, so that a later page can show them as they are, of whatever scale and version."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base.errors import InputError
from sim.files.atomic import whole_file
from sim.files.parquet import read_frame, write_table
from sim.papers.page import SectionRuns

SECTION_TABLES = "tables"
"""The folder of these files in that of a reproduction."""
_ABOUT = b"brokersim.section"
_FACTS = [field.name for field in fields(SectionRuns) if field.name != "runs"]


def keep_section(section: SectionRuns, path: Path) -> None:
    """Write a section's table of runs, with the rest of what is known of them."""
    table = pa.Table.from_pandas(section.runs, preserve_index=False)
    about = json.dumps({name: getattr(section, name) for name in _FACTS}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as unfinished:
        write_table(unfinished, table.replace_schema_metadata({_ABOUT: about}))


def larger_sections(folder: Path | None, scale: float) -> dict[str, SectionRuns]:
    """The sections of the reproduction in a folder whose scale is at least this. Raises InputError where there are none."""
    if folder is None:
        return {}
    paths = sorted((folder / SECTION_TABLES).glob("*.parquet"))
    found = {path.stem: section for path in paths if (section := _kept(path)).scale >= scale}
    if not found:
        raise InputError(f"--with {folder}: has no figure of scale {scale:g} or larger, in a folder '{SECTION_TABLES}'")
    return found


def _kept(path: Path) -> SectionRuns:
    about = (pq.read_schema(path).metadata or {}).get(_ABOUT)
    if about is None:
        raise InputError(f"{path}: was not written by a reproduction")
    return SectionRuns(read_frame(path), **json.loads(about))
