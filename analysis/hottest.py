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

    Topics are ranked by the copies that users receive, brokers and links by their offered load or, where it is unknown, by messages,
    those from and to users included.
    """
    runs = runs_of(results, variant)[:1]
    return [
        table
        for run in runs
        for table in (_topics(results, run), _brokers(results, run), _links(results, run))
        if table.rows
    ]


def all_messages(brokers: pd.DataFrame) -> pd.Series:
    """The publications that came to brokers or left them (rows), from and to other brokers and users; columns as in brokers.parquet."""
    return brokers.reindex(columns=["received", "published", "sent", "copies"], fill_value=0).sum(axis=1)


def hottest_brokers(results: Results, run: str, count: int = HOTTEST) -> pd.DataFrame:
    """The most loaded brokers of a run in descending order: the columns of the table of brokers, and `messages`."""
    brokers = results.table(run, "brokers")
    brokers["messages"] = all_messages(brokers)
    if "offered_load" not in brokers:
        brokers["offered_load"] = np.nan
    return _first(brokers, ["offered_load", "messages"], count)


def _hot_brokers(results: Results, run: str, count: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """The hottest brokers, and what they did by window: both by `key`, the former with a `name`; None where it is not known."""
    if not results.has_table(run, "load"):
        return None
    load = results.table(run, "load")
    load = load.assign(key=load["broker"], messages=all_messages(load))
    return hottest_brokers(results, run, count).assign(key=lambda table: table["broker"]), load


def _hot_links(results: Results, run: str, count: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """The same for links, whose load is known only where something limits them."""
    if not results.has_table(run, "link_load"):
        return None
    load, links, names = results.table(run, "link_load"), _hottest_links(results, run, count), _names(results, run)
    brokers = len(names)
    load = load.assign(key=load["source"] * brokers + load["destination"])
    return links.assign(key=links["source"] * brokers + links["destination"], name=_between(links, names)), load


LOADED = {"broker": _hot_brokers, "link": _hot_links}
"""What has a load over time."""


def load_over_time(results: Results, run: str, points: int, of: str = "broker", count: int = HOTTEST) -> pd.DataFrame:
    """The load of the hottest brokers, or links, in windows after the warm-up.

    Neighbouring windows are merged until about `points` are left. Columns name, rank (from 0), start, end (s), utilisation (0 … 1),
    queue_length, messages (per s); 0 where one did nothing.
    """
    columns = ["name", "rank", "start", "end", "utilisation", "queue_length", "messages"]
    found = LOADED[of](results, run, count)
    if found is None:
        return pd.DataFrame(columns=columns)
    (hot, load), series = found, results.table(run, "timeseries")
    windows = series.loc[~series["warm_up"].astype(bool), ["window", "start", "end"]]
    load = load[load["key"].isin(hot["key"])]
    every = pd.MultiIndex.from_product([windows["window"], hot["key"]], names=["window", "key"])
    known = load["utilisation"].notna().any()
    shown = load.set_index(["window", "key"])[["utilisation", "queue_length", "messages"]].reindex(every)
    shown = shown.astype(float).fillna(0.0).reset_index().merge(windows, on="window")
    block = np.arange(len(windows)) // max(1, -(-len(windows) // points))
    shown["block"] = shown["window"].map(dict(zip(windows["window"], block, strict=True)))
    seconds = shown["end"] - shown["start"]
    shown["utilisation"] = shown["utilisation"] * seconds if known else np.nan
    shown["queue_length"] = shown["queue_length"] * seconds if known else np.nan
    sums = shown.groupby(["block", "key"]).agg(
        start=("start", "min"),
        end=("end", "max"),
        utilisation=("utilisation", lambda values: values.sum(min_count=1)),
        queue_length=("queue_length", lambda values: values.sum(min_count=1)),
        messages=("messages", "sum"),
    )
    for column in ("utilisation", "queue_length", "messages"):
        sums[column] = sums[column] / (sums["end"] - sums["start"])
    ranks = {key: rank for rank, key in enumerate(hot["key"])}
    over_time = sums.reset_index().assign(rank=lambda table: table["key"].map(ranks))
    over_time["name"] = over_time["key"].map(dict(zip(hot["key"], hot["name"].astype(str), strict=True)))
    return over_time.sort_values(["rank", "start"], ignore_index=True)[columns]


def _first(table: pd.DataFrame, by: list[str], count: int = HOTTEST) -> pd.DataFrame:
    return table.sort_values(by, ascending=False, kind="stable", na_position="last").head(count)


def _topics(results: Results, run: str) -> Hottest:
    columns: tuple[str, ...] = ("topic", "publications", "users", "copies to users")
    if not results.has_table(run, "topics"):
        return Hottest("topics", columns, [])
    rows = _first(results.table(run, "topics"), ["copies", "publications"])
    cells = [rows[name].map(number) for name in ("publications", "users", "copies")]
    if "notification_delay" in rows:
        columns += ("delay to brokers", "longest")
        cells += [rows[f"notification_delay{which}"].map(lambda delay: quantity(delay, "s")) for which in ("", "_max")]
    return Hottest("topics", columns, list(zip(rows["name"].astype(str), *cells, strict=True)))


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


def _names(results: Results, run: str) -> pd.Series:
    """The names of brokers, by number."""
    return results.table(run, "brokers").set_index("broker")["name"].astype(str)


def _between(links: pd.DataFrame, names: pd.Series) -> list[str]:
    return [f"{names[a]} → {names[b]}" for a, b in zip(links["source"], links["destination"], strict=True)]


def _hottest_links(results: Results, run: str, count: int = HOTTEST) -> pd.DataFrame:
    """The links of a run with most to do, most first: the columns of the table of links."""
    links = results.table(run, "links")
    return _first(links, ["offered_load", "messages"] if _limited(links) else ["messages"], count)


def _limited(links: pd.DataFrame) -> bool:
    """Whether links have a rate."""
    return bool("offered_load" in links and links["offered_load"].notna().any())


def _links(results: Results, run: str) -> Hottest:
    rows = _hottest_links(results, run)
    cells = [rows["messages"].map(number), rows["bytes"].map(lambda size: quantity(size, "bytes"))]
    heads: tuple[str, ...] = ("link", "messages", "size")
    if _limited(rows):
        cells += [rows["offered_load"].map(number), rows["queue_wait"].map(lambda wait: quantity(wait, "s"))]
        heads = (*heads, "offered load", "wait")
    return Hottest("links", heads, list(zip(_between(rows, _names(results, run)), *cells, strict=True)))
