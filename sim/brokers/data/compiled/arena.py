"""Trees and uplinks of the compiled engine: positions in one array, unchanged while any message uses them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.departures import Starts
from sim.brokers.data.compiled.records import POSITION, SLOT, TALLY, VERSION
from sim.brokers.data.compiled.state import LINKED, NONE, UPLINKED
from sim.brokers.data.detours import Branch
from sim.brokers.data.due import Due, DueByTopic
from sim.brokers.data.routes import Uplinks
from sim.brokers.data.shared_ways import MOST_WAYS, SharedWays
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.sharing import NOBODY_CHOSEN, Chosen
from sim.overlay.geometry import TopicTree
from sim.overlay.pair_times import TimesRecord, time_between


class Shape(NamedTuple):
    """The shape of a tree: the fields of TopicTree of the same names."""

    parents: NDArray[np.int32]
    first_child: NDArray[np.int32]
    depth: NDArray[np.int32]


@kernel
def place_tree(
    places: Items, first: int, brokers: NDArray[np.int32], users: NDArray[np.int32], shape: Shape, hops: TimesRecord
) -> tuple[int, int, int]:
    """Write a tree to positions from `first` on, with each broker's number of due users; `hops` are the times between brokers.

    Returns the most children of a position, and how many brokers and users are due on the tree.
    """
    most, parents = 0, shape.parents
    for i in range(places.size):
        place = places[i]
        children = shape.first_child[i + 1] - shape.first_child[i]
        place.broker, place.users, place.depth, place.link = brokers[i], users[i], shape.depth[i], 0
        place.first, place.children = first + shape.first_child[i], children
        place.below_brokers, place.below_users = int(users[i] > 0), users[i]
        place.hop = 0.0 if i == 0 else time_between(hops, brokers[parents[i]], brokers[i])
        most = max(most, children)
    for i in range(places.size - 1, 0, -1):
        above = places[parents[i]]
        above.below_brokers += places[i].below_brokers
        above.below_users += places[i].below_users
    if places.size == 0:
        return 0, 0, 0
    return int(most), int(places[0].below_brokers), int(places[0].below_users)


class Current(NamedTuple):
    """The inputs of a version."""

    tree: TopicTree
    whole: TopicTree  # the same, or the one of which it is a part, where subscriptions are shared
    brokers: NDArray[np.int32]  # by position
    subscriptions: int  # version of the topic's
    moves: int  # counts of brokers reached so far
    due: Due
    slot: int
    period: int


class Diverted(NamedTuple):
    """The positions of a detour, of the flight with this index and `number`, for its audience in its period."""

    first: int
    size: int
    flight: int
    number: int
    brokers: NDArray[np.int32]
    audience: Audience | None
    period: int


class Arena:
    """Slots, versions and positions, which are allocated and freed in blocks of powers of two.

    `current` has the inputs of each version, `retired` are replaced versions that may still be in use. `diverted` are detours.
    """

    def __init__(self, fabric: Fabric, due: DueByTopic) -> None:
        self._fabric, self._due = fabric, due
        self._numbers = not fabric.links.fixed or fabric.transmission is not None
        self._uplinks, self._floods = Uplinks(fabric), fabric.overlay.floods
        self.positions, self.tallies = np.zeros(1024, POSITION), np.zeros(1024, TALLY)
        self.slots, self.versions = np.zeros(64, SLOT), np.zeros(64, VERSION)
        self.used, self.used_slots = 0, 0
        self.most_children = self.most_cells = 1
        self._free: dict[int, list[int]] = {}  # blocks, by their size
        self.current: dict[int, Current] = {}  # by version
        self.retired: list[int] = []
        self.diverted: list[Diverted] = []
        self._free_versions: list[int] = []
        self._moves = 0  # of brokers
        self._slots: dict[tuple[int, int], int] = {}  # by topic and root
        self._ways = SharedWays(fabric, due)
        self._choices: dict[int, dict[Chosen, int]] = {}  # by version of a slot: the versions for what was chosen
        self._latest: dict[int, dict[int, int]] = {}  # by slot, for the last two periods: its latest version
        self._brokers, self._starts = len(fabric.node_of), Starts(self._climb)
        self._shared: dict[tuple[int, int, int], int] = {}  # by slot, next position and broker: a position of uplinks
        self.links: dict[tuple[int, int], int] = {}  # numbers of the links used, where links have rates or losses

    # -- uplinks

    def uplinks(self, topics: NDArray[np.int64], brokers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The positions at which the topics' uplinks from the brokers start."""
        return self._starts.of(topics * self._brokers + brokers)

    def _climb(self, entry: int) -> int:
        """The position at which an uplink starts, by topic · brokers + broker; uplinks with the same continuation share positions."""
        topic, broker = divmod(entry, self._brokers)
        brokers = self._uplinks.of(topic, broker).brokers
        root = brokers[-1]
        slot = self._slots.get((topic, root))
        if slot is None:
            slot = self._slots[topic, root] = self._slot(topic, root)
        position = NONE
        for depth, broker in enumerate(reversed(brokers)):
            above, position = position, self._shared.get((slot, position, broker), NONE)
            if position == NONE:
                position = self._shared[slot, above, broker] = self._take(1)
                hop, link = 0.0, 0
                if above != NONE:
                    there = int(self.positions[above]["broker"])
                    hop, link = self._fabric.links.times(broker)[there], self._link(broker, there)
                self.positions[position] = (hop, broker, above, slot, above == NONE, UPLINKED, 0, link, depth)
        return position

    def _slot(self, topic: int, root: int) -> int:
        number = self.used_slots
        self.used_slots += 1
        if number == len(self.slots):
            self.slots = longer(self.slots)
        self.slots[number] = (topic, root, NONE, -1, 0, 0)
        return number

    def _take(self, size: int) -> int:
        block = _block(size)
        if self._free.get(block):
            return self._free[block].pop()
        first = self.used
        self.used += block
        while self.used > len(self.positions):
            self.positions, self.tallies = longer(self.positions), longer(self.tallies)
        return first

    def _link(self, here: int, there: int) -> int:
        return self.link(here, there) if self._numbers else 0

    def link(self, here: int, there: int) -> int:
        """The number of a link."""
        return self.links.setdefault((here, there), len(self.links))

    # -- trees

    def refresh(self, slot: int, period: int, epoch: int) -> None:
        """Update a slot for publications of a period, with the tree and subscriptions of this epoch."""
        fabric, due, entry = self._fabric, self._due, self.slots[slot]
        topic, root = int(entry["topic"]), int(entry["root"])
        tree = fabric.overlay.tree(topic, int(fabric.node_of[root]))
        latest, subscriptions = self._latest.setdefault(slot, {}), due.subscriptions.version.item(topic)
        version = latest.get(period, NONE)
        if version == NONE or not self._holds(version, tree, subscriptions):
            known, short = self._current(slot, period, NOBODY_CHOSEN), due.short_of_root(topic)
            if version != NONE:
                self._retire(version)
            version = latest[period] = self._version(known)
            if len(latest) > 2:
                self._retire(latest.pop(min(other for other in latest if other != period)))
            entry["brokers"], entry["users"] = short.brokers, short.users
        entry["version"], entry["checked"] = version, epoch

    def _current(self, slot: int, period: int, chosen: Chosen) -> Current:
        fabric, due, (topic, root) = self._fabric, self._due, self.slots[slot][["topic", "root"]].item()
        tree = fabric.overlay.tree(topic, int(fabric.node_of[root]))
        subscriptions = due.subscriptions.version.item(topic)
        if due.shared is not None and topic in due.shared:
            part, brokers, _, leaving = self._ways.of(topic, root, chosen)
            return Current(part, tree, brokers, subscriptions, self._moves, leaving, slot, period)
        brokers = fabric.broker_of[tree.nodes]
        return Current(tree, tree, brokers, subscriptions, self._moves, due.leaving_root(topic, brokers), slot, period)

    def shares(self, slot: int) -> bool:
        """Whether members of groups are to be chosen for what leaves the root of an up-to-date slot."""
        return bool(self.versions[self.slots[slot]["version"]]["groups"])

    def choose(self, slot: int, number: int, origin: int, now: float) -> int:
        """The version for a publication that came to a broker and leaves its root now (s), with the members chosen for it."""
        (topic, base), shared = self.slots[slot][["topic", "version"]].item(), self._due.shared
        assert shared is not None
        chosen, known = shared.choose(topic, number, origin, now), self._choices.setdefault(base, {})
        if len(known) == MOST_WAYS and chosen not in known:
            self.retired += known.values()
            known.clear()
        if chosen not in known:
            known[chosen] = self._version(self._current(slot, self.current[base].period, chosen))
        return known[chosen]

    def _retire(self, version: int) -> None:
        self.retired += [version, *self._choices.pop(version, {}).values()]

    def _holds(self, version: int, tree: TopicTree, subscriptions: int) -> bool:
        known = self.current[version]
        return known.whole is tree and known.moves == self._moves and known.subscriptions == subscriptions

    def _version(self, known: Current) -> int:
        tree, brokers, due, size = known.tree, known.brokers, known.due, len(known.tree)
        number = self._free_versions.pop() if self._free_versions else len(self.current)
        if number == len(self.versions):
            self.versions = longer(self.versions)
        self.current[number] = known
        first = self._take(size) if size else 0
        made = self.positions[first : first + size]
        shape = Shape(tree.parents, tree.first_child, tree.depth)
        most, *reached = place_tree(made, first, brokers, due.on_tree, shape, self._fabric.links.hops.record)
        if self._floods:
            self._link_places(tree, brokers, due.on_tree, first)
            most = int(made["children"].max(initial=0))
        elif self._numbers:
            made["link"][1:] = self._link_numbers(brokers[tree.parents[1:]], brokers[1:])
        self.most_children = max(self.most_children, most)
        self.most_cells = max(self.most_cells, _block(size))
        off_tree = due.brokers - reached[0], due.users - due.absent - reached[1]
        self.versions[number] = (
            first,
            size,
            known.period,
            tree.hop_limit,
            len(due.offloaded.brokers) > 0,
            due.brokers,
            due.users,
            *off_tree,
            due.absent,
            due.groups,
            *(0, 0),
        )
        return number

    def blocks(self, version: int) -> list[tuple[int, int]]:
        """The first position of a version, and their number."""
        first, size = self.versions[version][["first", "size"]].item()
        places = self.positions[first : first + size]
        links = int(places["children"].sum()) if self._floods else 0
        return [(first, size), *([(int(places["first"][0]), links)] if links else [])]

    def report(self, number: int, recorder: Recorder) -> None:
        """Report to a version's audience how many publications reached each position, of how many that became due."""
        known, version = self.current[number], self.versions[number]
        if known.due.audience is None:
            return
        first, size = int(version["first"]), int(version["size"])
        delivered = self.tallies["delivered"][first : first + size]
        if version["flights"] or delivered.any():
            flights = int(version["flights"])
            recorder.arrive(known.due.audience, known.period, flights, known.brokers, delivered.copy())
            delivered[:] = 0
            version["flights"] = 0

    def divert(self, branch: Branch, users: dict[int, int], above: int, number: int, flight: Item) -> int:
        """The first position of a detour of a flight (by its number), `above` hops below the root, with the due users by broker."""
        first, size = self._take(len(branch.brokers)), len(branch.brokers)
        made, brokers = self.positions[first : first + size], branch.brokers
        due = np.array([users.get(broker, 0) for broker in brokers.tolist()], np.int32)
        shape = Shape(branch.parents, branch.first_child, branch.depth + np.int32(above))
        most, *_ = place_tree(made, first, brokers, due, shape, self._fabric.links.hops.record)
        if self._numbers:
            made["link"][1:] = self._link_numbers(brokers[branch.parents[1:]], brokers[1:])
        self.most_children = max(self.most_children, most)
        known = self.current[int(flight["version"])]
        self.diverted.append(
            Diverted(first, size, number, int(flight["number"]), brokers, known.due.audience, known.period)
        )
        return first

    def report_diverted(self, recorder: Recorder) -> None:
        """Report to the audiences how many publications reached each position of detours."""
        for detour in self.diverted:
            delivered = self.tallies["delivered"][detour.first : detour.first + detour.size]
            if detour.audience is not None and delivered.any():
                recorder.arrive(detour.audience, detour.period, 0, detour.brokers, delivered.copy())
                delivered[:] = 0

    def give_back(self, version: int) -> None:
        """Free a version that is no longer in use."""
        for first, size in self.blocks(version):
            self.give_back_block(first, size)
        del self.current[version]
        self._free_versions.append(version)

    def give_back_block(self, first: int, size: int) -> None:
        """Free positions."""
        for records in (self.positions, self.tallies):
            records[first : first + size].view(np.uint8)[:] = 0
        if size:
            self._free.setdefault(_block(size), []).append(first)

    def _link_places(self, tree: TopicTree, brokers: NDArray[np.int32], users: NDArray[np.int32], first: int) -> None:
        """Allocate positions for the links between the places of a flooded topic."""
        bounds, onward = tree.next_hops
        links = self._take(len(onward)) if len(onward) else 0
        made, places = self.positions[links : links + len(onward)], self.positions[first : first + len(tree)]
        source = np.repeat(np.arange(len(tree)), np.diff(bounds))
        places["first"], places["children"], places["below_brokers"] = bounds[:-1] + links, np.diff(bounds), 0
        made["first"], made["children"], made["below_brokers"] = onward + first, source + first, LINKED
        made["broker"], made["users"] = brokers[onward], users[onward]
        made["hop"] = self._fabric.links.hops[brokers[source], brokers[onward]]
        made["link"] = self._link_numbers(brokers[source], brokers[onward])

    def _link_numbers(self, here: NDArray[np.int32], there: NDArray[np.int32]) -> list[int]:
        return [self._link(*pair) for pair in zip(here.tolist(), there.tolist(), strict=True)]

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        self._uplinks.brokers_moved()
        self._starts.clear()
        self._moves += 1
        self._ways.brokers_moved()

    def trees_change(self) -> None:
        """Trees, subscriptions, or links that follow interests are about to change."""
        self._uplinks.trees_change()
        if not self._fabric.overlay.single_root:
            self._starts.clear()


def _block(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def longer(records: Items) -> Items:
    """The records with twice the capacity."""
    return np.concatenate([records, np.zeros(len(records), records.dtype)])
