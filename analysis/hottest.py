"""The hottest topics, brokers and links of one run, and the load of the hottest brokers over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.formatting import number, quantity
from analysis.tables import runs_of
from sim.experiments.results import Results

HOTTEST = 10
"""The number of each that are listed."""


class Hottest(NamedTuple):
    """A table of the hottest of a kind in descending order: the kind, the names of columns, and rows of text."""

    what: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def hottest(results: Results, variant: str) -> list[Hottest]:
    """The hottest topics, brokers and links in the first run of a variant, as far as available.

    Topics are ranked by the copies that users receive, brokers and links by their offered load or, where it is unknown, by messages.
    """
    runs = runs_of(results, variant)[:1]
    return [
        table
        for run in runs
        for table in (_topics(results, run), _brokers(results, run), _links(results, run))
        if table.rows
    ]


def hottest_brokers(results: Results, run: str) -> pd.DataFrame:
    """The most loaded brokers of a run in descending order: the columns of the table of brokers, and `messages`."""
    brokers = results.table(run, "brokers")
    brokers["messages"] = brokers["received"] + brokers["sent"]
    if "offered_load" not in brokers:
        brokers["offered_load"] = np.nan
    return _first(brokers, ["offered_load", "messages"])


def load_over_time(results: Results, run: str, points: int) -> pd.DataFrame:
    """The load of the hottest brokers in windows after the warm-up, merged until about `points` windows are left.

    Columns name, rank (from 0), start, end (s), utilisation (0 … 1), queue_length, messages (per s); 0 where a broker did nothing.
    """
    columns = ["name", "rank", "start", "end", "utilisation", "queue_length", "messages"]
    if not results.has_table(run, "load"):
        return pd.DataFrame(columns=columns)
    brokers, series = hottest_brokers(results, run), results.table(run, "timeseries")
    windows = series.loc[~series["warm_up"].astype(bool), ["window", "start", "end"]]
    load = results.table(run, "load").assign(messages=lambda table: table["received"] + table["sent"])
    load = load[load["broker"].isin(brokers["broker"])]
    every = pd.MultiIndex.from_product([windows["window"], brokers["broker"]], names=["window", "broker"])
    known = load["utilisation"].notna().any()
    shown = load.set_index(["window", "broker"])[["utilisation", "queue_length", "messages"]].reindex(every)
    shown = shown.astype(float).fillna(0.0).reset_index().merge(windows, on="window")
    block = np.arange(len(windows)) // max(1, -(-len(windows) // points))
    shown["block"] = shown["window"].map(dict(zip(windows["window"], block, strict=True)))
    seconds = shown["end"] - shown["start"]
    shown["utilisation"] = shown["utilisation"] * seconds if known else np.nan
    shown["queue_length"] = shown["queue_length"] * seconds if known else np.nan
    sums = shown.groupby(["block", "broker"]).agg(
        start=("start", "min"),
        end=("end", "max"),
        utilisation=("utilisation", lambda values: values.sum(min_count=1)),
        queue_length=("queue_length", lambda values: values.sum(min_count=1)),
        messages=("messages", "sum"),
    )
    for column in ("utilisation", "queue_length", "messages"):
        sums[column] = sums[column] / (sums["end"] - sums["start"])
    ranks = {broker: rank for rank, broker in enumerate(brokers["broker"])}
    found = sums.reset_index().assign(rank=lambda table: table["broker"].map(ranks))
    found["name"] = found["broker"].map(dict(zip(brokers["broker"], brokers["name"].astype(str), strict=True)))
    return found.sort_values(["rank", "start"], ignore_index=True)[columns]


def _first(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return table.sort_values(by, ascending=False, kind="stable", na_position="last").head(HOTTEST)


def _topics(results: Results, run: str) -> Hottest:
    columns = ("topic", "publications", "users", "copies to users")
    if not results.has_table(run, "topics"):
        return Hottest("topics", columns, [])
    rows = _first(results.table(run, "topics"), ["copies", "publications"])
    numbers = zip(*(map(number, rows[name]) for name in ("publications", "users", "copies")), strict=True)
    return Hottest("topics", columns, [(str(name), *texts) for name, texts in zip(rows["name"], numbers, strict=True)])


def _brokers(results: Results, run: str) -> Hottest:
    rows = hottest_brokers(results, run)
    shown = {"users": "users", "messages": "messages"}
    if rows["offered_load"].notna().any():
        shown |= {"offered_load": "offered load", "utilisation": "utilisation", "queue_length": "queue length"}
        rows["wait"] = [quantity(wait, "s") for wait in rows["queue_wait"]]
    cells = [rows[name].map(number) for name in shown]
    if "wait" in rows:
        cells.append(rows["wait"])
    heads = ("broker", *shown.values(), *(["wait"] if "wait" in rows else []))
    return Hottest("brokers", heads, list(zip(rows["name"].astype(str), *cells, strict=True)))


def _links(results: Results, run: str) -> Hottest:
    links, names = results.table(run, "links"), results.table(run, "brokers").set_index("broker")["name"].astype(str)
    limited = "offered_load" in links and links["offered_load"].notna().any()
    rows = _first(links, ["offered_load", "messages"] if limited else ["messages"])
    which = [f"{names[a]} → {names[b]}" for a, b in zip(rows["source"], rows["destination"], strict=True)]
    cells = [rows["messages"].map(number), rows["bytes"].map(lambda size: quantity(size, "bytes"))]
    heads: tuple[str, ...] = ("link", "messages", "size")
    if limited:
        cells += [rows["offered_load"].map(number), rows["queue_wait"].map(lambda wait: quantity(wait, "s"))]
        heads = (*heads, "offered load", "wait")
    return Hottest("links", heads, list(zip(which, *cells, strict=True)))
