"""The manifest of a workload folder: it describes the folder, is written last, and has the SHA-256 of every file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from sim.base.errors import WorkloadError
from sim.base.naming import JSON_TYPES, Raw
from sim.files.atomic import replacing
from sim.files.hashing import sha256, sha256_of

_FORMAT = 1
_KEYS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "origin": (str,),
    "horizon": (float, int),
    "period": (float, int),
    "cell": (float, int, type(None)),
    "counts": (dict,),
    "sources": (list,),
    "generator": (dict,),
    "seed": (int, type(None)),
    "rows": (dict, type(None)),
    "files": (dict,),
}


def write_manifest(
    folder: Path, values: Raw, files: Iterable[str], known: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Seal the folder: `manifest.json` with these values, the format's version and the SHA-256 of each of the files.

    Those of more files are `known` by name.
    """
    sums = {**known, **{name: sha256(folder / name) for name in files}}
    manifest = {"format": _FORMAT, **values, "files": dict(sorted(sums.items()))}
    unfinished = folder / ".manifest.json"
    with replacing(folder / "manifest.json", unfinished):
        unfinished.write_text(
            json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def read_manifest(folder: Path) -> tuple[Raw, str]:
    """The values, and the SHA-256 of the manifest itself.

    Raises WorkloadError where it is missing or of another format version, or a key is missing or of another type.
    """
    path = folder / "manifest.json"
    try:
        content = path.read_bytes()
        manifest = json.loads(content)
    except (FileNotFoundError, NotADirectoryError):
        raise WorkloadError(
            f"{folder}: not a workload folder, or an unfinished one (it has no manifest.json)"
        ) from None
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise WorkloadError(f"{path}: not the manifest of a workload (it has no key 'format')")
    if manifest["format"] != _FORMAT:
        raise WorkloadError(f"{path}: workload format {manifest['format']!r}, this version reads format {_FORMAT}")
    for key, kinds in _KEYS.items():
        if key not in manifest:
            raise WorkloadError(f"{path}: no key '{key}'")
        if not isinstance(manifest[key], kinds) or isinstance(manifest[key], bool):
            expected = " or ".join(JSON_TYPES[kind] for kind in kinds if kind is not int or float not in kinds)
            raise WorkloadError(f"{path}: {key} is {manifest[key]!r}, expected {expected}")
    if not isinstance(manifest.get("lineage", {}), dict):
        raise WorkloadError(f"{path}: lineage is {manifest['lineage']!r}, expected an object")
    for number, source in enumerate(manifest["sources"]):
        if not (isinstance(source, dict) and _have(source, {"file": str, "sha256": str, "bytes": int})):
            raise WorkloadError(f"{path}: sources[{number}] is {source!r}, expected file, sha256 and bytes")
    rows = manifest["rows"]
    if rows is not None and not (
        _have(rows, {"read": int, "kept": int, "quarantined": dict})
        and all(isinstance(count, int) for count in rows["quarantined"].values())
    ):
        raise WorkloadError(f"{path}: rows is {rows!r}, expected numbers: read, kept, and quarantined by reason")
    return manifest, sha256_of(content)


def _have(values: Raw, kinds: Mapping[str, type]) -> bool:
    return all(isinstance(values.get(key), kind) for key, kind in kinds.items())


def verify_files(folder: Path, files: Mapping[str, str]) -> None:
    """Raise WorkloadError where a file is missing or has changed."""
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise WorkloadError(f"{folder / name}: missing file")
        if sha256(folder / name) != digest:
            raise WorkloadError(
                f"{folder / name}: changed since it was written (its SHA-256 is not that of manifest.json)"
            )
