"""The scenario as pydantic models: everything that defines a run, validated, with all defaults filled in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from sim import plugins
from sim.base.naming import Keys, Raw
from sim.base.units import Duration, Period, PositiveDuration, Quantity, Repeats
from sim.base.validation import Mistake, nested, show
from sim.files.inputs import File
from sim.metrics import METRICS
from sim.overlay.floods import FloodParameters
from sim.overlay.folding import cannot_fold, hindrances
from sim.plugins import Parameters
from sim.policies.promises import SharingPromises
from sim.policies.sharing.view import SharingPolicy, SharingSetting
from sim.scenario.broker_sites import BrokerSites
from sim.scenario.brokers import Brokers
from sim.scenario.clients import ClientsTable
from sim.scenario.delivery import DeliveryTable
from sim.scenario.expressions import unknown_metrics
from sim.scenario.faults import faults_wrong, strike_brokers, too_late
from sim.scenario.fixed_table import FixedTable
from sim.scenario.healing import HealingTable
from sim.scenario.kinds import Kinds, OwnMetrics, Table
from sim.scenario.links import LinksTable
from sim.scenario.qos import QosTable
from sim.scenario.reading import tables_of
from sim.scenario.reconnect import ReconnectTable
from sim.scenario.sessions import SessionsTable
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.common import Generated

MORE_SHARED = ("variant", "report", "precision", "sweep", "tune")
SHARED = {"title", "seed", "replications", "metrics", *MORE_SHARED}
"""Keys that neither variants nor sweeps may set: runs are paired by seed and replication."""
MOST_STEPS = 1_000_000
"""The most windows, decision periods and the like up to the horizon; that many take a minute and a gigabyte."""
MOST_RUNS = 1_000_000
"""The most runs of an experiment; that many take a gigabyte to plan, before any is performed."""
DETECT = "detect"
"""The value of `warm_up` that asks to detect it."""


def _traced(value: object) -> bool | float:
    if isinstance(value, bool) or (isinstance(value, int | float) and 0 < value <= 1):
        return value
    raise ValueError("expected true, false, or a share of publications above 0 and at most 1")


Traced = Annotated[
    bool | float,
    PlainValidator(_traced),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]}),
]
"""Which publications are traced: True, False, or a share."""


class Prepared(Parameters):
    """A workload folder, written by `brokersim prepare` or `brokersim generate`."""

    path: Path | None = None
    """The workload's folder, relative to the scenario file; `--workload` overrides it."""
    resample_users: bool = False
    """Draw the users with replacement in each replication."""

    @field_serializer("path")
    def _name(self, path: Path | None) -> str | None:
        return path.name if path else None  # the folder's location is not part of a result


class Nothing(Parameters):
    """Brokers stay on their nodes."""


class Unlimited(Parameters):
    """The back end has unlimited capacity and keeps all topics."""

    tau: Quantity | None = None
    """The notifications per period that satisfy a user; satisfaction is measured if this is set."""
    period: Period = 86400.0
    """Satisfaction is measured over each period."""


class WorkloadTable(Table):
    """The [workload] table: a prepared workload's folder, or a generator and its parameters."""

    @property
    def path(self) -> Path | None:
        """The folder of a prepared workload, else None."""
        return self.parameters.path if isinstance(self.parameters, Prepared) else None

    @property
    def resample_users(self) -> bool:
        """Whether each replication of a prepared workload draws its users from those that it has."""
        return isinstance(self.parameters, Prepared) and self.parameters.resample_users


WORKLOAD = Kinds("prepared", "workload", {"prepared": Prepared}, WorkloadTable)
GEOMETRY = Kinds("chord", "geometry")
LATENCY = Kinds("unit", "latency")
SELECTION = Kinds("static", "selection")
SHARING = Kinds("random", "sharing")
RECONFIGURATION = Kinds("none", "reconfiguration", {"none": Nothing})
FAULTS = Kinds("crash", "faults")
OFFLOADING_DEFAULTS = Kinds("none", "offloading", {"none": Unlimited})
DEFAULTS: Raw = {
    "workload": {"kind": WORKLOAD.default},
    "network": {"geometry": {"kind": GEOMETRY.default}, "latency": {"kind": LATENCY.default}},
    "brokers": {"service": {"kind": "none"}},
    "selection": {"kind": SELECTION.default},
}
"""The default kinds, so that every table has one when it is overridden."""


def _too_long(warm_up: float, horizon: float) -> str:
    return f"expected less than the horizon ({horizon:g} s), found {warm_up:g} s"


def _listed(tables: object) -> object:
    if not isinstance(tables, list | tuple):
        raise ValueError(f"expected tables [[faults]], found {show(tables)}")
    return tuple(tables)


class NetworkTable(FixedTable):
    """The [network] section: the brokers, and how messages get from one to another."""

    brokers: BrokerSites = "cells"
    """A number of brokers (at the centres of the busiest cells), "cells" (one per visited cell, at its centre), or a CSV file."""
    geometry: Annotated[Table, GEOMETRY] = Field(default_factory=GEOMETRY.default_table)
    """The overlay that routes between the brokers' nodes."""
    latency: Annotated[Table, LATENCY] = Field(default_factory=LATENCY.default_table)
    """Round-trip times between brokers."""
    links: LinksTable = LinksTable()
    """Rates, losses and buffers of links."""
    clients: ClientsTable = ClientsTable()
    """The legs from brokers to users."""
    reconnect: ReconnectTable = Field(default=ReconnectTable(), exclude_if=lambda table: table == ReconnectTable())
    """How users whose broker has crashed come back."""
    delivery: DeliveryTable = Field(default=DeliveryTable(), exclude_if=lambda table: table == DeliveryTable())
    """What brokers do about copies that are lost between them."""
    healing: HealingTable = Field(default=HealingTable(), exclude_if=lambda table: table == HealingTable())
    """How the overlay heals when brokers crash or links are cut; by default it does not."""
    sessions: SessionsTable = Field(default=SessionsTable(), exclude_if=lambda table: table == SessionsTable())
    """What brokers keep for users who are offline, and for those who subscribe later."""
    qos: QosTable | None = Field(default=None, exclude_if=lambda table: table is None)
    """Quality of service between clients and brokers; by default every message is acknowledged once, and none is lost there."""
    sharing: Annotated[Table | None, SHARING] = Field(default=None, exclude_if=lambda table: table is None)
    """Which member of a group that shares a subscription gets a publication; "random" by default."""
    delay_until: Literal["broker", "served", "client"] = "served"
    """The end of users' delays: when a due broker has the message, has served it, or the user has it."""
    hop_cost: Literal["one_way", "rtt"] = "one_way"
    """The latency of a hop: half of the round-trip time, or all of it."""
    join: Literal["instant", "message"] = "instant"
    """When a broker's join or leave changes a tree: at once, or when the root's answer has arrived."""
    control_count: Literal["hops", "requests"] = "hops"
    """How a join or leave is counted: the hops to the root and back, or two messages."""
    data_plane: Literal["auto", "events", "compiled", "folded"] = "auto"
    """How publications are simulated, with identical results: every hop is an event in SimPy ("events") or in a compiled loop
    ("compiled"), or a publication's whole path is computed at once ("folded", where nothing contends); "auto" takes the fastest
    that supports the scenario."""

    @model_validator(mode="after")
    def _has_clients_where_needed(self) -> NetworkTable:
        if self.delay_until == "client" and not self.clients.takes_time:
            raise ValueError(
                "delay_until 'client' without legs to users that take time "
                "(allowed with: clients.latency, clients.per_km, clients.rate)"
            )
        return self

    @model_validator(mode="after")
    def _has_qualities_where_needed(self) -> NetworkTable:
        if self.delivery.guarantee == "qos" and self.qos is None:
            raise nested(
                [(("delivery", "guarantee"), "'qos' without qualities of service (allowed with: network.qos)")]
            )
        return self

    def sharing_policy(self, workload: Workload, brokers: int, key: int) -> SharingPolicy | None:
        """The policy that chooses among those who share a subscription, None where nobody does; the key is for its draws."""
        if not len(workload.shares):
            return None
        table, setting = self.sharing or SHARING.default_table(), SharingSetting(len(workload.users), brokers, key)
        policy: SharingPolicy = plugins.make(SharingPromises, table.kind, table.parameters, setting)
        return policy

    def unused(self, workload: Workload) -> list[str]:
        """Sentences about what the workload does not need."""
        if self.sharing is None or len(workload.shares):
            return []
        return ["network.sharing has no effect, as no subscription of the workload is shared."]


class Scenario(FixedTable):
    """One variant of a scenario, resolved: every default filled in, durations in seconds."""

    title: str = ""
    """The title of the comparison; the file's name by default."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """The seed of all random draws."""
    replications: int = Field(default=1, ge=1, le=MOST_RUNS)
    """The number of replications of every variant, each with new random streams."""
    horizon: PositiveDuration | None = None
    """When a run ends; by default the end of the workload."""
    warm_up: Duration = 0.0
    """Metrics exclude what is published and sent before this time."""
    window: Annotated[PositiveDuration, Repeats("windows")] = 3600.0
    """Width of the windows of time series."""
    trace: Traced = False
    """Also write one row per message hop: of all publications, or of this share of them."""
    subscribers: bool = False
    """Also write how much each user received on each topic."""
    topic_delays: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """Also write the delays of each topic."""
    metrics: OwnMetrics = Field(default=OwnMetrics(), exclude_if=lambda own: not own)
    """Your own metrics (plug-ins) to be computed, with their parameters."""
    workload: Annotated[WorkloadTable, WORKLOAD] = Field(default_factory=WORKLOAD.default_table)
    """The workload: what happens to the network from outside."""
    faults: Annotated[tuple[Annotated[Table, FAULTS], ...], BeforeValidator(_listed)] = Field(
        default=(), exclude_if=lambda tables: not tables
    )
    """What fails, and when; more than one kind may."""
    network: NetworkTable = Field(default_factory=NetworkTable)
    """The overlay network."""
    brokers: Brokers = Brokers()
    """The brokers."""
    selection: Annotated[Table, SELECTION] = Field(default_factory=SELECTION.default_table)
    """Which broker hosts a user."""
    reconfiguration: Annotated[Table, RECONFIGURATION] = Field(default_factory=RECONFIGURATION.default_table)
    """Which broker stands on which overlay node."""
    offloading: Annotated[Table, OFFLOADING_DEFAULTS] = Field(default_factory=OFFLOADING_DEFAULTS.default_table)
    """Which topics the back end keeps."""

    @field_validator("warm_up")
    @classmethod
    def _ends_before_the_horizon(cls, warm_up: float, info: ValidationInfo) -> float:
        horizon = info.data.get("horizon")
        if horizon is not None and warm_up >= horizon:
            raise ValueError(_too_long(warm_up, horizon))
        return warm_up

    @model_validator(mode="after")
    def _has_few_steps(self) -> Scenario:
        horizon = self.horizon or getattr(self.workload.parameters, "horizon", None)
        if isinstance(horizon, float) and (wrong := self.steps_wrong(horizon)):
            raise nested(wrong)
        return self

    @model_validator(mode="after")
    def _is_folded_where_exact(self) -> Scenario:
        network, latency, geometry = self.network, self.network.latency.parameters, self.network.geometry.parameters
        if network.data_plane == "folded" and (
            found := hindrances(
                self.brokers.service.kind,
                getattr(latency, "jitter", 0.0) if plugins.are_ours(type(latency)) else 0.0,
                network.links,
                float(self.trace),
                isinstance(geometry, FloodParameters) and geometry.floods,
                strike_brokers(self.faults),
                network.delivery.guarantee,
            )
        ):
            raise nested([(("network", "data_plane"), cannot_fold(found))])
        return self

    def steps_wrong(self, horizon: float) -> list[Mistake]:
        """What does not fit a horizon (s): the warm-up, values that are `Repeats` of something too often, and faults."""
        if self.warm_up >= horizon:
            return [(("warm_up",), _too_long(self.warm_up, horizon))]
        workload = self.workload.parameters
        if isinstance(workload, Generated) and (unused := workload.wrong(horizon)):
            return [(("horizon",), unused)]
        often = [
            (
                keys,
                f"{MOST_STEPS:,} {what} at most, so {horizon / MOST_STEPS:g} s or more up to {horizon:g} s, found {value:g} s",
            )
            for keys, what, value in (*_repeats(self), *self._attempts())
            if horizon / value > MOST_STEPS
        ]
        if (wrong := self.network.sessions.wrong(horizon)) is not None:
            often.append((("network", "sessions", "offline", wrong[0]), wrong[1]))
        late = list(too_late(self.faults, horizon))
        if not late and self.faults and self.network.brokers != "cells":
            brokers = self.network.brokers
            named = not isinstance(workload, Generated) or workload.has_places
            sites = brokers.content if isinstance(brokers, File) else brokers
            late = list(faults_wrong(self.faults, sites, horizon, named))
        return often + late

    def _attempts(self) -> Iterator[tuple[Keys, str, float]]:
        """The wait (s) between attempts of users whose broker never comes back."""
        reconnect = self.network.reconnect
        key = "wait" if reconnect.backoff == "fixed" else "longest"
        if self.faults:
            yield ("network", "reconnect", key), "attempts of a user", getattr(reconnect, key)

    @property
    def measures_satisfaction(self) -> bool:
        """Whether satisfaction is measured."""
        return getattr(self.offloading.parameters, "tau", None) is not None

    def identity(self) -> Raw:
        """The part that identifies a run: everything but the title, the number of replications, and the location of the workload."""
        values: Raw = json.loads(self.identity_text({}))
        return values

    def identity_text(self, texts: dict[int, str]) -> str:
        """The identity as JSON. `texts` caches the JSON of tables by their ids, for scenarios that share them."""
        tables, others = [], Raw()
        for name, value in vars(self).items():
            if name in tables_of(Scenario):
                if id(value) not in texts:
                    table = value.dump() if isinstance(value, Table) else value.model_dump(mode="json")
                    if name == "workload":
                        table.pop("path", None)
                    texts[id(value)] = json.dumps(table, sort_keys=True)
                tables.append(f'"{name}": {texts[id(value)]}')
            elif isinstance(value, OwnMetrics):
                others |= {name: value.dump()} if value else {}
            elif name == "faults":
                others |= {name: [table.dump() for table in value]} if value else {}
            elif name not in ("title", "replications"):
                others[name] = value
        return ", ".join([json.dumps(others)[:-1], *tables]) + "}"


def _repeats(model: BaseModel, keys: Keys = ()) -> Iterator[tuple[Keys, str, float]]:
    """Yield each period (s) in a model and its tables, and what is repeated."""
    for name, info in type(model).model_fields.items():
        value = vars(model)[name]
        inner = value.parameters if isinstance(value, Table) else value
        if isinstance(inner, BaseModel):
            yield from _repeats(inner, (*keys, name))
        else:
            yield from (
                ((*keys, name), mark.what, value)
                for mark in info.metadata
                if value is not None and isinstance(mark, Repeats)
            )


def _metrics(names: object) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)) or not names:
        raise ValueError(f"expected a list of metrics, found {show(names)}")
    if wrong := unknown_metrics(names):
        raise nested(wrong)
    return tuple(names)


def _metric(name: str) -> str:
    for _, wrong in unknown_metrics([name]):
        raise ValueError(wrong)
    return name


class Report(FixedTable):
    """The [report] section: what the report shows first."""

    baseline: str | None = None
    """The variant that the others are compared with; the first by default."""
    metrics: Annotated[
        tuple[str, ...],
        BeforeValidator(_metrics),
        WithJsonSchema({"type": "array", "items": {"enum": list(METRICS)}, "minItems": 1}),
    ] = ("broker_subscription_changes", "subscription_overhead", "notification_delay", "notification_overhead")
    """The metrics shown with confidence intervals, differences and charts."""


class Precision(FixedTable):
    """The requested precision, up to which replications are added."""

    metric: Annotated[str, AfterValidator(_metric), WithJsonSchema({"enum": list(METRICS)})] = "notification_delay"
    """The metric whose mean is to be precise."""
    relative: float = Field(default=0.02, gt=0, lt=1)
    """The largest half-width of its confidence interval, relative to the mean."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """The confidence level."""
    max_replications: int = Field(default=50, ge=2, le=MOST_RUNS)
    """The most replications."""
