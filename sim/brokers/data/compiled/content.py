"""The compiled engine for content: the loop carries the copies of publications, and the rule of content determines their outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.carrier import CompiledCarrier
from sim.brokers.data.compiled.cells import give_cells_back
from sim.brokers.data.content import ContentRule, Copy
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.ledger import LOST_COPIES, PUBLISHED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications


class CompiledContentCarrier(CompiledCarrier):
    """Carries copies of content hop by hop (see CompiledCarrier).

    The loop notes when each copy leaves its root, is dropped on its way there, or is over, and keeps in cells when it arrived and
    was served at each place. Before anything changes, all notes are passed to the rule in order: it counts, not the loop.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        subscriptions: Subscriptions,
        publications: Publications,
        rule: ContentRule,
    ) -> None:
        super().__init__(fabric, recorder, subscriptions, publications)
        self._rule, self._fields = rule, rule.content.fields
        self._copies: dict[int, Copy] = {}  # copies that are not over, by identity, in the order in which they departed
        self._arrays["windows"]["measured"] = False
        self._memory.use("pairs", np.zeros_like(recorder.statistics.pairs))
        state, subscribed, stations = self._state, rule.content.subscribed(), fabric.service.setting
        state["content"], state["heeds"], state["matches"] = True, stations.weighs, stations.matching > 0
        state["fields"], state["predicates"] = self._fields, len(subscribed["asked_field"])
        state["conjunctions"] = len(subscribed["owner"])
        for name, array in subscribed.items():
            self._memory.use(name, array)

    def _flights(
        self, numbers: NDArray[np.int64], brokers: NDArray[np.int32], windows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        self._memory.use("host", self._rule.host())
        for number, broker, window in zip(numbers.tolist(), brokers.tolist(), windows.tolist(), strict=True):
            for copy in self._rule.flights(number, broker, window):
                self._copies[copy.identity] = copy
        identities = (numbers[:, None] * self._fields + np.arange(self._fields)).ravel()
        topics = [self._copies[identity].topic for identity in identities.tolist()]
        return np.repeat(np.arange(len(numbers)), self._fields), np.array(topics, np.int64), identities

    def trees_change(self) -> None:
        """Trees and hosts are about to change."""
        self.act_on_notes()
        super().trees_change()
        self._rule.trees_change()

    def brokers_moved(self) -> None:
        """Brokers have moved to other nodes; copies on their way to a root keep their path of brokers."""
        super().brokers_moved()
        self._rule.brokers_moved()

    def act_on_notes(self) -> None:
        """Pass all notes to the rule."""
        rule, notes = self._rule, self._notes()
        rows = (notes[name].tolist() for name in ("number", "what", "time", "hops"))
        for number, what, time, hops in zip(*rows, strict=True):
            copy = self._copies[number]
            if what == st.LEFT_ROOT:
                rule.leave_root(copy, time)
                if self._state["heeds"]:
                    self._weigh(copy, hops)
            elif what != st.OVER:
                rule.miss_root(copy, what)
            else:
                del self._copies[number]
                if copy.tree is None:
                    rule.over(copy, hops)
                else:
                    self._read(copy, hops)
                    rule.over(copy, len(copy.uplink) - 1)

    def _weigh(self, copy: Copy, first: int) -> None:
        """Write to the copy's cells how many users each broker has to send it to."""
        users = [len(copy.concerned.get(broker, ())) for broker in copy.brokers]
        self._arrays["cells"]["state"][first : first + len(users)] += np.array(users, np.int32) * st.DEPTH

    def _read(self, copy: Copy, first: int) -> None:
        """Read the outcome of a copy from its cells, and free them."""
        if copy.brokers:
            cells = self._arrays["cells"][first : first + len(copy.brokers)]
            copy.arrival, copy.served = cells["arrived"].tolist(), cells["served"].tolist()
            lost = cells["state"] % st.DEPTH // st.LOST_THERE
            for position in np.flatnonzero(lost).tolist():
                copy.lose(LOST_COPIES[int(lost[position]).bit_length() - 1], position)
            give_cells_back(self._memory.states, first, len(copy.brokers))

    # -- the end

    def _close_publications(self, held: list[tuple[int, int]]) -> None:
        """As `Carrier.close`: what brokers hold back, and what is in transit."""
        rule = self._rule
        for window, departed in enumerate(self._arrays["windows"]["published"].tolist()):
            self._recorder.ledger.count_publication(window, PUBLISHED, departed // self._fields)
        for number, broker in held:
            rule.never_set_out(number, broker)
        travelling = self._travelling()
        for number, copy in self._copies.items():
            if number not in travelling:
                continue  # for a publication after the end
            first, places = travelling[number]
            if copy.tree is None:
                rule.overtake(copy, places[0])
            else:
                self._read(copy, first)
                rule.over(copy, len(copy.uplink) - 1, rule.ahead(copy, places))
        rule.finished.record()

    def _travelling(self) -> dict[int, tuple[int, list[int]]]:
        """For each copy in transit: its first cell, and the tree positions that its messages are at or heading to.

        For one on its way to its root, the hops that it will have taken when the present hop ends.
        """
        arrays, found = self._arrays, dict[int, tuple[int, list[int]]]()
        messages = arrays["messages"]
        messages = messages[(messages["kind"] != st.NONE) & (messages["kind"] % st.SERVED != st.REQUEST)]
        flights, positions = arrays["flights"][messages["flight"]], messages["position"]
        starts = np.where(flights["version"] == st.NONE, 0, arrays["versions"]["first"][flights["version"]])
        up = flights["hops"] - arrays["positions"]["depth"][positions]
        places = np.where(flights["version"] == st.NONE, up, positions - starts)
        columns = flights["number"].tolist(), flights["hops"].tolist(), places.tolist()
        for number, first, place in zip(*columns, strict=True):
            found.setdefault(number, (first, []))[1].append(place)
        return found
