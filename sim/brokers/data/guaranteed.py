"""Guarantees in the event engine: who sends a copy keeps it until the next broker has acknowledged it, and sends it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.data.carrier import Carrier
from sim.brokers.data.flights import Flight
from sim.brokers.data.resent import Resent
from sim.brokers.data.rules import Rule
from sim.brokers.fabric.clock import ARRIVALS, Scheduled
from sim.brokers.fabric.delivery import ATTEMPT
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.service import Effort
from sim.brokers.statistics.hops import UPLINK
from sim.brokers.statistics.ledger import LOST
from sim.brokers.statistics.recorder import Recorder

CLIENT = -1
"""The sender of a publication's first copy: its publisher's client, which keeps it too."""


class KeptCopy:
    """A flight on its way from a `sender` to the broker at a position: of the tree, if `below` the root, or of the uplink.

    `attempts` is how often it has been sent, `copies` how many of these are on the link, wait or are in service, and `timer` whether it
    is known when it is sent again, `wait` (s) after the last time. `handled`: the broker has served one. `done` is why the sender does
    not keep it any more: "acknowledged", or the cause of loss of what was not handled. It is over when it is done and no copy is under
    way.
    """

    __slots__ = (
        "attempts",
        "below",
        "broker",
        "copies",
        "done",
        "flight",
        "handled",
        "position",
        "sender",
        "timer",
        "wait",
    )

    def __init__(self, flight: Flight, position: int, sender: int, broker: int, below: bool, wait: float) -> None:
        self.flight, self.position, self.sender, self.broker, self.below = flight, position, sender, broker, below
        self.wait = wait
        self.attempts = self.copies = 0
        self.timer = self.handled = False
        self.done: str | None = None

    @property
    def relays(self) -> bool:
        """Whether the receiver only passes it on."""
        if self.below:
            return not self.flight.due_users[self.position]
        return self.broker != self.flight.uplink[-1]

    @property
    def users(self) -> int:
        """The users of the receiver to whom the flight is due there, once it has been handled."""
        flight = self.flight
        if self.below:
            return int(flight.due_users[self.position])
        return int(flight.due_users[0]) if flight.brokers and self.position == len(flight.uplink) - 1 else 0


class Attempt:
    """What a message carries: a kept copy that is sent once more; `identity` identifies it in keyed draws."""

    __slots__ = ("identity", "kept")

    def __init__(self, kept: KeptCopy) -> None:
        self.kept, self.identity = kept, kept.flight.identity + ATTEMPT * kept.attempts


class Notice(Scheduled):
    """A timer that runs out, or an acknowledgement that arrives."""

    __slots__ = ("callbacks", "kept")

    def __init__(self, kept: KeptCopy, callback: Callable[[Notice], None]) -> None:
        self.kept = kept
        self.callbacks = (callback,)


class GuaranteedCarrier(Carrier):
    """Carries flights on trees, with a guarantee for every hop."""

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: Rule) -> None:
        super().__init__(fabric, recorder, rule)
        self._setting, self._resent = fabric.delivery, Resent(recorder)
        self._once = fabric.delivery.guarantee == "exactly-once"
        self._brokers = len(fabric.node_of)
        self._kept: dict[
            int, dict[KeptCopy, None]
        ] = {}  # by sender: what it keeps, in the order in which it was sent first
        self._under_way: dict[Flight, dict[KeptCopy, None]] = {}  # by flight: what is not over
        self._short: dict[Flight, int] = {}  # flights that were lost on their way up: the hops that they took
        self._remembered = [0] * self._brokers  # identities that each broker knows as handled
        self._arrived = (self._arrive,)

    def depart(self, number: int, broker: int, window: int, released: bool = False) -> None:
        """A publisher's client sends a publication to its broker; or it is lost, see `Engine.publish`."""
        flights = self.rule.publish(number, max(broker, ~broker), window)
        self.in_transit.depart(flights, released)
        for flight in flights:
            flight.traced = self._trace is not None and self._trace.traces(number)
            self._under_way[flight] = {}
            kept = self._keep(flight, 0, CLIENT, flight.uplink[0], below=False)
            if broker < 0:
                self._end(kept, "crashed")
            else:
                self._enter(kept)

    def crash(self, broker: int, messages: Iterable[Message]) -> None:
        """A broker with these messages crashes, and forgets what it keeps unless its store is persistent."""
        for message in messages:
            self._lose(message, "crashed")
        if self._setting.store == "memory":
            for kept in list(self._kept.get(broker, ())):
                self._end(kept, "crashed")

    def restart(self, broker: int) -> None:
        """The broker sends again what would have been due meanwhile."""
        for kept in list(self._kept.get(broker, ())):
            if not kept.timer:
                self._send_again(kept)

    def close(self, messages: Iterable[Message]) -> None:
        """Count what is in transit at the end: what has not been handled, and may still be."""
        for flight, under_way in self._under_way.items():
            ahead = [kept.position for kept in under_way if not kept.handled]
            if flight in self._short:
                self.rule.over(flight, self._short[flight])
            elif flight.tree is None:
                self.rule.overtake(flight, ahead[0])
            else:
                self.rule.over(flight, len(flight.uplink) - 1, self.rule.ahead(flight, ahead))
        self.rule.finished.record()
        self._resent.record()

    # -- what a sender does

    def _keep(self, flight: Flight, position: int, sender: int, broker: int, below: bool) -> KeptCopy:
        kept = KeptCopy(flight, position, sender, broker, below, self._setting.timeout)
        self._kept.setdefault(sender, {})[kept] = None
        self._under_way[flight][kept] = None
        return kept

    def _copy(self, kept: KeptCopy) -> Message:
        message = Message(Attempt(kept), kept.position, -1, self._arrived, self._handle, self._lose, kept.flight.size)
        kept.attempts += 1
        kept.copies += 1
        return message

    def _enter(self, kept: KeptCopy) -> None:
        """The publisher's client sends the publication to its broker, where it is at once."""
        message = self._copy(kept)
        message.sent = message.arrived = self._clock.now
        if self._outages is not None and self._outages.down[kept.broker]:
            self._lose(message, "crashed")
        else:
            self._come(message)
        self._set_timer(kept)

    def _send_copy(self, kept: KeptCopy) -> None:
        """A broker sends a copy to another."""
        message = self._copy(kept)
        message.sent = self._clock.now
        self._send(message, kept.sender, kept.broker)
        self._set_timer(kept)

    def _set_timer(self, kept: KeptCopy) -> None:
        if kept.done is None:
            kept.timer = True
            self._clock.at(self._clock.now + kept.wait, ARRIVALS, Notice(kept, self._time_out))
            kept.wait = min(kept.wait * self._setting.backoff, self._setting.longest)

    def _time_out(self, notice: Notice) -> None:
        kept = notice.kept
        kept.timer = False
        down = kept.sender != CLIENT and self._outages is not None and self._outages.down[kept.sender]
        if kept.done is None and not down:
            self._send_again(kept)

    def _send_again(self, kept: KeptCopy) -> None:
        if kept.attempts == self._setting.attempts:
            self._end(kept, "expired")
            return
        if kept.sender == CLIENT:
            self._enter(kept)
        else:
            self._recorder.counted["retransmissions"][kept.flight.window] += 1
            self._resent.message(kept.flight, kept.sender, kept.broker, kept.relays)
            self._send_copy(kept)

    def _acknowledged(self, notice: Notice) -> None:
        """An acknowledgement arrives at the sender."""
        kept, outages = notice.kept, self._outages
        if kept.done is None and not (outages is not None and outages.stops(kept.broker, kept.sender)):
            self._end(kept, "acknowledged")

    def _end(self, kept: KeptCopy, done: str) -> None:
        """The sender keeps it no longer."""
        kept.done = done
        del self._kept[kept.sender][kept]
        self._look(kept)

    # -- what a receiver does

    def _arrive(self, message: Message) -> None:
        kept: KeptCopy = message.carries.kept
        if not (self._troubled and self._stopped(message, kept.sender, kept.broker)):
            self._come(message)

    def _come(self, message: Message) -> None:
        """A copy comes to its broker."""
        kept: KeptCopy = message.carries.kept
        flight, broker = kept.flight, kept.broker
        if self._servers and not self._servers[broker].accept(message, self._seconds_of(message.carries)):
            return
        if self._trace is not None and flight.traced and kept.sender != CLIENT:
            due = kept.below and bool(flight.due_users[kept.position])
            kind = self.rule.kind if kept.below else UPLINK
            self._trace.add(message.sent, message.arrived, flight.number, kept.sender, broker, kind, due)
        if not self._servers:
            self._handle(message)

    def _seconds_of(self, attempt: Attempt) -> float:
        """The service time of a copy (s): once another has been handled, it has only to be received, and passed on to users."""
        kept = attempt.kept
        stage = 2 if kept.handled else int(kept.below)
        if kept.handled:
            effort = Effort(users=0 if self._once else kept.users, size=kept.flight.size)
        else:
            effort = self._effort(kept.flight, kept.broker, kept.position, stage)
        return self._service(attempt.identity, kept.broker, stage, effort)

    def _handle(self, message: Message) -> None:
        """The broker has served a copy."""
        kept: KeptCopy = message.carries.kept
        kept.copies -= 1
        if kept.handled:
            self._repeat(kept)
        else:
            kept.handled = True
            if kept.below:
                kept.flight.arrival[kept.position] = message.arrived
                kept.flight.served[kept.position] = self._clock.now
                self._hand_on(kept.flight, kept.position)
            else:
                self._ascend(kept)
            self._remember(kept, +1)
        self._acknowledge(message.carries)
        self._look(kept)

    def _ascend(self, kept: KeptCopy) -> None:
        flight, onward = kept.flight, kept.position + 1
        if onward < len(flight.uplink):
            self._send_copy(self._keep(flight, onward, kept.broker, flight.uplink[onward], below=False))
            return
        self.rule.leave_root(flight, self._clock.now)
        self.in_transit.rooted(flight)
        if flight.brokers:
            self._hand_on(flight, 0)

    def _hand_on(self, flight: Flight, position: int) -> None:
        """Pass the flight on to users of a position, and to its children."""
        if self._deliveries is not None:
            self._hand_over(self._deliveries, flight, position, self._clock.now)
        here = flight.brokers[position]
        for child in range(flight.child_bounds[position], flight.child_bounds[position + 1]):
            self._send_copy(self._keep(flight, child, here, flight.brokers[child], below=True))

    def _repeat(self, kept: KeptCopy) -> None:
        """A broker has served a copy of what it had handled."""
        flight, users = kept.flight, kept.users
        self._recorder.counted["duplicates"][flight.window] += 1
        if users and not self._once:
            self._recorder.counted["duplicate_deliveries"][flight.window] += users
            self._resent.to_users(flight, kept.broker, users)

    def _remember(self, kept: KeptCopy, change: int) -> None:
        """A last broker begins or ceases to remember an identity."""
        if self._once and kept.users:
            self._remembered[kept.broker] += change
            self._recorder.remembered = max(self._recorder.remembered, self._remembered[kept.broker])

    def _acknowledge(self, attempt: Attempt) -> None:
        kept, transmission = attempt.kept, self._transmission
        if kept.sender == CLIENT:
            if kept.done is None:
                self._end(kept, "acknowledged")
            return
        self._recorder.counted["acknowledgements"][kept.flight.window] += 1
        here, there = kept.broker, kept.sender
        if self._outages is not None and self._outages.cut(here, there):
            return
        link = (self._brokers + here) * self._brokers + there  # beyond all links of copies
        loss = 0.0 if transmission is None else transmission.loss
        if transmission and loss and keyed_uniform(transmission.key, attempt.identity, link) < loss:
            return
        self._clock.at(self._clock.now + self._links.times(here)[there], ARRIVALS, Notice(kept, self._acknowledged))

    # -- what becomes of copies

    def _lose(self, message: Message, cause: str = "queue_full") -> None:
        """A copy is lost, whatever the cause; the sender may have another."""
        kept: KeptCopy = message.carries.kept
        kept.copies -= 1
        self._look(kept)

    def _look(self, kept: KeptCopy) -> None:
        """Look whether it is over, and with it its flight."""
        flight = kept.flight
        if kept.done is None or kept.copies or kept not in self._under_way.get(flight, ()):
            return
        if not kept.handled:
            self._miss(kept, kept.done)
        else:
            self._remember(kept, -1)
        del self._under_way[flight][kept]
        if not self._under_way[flight]:
            del self._under_way[flight]
            self._finish(flight, self._short.pop(flight, len(flight.uplink) - 1))

    def _miss(self, kept: KeptCopy, cause: str) -> None:
        """No copy has been handled, and none will be."""
        flight = kept.flight
        if kept.below:
            flight.lose(cause, kept.position)
            return
        self.rule.miss_root(flight, LOST[cause])
        self.in_transit.rooted(flight)
        self._short[flight] = kept.position
