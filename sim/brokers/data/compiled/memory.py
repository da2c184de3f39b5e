"""The memory of the compiled engine: its state, and arrays that grow when its loop needs more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.brokers.data.compiled import state as st
from sim.brokers.data.compiled.arena import Arena, longer
from sim.brokers.data.compiled.calendar import NO_BUCKET
from sim.brokers.data.compiled.departures import Departing, line_up
from sim.brokers.data.compiled.lines import end_window
from sim.brokers.data.compiled.records import CARRIED, CELL, FLOAT, HEAPED, KEPT, PENDING, PORT, SENDING
from sim.brokers.fabric.delivery import DeliverySetting
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.link_windows import LINK_COLUMNS
from sim.brokers.fabric.outages import Outages
from sim.brokers.fabric.overflow import ARRIVING, OVERFLOWS, dropped
from sim.brokers.fabric.service import relative_to_mean, spread_of
from sim.brokers.fabric.station_windows import LOOKED_AT, StationWindows
from sim.brokers.fabric.transmission import Transmission
from sim.brokers.fabric.window_ends import WindowEnds
from sim.brokers.statistics.deliveries import DeliveryBuffer
from sim.brokers.statistics.recorder import Recorder

_BUCKETS = 1 << 12
_NOTES = 1 << 12
_HOPS = 1 << 12
_DELIVERIES = 1 << 13


class Memory:
    """The state for kernels (`states`) and as a record (`state`), and its arrays by name; flights are counted by `periods`."""

    def __init__(self, fabric: Fabric, recorder: Recorder, periods: int) -> None:
        stations, capacity = fabric.service.setting, fabric.service.capacity
        self.states = np.zeros(1, st.STATE)
        self.state = self.states[0]
        self.arrays: dict[str, Items] = {}
        self._set_constants(fabric, recorder)
        for name in st.STATISTICS:
            self.use(name, getattr(recorder.statistics, name))
        for name in st.HOP_TIMES:
            self.use(name, getattr(fabric.links.hops.record, name))
        sizes = {"pending": 1 << 10, "notes": _NOTES, "windows": len(recorder.measured), "finished": periods}
        sizes |= {"buckets": _BUCKETS, "filled": _BUCKETS >> 6, "last_arrival": 1 << 10}
        sizes |= dict.fromkeys(("messages", "flights", "heap", "cells", "waits", "ports", "sent"), 0)
        sizes |= {"free_cells": 32, "lines": 1 << 10, "traced": 0 if recorder.trace is None else _HOPS}
        sizes |= {"deliveries": 0 if recorder.deliveries is None else _DELIVERIES}
        sizes |= {"servers": len(capacity), "in_service": len(capacity) * stations.servers}
        for name, size in sizes.items():
            self.use(name, np.zeros(size, st.ARRAYS[name]))
        self.arrays["windows"]["measured"] = recorder.measured
        self.arrays["buckets"]["first"] = self.arrays["free_cells"]["value"] = st.NONE
        self.arrays["servers"][["first", "first_control"]] = st.NONE
        self.arrays["servers"]["since"] = recorder.warm_up
        for name in ("time", "matching", "send", "send_client", "per_byte", "acknowledgement", "wake_up"):
            self._use_reals("service" if name == "time" else name, getattr(stations, name) / capacity)
        relative, shares = relative_to_mean(*stations.histogram) if stations.service == "histogram" else ([], [])
        self._use_reals("relative", relative)
        self._use_reals("shares", shares)
        self.state["shares_many"] = len(shares)
        self.windows, self._ends = (
            StationWindows(recorder.edges, recorder.measured),
            WindowEnds(recorder.edges, recorder.measured),
        )
        self._transmission, self._link_keys = fabric.transmission, np.empty(0, np.int64)
        looks = self.state["takes_time"] or fabric.transmission is not None
        self.state["look_at"] = self._ends.next if looks else np.inf
        self._grow_messages(1 << 10)
        self._grow_flights(1 << 10)
        if fabric.transmission is not None:
            self._set_limits(fabric.transmission)
        if fabric.delivery.guarantees:
            self._set_guarantee(fabric.delivery)
        if fabric.outages is not None:
            self.use("outages", np.zeros(len(capacity), st.ARRAYS["outages"]))
            self.look_at_outages(fabric.outages, fabric.transmission)

    def _set_constants(self, fabric: Fabric, recorder: Recorder) -> None:
        state, links, stations = self.state, fabric.links, fabric.service.setting
        state["brokers"], state["jitter"], state["jitter_key"] = len(fabric.node_of), links.jitter, links.key
        hops = links.hops.record
        state["groups"], state["on_sphere"] = len(hops.between), len(hops.places) > 0
        state["base"], state["per_arc"] = hops.base, hops.per_arc
        state["takes_time"], state["service_kind"] = stations.service != "none", st.SERVICES[stations.service]
        costs = stations.weighs, stations.wake_up > 0, stations.acknowledgement > 0
        state["weighs"], state["wakes_up"], state["answers_take_time"] = costs
        state["wake_up_half"], state["always_woken"] = stations.wake_up_half, stations.always_woken
        state["servers_each"], state["fifo"] = stations.servers, stations.order == "fifo"
        state["shape"], state["sigma"], state["variance"] = spread_of(stations.variation)
        state["service_key"], state["slowdown"] = fabric.service.key, stations.wake_up_slowdown
        state["warm_up"], state["horizon"] = recorder.warm_up, recorder.horizon
        state["bound"] = -1 if stations.queue is None else stations.queue
        state["bytes_bound"] = -1 if stations.queue_bytes is None else stations.queue_bytes
        state["overflow"] = overflow = OVERFLOWS.index(stations.overflow)
        state["makes_room"] = dropped(overflow, 1) != ARRIVING
        state["free_message"] = state["free_flight"] = state["free_wait"] = state["far"] = state["bucket"] = st.NONE
        state["far_bucket"], state["per_second"], state["bucket_count"] = NO_BUCKET, 1024.0, _BUCKETS
        state["floods"], state["faulty"] = fabric.overlay.floods, fabric.outages is not None
        if recorder.trace is not None:
            state["traces"], state["hops_room"] = True, _HOPS
            state["trace_key"], state["traced_share"] = recorder.trace.key, recorder.trace.share
        if recorder.deliveries is not None:
            state["hands_over"], state["handed_room"] = True, _DELIVERIES
        state["off_tree"], state["by_topic"] = recorder.statistics.off_tree, len(recorder.statistics.topics) > 0
        state["chosen"], state["notes_room"], state["delay_slots"] = st.NONE, _NOTES, len(recorder.statistics.delays)

    def _set_limits(self, transmission: Transmission) -> None:
        state, setting = self.state, transmission.setting
        state["limited"], state["loss"], state["loss_key"] = True, setting.loss, transmission.key
        state["bandwidth"], state["interface"] = setting.bandwidth or 0.0, setting.interface or 0.0
        state["buffers"] = setting.buffer is not None or setting.buffer_bytes is not None
        state["buffer"] = -1 if setting.buffer is None else setting.buffer
        state["buffer_bytes"] = -1 if setting.buffer_bytes is None else setting.buffer_bytes
        self.use("ports", np.zeros(int(state["brokers"]), PORT))

    def _set_guarantee(self, delivery: DeliverySetting) -> None:
        state = self.state
        state["guarantees"], state["quality"] = True, -1 if delivery.quality is None else delivery.quality
        state["most_attempts"] = -1 if delivery.attempts is None else delivery.attempts
        state["timeout"], state["backoff"], state["longest"] = delivery.timeout, delivery.backoff, delivery.longest
        state["expire_after"] = np.inf if delivery.expire_after is None else delivery.expire_after
        state["free_kept"] = st.NONE
        self.use("kept", np.zeros(0, KEPT))
        self.use("remembered", np.zeros(int(state["brokers"]), st.ARRAYS["remembered"]))
        self.use("carries", np.zeros(len(self.arrays["messages"]), CARRIED))

    def look_at_outages(self, outages: Outages, transmission: Transmission | None) -> None:
        """Let the kernels know what has failed now."""
        brokers = self.arrays["outages"]
        for name in ("down", "bypassed", "side", "slowed"):
            brokers[name] = getattr(outages, name)
        brokers["avoided"] = outages.avoided.sides
        for name, links in (("cut_links", outages.links), ("avoided_links", outages.avoided.links)):
            self.use(name, links)
            self.state[f"{name}_many"] = len(links)
        self.state["outage"], self.state["cuts"], self.state["avoids"] = outages.active, outages.cuts, outages.avoids
        if transmission is not None:
            self.state["loss"] = transmission.loss

    def use(self, name: str, array: NDArray[np.generic]) -> None:
        """Give the kernels the address of an array."""
        assert array.flags.c_contiguous
        self.arrays[name] = array
        self.state[name] = array.ctypes.data

    def _use_reals(self, name: str, values: Sequence[float] | NDArray[np.float64]) -> None:
        self.use(name, np.array(values, np.float64).view(FLOAT))

    def use_arena(self, arena: Arena) -> None:
        """Give the kernels the addresses of the arena's present arrays."""
        for name in ("positions", "tallies", "slots", "versions"):
            array = getattr(arena, name)
            if self.arrays.get(name) is not array:
                self.use(name, array)
        self.state["most_children"], self.state["most_cells"] = arena.most_children, arena.most_cells
        for name, limited in (("last_arrival", False), ("lines", True)):
            links = self.arrays[name]
            while len(arena.links) > len(links) and (self.state["limited"] or not limited):
                links = longer(links)
            if links is not self.arrays[name]:
                self.use(name, links)

    def line_up(self, departing: Departing) -> None:
        """Queue departing publications after all that are still to be published."""
        state, pending = self.state, self.arrays["pending"]
        kept = pending[state["next_pending"] : state["pending_end"]]
        end = len(kept) + len(departing.row)
        if end > len(pending):
            pending = np.zeros(2 * end, PENDING)
        pending[: len(kept)] = kept
        state["next_pending"], state["pending_end"] = 0, end
        line_up(pending[len(kept) : end], self.arrays["positions"], departing)
        state["unrooted"] += len(departing.row) * departing.released
        self.use("pending", pending)

    def grow(self) -> None:
        """Grow the array for which the loop lacks room."""
        state, arrays = self.state, self.arrays
        if state["free_flights"] == 0:
            self._grow_flights(len(arrays["flights"]))
        if state["cells_room"] - state["cells_used"] < state["most_cells"]:
            more = max(len(arrays["cells"]), int(state["most_cells"]))
            self.use("cells", np.concatenate([arrays["cells"], np.zeros(more, CELL)]))
            state["cells_room"] += more
        if state["limited"] and state["free_waits"] < state["most_children"]:
            more = max(len(arrays["waits"]), int(state["most_children"]))
            self._with_free("waits", more, "free_wait", "next")
            state["free_waits"] += more
        most = int(state["most_children"])
        if state["guarantees"] and state["free_kepts"] <= most:
            more = max(len(arrays["kept"]), most + 1)
            self._with_free("kept", more, "free_kept", "next")["over"][-more:] = 1
            state["free_kepts"] += more
        needed = 2 * most + 4 if state["guarantees"] else most
        if state["free_messages"] < needed:
            self._grow_messages(max(len(arrays["messages"]), needed))

    def windows_in_use(self) -> NDArray[np.int64]:
        """The windows of publications in transit."""
        messages = self.arrays["messages"]
        carrying = (messages["kind"] != st.NONE) & ~np.isin(messages["kind"] % st.SERVED, (st.REQUEST, st.GONE))
        found: NDArray[np.int64] = self.arrays["flights"]["window"][messages["flight"][carrying]].astype(np.int64)
        return found

    def look(self, now: float, arena: Arena) -> None:
        """A window ends now (s): keep what servers and links did in it."""
        if self.state["takes_time"]:
            self._look_at_servers(now)
        if self._transmission is not None:
            keys = self.link_keys(arena)
            done = np.empty((len(keys), len(LINK_COLUMNS)))
            end_window(self.states, now, done)
            self._transmission.windows.look(keys, done)
        self._ends.end()
        self.state["look_at"] = self._ends.next

    def _look_at_servers(self, now: float) -> None:
        """Keep what servers did in a window, as in `Server.look`."""
        servers = self.arrays["servers"]
        since, waiting = np.maximum(now - servers["since"], 0.0), servers["controls"] + servers["waiting"]
        busy = servers["busy"] + servers["serving"] * since
        area = servers["waiting_area"] + waiting * since
        so_far = {name: servers[name] for name in LOOKED_AT} | {"busy": busy, "waiting_area": area}
        self.windows.look(np.array([so_far[name] for name in LOOKED_AT], np.float64))
        servers["most_waiting"] = waiting

    def link_keys(self, arena: Arena) -> NDArray[np.int64]:
        """The links (source · brokers + destination) by their numbers."""
        if len(self._link_keys) < len(arena.links):
            pairs = np.array(list(arena.links), np.int64)
            self._link_keys = pairs[:, 0] * int(self.state["brokers"]) + pairs[:, 1]
        return self._link_keys

    def hand_over(self, arena: Arena, deliveries: DeliveryBuffer) -> None:
        """Pass on what brokers have served, after what the best-effort channel has taken so far."""
        rows, self.state["handed"] = self.arrays["deliveries"][: int(self.state["handed"])].copy(), 0
        versions, which = np.unique(rows["audience"], return_inverse=True)
        audiences = [arena.current[version].due.audience for version in versions.tolist()]
        entries = [deliveries.entry(audience) for audience in audiences if audience is not None]
        rows["audience"] = np.array(entries, np.int32)[which]
        deliveries.extend(rows)
        if deliveries.full:
            deliveries.advance(float(self.state["now"]))

    def have_message(self) -> None:
        """Make sure that there is a free message."""
        if self.state["free_messages"] == 0:
            self._grow_messages(len(self.arrays["messages"]))

    def _grow_messages(self, more: int) -> None:
        messages = self._with_free("messages", more, "free_message", "next")
        messages["kind"][-more:] = st.NONE
        self.state["free_messages"] += more
        heap = np.zeros(len(messages), HEAPED)
        heap[: len(messages) - more] = self.arrays["heap"]
        self.use("heap", heap)
        if self.state["traces"] or self.state["faulty"]:
            sent = np.zeros(len(messages), SENDING)
            sent[: len(messages) - more] = self.arrays["sent"]
            self.use("sent", sent)
        if self.state["guarantees"]:
            carries = np.zeros(len(messages), CARRIED)
            carries[: len(messages) - more] = self.arrays["carries"]
            self.use("carries", carries)

    def _grow_flights(self, more: int) -> None:
        self._with_free("flights", more, "free_flight", "messages")["last"][-more:] = -1.0
        self.state["free_flights"] += more

    def _with_free(self, name: str, more: int, first: str, link: str) -> Items:
        """Grow an array by free records, linked to each other and to the former first free one."""
        records = self.arrays[name]
        size = len(records)
        records = np.concatenate([records, np.zeros(more, records.dtype)])
        records[link][size:] = np.arange(size + 1, size + more + 1)
        records[link][-1] = self.state[first]
        self.state[first] = size
        self.use(name, records)
        return records
