"""Thousands of broken inputs: each is usable or refused in one sentence, quickly and with little memory, never with a traceback."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import DURATIONS, EXTREMES, INTEGERS, LOGS, NUMBERS, Command, Kind, mutated, tried, warmed

from sim import plugins

BLOCK = 50
"""Inputs of a test."""

WORKLOADS = (
    'kind = "poisson"\nusers = 12\ntopics = 6\ntopics_per_user = 2\nchange_rate = 0.5\npublication_rate = 2\nhorizon = "3h"\n',
    'kind = "poisson"\nusers = 5\ntopics_per_user = 2\npattern = "multimodal"\nmode_size = 3\nchange = "redraw"\nhorizon = 7200\n',
    'kind = "interests"\nusers = 8\ntopics = 5\nper_user = 2\nmodel = "exact"\npublication_rate = 3\nchange_rate = 1\n',
    'kind = "interests"\nusers = 9\ntopics = 5\nper_user = 2\npublication_rate = 3\nconnect_rate = 0.01\n',
    'kind = "interests"\nfile = "interests.json"\npublication_rate = 2\nhorizon = "2h"\n',
    'kind = "mobility"\nusers = 10\nhorizon = "3d"\ncell = 5\nfriends = 2\ncities = 3\nbox = [40, -100, 50, -90]\n',
    'kind = "content"\nsubscriptions = 20\nfields = 8\nvalues = 30\nsize = 2\nper_owner = 2\npublications = 15\nmatch = 1\n',
    'kind = "spotify-sparse"\nscale = 1e-5\npublications = "poisson"\nevent_rate = 20\nhorizon = "1d"\n',
    'kind = "spotify-dense"\nusers = 9\ntopics = 12\ntopics_per_user = 3\nrate_limit = 50\nevent_rate = 9\n',
    'kind = "spotify-sessions"\nusers = 9\nplaylists = 4\nartists = 3\nhorizon = "1d"\norigin = "2013-01-10T00:00:00Z"\n',
    'kind = "prepared"\npath = "w"\nresample_users = true\n',
)
GEOMETRIES = (
    'kind = "chord"\nbits = 16\nids = "even"\nstate = "members"\n',
    'kind = "tapestry"\ndigits = 6\nbase = 4\npns = true\n',
    'kind = "star"\nhub = "central"\n',
    'kind = "full-mesh"\n',
    'kind = "full-mesh"\ndissemination = "flood"\nhops = 2\n',
    'kind = "owner-shard"\n',
    'kind = "broadcast"\n',
    'kind = "geographic"\nlevels = 3\nrepresentative = "closest"\n',
    'kind = "graph"\nfile = "edges.csv"\n',
    'kind = "topic-connected"\ndesign = "cd-oda-ii"\non_change = "periodic"\nperiod = "30min"\nparts = 3\n',
    'kind = "topic-connected"\ndesign = "low-oda"\nk = 1.5\ndissemination = "flood"\n',
)
LATENCIES = (
    'kind = "unit"\nrtt = "20ms"\n',
    'kind = "distance"\nbase = "1ms"\nper_km = "0.02ms"\njitter = 0.1\n',
    'kind = "matrix"\nfile = "rtt.csv"\nassign = "in-order"\nsame_host = "1ms"\n',
    'kind = "matrix"\nfile = "rtt.csv"\nhosts_file = "hosts.csv"\nmissing = "fit"\nimpossible = "floor"\n',
    'kind = "regions"\njitter = 0\nround_trips = { eu = { eu = "2ms", us = "90ms" }, us = { us = "3ms" } }\n',
)
SELECTIONS = (
    'kind = "static"\nassign = "in-order"\n',
    'kind = "location"\n',
    'kind = "similarity"\nload_weight = 0.5\nload = "relative"\nupdate_period = "1h"\ncluster_size = 3\nhysteresis = 0.1\n',
)
RECONFIGURATIONS = (
    *(
        f'kind = "{kind}"\nperiod = "40min"\nthreshold = 0\ndelay_weight = 1.5\nconstants = [0.1, 0.1, 0.1]\ntimeout = "1s"\n'
        for kind in ("anneal", "cost-aware", "dynatops-greedy", "ilp", "lsap", "lsap-sweep", "ssbr-greedy", "sweep")
    ),
    'kind = "sweep"\nperiod = "1h"\ndelay = "round-trips"\n',
)
OFFLOADINGS = (
    *(
        f'kind = "{kind}"\ncapacity = "30%"\ntau = 2\nperiod = "1h"\nsmoothing = 0.5\nextra_delay = "1s"\n'
        for kind in (*("b3m", "fb3m", "fb3m-slow", "partial-enumeration", "random", "popular", "loudest", "portfolio"),)
    ),
    'kind = "b3m"\ncapacity = 5\nscope = "broker"\ntau = 0.5\nperiod = "2h"\nwarm_start = false\ndelivery_probability = 0.5\n',
    'kind = "none"\ntau = 2\nperiod = "1h"\n',
)
SERVICES = (
    'kind = "deterministic"\ntime = "1ms"\n',
    'kind = "gamma"\nvariation = 0.5\nsend = "1us"\nsend_client = "2us"\nper_byte = 1e-9\nacknowledgement = "1us"\nwake_up = "1ms"\n',
    'kind = "exponential"\ntime = "2ms"\nmatching = "1us"\n',
)
VARIANTS = (
    '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nselection = { kind = "location" }\nnetwork.hop_cost = "rtt"\n'
)
MORE = (
    '[report]\nbaseline = "base"\nmetrics = ["notification_delay", "load_stddev"]\n',
    '[precision]\nmetric = "notification_delay"\nrelative = 0.2\nconfidence = 0.9\nmax_replications = 3\n',
    '[sweep]\n"network.brokers" = [2, 3]\n"network.hop_cost" = ["one_way", "rtt"]\nwhere = "network.brokers < 3"\n',
    '[sweep]\n"network.brokers" = { from = 2, to = 4, steps = 2 }\nhorizon = ["1h", "2h"]\nzip = ["network.brokers", "horizon"]\n',
    '[sweep]\nwindow = { from = 600, to = 1200 }\nsample = "latin-hypercube"\nsamples = 2\n',
    '[tune]\nminimise = "notification_delay"\nsubject_to = ["load_stddev < 9"]\ntrials = 3\n"network.brokers" = { from = 2, to = 4 }\n',
)
ROOT = (
    'title = "x"\nseed = 3\nreplications = 1\nwindow = "30min"\nsubscribers = true\ntrace = true\n',
    'seed = 1\nhorizon = "2h"\nwarm_up = "10min"\nreplications = 2\n',
    'warm_up = "detect"\nhorizon = "100min"\nwindow = "5min"\n',
)
BROKERS = "broker,latitude,longitude,region,capacity\nb0,50,8,eu,1\nb1,48.1,11.5,eu,2.5\nb2,40.7,-74,us,\nb3,34,-118.2,us,0.5\n"
EDGES = "source,target,rtt_ms\nb0,b1,5\nb1,b2,90.5\nb2,b3,\nb0,b3,150\n"
GRAPHML = """\
<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="name" attr.type="string"/>
  <key id="d1" for="edge" attr.name="rtt_ms" attr.type="double"><default>7</default></key>
  <graph edgedefault="directed">
    <node id="0"><data key="d0">b0</data></node><node id="1"><data key="d0">b1</data></node>
    <node id="2"><data key="d0">b2</data></node><node id="3"><data key="d0">b3</data></node>
    <edge source="0" target="1"><data key="d1">5</data></edge>
    <edge source="1" target="2"/>
    <edge source="2" target="3"><data key="d1">90</data></edge>
    <edge source="3" target="2"><data key="d1">90</data></edge>
  </graph>
</graphml>
"""
SQUARE = "0 10 20 30\n10 0 nan 40\n20 15 0 5.5\n30 40 5.5 0\n"
PAIRS = "source,destination,avg,more\n1,2,10.5,x\n2,1,11,x\n1,3,80,x\n2,3,70.5,x\n3,4,5,x\n1,4,95,x\n2,4,91,x\n"
HOSTS = "id,latitude,longitude,city\n1,50,8,A\n2,48,11,B\n3,40,-74,C\n4,34,-118,D\n"
INTERESTS = '{"interests": [[1, 2], [2, 3, 3], [1, 3], [], [9, 1], [-5, 7]]}'
RECONFIGURATION = (
    '{"bits": 6, "node_ids": [3, 20, 37, 50], "topic_hashes": [5, 22, 60], "subscriptions": [[0, 1], [1], [2, 0], []],'
    ' "publications": [10, 4.5, 0], "mapping": [20, 3, 50, 37], "delay_weight": 1.5, "count_rendezvous": true, "seed": 3,'
    ' "rtt": [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]], "move_cost": {"constants": [1, 0.5, 2]}}'
)
OFFLOADING = (
    '{"interests": [[0, 1, 2], [1, 3], [], [4, 0], [2, 4, 3, 1]], "event_rate": [10, 3.5, 1, 0, 7], "cost": [3, 2, 5, 1, 4.5],'
    ' "capacity": "40%", "tau": [5, 2, 3, 1.5, 0], "seed": 2}'
)


def scenario(rng: random.Random, folder: Path) -> list[Command]:
    """A scenario of random kinds, with a mutation or a key of some plug-in that has an odd value."""
    text = composed(rng)
    if rng.random() < 0.5:
        text = with_odd_keys(rng, text)
        (folder / "s.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
    else:
        (folder / "s.toml").write_bytes(mutated(rng, text))
    beside(folder)
    return judged()


def setting(rng: random.Random, folder: Path) -> list[Command]:
    """Odd texts for `--set`."""
    (folder / "s.toml").write_text(composed(rng))
    beside(folder)
    keys = ("seed", "report.baseline", "network", "variant.a.horizon", "sweep.window", "", "a..b", '"', *odd_keys())
    odd = (*EXTREMES, *NUMBERS, *DURATIONS)
    values = [f"{rng.choice(keys)}={rng.choice(odd)}" for _ in range(rng.choice((1, 1, 2)))]
    values = [value.replace("\0", "") for value in values]
    if rng.random() < 0.3:
        values = [mutated(rng, value).decode("utf-8", "replace").replace("\0", "") for value in values]
    return judged([part for value in values for part in ("--set", value)])


def composed(rng: random.Random) -> str:
    """A scenario that is valid, as far as its kinds go together."""
    work = rng.choice(WORKLOADS)
    placed, content = "mobility" in work, '"content"' in work
    brokers = rng.choice(('"brokers.csv"', '"brokers.csv"', "4", '"cells"' if placed else "3"))
    file = "csv" in brokers
    geometry = rng.choice(("", *GEOMETRIES[: 5 if placed else 4], *(GEOMETRIES[5:] if file and not content else ())))
    latency = rng.choice(("", LATENCIES[0], *(LATENCIES if file else LATENCIES[:2] if placed else ())))
    moves = not geometry or "chord" in geometry
    parts = [
        rng.choice(ROOT),
        f"[workload]\n{work}",
        f'[network]\nbrokers = {brokers}\nhop_cost = "one_way"\ncontrol_count = "hops"\n',
    ]
    for table, choices, part in (
        ("network.geometry", (geometry,), bool(geometry)),
        ("network.latency", (latency,), bool(latency)),
        ("brokers.service", SERVICES[2:] if content else SERVICES[:2], 0.3),
        ("brokers", ("queue = 9\n", 'queue_bytes = 99\nservers = 2\norder = "fifo"\noverflow = "drop-oldest"\n'), 0.2),
        ("selection", SELECTIONS if file or placed else SELECTIONS[::2], 0.6),
        ("reconfiguration", RECONFIGURATIONS, 0.5 * moves),
        ("offloading", OFFLOADINGS, 0.0 if content else 0.4),
    ):
        if rng.random() < part:
            parts.append(f"[{table}]\n{rng.choice(choices)}")
    if rng.random() < 0.2:
        parts.append(VARIANTS)
    if rng.random() < 0.3:
        parts.append(rng.choice(MORE))
    return "".join(parts)


def with_odd_keys(rng: random.Random, text: str) -> str:
    """A scenario with an odd value for some key of those that there are, of a table's kind or of another."""
    lines = text.splitlines(keepends=True)
    tables = [(i, line.strip()[1:-1]) for i, line in enumerate(lines) if line.startswith("[") and line[1] != "["]
    known = odd_keys()
    for _ in range(rng.choice((1, 1, 2))):
        at, table = rng.choice(tables)
        kind = next((line.split('"')[1] for line in lines[at:] if line.startswith("kind = ")), "")
        keys = [key for key in known if key.startswith(f"{table}.")]
        model = plugins.load(table.split(".")[-1], kind).Parameters if _is_kind(table, kind) else None
        own = list(model.model_fields) if model else [key.removeprefix(f"{table}.") for key in keys]
        if not own:
            continue
        key = rng.choice(own)
        value = odd_value(rng, model.model_json_schema()["properties"][key]) if model else rng.choice(EXTREMES)
        line = f"{key} = {value}\n"
        place = next((i for i in range(at + 1, len(lines)) if lines[i].startswith(f"{key} = ")), None)
        if place is None:
            lines.insert(at + 1, line)
        else:
            lines[place] = line
        tables = [(i + (place is None and i > at), name) for i, name in tables]
    if rng.random() < 0.2:
        lines.insert(
            0,
            f"{rng.choice(('seed', 'horizon', 'window', 'warm_up', 'replications', 'title', 'trace'))} = {rng.choice(EXTREMES)}\n",
        )
    return "".join(lines)


def odd_value(rng: random.Random, schema: dict[str, Any]) -> str:
    """An odd value for a parameter, mostly of its type."""
    if rng.random() < 0.3:
        return rng.choice(EXTREMES)
    if schema.get("x-unit") == "s":
        return rng.choice(DURATIONS)
    if "enum" in schema:
        return json.dumps(rng.choice(schema["enum"]))
    match schema.get("type"):
        case "integer":
            return rng.choice(INTEGERS)
        case "number":
            return rng.choice(NUMBERS)
        case "boolean":
            return rng.choice(("true", "false"))
    return rng.choice((*NUMBERS, *DURATIONS, *EXTREMES))


def _is_kind(table: str, kind: str) -> bool:
    group = table.split(".")[-1]
    return group in plugins.GROUPS and kind in plugins.names(group)


def odd_keys() -> list[str]:
    """The key paths of all parameters of all plug-ins, and of the scenario's own tables."""
    from sim.scenario.brokers import Brokers, Service
    from sim.scenario.clients import ClientsTable, SlowClients
    from sim.scenario.links import LinksTable
    from sim.scenario.model import NetworkTable, Precision, Report, Scenario
    from sim.scenario.reconnect import ReconnectTable

    tables = {"geometry": "network.geometry", "latency": "network.latency"}
    models = {
        "network": NetworkTable,
        "network.links": LinksTable,
        "network.clients": ClientsTable,
        "network.clients.slow": SlowClients,
        "network.reconnect": ReconnectTable,
        "brokers": Brokers,
        "brokers.service": Service,
        "report": Report,
        "precision": Precision,
    }
    found = [
        *Scenario.model_fields,
        *(f"{table}.{key}" for table, model in models.items() for key in model.model_fields),
    ]
    for group in plugins.GROUPS:
        for name in plugins.names(group):
            found += [f"{tables.get(group, group)}.{key}" for key in plugins.load(group, name).Parameters.model_fields]
    return list(dict.fromkeys(found))


def beside(folder: Path) -> None:
    """The files that scenarios name, as they should be."""
    for name, text in FILES.items():
        if not (folder / name).exists():
            (folder / name).write_text(text)
    if not (folder / "w").exists():
        (folder / "w").symlink_to(SEEDS["folder"] / "w0")


FILES = {"brokers.csv": BROKERS, "edges.csv": EDGES, "rtt.csv": SQUARE, "hosts.csv": HOSTS, "interests.json": INTERESTS}
SEEDS: dict[str, Path] = {}


def judged(more: Sequence[str] = ()) -> list[Command]:
    """A scenario is validated, and run if it is valid."""
    return [["validate", "s.toml", *more], ["run", "s.toml", *more, "--quiet", "--jobs", "1", "--out", "r"]]


def named(text: str, name: str, scenarios: Sequence[str], rng: random.Random, folder: Path) -> list[Command]:
    """A file that a scenario names, mutated."""
    (folder / name).write_bytes(mutated(rng, text))
    beside(folder)
    head = 'horizon = "1h"\n[workload]\nkind = "poisson"\nusers = 5\ntopics = 9\n[network]\nbrokers = "brokers.csv"\n'
    (folder / "s.toml").write_text(rng.choice(scenarios) if name == "interests.json" else head + rng.choice(scenarios))
    return judged()


OVER = (
    'latency = { kind = "distance" }\n',
    'latency = { kind = "regions", round_trips = { eu = { eu = 0.1, us = 0.2 }, us = { us = 0.1 } } }\n',
)
OVER = (
    *OVER,
    'geometry = { kind = "tapestry", pns = true }\n',
    'geometry = { kind = "star", hub = "b1" }\n[brokers.service]\nkind = "deterministic"\ntime = "1ms"\n',
)
GRAPHS = (
    'geometry = { kind = "graph", file = "edges.csv" }\n',
    'geometry = { kind = "graph", file = "edges.csv" }\nlatency = { kind = "distance" }\n',
)
RTTS = tuple(
    f'latency = {{ kind = "matrix", file = "rtt.csv"{more} }}\n'
    for more in (
        "",
        ', hosts_file = "hosts.csv", impossible = "floor"',
        ', hosts_file = "hosts.csv", impossible = "keep"',
    )
)


def solved(text: str, options: Sequence[Command], rng: random.Random, folder: Path) -> list[Command]:
    """An instance of `solve`, mutated, alone or in a list."""
    data = mutated(rng, rng.choice((text, text, f"[{text}, {text}]")))
    (folder / "i.json").write_bytes(data)
    first, *rest = rng.choice(options)
    return [["solve", first, "i.json", *rest]]


OVERLAYS = [
    ["overlay", "--algorithm", name, *more]
    for name in ("gm", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i", "cd-oda-ii")
    for more in (["--json"], ["--bounds"], ["--graphml", "o.graphml"])
]
PLACES = [
    ["reconfiguration", "--policy", name, *more]
    for name in ("none", *plugins.names("reconfiguration"))
    for more in (["--json"], [])
]
BACK_ENDS = [
    ["offloading", "--quiet", "--policy", name, *more]
    for name in ("none", *plugins.names("offloading"))
    for more in (["--json"], ["--bounds"], ["--curve", "--steps", "3"], ["--capacity", "50%"], ["--tau", "1e300"])
]


def workload(rng: random.Random, folder: Path) -> list[Command]:
    """A workload's folder with a wrong manifest, cell or column, sealed anew or not."""
    source = rng.choice(sorted(SEEDS["folder"].glob("w?")))
    shutil.copytree(source, folder / "w")
    files = sorted(path for path in (folder / "w").rglob("*.parquet"))
    manifest = folder / "w" / "manifest.json"
    content = json.loads(manifest.read_text())
    if rng.random() < 0.35:
        manifest.write_bytes(mutated(rng, manifest.read_text()))
    else:
        path = rng.choice(files)
        if rng.random() < 0.2:
            data = path.read_bytes()
            at = rng.randrange(len(data))
            path.write_bytes(rng.choice((data[:at], data[:at] + b"\xff\0" + data[at + 2 :], b"", b"PAR1", data * 2)))
        else:
            pq.write_table(odd_table(rng, pq.read_table(path)), path)
        if rng.random() < 0.8:
            content["files"] = {
                name: hashlib.sha256((folder / "w" / name).read_bytes()).hexdigest() for name in content["files"]
            }
            for name in content["counts"]:
                table = folder / "w" / f"{name}.parquet"
                with contextlib.suppress(pa.ArrowException, OSError):
                    content["counts"][name] = pq.read_metadata(table).num_rows
            manifest.write_text(json.dumps(content))
    (folder / "s.toml").write_text(
        '[network]\nbrokers = 1\n[offloading]\nkind = "b3m"\ntau = 1\nperiod = "1h"\n[selection]\nkind = "similarity"\n'
    )
    solve = rng.choice(
        (
            ["solve", "overlay", "w", "--algorithm", "gm"],
            ["solve", "offloading", "w", "--policy", "b3m", "--capacity", "10%", "--tau", "2", "-q"],
            ["describe", "w"],
        )
    )
    return [solve, ["run", "s.toml", "--workload", "w", "--quiet", "--jobs", "1", "--out", "r"]]


def odd_table(rng: random.Random, table: pa.Table) -> pa.Table:
    """A table with a column that is missing, renamed, of another type, or has another value in some row."""
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match rng.randrange(8):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.rename_columns([f"{other}x" if other == name else other for other in table.column_names])
        case 2:
            types = [
                pa.int8(),
                pa.int64(),
                pa.float32(),
                pa.string(),
                pa.binary(),
                pa.list_(pa.int32()),
                pa.bool_(),
                pa.timestamp("us"),
            ]
            values = pa.array([None] * table.num_rows, rng.choice(types))
            return table.set_column(at, name, values)
        case 3:
            return pa.concat_tables([table, table])
        case 4:
            return table.slice(0, rng.randrange(table.num_rows + 1))
        case 5:
            return table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64()))
        case _:
            values = column.to_pylist()
            if not values:
                return table
            odd: list[Any] = [None, -1, 0, 1, 2, 127, 2**31 - 1, -(2**31)]
            if pa.types.is_floating(column.type):
                odd = [None, np.nan, np.inf, -np.inf, -1.0, 1e300, 5e-324, -0.0, 91.0, 1e9]
            elif pa.types.is_string(column.type):
                odd = [None, "", "\0", "a" * 100_000, "ü☃", "\x1b[31m", "=HYPERLINK(1)", values[0]]
            elif pa.types.is_int8(column.type):
                odd = [None, -1, 0, 1, 127, -128]
            values[rng.randrange(len(values))] = rng.choice(odd)
            return table.set_column(at, name, pa.array(values, column.type))


def generator(rng: random.Random, folder: Path) -> list[Command]:
    """`generate` with an odd parameter."""
    kind = rng.choice(plugins.names("workload"))
    seed = next((text for text in WORKLOADS if f'"{kind}"' in text), "")
    given = dict(line.split(" = ") for line in seed.splitlines()[1:])
    for _ in range(rng.choice((1, 1, 2))):
        key, schema = rng.choice([*plugins.load("workload", kind).Parameters.model_json_schema()["properties"].items()])
        given[key] = odd_value(rng, schema).strip('"')
    beside(folder)
    given = {key: value.replace("\0", "") for key, value in given.items()}
    return [["generate", kind, "--out", "g", *(f"--{key.replace('_', '-')}={value}" for key, value in given.items())]]


KINDS: dict[str, tuple[Kind, int]] = {
    "scenario": (scenario, 700),
    "set": (setting, 250),
    "generate": (generator, 100),
    "overlay.json": (partial(solved, INTERESTS, OVERLAYS), 150),
    "reconfiguration.json": (partial(solved, RECONFIGURATION, PLACES), 200),
    "offloading.json": (partial(solved, OFFLOADING, BACK_ENDS), 200),
    "brokers.csv": (partial(named, BROKERS, "brokers.csv", OVER), 150),
    "edges.csv": (partial(named, EDGES, "edges.csv", GRAPHS), 100),
    "edges.graphml": (partial(named, GRAPHML, "edges.csv", GRAPHS), 100),
    "rtt square": (partial(named, SQUARE, "rtt.csv", RTTS), 100),
    "rtt pairs": (partial(named, PAIRS, "rtt.csv", RTTS), 100),
    "hosts.csv": (partial(named, HOSTS, "hosts.csv", RTTS[1:]), 50),
    "interests.json": (
        partial(named, INTERESTS, "interests.json", (f"[workload]\n{WORKLOADS[3]}[network]\nbrokers = 3\n",)),
        50,
    ),
    "workload": (workload, 200),
}
"""How many of each, and how one is made from a generator of random numbers."""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small workloads of four kinds, and this process warm: compiled for some of all that is tried."""
    folder = tmp_path_factory.mktemp("seeds")
    warmed(
        [
            ["generate", "poisson", "--out", "w0", "--users=6", "--topics=4", "--topics-per-user=2", "--horizon=3h"],
            ["generate", "mobility", "--out", "w1", "--users=6", "--horizon=2d", "--cell=5", "--cities=2"],
            [
                "generate",
                "content",
                "--out",
                "w2",
                "--subscriptions=9",
                "--fields=5",
                "--values=5",
                "--publications=6",
                "--match=1",
            ],
            [
                "generate",
                "spotify-sessions",
                "--out",
                "w3",
                "--users=6",
                "--horizon=1d",
                "--playlists=3",
                "--artists=3",
            ],
        ],
        folder,
    )
    SEEDS["folder"] = folder
    for text, options in ((INTERESTS, OVERLAYS), (RECONFIGURATION, PLACES), (OFFLOADING, BACK_ENDS)):
        (folder / "i.json").write_text(text)
        warmed([["solve", first, "i.json", *rest] for first, *rest in options if "1e300" not in rest], folder)
    for number in range(WARM):
        (folder / f"warm{number}").mkdir()
        (folder / f"warm{number}" / "s.toml").write_text(composed(random.Random(f"warm {number}")))
        beside(folder / f"warm{number}")
        warmed(judged()[1:], folder / f"warm{number}")
    return folder


WARM = 40
"""Scenarios that are run before others are broken."""
BLOCKS = [
    pytest.param(name, first, id=f"{name}-{first}")
    for name, (_, count) in KINDS.items()
    for first in range(0, count, BLOCK)
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "first"), BLOCKS)
def test_broken_input_is_of_use_or_one_sentence(seeds: Path, tmp_path: Path, name: str, first: int) -> None:
    """Input i of a kind is made from the seed "kind i", whatever came before it."""
    kind, count = KINDS[name]
    outcomes = {
        f"{name} {i}": tried(kind, f"{name} {i}", tmp_path / "input") for i in range(first, min(first + BLOCK, count))
    }
    print(name, first, dict(Counter(outcome.ending for outcome in outcomes.values())))
    assert {seed: outcome for seed, outcome in outcomes.items() if outcome.wrong} == {}


def test_there_are_two_thousand_inputs_each_made_of_its_seed_alone() -> None:
    assert sum(count for _, count in KINDS.values()) + LOGS >= 2_000
    first, again = (mutated(random.Random("x 1"), composed(random.Random("y 1"))) for _ in range(2))
    assert first == again
