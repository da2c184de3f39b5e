"""The runs for "Publish-Subscribe Overlay Network Design" (Onus & Richa): the points of its figures, and further questions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.files.atomic import whole_file
from sim.overlay.topic_connected.bounds import lower_bounds
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.papers.sweeps import PaperPoint, PaperSweep, SweepSetting, thinned

READINGS = {"coin flips": "coin-flips", "exactly s": "exact"}
"""The readings of the paper's interest model, and their names in the workload."""
EXAMPLES = {
    "example I": ("example-1", 20),
    "example II": ("example-2", 21),
    "example III": ("example-3", 23),
    "example IV": ("example-4", 25),
    **{f"lemma 3.1, n = {n}": (f"lemma-3-1-{n}", n) for n in (4, 6, 8, 10)},
}
"""File and number of nodes of each worked example."""
REAL = {
    "Last.fm": ("user_artists.dat", "\t", 1),
    "CiaoDVD": ("trusts.txt", ",", 0),
}
"""Files of real interests (a user, a topic, and more on each line): name, delimiter, lines of header."""
QUICK = 0.1
"""From this scale on, sections with claims have all points, nodes, topics and subscriptions of the paper, and fewer replications."""
HOURS = (0.5, 1, 2, 3, 4, 6, 8, 10)


def sweeps(setting: SweepSetting) -> Iterator[PaperSweep]:
    """All that the page shows, section by section."""
    scale = setting.scale
    tiny = scale if scale < QUICK else 1.0
    nodes = [n for n in range(100, 1001, 100) if n <= max(1000 * tiny, 200)]
    yield _figure("fig-1a", "nodes", [(n, 100, 10) for n in nodes], setting)
    yield _figure("fig-1b", "topics", [(100, t, 20) for t in thinned(range(100, 501, 100), tiny)], setting)
    yield _figure("fig-2", "subscriptions", [(100, 100, s) for s in thinned(range(10, 51, 10), tiny)], setting)
    yield PaperSweep("examples", "overlays/examples.toml", tuple(_examples(setting.scenarios / "overlays")), 1)
    users = setting.sized(1000) if tiny < 1 else 1000
    points = [PaperPoint(reading, {"reading": reading}, _model(reading)) for reading in READINGS]
    yield PaperSweep("k-sweep", "overlays/k-sweep.toml", tuple(points), _replications(setting, 10), _users(users))
    yield _real(setting)
    users = setting.sized(200)
    points = [PaperPoint(f"{h} h", {"hours": h}, {"horizon": f"{h}h"}) for h in thinned(HOURS, scale)]
    yield PaperSweep("drift", "overlays/drift.toml", tuple(points), setting.replications(10), _users(users))
    users = setting.sized(300)
    point = PaperPoint(f"{users} brokers", {}, {})
    yield PaperSweep("rendezvous", "overlays/rendezvous.toml", (point,), setting.replications(10), _users(users))


def _figure(section: str, column: str, points: Sequence[tuple[int, int, int]], setting: SweepSetting) -> PaperSweep:
    """Nodes, topics and subscriptions of each point, one of them swept, in each reading."""
    found = []
    for reading in READINGS:
        for nodes, topics, each in points:
            value = {"nodes": nodes, "topics": topics, "subscriptions": each}[column]
            sizes = _users(nodes) | {"workload.topics": topics, "workload.per_user": each}
            name, values = f"{value} {column}, {reading}", {column: value, "reading": reading}
            found.append(PaperPoint(name, values, sizes | _model(reading)))
    return PaperSweep(section, "overlays/interests.toml", tuple(found), _replications(setting, 20))


def _replications(setting: SweepSetting, full: int) -> int:
    """The scaled number of replications, enough for confidence intervals in a quick look."""
    return max(setting.replications(full), 5 if setting.scale >= QUICK else 2)


def _users(users: int) -> Raw:
    return {"workload.users": users, "network.brokers": users}


def _model(reading: str) -> Raw:
    return {"workload.model": READINGS[reading]}


def _examples(folder: Path) -> Iterator[PaperPoint]:
    for name, (file, nodes) in EXAMPLES.items():
        yield PaperPoint(name, {}, _listed(folder / f"{file}.json", nodes))


def _listed(path: Path, nodes: int) -> Raw:
    """Interests from a file."""
    return {"workload.file": str(path.resolve()), "network.brokers": nodes}


def _real(setting: SweepSetting) -> PaperSweep:
    """The real interests that are available, and notes on those that are not."""
    points, notes = [], []
    for name, (file, delimiter, header) in REAL.items():
        source = _found(setting.data, file)
        if source is None:
            where = f"{setting.data} has no {file}" if setting.data else "give the folder of its files with --data"
            notes.append(f"{name} was not run: {where}.")
            continue
        rows = list(_wants(source, delimiter, header).values())
        rows = rows[: max(100, round(len(rows) * setting.scale))]
        path = setting.folder / "interests" / f"{source.name.partition('.')[0]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps({"interests": [sorted(row) for row in rows]}))
        bounds = lower_bounds(BrokerInterests.of(rows))
        topics = len(set().union(*rows))
        said = ", ".join(f"{bound.replace('_', ' ')} {count:,}" for bound, count in bounds.items())
        notes.append(
            f"{name} ({source.name}): {len(rows):,} nodes, {topics:,} topics, {sum(map(len, rows)):,} interests; "
            f"no overlay has fewer links than {max(bounds.values()):,} (lower bounds: {said})."
        )
        values = {"data": name, "lower_bound": max(bounds.values())}
        points.append(PaperPoint(name, values, _listed(path, len(rows))))
    return PaperSweep("real", "overlays/real.toml", tuple(points), 1, notes=tuple(notes))


def _found(data: Path | None, file: str) -> Path | None:
    """The file, or the same ending in .gz, in the folder or one below it."""
    if data is None:
        return None
    if not data.is_dir():
        raise InputError(f"--data {data}: no such folder")
    return next((path for pattern in (file, f"*/{file}") for path in sorted(data.glob(f"{pattern}*"))), None)


def _wants(path: Path, delimiter: str, header: int) -> dict[int, set[int]]:
    """The topics of each user, users ascending."""
    wants: dict[int, set[int]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for number, line in enumerate(lines, 1):
            if number > header and line.strip():
                try:
                    user, topic, *_ = line.split(delimiter)
                    wants.setdefault(int(user), set()).add(int(topic))
                except ValueError:
                    raise InputError(f"{path}: line {number}: expected two numbers, found {line.strip()!r}") from None
    return dict(sorted(wants.items()))
