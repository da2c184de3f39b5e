"""The records of the compiled engine, and the accessors of its kernels.

An accessor such as `message_at(state.messages, i)` returns item i of an array by reference, without bounds checks.
"""

from __future__ import annotations

import numpy as np

from sim.base.addresses import accessor
from sim.base.arrays import Item
from sim.base.compiled import inlined
from sim.brokers.statistics.deliveries import DELIVERY
from sim.brokers.statistics.hops import HOP
from sim.brokers.statistics.ledger import ROWS

MESSAGE = np.dtype(
    [
        ("time", "f8"),  # s; for a message waiting in a queue, its service time
        # s, at the broker where it waits or is served; for an acknowledgement on its way, the service time that it will take
        ("arrived", "f8"),
        ("sequence", "i8"),  # orders simultaneous events by when they were scheduled
        ("flight", "i4"),  # or the number of a control message
        ("position", "i4"),  # or the broker that serves a control message
        ("next", "i4"),  # message in the same bucket, queue or free list
        ("kind", "i4"),  # NONE: free
    ],
    align=True,
)
"""A message, which is always in exactly one place: the calendar, a broker's queue or the free list."""

FLIGHT = np.dtype(
    [
        ("published", "f8"),
        ("rooted", "f8"),  # s; NaN until it leaves its root
        ("last", "f8"),  # the delay of its last delivery (s); -1 before the first
        ("size", "i8"),
        ("number", "i8"),  # of the publication
        ("window", "i4"),
        ("messages", "i4"),  # that carry it; for a free flight, the next free one
        ("origin", "i4"),  # the broker at which it was published
        ("slot", "i4"),
        ("version", "i4"),
        ("period", "i4"),
        (
            "hops",
            "i4",
        ),  # hops to its root, or to where it was dropped; with cells, the first cell once it has left its root
        ("released", "i4"),  # 1 where it was held back and has not left its root
        ("missed", "i4"),  # 1 where it is flooded and a broker has refused a copy, or a link has lost one
        ("traced", "i4"),  # 1 where its hops are
    ],
    align=True,
)
"""A publication in transit."""

POSITION = np.dtype(
    [
        ("hop", "f8"),  # s, from the one above, without jitter; on an uplink, to the next one
        ("broker", "i4"),
        ("first", "i4"),  # child; on an uplink, the next position, NONE at the root
        ("children", "i4"),  # how many; on an uplink, the slot
        ("users", "i4"),  # that are due at the broker; on an uplink, 1 at the root
        ("below_brokers", "i4"),  # that are due at it or below
        ("below_users", "i4"),
        ("link", "i4"),  # of that hop, where links have jitter
        ("depth", "i4"),  # hops below the root; on an uplink, to it
    ],
    align=True,
)
"""A place in a snapshot of a tree, or on an uplink.

If a topic is flooded, `first` and `children` of a place are the links to its neighbours, which are positions too: with the place
they lead to as `first`, the one they lead from as `children`, and the users of the former.
"""

CELL = np.dtype([("sender", "i4"), ("state", "i4"), ("arrived", "f8"), ("served", "f8")], align=True)
"""A cell: what became of a flight at one place.

For floods, the place from which the first copy came; for content, when it arrived and was served (s, NaN: not), and as `sender` the
broker's counter increments to match it.
"""

TALLY = np.dtype([("messages", "i8"), ("bytes", "i8"), ("delivered", "i8")], align=True)
"""The traffic over the hop of a position in measured windows, and deliveries there in all windows."""

SLOT = np.dtype(
    [("topic", "i4"), ("root", "i4"), ("version", "i4"), ("checked", "i8"), ("brokers", "i8"), ("users", "i8")],
    align=True,
)
"""A slot, for a topic and a root: its current version, the epoch at which that was known to be current, and who wants the topic."""

VERSION = np.dtype(
    [
        ("first", "i4"),  # position; the root
        ("size", "i4"),
        ("period", "i4"),
        ("hop_limit", "i4"),  # of a flood
        ("offloads", "i4"),  # 1 if some due brokers are not served by the back end
        ("brokers", "i8"),  # that are due
        ("users", "i8"),
        ("brokers_off_tree", "i8"),  # of these, not on the tree
        ("users_off_tree", "i8"),
        ("users_absent", "i8"),  # of all users, those that are connected to no broker
        ("groups", "i8"),  # of whom one member each is to be chosen
        ("flights", "i8"),  # that have become due, those short of the root among them
        ("carried", "i8"),  # flights that use it now
    ],
    align=True,
)
"""A version: a tree and the users due on it, from one change of either to the next."""

SERVER = np.dtype(
    [
        ("serving", "i4"),  # how many messages
        ("controls", "i4"),  # that wait: how many, the first, and the last, where they go first
        ("first_control", "i4"),
        ("last_control", "i4"),
        ("waiting", "i4"),  # publications, likewise, and control messages where these do not go first
        ("first", "i4"),
        ("last", "i4"),
        ("bytes", "i8"),  # of publications that wait
        ("served", "i8"),
        ("since", "f8"),
        ("wait", "f8"),
        ("offered", "f8"),
        ("busy", "f8"),
        ("waiting_area", "f8"),
        ("changed_at", "f8"),
        ("refused", "f8"),
        ("behind_since", "f8"),
        ("squares", "f8"),
        # what is reached for less often
        ("control_served", "i8"),
        ("most_waiting", "i8"),
        ("dropped", "i8"),
        ("control_wait", "f8"),
        ("held", "i8"),
        ("backlog", "f8"),
    ],
    align=True,
)
"""A broker's server: the values of `sim.brokers.fabric.stations.Server`, and its queues as linked messages."""

LINE = np.dtype(
    [
        ("free", "f8"),
        ("clear", "f8"),
        ("squares", "f8"),
        ("busy", "f8"),
        ("since", "f8"),
        ("bytes", "i8"),
        ("messages", "i4"),
        ("waiting", "i4"),
        ("first", "i4"),  # that waits
        ("last", "i4"),
        # what is reached for less often
        ("waited", "f8"),
        ("sent_until", "f8"),
        ("waiting_bytes", "i8"),
        ("busy_ahead", "f8"),
        ("waited_ahead", "f8"),
        ("most_waiting", "i4"),
        ("dropped", "i4"),
        ("lost", "i4"),
    ],
    align=True,
)
"""A direction of a link: the numbers of `sim.brokers.fabric.transmission.Line` and its Backlog, and what waits for it."""

WAIT = np.dtype([("start", "f8"), ("end", "f8"), ("size", "i8"), ("next", "i4")], align=True)
"""A message that waits for its link: when (s) it will be sent, from and until, and its bytes."""

PORT = np.dtype(
    [("out", "f8"), ("come", "f8")]
    + [(f"{way}_{name}", "f8") for way in ("out", "in") for name in ("clear", "since", "squares")]
)
"""A broker's interface: when (s) it is free for what goes out, and for what comes in; and the Backlog of each."""

SENDING = np.dtype([("time", "f8"), ("broker", "i4")], align=True)
"""When a message was sent (s), and by whom; where hops are traced, or something may fail."""

KEPT = np.dtype(
    [
        ("born", "i8"),  # orders them by when they were sent first
        ("wait", "f8"),  # s; after the next time
        ("flight", "i4"),
        ("kind", "i4"),  # UP or DOWN
        ("position", "i4"),  # of the receiver
        ("hop", "i4"),  # the position with the hop's time and link
        ("sender", "i4"),  # broker; NONE: the publisher's client
        ("broker", "i4"),
        ("attempts", "i4"),
        ("copies", "i4"),  # under way
        ("answers", "i4"),  # likewise
        ("timer", "i4"),
        ("handled", "i4"),
        ("done", "i4"),  # why it is not kept any more
        ("rounds", "i4"),  # the number of the detour that it is on
        ("waits", "i4"),  # no route leads to the broker
        ("over", "i4"),  # 1 where it is free, too
        ("next", "i4"),  # free one
    ],
    align=True,
)
"""What a sender keeps, as `sim.brokers.data.guaranteed.KeptCopy`."""

CARRIED = np.dtype([("kept", "i4"), ("attempt", "i4")], align=True)
"""What a copy, an acknowledgement or a timer is about, and the number of the attempt, from 0, in draws; where there are guarantees."""

OUTAGE = np.dtype([("down", "i4"), ("bypassed", "i4"), ("side", "i4"), ("avoided", "i4"), ("slowed", "f8")], align=True)
"""The faults of a broker that last now, as `sim.brokers.fabric.outages.Outages` has them; `avoided`: the side by links avoided."""

IN_SERVICE = np.dtype([("message", "i4"), ("service", "f8")], align=True)
"""A message in service and its service time (s); by broker, in the order of service."""

PENDING = np.dtype(
    [
        ("time", "f8"),  # when it leaves its broker
        ("published", "f8"),
        ("size", "i8"),
        ("number", "i8"),
        ("uplink", "i4"),  # position
        ("slot", "i4"),
        ("window", "i4"),
        ("period", "i4"),
        ("released", "i4"),
        ("lost", "i4"),  # 1 where who publishes it is connected to no broker
    ],
    align=True,
)
"""A publication that is still to be published."""

NOTE = np.dtype(
    [
        ("number", "i8"),
        ("version", "i8"),
        ("published", "f8"),
        ("time", "f8"),
        ("window", "i4"),
        ("what", "i4"),
        ("hops", "i4"),
    ],
    align=True,
)
"""A note that a flight has left its root with due brokers that the back end does not serve; for content, of every outcome."""

WINDOW = np.dtype(
    [
        (name, "i8")
        for name in (
            "measured",
            "published",
            "rooted",
            "dropped",
            "uplinks",
            "uplink_bytes",
            "uplink_hops",
            "internal",
            "internal_bytes",
            "external",
            "external_bytes",
            "tree_hops",
            "duplicates",
            "retransmissions",
            "acknowledgements",
            "duplicate_deliveries",
            "stretched",
            "reached",
        )
    ]
)
"""The counts of a window, which `closing.count_windows` adds to the statistics."""

PAIRS = np.dtype([("brokers", "i8"), ("users", "i8")])
"""A row of a window in the ledger (`sim.brokers.statistics.ledger.Ledger.pairs`)."""

TRAFFIC = np.dtype(
    [
        (name, "i8")
        for name in ("received", "sent", "delivered", "relayed", "bytes_in", "bytes_out", "copies", "copied_bytes")
    ],
    align=True,
)
"""The traffic of a broker in a window: the columns of `sim.brokers.statistics.traffic.Traffic`."""

HEAPED = np.dtype([("time", "f8"), ("sequence", "i8"), ("message", "i8")], align=True)
"""An entry of the heap."""

BUCKET = np.dtype([("first", "i4")])
"""A bucket of the calendar: its first message."""

PLACE = np.dtype([("x", "f8"), ("y", "f8"), ("z", "f8")])
"""The position of a broker on the unit sphere."""

INTEGER = np.dtype([("value", "i8")])
SMALL = np.dtype([("value", "i4")])
FLOAT = np.dtype([("value", "f8")])

message_at = accessor(MESSAGE)
flight_at = accessor(FLIGHT)
position_at = accessor(POSITION)
tally_at = accessor(TALLY)
slot_at = accessor(SLOT)
version_at = accessor(VERSION)
server_at = accessor(SERVER)
in_service_at = accessor(IN_SERVICE)
pending_at = accessor(PENDING)
note_at = accessor(NOTE)
line_at = accessor(LINE)
wait_at = accessor(WAIT)
port_at = accessor(PORT)
place_at = accessor(PLACE)
sent_at = accessor(SENDING)
outage_at = accessor(OUTAGE)
kept_at = accessor(KEPT)
carried_at = accessor(CARRIED)
hop_at = accessor(HOP)
delivery_at = accessor(DELIVERY)
window_at = accessor(WINDOW)
pairs_at = accessor(PAIRS)
traffic_at = accessor(TRAFFIC)
entry_at = accessor(HEAPED)
bucket_at = accessor(BUCKET)
cell_at = accessor(CELL)
integer_at = accessor(INTEGER)
small_at = accessor(SMALL)
real_at = accessor(FLOAT)


@inlined
def count_pairs(state: Item, window: int, row: int, brokers: int, users: int) -> None:
    """Add brokers and users to a row of the ledger, as `Ledger.count` does."""
    pairs = pairs_at(state.pairs, window * ROWS + row)
    pairs.brokers += brokers
    pairs.users += users
