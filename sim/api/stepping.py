"""A small network, run step by step: for teaching, and to see what a policy does."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from sim.api.scenarios import ScenarioSource, load_scenario
from sim.base.errors import InputError, unknown
from sim.base.escaping import printable
from sim.base.units import format_duration, parse_duration
from sim.experiments.export import network_graph
from sim.experiments.run import naming, prepared_folder
from sim.simulation import broker_sites, build, prepare_workload
from sim.workloads.format.folder import load_workload

if TYPE_CHECKING:
    import networkx as nx

    from sim.metrics import MetricValue

_DRAWN = 200
"""The most brokers that are drawn."""
_SIZE = 320  # pixels


class Simulation:
    """One run of one variant that can be stopped at any time, looked at, and continued.

    Each hop is an event (`data_plane = "events"`), whatever the scenario says; results are the same. Use it for networks of some
    hundred brokers: `run` is much faster.

    Args:
        source: a scenario file, its content, or a loaded one.
        variant: the variant; the first by default.
        replication: the replication, counted from 0.
        workload: a workload folder, instead of the one named in the scenario.

    Raises:
        InputError: where the scenario or its workload cannot be used.

    Examples:
        >>> simulation = sim.Simulation(sim.example(), "star").until("1h")
        >>> int(simulation.brokers["users"].sum())
        20
        >>> simulation.overlay().number_of_nodes()
        4
        >>> simulation.until("6h").metrics["delivery_ratio"]
        1.0
    """

    def __init__(
        self,
        source: ScenarioSource,
        variant: str | None = None,
        replication: int = 0,
        workload: str | Path | None = None,
    ) -> None:
        experiment = load_scenario(source, (), workload)
        name = next(iter(experiment.variants)) if variant is None else variant
        if name not in experiment.variants:
            raise InputError(unknown("variant", name, experiment.variants))
        scenario = experiment.variants[name]
        table = scenario.network.model_copy(update={"data_plane": "events"})
        self._scenario = scenario.model_copy(update={"network": table})
        self._name = f"variant {name}, replication {replication}"
        folder = prepared_folder(experiment, scenario)
        with naming(experiment):
            world = prepare_workload(self._scenario, replication, None if folder is None else load_workload(folder))
            self._network = build(self._scenario, world, replication)
        self._network.start()
        self._sites, _ = broker_sites(self._scenario, world)
        self._finished = False

    def __repr__(self) -> str:
        return f"<Simulation of {self._name}, at {format_duration(self.now)} of {format_duration(self.horizon)}>"

    @property
    def now(self) -> float:
        """The simulated time, in seconds.

        Examples:
            >>> sim.Simulation(sim.example()).until("1h").now
            3600.0
        """
        return min(float(self._network.clock.now), self.horizon)

    @property
    def horizon(self) -> float:
        """When the run ends, in seconds.

        Examples:
            >>> sim.Simulation(sim.example()).horizon
            21600.0
        """
        return float(self._network.setting.horizon)

    def until(self, time: str | float) -> Self:
        """Simulate up to a time, such as "1h" or 3600, before what happens at that time; at the horizon the run is finished.

        Raises InputError where it is past, or later than the horizon.

        Examples:
            >>> sim.Simulation(sim.example(), "star").until("1h")
            <Simulation of variant star, replication 0, at 1 h of 6 h>
        """
        try:
            seconds = parse_duration(time) if isinstance(time, str) else float(time)
        except ValueError as error:
            raise InputError(f"until: {error}") from None
        if not self.now <= seconds <= self.horizon:
            allowed = f"{format_duration(self.now)} to {format_duration(self.horizon)}"
            raise InputError(f"until: expected a time from {allowed}, found {format_duration(seconds)}")
        if not self._finished:
            self._network.clock.advance(seconds)
            if seconds == self.horizon:
                self._network.close()
                self._finished = True
        return self

    def step(self) -> float:
        """Simulate what happens next, all events of one instant; returns their time (s). At the end, the run is finished.

        Examples:
            >>> simulation = sim.Simulation(sim.example())
            >>> 0 < simulation.step() <= simulation.step()
            True
        """
        pending = self._network.clock.pending()
        time = pending[0][0] if pending else math.inf
        self.until(min(math.nextafter(time, math.inf), self.horizon))
        return min(time, self.horizon)

    @property
    def brokers(self) -> pd.DataFrame:
        """A row per broker: name, its node, the users it hosts, the topics they want, and the messages that wait and are in service.

        Examples:
            >>> simulation = sim.Simulation(sim.example(), "star").until("1h")
            >>> simulation.brokers.columns.tolist()
            ['broker', 'name', 'node', 'users', 'topics', 'waiting', 'in_service']
        """
        network, count = self._network, len(self._network.node_of)
        host = network.users.host
        present = [server.present for server in network.servers] or [(0, 0)] * count
        return pd.DataFrame(
            {
                "broker": range(count),
                "name": list(self._sites.names),
                "node": network.node_of.tolist(),
                "users": np.bincount(host[host >= 0], minlength=count).tolist(),
                "topics": network.subscriptions.topics.tolist(),
                "waiting": [waiting for waiting, _ in present],
                "in_service": [serving for _, serving in present],
            }
        )

    @property
    def users(self) -> pd.DataFrame:
        """A row per user: its name, and the broker that hosts it; -1 where there is none.

        Examples:
            >>> simulation = sim.Simulation(sim.example(), "star").until("1h")
            >>> len(simulation.users)
            20
        """
        host = self._network.users.host
        return pd.DataFrame(
            {"user": self._network.workload.users.names.to_pylist(), "broker": np.maximum(host, -1).tolist()}
        )

    def overlay(self) -> nx.DiGraph:
        """The links between brokers as they are now, as a networkx graph like that of `export`.

        Examples:
            >>> sim.Simulation(sim.example(), "star").overlay().number_of_edges()
            6
        """
        return network_graph(self._network, self._scenario, None, None)

    def tree(self, topic: str, publisher: str | None = None) -> nx.DiGraph:
        """A topic's tree as it is now, as a networkx graph like that of `export`.

        Examples:
            >>> simulation = sim.Simulation(sim.example(), "star").until("1h")
            >>> len(simulation.tree("0")) >= 1
            True
        """
        return network_graph(self._network, self._scenario, topic, publisher)

    @property
    def metrics(self) -> dict[str, MetricValue]:
        """All metrics of the run, None where undefined. Raises InputError before its end.

        Examples:
            >>> sim.Simulation(sim.example(), "star").until("6h").metrics["delivery_ratio"]
            1.0
        """
        if not self._finished:
            raise InputError(f"metrics: the run is at {format_duration(self.now)} of {format_duration(self.horizon)}")
        return self._network.metrics()

    def _repr_html_(self) -> str:
        """The brokers as a circle: larger with more users, darker with more messages waiting."""
        brokers = self.brokers.head(_DRAWN)
        centre, radius = _SIZE / 2, _SIZE / 2 - 40
        turns = 2 * np.pi * np.arange(len(brokers)) / max(len(brokers), 1)
        x, y = centre + radius * np.sin(turns), centre - radius * np.cos(turns)
        place = dict(zip(brokers["node"], range(len(brokers)), strict=True))
        links = [(place[a], place[b]) for a, b in self.overlay().edges if a < b and {a, b} <= place.keys()]
        lines = [
            f'<line x1="{x[a]:.1f}" y1="{y[a]:.1f}" x2="{x[b]:.1f}" y2="{y[b]:.1f}" stroke="#bbb"/>' for a, b in links
        ]
        users, waiting = brokers["users"].to_numpy(), brokers["waiting"].to_numpy()
        sizes = 6 + 14 * np.sqrt(users / max(users.max(initial=0), 1))
        lightness = 85 - 50 * waiting / max(waiting.max(initial=0), 1)
        discs = [
            f'<circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{sizes[i]:.1f}" stroke="#222" fill="hsl(205,70%,{lightness[i]:.0f}%)">'
            f"<title>{escape(printable(name))}: {users[i]} users, {waiting[i]} messages waiting</title></circle>"
            for i, name in enumerate(brokers["name"])
        ]
        title = f"{format_duration(self.now)} of {format_duration(self.horizon)}"
        body = "".join([*lines, *discs])
        return f'<p>{title}</p><svg xmlns="http://www.w3.org/2000/svg" width="{_SIZE}" height="{_SIZE}">{body}</svg>'
