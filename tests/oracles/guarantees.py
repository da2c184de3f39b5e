"""Tiny networks in which whoever sends a copy keeps it until it is acknowledged, and sends it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from oracles import faults
from oracles.faults import Faults
from oracles.network import AGAIN, ARRIVALS, Hop, Setting, World

ACKNOWLEDGED = "acknowledged"


@dataclass
class Delivery:
    """What is sent again: after `timeout` s, and each time `backoff` times as long after, at most `longest`; `attempts` times at most.

    `once`: users get nothing twice. `persistent`: what brokers keep survives their crashes. Acknowledgements get lost on links where
    `chance(what, source, destination)` is below the probability of a loss.
    """

    timeout: float
    backoff: float
    longest: float
    attempts: int | None
    once: bool
    persistent: bool
    chance: Callable[[int, int, int], float] = lambda what, source, destination: 1.0


@dataclass(eq=False)
class Kept:
    """What a sender (None: the publisher's client) keeps for a broker: at a place of the way up, or at a node of a tree."""

    number: int
    sender: int | None
    broker: int
    place: int | None = None
    node: int | None = None
    parents: dict[int, int | None] | None = None
    times: int = 0  # that it has been sent
    copies: int = 0  # on links and at brokers
    timed: bool = False
    handled: bool = False
    done: str | None = None  # why it is not kept any more
    remembered: bool = False


class Network(faults.Network):
    """Runs at once."""

    def __init__(
        self, setting: Setting, world: World, faults: Faults, delivery: Delivery, moments: Iterable[float] = ()
    ) -> None:
        self.delivery = delivery
        self.kept: list[Kept] = []  # all ever
        super().__init__(setting, world, faults, moments)

    def crash(self, broker: int) -> None:
        super().crash(broker)
        if not self.delivery.persistent:
            for kept in self.kept_by(broker):
                self.end(kept, "crashed")

    def restart(self, broker: int) -> None:
        for kept in self.kept_by(broker):
            if not kept.timed:
                self.seen["sent again after a restart"] += 1
                self.send_again(kept)
        super().restart(broker)

    def kept_by(self, broker: int) -> list[Kept]:
        return [kept for kept in self.kept if kept.sender == broker and kept.done is None]

    # -- senders

    def publish(self, number: int) -> None:
        """The client has a publication for its broker, if it is connected to one."""
        _, topic, publisher, _ = self.world.publications[number]
        broker = self.outside(number) if publisher is None else self.host[publisher]
        if broker is None or broker in self.fell:
            super().publish(number)
            return
        node = self.setting.node_of[broker]
        self.origin[number] = [self.broker_at[n] for n in self.setting.overlay.route(node, self.root(topic, node))]
        self.keep(Kept(number, None, broker, place=0))

    def forward(self, number: int, parents: dict[int, int | None], node: int) -> None:
        for child in sorted(n for n, above in parents.items() if above == node):
            here, there = self.broker_at[node], self.broker_at[child]
            self.keep(Kept(number, here, there, node=child, parents=parents))

    def keep(self, kept: Kept) -> None:
        self.kept.append(kept)
        self.travelling[kept.number] += 1
        self.send_copy(kept)

    def send_copy(self, kept: Kept) -> None:
        """Once more; then wait for the acknowledgement, if that has not come yet."""
        before = kept.times
        kept.times += 1
        kept.copies += 1
        lost = partial(self.lose_kept, kept)
        if kept.sender is not None:
            due = kept.node is not None and self.on_tree(kept.number, kept.broker)
            kind = "uplink" if kept.node is None else "tree"
            hop = Hop(kept.number, kept.sender, kept.broker, kind, self.now, due, again=before > 0)
            self.hops.append(hop)
            self.transmit(kept.number, kept.sender, kept.broker, partial(self.come, kept, before, hop), lost, before)
        elif kept.broker not in self.fell:
            self.come(kept, before, None)
        else:
            lost("crashed")
        if kept.done is None:
            kept.timed = True
            self.at(self.now + self.wait(before), ARRIVALS, partial(self.time_out, kept))

    def wait(self, before: int) -> float:
        wait = self.delivery.timeout
        for _ in range(before):
            wait = min(wait * self.delivery.backoff, self.delivery.longest)
        return wait

    def time_out(self, kept: Kept) -> None:
        kept.timed = False
        if kept.done is None and kept.sender not in self.fell:
            self.send_again(kept)

    def send_again(self, kept: Kept) -> None:
        if kept.times == self.delivery.attempts:
            self.end(kept, "expired")
        else:
            self.send_copy(kept)

    def end(self, kept: Kept, why: str) -> None:
        """The sender keeps it no longer."""
        kept.done = why
        self.look(kept)

    # -- receivers

    def come(self, kept: Kept, before: int, hop: Hop | None) -> None:
        """A copy is at its broker."""
        number, broker, size = kept.number, kept.broker, self.world.publications[kept.number][3]
        if kept.handled:
            stage, work = 2, (0, 0 if self.delivery.once else self.users_there(kept), size)
        elif kept.parents is not None:
            copies = sum(above == kept.node for above in kept.parents.values())
            stage, work = 1, (copies, self.users_below(number, broker), size)
        else:
            at_root = kept.place == len(self.origin[number]) - 1
            stage, work = 0, self.work_of_root(number, broker) if at_root else (1, 0, size)
        handled = partial(self.handle, kept, before, self.now)
        if not self.offer(broker, number + before * AGAIN, stage, work, handled, partial(self.lose_kept, kept)):
            self.lose_kept(kept, "queue_full")
        elif hop is not None:
            hop.received = self.now

    def users_there(self, kept: Kept) -> int:
        """The users whom the broker has served."""
        pair = kept.number, kept.broker
        last = kept.parents is not None or kept.place == len(self.origin[kept.number]) - 1
        return self.users_below(*pair) if last and pair in self.delivered else 0

    def handle(self, kept: Kept, before: int, came: float) -> None:
        number, broker, path = kept.number, kept.broker, self.origin[kept.number]
        kept.copies -= 1
        if kept.handled:
            self.duplicates[number] += 1
            if not self.delivery.once:
                self.repeated[number, broker] += self.users_there(kept)
        else:
            kept.handled = True
            if kept.parents is not None:
                if self.on_tree(number, broker):
                    self.arrived[number, broker] = came
                    self.deliver(number, broker)
                assert kept.node is not None
                self.forward(number, kept.parents, kept.node)
            elif kept.place == len(path) - 1:
                self.leave_root(number)
            else:
                assert kept.place is not None
                self.keep(Kept(number, broker, path[kept.place + 1], place=kept.place + 1))
            kept.remembered = self.delivery.once and self.users_there(kept) > 0
            remembered = Counter(other.broker for other in self.kept if other.remembered)
            self.most_remembered = max([self.most_remembered, *remembered.values()])
        self.acknowledge(kept, before)
        self.look(kept)

    def acknowledge(self, kept: Kept, before: int) -> None:
        """Straight back over the link, unless it is cut or loses it; to the client at once."""
        if kept.sender is None:
            if kept.done is None:
                self.end(kept, ACKNOWLEDGED)
            return
        here, there = kept.broker, kept.sender
        self.acknowledged[kept.number] += 1
        if self.is_cut(here, there):
            self.seen["acknowledgements before a cut"] += 1
        elif self.loses_acknowledgement(kept.number + before * AGAIN, here, there):
            self.seen["acknowledgements lost by a link"] += 1
        else:
            self.at(self.now + self.setting.delay[here][there], ARRIVALS, partial(self.be_told, kept))

    def loses_acknowledgement(self, what: int, here: int, there: int) -> bool:
        if self.setting.lines is None:
            return False
        loss = self.setting.lines.loss if self.loss is None else self.loss
        return self.delivery.chance(what, here, there) < loss

    def be_told(self, kept: Kept) -> None:
        """The sender gets an acknowledgement, if it is up and not cut off."""
        assert kept.sender is not None
        if kept.done is None and not self.is_cut(kept.broker, kept.sender) and kept.sender not in self.fell:
            self.end(kept, ACKNOWLEDGED)

    # -- what becomes of it

    def lose_kept(self, kept: Kept, cause: str) -> None:
        """A copy is lost."""
        self.seen[f"copies lost, {cause}"] += 1
        kept.copies -= 1
        self.look(kept)

    def look(self, kept: Kept) -> None:
        """Nobody keeps it and no copy is left: if none has been handled, it is lost."""
        if kept.done is None or kept.copies or kept.done == "over":
            return
        if not kept.handled and kept.parents is None:
            self.dropped.add(kept.number)
            self.miss_root(kept.number)
            self.lost.update((pair, kept.done) for pair in self.due if pair[0] == kept.number)
        elif not kept.handled:
            assert kept.parents is not None
            assert kept.node is not None
            for below in self.below(kept.parents, kept.node):
                if self.on_tree(kept.number, self.broker_at[below]):
                    self.lost[kept.number, self.broker_at[below]] = kept.done
        kept.done, kept.remembered = "over", False
        self.gone(kept.number)
