"""What senders keep in the event engine until the next broker has acknowledged it, and send again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

from sim.brokers.data.carrier import Carrier
from sim.brokers.data.detours import ROUND, Diversion
from sim.brokers.data.flights import Flight
from sim.brokers.data.resent import Resent
from sim.brokers.data.rules import Rule
from sim.brokers.fabric.clock import ARRIVALS, Scheduled
from sim.brokers.fabric.delivery import ATTEMPT
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.statistics.ledger import LOST
from sim.brokers.statistics.recorder import Recorder

CLIENT = -1
"""The sender of a publication's first copy: its publisher's client, which keeps it too."""


class KeptCopy:
    """A flight on its way from a `sender` to the broker at a position: of the tree, if `below` the root, or of the uplink.

    `final`: the end of the uplink. It may be on a detour, the `rounds`-th of its flight, and then on a `branch` if below the root:
    `waits` there says that no route leads to the broker now. Where it is flooded, it comes from the position `source`, and is the
    `first` that the broker has handled, or not.

    `attempts` is how often it has been sent, `copies` how many of these are on the link, wait or are in service, and `timer` whether it
    is known when it is sent again, `wait` (s) after the last time. `handled`: the broker has served one. `done` is why the sender does
    not keep it any more: "acknowledged", "rerouted", or the cause of loss of what was not handled. It is over when it is done and
    no copy is under way. What is of `quality` of service 0 is "sent" once, and never kept.
    """

    __slots__ = (
        "attempts",
        "below",
        "branch",
        "broker",
        "copies",
        "done",
        "final",
        "first",
        "flight",
        "handled",
        "position",
        "quality",
        "rounds",
        "sender",
        "source",
        "timer",
        "wait",
        "waits",
    )

    def __init__(self, flight: Flight, position: int, sender: int, broker: int, below: bool, quality: int) -> None:
        self.flight, self.position, self.sender, self.broker, self.below = flight, position, sender, broker, below
        self.quality, self.final = quality, not below and position == len(flight.uplink) - 1
        self.wait = 0.0
        self.attempts = self.copies = self.rounds = 0
        self.timer = self.handled = self.waits = self.first = False
        self.source = -1
        self.branch: Diversion | None = None
        self.done: str | None = None if quality else "sent"


class Attempt:
    """What a message carries: a kept copy that is sent once more; `identity` identifies it in keyed draws."""

    __slots__ = ("identity", "kept")

    def __init__(self, kept: KeptCopy) -> None:
        self.kept, self.identity = kept, kept.flight.identity + ATTEMPT * (kept.attempts + ROUND * kept.rounds)


class Notice(Scheduled):
    """A timer that runs out."""

    __slots__ = ("callbacks", "kept")

    def __init__(self, kept: KeptCopy, callback: Callable[[Notice], None]) -> None:
        self.kept = kept
        self.callbacks = (callback,)


class KeepingCarrier(Carrier):
    """The part of `GuaranteedCarrier` that is about senders, and about what becomes of copies."""

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: Rule) -> None:
        super().__init__(fabric, recorder, rule)
        self._setting, self._resent = fabric.delivery, Resent(recorder)
        self._brokers = len(fabric.node_of)
        self._kept: dict[
            int, dict[KeptCopy, None]
        ] = {}  # by sender: what it keeps, in the order in which it was sent first
        self._under_way: dict[Flight, dict[KeptCopy, None]] = {}  # by flight: what is not over
        self._short: dict[Flight, int] = {}  # flights that were lost on their way up: the hops that they took
        self._turned: dict[Flight, int] = {}  # those that left their uplink for a detour, likewise
        self._remembered = [0] * self._brokers  # identities that each broker knows as handled
        self._arrived, self._answered = (self._arrive,), (self._answer,)
        self._answer_seconds = fabric.service.acknowledgement if self._servers else None

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

    def keeps(self, broker: int) -> bool:
        """Whether the broker keeps something, or a client something for it."""
        return bool(self._kept.get(broker)) or any(kept.broker == broker for kept in self._kept.get(CLIENT, ()))

    # -- what a sender does

    def _keep(self, flight: Flight, position: int, sender: int, broker: int, below: bool) -> KeptCopy:
        kept = KeptCopy(flight, position, sender, broker, below, self._setting.quality_of(self.rule.qos(flight)))
        kept.wait = self._setting.timeout
        if kept.quality:
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
        """A broker sends a copy to another, for the first time or, as all copies on detours count, again."""
        if kept.attempts or kept.rounds:
            self._recorder.counted["retransmissions"][kept.flight.window] += 1
            self._resent.message(kept.flight, kept.sender, kept.broker, self._relays(kept))
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
        if self._gives_up(kept):
            self._end(kept, "expired")
        else:
            self._send_as_before(kept)

    def _gives_up(self, kept: KeptCopy) -> bool:
        """Whether the sender sends it no more."""
        after = self._setting.expire_after
        late = after is not None and self._clock.now - kept.flight.published >= after
        return late or kept.attempts == self._setting.attempts

    def _send_as_before(self, kept: KeptCopy) -> None:
        if kept.sender == CLIENT:
            self._enter(kept)
        else:
            self._send_copy(kept)

    def _answer(self, message: Message) -> None:
        """An acknowledgement arrives at the sender, which serves it as a control message if it takes time."""
        kept, outages = message.carries.kept, self._outages
        if outages is not None and outages.stops(kept.broker, kept.sender):
            return
        if self._answer_seconds is None:
            self._acknowledged(message)
        else:
            seconds = self._answer_seconds(message.carries.identity, kept.sender, kept.broker)
            self._servers[kept.sender].accept(message, seconds, control=True)

    def _acknowledged(self, message: Message) -> None:
        """The sender knows that a copy was handled."""
        kept: KeptCopy = message.carries.kept
        if kept.done is None:
            self._end(kept, "acknowledged")

    def _end(self, kept: KeptCopy, done: str) -> None:
        """The sender keeps it no longer."""
        kept.done = done
        if kept.quality:
            del self._kept[kept.sender][kept]
        self._look(kept)

    # -- what a receiver does

    @abstractmethod
    def _arrive(self, message: Message) -> None:
        """A copy arrives over a link."""

    @abstractmethod
    def _come(self, message: Message) -> None:
        """A copy comes to its broker."""

    @abstractmethod
    def _handle(self, message: Message) -> None:
        """The broker has served a copy."""

    def _relays(self, kept: KeptCopy) -> bool:
        """Whether the receiver only passes it on."""
        return not kept.flight.due_users[kept.position] if kept.below else not kept.final

    def _users(self, kept: KeptCopy) -> int:
        """The users of the receiver to whom the flight is due there, once it has been handled."""
        flight = kept.flight
        if kept.below:
            return int(flight.due_users[kept.position])
        return int(flight.due_users[0]) if flight.brokers and kept.final else 0

    def _remember(self, kept: KeptCopy, change: int) -> None:
        """A last broker begins or ceases to remember an identity."""
        if kept.quality == 2 and self._users(kept):
            self._remembered[kept.broker] += change
            self._recorder.remembered = max(self._recorder.remembered, self._remembered[kept.broker])

    # -- what becomes of copies

    def _lose(self, message: Message, cause: str = "queue_full") -> None:
        """A copy is lost; unless it was only sent once, the sender may have another, whatever the cause."""
        kept: KeptCopy = message.carries.kept
        kept.copies -= 1
        if not kept.quality:
            kept.done = cause
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
            hops = self._hops_up(flight, len(flight.uplink) - 1)
            self._turned.pop(flight, None)
            self._finish(flight, self._short.pop(flight, hops))

    def _miss(self, kept: KeptCopy, cause: str) -> None:
        """No copy has been handled, and none will be."""
        flight = kept.flight
        if kept.below:
            flight.lose(cause, kept.position)
            return
        self.rule.miss_root(flight, LOST[cause])
        self.in_transit.rooted(flight)
        self._short[flight] = self._hops_up(flight, kept.position)

    def _hops_up(self, flight: Flight, hops: int) -> int:
        """The hops of a flight on its first uplink, given those on its way up so far."""
        return self._turned.get(flight, hops)
