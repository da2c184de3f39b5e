"""Tiny networks in which whoever sends a copy keeps it until it is acknowledged, and sends it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from oracles import faults
from oracles.faults import DRAINING, Faults, Healing
from oracles.network import AGAIN, ANSWERS, ARRIVALS, WAITING, Copy, Hop, Setting, World
from oracles.overlays import TopicConnected, avoiding, up_to

ACKNOWLEDGED = "acknowledged"
DETOUR = 2**16  # copies on detours are known by as many attempts more
# Any: fields of several types.
ANEW: dict[str, Any] = {"times": 0, "copies": 0, "timed": False, "handled": False, "done": None, "remembered": False}
ANEW["waits"] = False


@dataclass
class Delivery:
    """What is sent again: after `timeout` s, and each time `backoff` times as long after, at most `longest`; `attempts` times at most,
    and until `expire_after` s after the publication.

    `qualities`: by publication, 0: nothing is sent again, 1: users may get it twice, 2: nobody gets it twice. `persistent`: what
    brokers keep survives their crashes. Acknowledgements get lost on links where `chance(what, source, destination)` is below the
    probability of a loss; a broker `serves` those that come, as control messages which it loses in a crash.
    """

    timeout: float
    backoff: float
    longest: float
    attempts: int | None
    qualities: list[int]
    persistent: bool
    expire_after: float | None
    chance: Callable[[int, int, int], float] = lambda what, source, destination: 1.0
    serves: bool = False


@dataclass(eq=False)
class Kept:
    """What a sender (None: the publisher's client) keeps for a broker: at a place of the way up, at a node of a tree, or flooded."""

    number: int
    sender: int | None
    broker: int
    place: int | None = None
    node: int | None = None
    parents: dict[int, int | None] | None = None
    flooded: Copy | None = None
    final: bool = False  # the end of the way up
    detour: int = 0  # how many times a sender has gone round a broker for this, or for what it came of
    whose: set[int] | None = None  # on a detour below the root: the brokers that it is for
    above: int = 0  # hops from the root to where the detour's tree starts
    waits: bool = False  # there is no way to the broker
    times: int = 0  # that it has been sent
    copies: int = 0  # on links and at brokers
    timed: bool = False
    handled: bool = False
    done: str | None = None  # why it is not kept any more
    remembered: bool = False
    quality: int = 1
    turned: bool = False  # it has gone another way


class Network(faults.Network):
    """Runs at once."""

    def __init__(
        self,
        setting: Setting,
        world: World,
        faults: Faults,
        delivery: Delivery,
        moments: Iterable[float] = (),
        healing: Healing | None = None,
    ) -> None:
        self.delivery = delivery
        self.kept: list[Kept] = []  # all ever
        self.at_clients: list[int] = []  # publications that wait there
        self.awaits: dict[int, int] = {}  # by publication from outside: the broker at which it is to enter
        self.up_again: list[int] = []  # brokers that send what they keep once all has failed or healed that does so now
        super().__init__(setting, world, faults, moments, healing)

    def crash(self, broker: int) -> None:
        super().crash(broker)
        if not self.delivery.persistent:
            for kept in self.kept_by(broker):
                self.end(kept, "crashed")

    def restart(self, broker: int) -> None:
        super().restart(broker)
        self.up_again.append(broker)

    def fail(self) -> None:
        super().fail()
        self.resume()

    def shut(self) -> None:
        """A broker that leaves stays as long as it keeps something, or a client something for it."""
        assert self.drain is not None
        broker, *_, leaves = [*self.drain[:1], any(self.drain[4:])]
        for kept in self.kept if leaves and broker not in self.fell else ():
            if kept.done is None and broker == (kept.broker if kept.sender is None else kept.sender):
                self.seen["brokers that stay until all is acknowledged"] += 1
                self.at(self.now + self.delivery.timeout, DRAINING, self.shut)
                return
        super().shut()

    def open(self) -> None:
        super().open()
        self.resume()

    def connect(self, user: int, broker: int) -> None:
        super().connect(user, broker)
        self.at(self.now, WAITING, partial(self.publish_again, user, None))

    def begin_drain(self) -> None:
        """What waits for a broker that leaves enters at the next one."""
        super().begin_drain()
        if self.drain is not None and self.drain[0] in self.closed:
            self.at(self.now, WAITING, partial(self.publish_again, None, self.not_closed(self.drain[0])))

    def not_closed(self, broker: int) -> int:
        while broker in self.closed:
            broker = (broker + 1) % len(self.brokers)
        return broker

    def entry(self, number: int) -> int:
        """Where what is published from outside enters: the broker that it waits for already, unless that has begun to leave."""
        broker = self.awaits[number] = self.not_closed(self.awaits.get(number, self.outside(number)))
        return broker

    def publish_again(self, user: int | None, broker: int | None) -> None:
        """What the client has kept: a user, or whoever publishes from outside at the broker."""
        kept, self.at_clients = sorted(self.at_clients), []
        for number in kept:
            publisher = self.world.publications[number][2]
            if publisher == user and (user is not None or self.entry(number) == broker):
                self.seen["published again"] += 1
                self.publish(number)
            else:
                self.at_clients.append(number)

    def resume(self) -> None:
        up_again, self.up_again = self.up_again, []
        for broker in up_again:
            if broker not in self.fell:
                self.at(self.now, WAITING, partial(self.publish_again, None, broker))
            for kept in self.kept_by(broker) if broker not in self.fell else ():
                if not kept.timed:
                    self.seen["sent again after a restart"] += 1
                    self.send_again(kept)

    def kept_by(self, broker: int) -> list[Kept]:
        return [kept for kept in self.kept if kept.sender == broker and kept.done is None]

    # -- senders

    def publish(self, number: int) -> None:
        """The client has a publication for its broker, if it is connected to one."""
        _, topic, publisher, _ = self.world.publications[number]
        broker = self.entry(number) if publisher is None else self.host[publisher]
        if broker is None or broker in self.fell:
            if self.delivery.qualities[number] == 0:
                super().publish(number)
                return
            self.origin[number] = []
            self.at_clients.append(number)
            return
        node = self.setting.node_of[broker]
        self.origin[number] = self.way_up(topic, node)
        self.keep(Kept(number, None, broker, place=0, final=len(self.origin[number]) == 1))

    def way_up(self, topic: int, node: int) -> list[int]:
        return [self.broker_at[n] for n in self.setting.overlay.way_up(node, self.root(topic, node))]

    def forward(self, number: int, parents: dict[int, int | None], node: int) -> None:
        for child in sorted(n for n, above in parents.items() if above == node):
            here, there = self.broker_at[node], self.broker_at[child]
            self.keep(Kept(number, here, there, node=child, parents=parents))

    def flood_onward(self, copy: Copy, here: int, there: int) -> None:
        self.copies.append(copy)
        self.keep(Kept(copy.number, here, there, node=copy.node, flooded=copy))

    def keep(self, kept: Kept) -> None:
        self.begin_to_keep(kept)
        self.send_copy(kept)

    def begin_to_keep(self, kept: Kept) -> None:
        kept.quality = self.delivery.qualities[kept.number]
        kept.done = None if kept.quality else "sent"
        self.seen[f"copies of quality {kept.quality}"] += 1
        self.kept.append(kept)
        self.travelling[kept.number] += 1

    def send_copy(self, kept: Kept) -> None:
        """Once more; then wait for the acknowledgement, if that has not come yet."""
        before = kept.times + DETOUR * kept.detour
        kept.times += 1
        kept.copies += 1
        lost = partial(self.lose_kept, kept)
        if kept.sender is not None:
            due = kept.node is not None and self.is_for(kept, kept.broker)
            kind = "uplink" if kept.node is None else "tree" if kept.flooded is None else "flood"
            passes_on = not (kept.final or due)
            hop = Hop(kept.number, kept.sender, kept.broker, kind, self.now, due, again=before > 0, passes_on=passes_on)
            self.hops.append(hop)
            self.transmit(kept.number, kept.sender, kept.broker, partial(self.come, kept, before, hop), lost, before)
        elif kept.broker not in self.fell:
            self.come(kept, before, None)
        else:
            lost("crashed")
        self.start_to_wait(kept)

    def start_to_wait(self, kept: Kept) -> None:
        if kept.done is None:
            kept.timed = True
            self.at(self.now + self.wait(kept.times - 1), ARRIVALS, partial(self.time_out, kept))

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
        published, after = self.world.publications[kept.number][0], self.delivery.expire_after
        if kept.times == self.delivery.attempts or (after is not None and self.now - published >= after):
            self.end(kept, "expired")
        elif kept.sender is None or kept.handled or not (kept.waits or self.must_go_round(kept)):
            self.send_copy(kept)
        elif kept.flooded is not None:
            self.seen["floods that know no other way"] += 1
            self.send_copy(kept)
        elif kept.parents is None:
            self.climb_round(kept)
        else:
            self.go_round(kept)

    # -- around brokers that the overlay routes around

    def must_go_round(self, kept: Kept) -> bool:
        """Who has left the overlay knows no other route."""
        avoided = kept.broker in self.around or frozenset({kept.sender, kept.broker}) in self.avoided
        return avoided and kept.sender not in self.around

    def climb_round(self, kept: Kept) -> None:
        """The sender takes the present way up."""
        number, here, path = kept.number, kept.sender, self.origin[kept.number]
        assert here is not None
        assert kept.place is not None
        way = self.way_up(self.world.publications[number][1], self.setting.node_of[here])[1:]
        if way[:1] == [kept.broker]:
            self.send_copy(kept)
            return
        self.seen["detours up"] += 1
        self.first_way.setdefault(number, path)
        self.origin[number] = [*path[: kept.place], *way]
        if not way:
            self.leave_root(number)
            self.turn_away(kept)
            return
        new = Kept(number, here, way[0], place=kept.place, final=len(way) == 1, detour=kept.detour + 1)
        self.begin_to_keep(new)
        self.turn_away(kept)
        self.send_copy(new)

    def go_round(self, kept: Kept) -> None:
        """The sender takes the present routes to all that are due at the broker or below; those without one wait."""
        assert kept.parents is not None
        assert kept.node is not None
        assert kept.sender is not None
        number, here = kept.number, self.setting.node_of[kept.sender]
        below = [node for node in self.below(kept.parents, kept.node) if self.is_for(kept, self.broker_at[node])]
        if not below:
            self.send_copy(kept)
            return
        if kept.sender in self.around:
            kept.times += 1
            self.start_to_wait(kept)
            return
        ways = {node: self.way_to(number, here, node) for node in below if self.broker_at[node] not in self.around}
        ways = {node: way for node, way in ways.items() if not any(self.broker_at[n] in self.around for n in way)}
        cut = self.nodes_of(self.avoided)
        ways = {node: way for node, way in ways.items() if cut.isdisjoint(map(frozenset, pairwise(way)))}
        waiting = set(below) - ways.keys()
        if kept.waits and not ways:
            kept.times += 1
            self.start_to_wait(kept)
            return
        self.seen["detours down"] += 1
        self.seen["brokers that wait for a way"] += len(waiting)
        parents: dict[int, int | None] = {here: None, **dict.fromkeys(waiting, here)}
        for way in ways.values():
            for above, there in pairwise(way):
                assert parents.setdefault(there, above) == above
        top = kept.above + self.depth_of(kept.parents, kept.node) - 1
        new = [
            Kept(
                number,
                kept.sender,
                self.broker_at[node],
                node=node,
                parents=parents,
                detour=kept.detour + 1,
                whose={self.broker_at[node] for node in below},
                above=top,
                waits=node in waiting,
            )
            for node in sorted(node for node, above in parents.items() if above == here)
        ]
        for each in new:
            self.begin_to_keep(each)
        self.turn_away(kept)
        for each in new:
            if each.waits:
                each.times += 1
                self.start_to_wait(each)
            else:
                self.send_copy(each)

    def way_to(self, number: int, here: int, there: int) -> list[int]:
        """The present route; in an overlay of topics, over the topic's links as far as these lead, else directly."""
        overlay, topic = self.setting.overlay, self.world.publications[number][1]
        if not isinstance(overlay, TopicConnected):
            return overlay.route(here, there)
        parents = overlay.tree(here, self.members(topic))
        above = {node: parents.get(node, here) for node in sorted(self.setting.node_of) if node != here}
        if overlay.cut:
            gone = self.around_nodes()
            above |= avoiding({node: over for node, over in above.items() if node not in gone}, here, overlay.cut)
        return up_to(there, above)[::-1]

    def turn_away(self, kept: Kept) -> None:
        """It goes another way: the sender keeps it no longer, and whatever still comes of it is a duplicate."""
        kept.handled = kept.turned = True
        self.end(kept, "rerouted")

    def is_for(self, kept: Kept, broker: int) -> bool:
        """Whether this is by what the broker's users get it."""
        return self.on_tree(kept.number, broker) and (kept.whose is None or broker in kept.whose)

    def end(self, kept: Kept, why: str) -> None:
        """The sender keeps it no longer."""
        kept.done = why
        self.look(kept)

    # -- receivers

    def come(self, kept: Kept, before: int, hop: Hop | None) -> None:
        """A copy is at its broker."""
        number, broker, size = kept.number, kept.broker, self.world.publications[kept.number][3]
        if kept.flooded is not None:
            known = (number, kept.node) in self.flooded
            stage, work = (2, (0, 0, size)) if known else (1, self.work_of_flood(kept.flooded))
        elif kept.handled:
            stage, work = 2, (0, self.users_again(kept), size)
        elif kept.parents is not None:
            copies = sum(above == kept.node for above in kept.parents.values())
            stage, work = 1, (copies, self.users_below(number, broker) if self.is_for(kept, broker) else 0, size)
        else:
            stage, work = 0, self.work_of_root(number, broker) if kept.final else (1, 0, size)
        handled = partial(self.handle, kept, before, self.now)
        if not self.offer(broker, number + before * AGAIN, stage, work, handled, partial(self.lose_kept, kept)):
            self.lose_kept(kept, "queue_full")
        elif hop is not None:
            hop.received = self.now

    def users_there(self, kept: Kept) -> int:
        """The users whom the broker has served."""
        pair = kept.number, kept.broker
        last = kept.final if kept.node is None else self.is_for(kept, kept.broker)
        return self.users_below(*pair) if last and pair in self.delivered and not kept.turned else 0

    def users_again(self, kept: Kept) -> int:
        """The users whom the broker serves again; where it is flooded, brokers know what they have had anyway."""
        return 0 if kept.quality == 2 or self.setting.floods else self.users_there(kept)

    def handle(self, kept: Kept, before: int, came: float) -> None:
        number, broker = kept.number, kept.broker
        kept.copies -= 1
        if kept.flooded is not None and (number, kept.node) in self.flooded:
            self.seen[
                "duplicates from the same neighbour" if kept.handled else "duplicates from another neighbour"
            ] += 1
            self.duplicates[number] += 1
            kept.handled = True
        elif kept.handled:
            self.duplicates[number] += 1
            self.repeated[number, broker] += self.users_again(kept)
        else:
            kept.handled = True
            if kept.flooded is not None:
                self.spread_first(kept.flooded, came)
            elif kept.parents is not None:
                assert kept.node is not None
                if self.is_for(kept, broker):
                    self.arrived[number, broker] = came
                    self.depth[number, broker] = kept.above + self.depth_of(kept.parents, kept.node)
                    self.deliver(number, broker)
                for child in sorted(n for n, above in kept.parents.items() if above == kept.node):
                    self.keep(replace(kept, sender=broker, broker=self.broker_at[child], node=child, **ANEW))
            elif kept.final:
                self.leave_root(number)
            else:
                assert kept.place is not None
                place, path = kept.place + 1, self.origin[number]
                final = place == len(path) - 1
                self.keep(Kept(number, broker, path[place], place=place, final=final, detour=kept.detour))
            kept.remembered = kept.quality == 2 and self.users_there(kept) > 0
            remembered = Counter(other.broker for other in self.kept if other.remembered)
            self.most_remembered = max([self.most_remembered, *remembered.values()])
        self.acknowledge(kept, before)
        self.look(kept)

    def spread_first(self, copy: Copy, came: float) -> None:
        """A broker has served the first copy of a flood, from whichever neighbour."""
        number, broker = copy.number, self.broker_at[copy.node]
        self.reached[number, copy.node] = self.hops_of(copy)
        self.depth[number, broker] = self.hops_of(copy)
        self.flooded.add((number, copy.node))
        if self.on_tree(number, broker):
            self.arrived[number, broker] = came
            self.deliver(number, broker)
        self.flood(copy)

    def acknowledge(self, kept: Kept, before: int) -> None:
        """Straight back over the link, unless it is cut or loses it; to the client at once. Nothing is acknowledged at quality 0."""
        if kept.quality == 0:
            return
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
            self.at(self.now + self.setting.delay[here][there], ARRIVALS, partial(self.be_told, kept, before))

    def loses_acknowledgement(self, what: int, here: int, there: int) -> bool:
        if self.setting.lines is None:
            return False
        loss = self.setting.lines.loss if self.loss is None else self.loss
        return self.delivery.chance(what, here, there) < loss

    def be_told(self, kept: Kept, before: int) -> None:
        """The sender gets an acknowledgement, if it is up and not cut off."""
        assert kept.sender is not None
        if self.is_cut(kept.broker, kept.sender) or kept.sender in self.fell:
            return
        known = partial(self.know, kept)
        if self.delivery.serves:
            self.seen["acknowledgements served"] += 1
            what = -(ANSWERS + kept.number + before * AGAIN)
            self.offer(kept.sender, what, 3 + kept.broker, (0, 0, 0), known)
        else:
            known()

    def know(self, kept: Kept) -> None:
        if kept.done is None:
            self.end(kept, ACKNOWLEDGED)

    # -- what becomes of it

    def lose_kept(self, kept: Kept, cause: str) -> None:
        """A copy is lost, and with it what it carries if that is not kept."""
        self.seen[f"copies lost, {cause}"] += 1
        if kept.quality == 0:
            kept.done = cause
        kept.copies -= 1
        self.look(kept)

    def look(self, kept: Kept) -> None:
        """Nobody keeps it and no copy is left: if none has been handled, it is lost."""
        if kept.done is None or kept.copies or kept.done == "over":
            return
        if kept.flooded is not None:
            self.copies.remove(kept.flooded)
            if not kept.handled:
                self.short.setdefault(kept.number, []).append((kept.flooded, kept.done))
        elif not kept.handled and kept.parents is None:
            self.dropped.add(kept.number)
            self.miss_root(kept.number)
            self.lost.update((pair, kept.done) for pair in self.due if pair[0] == kept.number)
        elif not kept.handled:
            assert kept.parents is not None
            assert kept.node is not None
            for below in self.below(kept.parents, kept.node):
                if self.is_for(kept, self.broker_at[below]):
                    self.lost[kept.number, self.broker_at[below]] = kept.done
        kept.done, kept.remembered = "over", False
        self.gone(kept.number)
        if self.setting.floods and kept.number in self.rooted and kept.number not in self.travelling:
            self.lose_flooded(kept.number)
