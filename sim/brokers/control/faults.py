"""Faults: their effects on brokers, links, users and messages in transit, at their beginning and end."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from sim.base.arrays import Columns
from sim.brokers.control.drains import Drains, Maintenance
from sim.brokers.control.healing import HealingControl
from sim.brokers.control.joining import JoiningBrokers
from sim.brokers.control.protocol import ReconfigurationProtocol
from sim.brokers.control.topic_trees import TreeSteps
from sim.brokers.control.trees import TreeControl
from sim.brokers.data.engine import Engine
from sim.brokers.data.publishers import Publishers
from sim.brokers.fabric.clock import FAILURES, Feed
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.changes import Changes
from sim.brokers.users.reconnect import Reconnection, ReconnectSetting, accepting_broker
from sim.brokers.users.users import HostedUsers
from sim.workloads.faults.fault import Join
from sim.workloads.faults.schedule import CRASH, CUT, DRAIN, JOIN, LOSS, MEND, RESTART, SLOW_DOWN, FaultSchedule


class Failing(NamedTuple):
    """The schedule of faults, how users reconnect, and the key for their draws."""

    schedule: FaultSchedule
    reconnect: ReconnectSetting
    key: int


class FaultControl:
    """Enacts the faults of a schedule, each at its time, before everything else of that instant."""

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        failing: Failing,
        trees: TreeControl,
        engine: Engine,
        users: HostedUsers,
        changes: Changes,
        protocol: ReconfigurationProtocol | None,
    ) -> None:
        assert fabric.outages is not None
        self._fabric, self._recorder, self._schedule, self._outages = fabric, recorder, failing.schedule, fabric.outages
        self._courier, self._trees, self._engine = trees.courier, trees, engine
        self._users, self._changes, self._protocol = users, changes, protocol
        again = fabric.clock, failing.reconnect, users, fabric.outages, fabric.links.hops, recorder
        self._reconnection = Reconnection(*again, failing.key, self._busy)
        mends = Maintenance(self._refuse, self._hand_over, self._stays, self._shut, self._return, self._busy)
        self._drains = Drains(fabric.clock, users, fabric.outages, fabric.links.hops, recorder, mends)
        self._joining = JoiningBrokers(fabric.clock, users, fabric.outages, recorder, self._busy)
        self._reasons = [0] * len(fabric.outages.down)  # for which each broker is down
        self.healing: HealingControl | None = None
        self.steps: TreeSteps | None = None
        self._up_again: list[int] = []  # brokers that have yet to leave the trees that they were on
        self._publishers: Publishers | None = None
        self._restarted: list[int] = []  # brokers that have yet to send again what they keep
        self._next, self._awaits = 0, False  # whether it awaits the end of a transition
        self._late: list[Join] = []  # brokers that join after it

    def prepare(self) -> None:
        """Before any user joins: brokers that are to join later are absent."""
        for join in self._schedule.joins:
            self._reasons[join.broker] = 1
            self._outages.absent[join.broker] = True
            self._outages.take_down(join.broker, True)
            self._outages.close(join.broker, True)
        if self.healing is not None:
            self.healing.busy = self._busy
            if self._protocol is not None:
                self._protocol.moved = self.healing.brokers_moved
        if self._schedule.joins:
            assert self.healing is not None
            self.healing.members_changed()
            self._engine.outages_changed()
            self._users.elsewhere = partial(accepting_broker, self._users, self._outages, self._fabric.links.hops)

    def tell(self, publishers: Publishers) -> None:
        """Let publishers know when brokers crash and restart, and when users are connected again."""
        self._publishers, self._reconnection.connected = publishers, publishers.connected
        publishers.delivery = self._fabric.delivery

    def _refuse(self, broker: int) -> None:
        self._reconnection.refuse(broker)
        if self._publishers is not None:
            self._publishers.refused(broker)

    def start(self) -> None:
        """Schedule the first fault."""
        times = self._schedule.time
        Feed(self._fabric.clock, FAILURES, self._strike).start(float(times[0]) if len(times) else None)

    def _strike(self) -> float | None:
        """Enact all faults of this instant; returns when the next ones are due."""
        schedule, now = self._schedule, self._fabric.clock.now
        self._look()
        while self._next < len(schedule.time) and schedule.time[self._next] == now:
            row = self._next
            self._next += 1
            self._trees.before_change()
            self._enact(
                schedule.action.item(row),
                schedule.target.item(row),
                schedule.other.item(row),
                schedule.value.item(row),
            )
        if self._up_again and not self._busy():
            self._trees.before_change()  # again: engines may have looked at trees since
            self._leave_trees()
        self._drains.go_on()
        self._joining.go_on()
        if self.healing is not None:
            self.healing.faults(at_once=True)
        self._send_again()
        return float(schedule.time[self._next]) if self._next < len(schedule.time) else None

    def _enact(self, action: int, target: int, other: int, value: float) -> None:
        outages = self._outages
        if action == CRASH:
            if not self._reasons[target]:
                self._recorder.count("crashes", self._fabric.clock.now)
            self._go_down(target)
        elif action == RESTART:
            self._come_up(target)
        elif action == DRAIN:
            self._drains.add(self._schedule.drains[target])
        elif action == JOIN:
            join = self._schedule.joins[target]
            if self._busy():
                self._late.append(join)
            else:
                self._join(join)
        elif action in (CUT, MEND):
            if other < 0:
                outages.cut_off(target, action == CUT)
            else:
                outages.cut_link(target, other, action == CUT)
            self._outages_changed()
            self._courier.links_mended()
        elif action == SLOW_DOWN:
            outages.slowed[target] = value
            self._engine.outages_changed()
        elif action == LOSS:
            assert self._fabric.transmission is not None
            self._fabric.transmission.loss = value
            self._engine.outages_changed()

    def _join(self, join: Join) -> None:
        """A broker joins the network, and its node the overlay."""
        self._outages.absent[join.broker] = False
        self._outages.close(join.broker, False)
        self._come_up(join.broker)
        self._brokers_changed()
        assert self.healing is not None
        self._recorder.count("broker_arrivals", self._fabric.clock.now)
        self._joining.add(join, self.healing.members_changed())

    def _hand_over(self, broker: int) -> int:
        """Let the overlay route around a broker that is about to leave; returns how many topics have moved."""
        self._look()
        self._outages.absent[broker] = True
        self._trees.crash(broker)  # none of its requests may have an effect any more
        self._brokers_changed()
        assert self.healing is not None
        self._recorder.count("broker_departures", self._fabric.clock.now)
        return self.healing.members_changed()

    def _stays(self, broker: int) -> float:
        """How long a broker that is leaving stays up at least: until it may have sent again what is kept at it."""
        if self._outages.down[broker] or not self._engine.keeps(broker):
            return 0.0
        return self._fabric.delivery.timeout

    def _go_down(self, broker: int) -> None:
        """Take a broker down, for one more reason."""
        self._reasons[broker] += 1
        if self._reasons[broker] > 1:
            return
        self._trees.before_change()
        self._outages.take_down(broker, True)
        self._brokers_changed()
        self._trees.crash(broker)
        if self.healing is not None:
            self.healing.crash(broker)
        if broker in self._up_again:
            self._up_again.remove(broker)
        absent = self._users.leave(broker)
        self._changes.let_go(absent)
        if self._publishers is not None:
            self._publishers.recall(broker)
        self._courier.hold(broker, self._engine.fail(broker))
        if self._recorder.deliveries is not None:
            self._recorder.deliveries.crash(absent, self._fabric.clock.now)
        self._reconnection.lose(absent, broker)

    def _come_up(self, broker: int) -> None:
        """Bring a broker up again, unless there is another reason for which it is down."""
        self._reasons[broker] -= 1
        if self._reasons[broker]:
            return
        self._trees.before_change()
        self._outages.take_down(broker, False)
        self._brokers_changed()
        self._up_again.append(broker)
        self._restarted.append(broker)
        self._courier.restart(broker)

    def _shut(self, broker: int) -> None:
        """Take a broker down after a drain."""
        self._look()
        self._go_down(broker)
        if self.healing is not None:
            self.healing.faults()

    def _return(self, broker: int) -> None:
        """Bring a broker up again after a drain."""
        self._look()
        self._come_up(broker)
        if self._up_again and not self._busy():
            self._leave_trees()
        if self.healing is not None:
            self.healing.faults()
        self._send_again()

    def _send_again(self) -> None:
        """Let brokers that are up again send what they keep, along the routes as they are now."""
        restarted, self._restarted = self._restarted, []
        for broker in restarted:
            if not self._outages.down[broker]:
                self._engine.restart(broker)
                if self._publishers is not None:
                    self._publishers.restarted(broker)

    def _look(self) -> None:
        if self.steps is not None:
            self.steps.changing()

    def table(self) -> Columns:
        """What failed or worked again, and when, as columns of a table."""
        return self._schedule.table(self._drains.rows + self._joining.rows)

    def _leave_trees(self) -> None:
        """Let restarted brokers leave the trees that they were on."""
        for broker in self._up_again:
            self._trees.restart(broker)
        self._up_again.clear()
        self._trees.changed()

    def _busy(self) -> bool:
        """Whether brokers are moving to other nodes: no broker joins or leaves trees before that is over."""
        if self._protocol is None or not self._protocol.running:
            return False
        if not self._awaits:
            self._awaits = True
            self._protocol.when_over(self._go_on, enacted=False)
        return True

    def _go_on(self) -> None:
        self._awaits = False
        self._trees.before_change()
        self._leave_trees()
        if self.healing is not None:
            self.healing.go_on()
        late, self._late = self._late, []
        for join in late:
            self._join(join)
        self._reconnection.go_on()
        self._drains.go_on()
        self._joining.go_on()

    def _outages_changed(self) -> None:
        self._engine.outages_changed()
        if self._protocol is not None:
            self._protocol.watch.outages_changed()

    def _brokers_changed(self) -> None:
        self._outages_changed()
        self._recorder.brokers_up.set(self._fabric.clock.now, self._outages.up())
