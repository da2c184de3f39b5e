"""The record of legs from brokers to users, and of sessions, for compiled code."""

from __future__ import annotations

import numpy as np

from sim.base.addresses import accessor
from sim.brokers.users.leg_distances import POINT

DROP_NEWEST, DROP_OLDEST, CUT_OFF = range(3)
UNTIL_BROKER, UNTIL_SERVED, UNTIL_CLIENT = range(3)
"""The end of a delivery's delay."""
LIVE, WAITED, RETAINED, BACK = range(4)
"""Kinds of messages: one that comes while its user is connected, one that has waited in a session, a retained one; and none: the
user is connected again after its broker has crashed."""

HANDED = np.dtype(
    [
        ("served", "f8"),  # by the broker (s)
        ("arrived", "f8"),  # there
        ("published", "f8"),
        ("up", "f8"),  # the time over the distance from its publisher to its broker (s)
        ("rooted", "f8"),  # NaN by the best-effort channel
        ("size", "i8"),
        ("number", "i8"),  # of the publication
        ("window", "i4"),
        ("topic", "i4"),
        ("kind", "i4"),
        ("kept", "i4"),  # whether sessions keep it for users who are away
        ("broker", "i4"),
        ("quality", "i4"),  # of service
        ("first", "i8"),  # of its users, and how many
        ("count", "i8"),
    ],
    align=True,
)
"""A publication that goes to the users of a broker."""

LEG_MESSAGE = np.dtype(
    [
        ("time", "f8"),  # when its broker had served it (s); of one that was sent, when that is acknowledged
        ("arrived", "f8"),
        ("published", "f8"),
        ("up", "f8"),
        ("rooted", "f8"),
        ("way", "f8"),  # the time over the distance to its user (s), once it has been sent
        ("size", "i8"),
        ("number", "i8"),
        ("window", "i4"),
        ("topic", "i4"),
        ("kind", "i4"),
        ("kept", "i4"),
        ("broker", "i4"),
        ("next", "i4"),
        # by quality of service
        ("quality", "i4"),
        ("attempts", "i4"),  # that it has had, with those of its release
        ("got", "i4"),  # 1 once the user has it
        ("released", "i4"),  # 1 once the user has said so, with quality 2
        ("order", "i8"),  # in which messages were sent
        ("sent", "f8"),  # when (s), and arriving if it is not lost, and when the last answer comes
        ("reaches", "f8"),
        ("acknowledged", "f8"),
    ],
    align=True,
)
"""A message that waits for a user, or to be acknowledged by it; or a free one."""

LEG = np.dtype(
    [
        # what each message looks at, in one line of the cache
        ("free", "f8"),  # when the last one has been sent (s)
        ("last", "f8"),  # when it arrives
        ("leaves", "f8"),  # when the user is next away (s), or has been since
        ("cut_until", "f8"),
        ("waiting", "i4"),  # messages: how many
        ("unacknowledged", "i4"),  # likewise, and the first and the last
        ("first_sent", "i4"),
        ("end_sent", "i4"),
        ("caught", "i4"),  # how many are on their way when the connection ends
        ("slow", "i4"),  # 1 where it is
        ("away", "i4"),  # 1 while the user is
        ("held", "i4"),  # 1 while its broker is down, and its session kept
        ("backlog", "i4"),  # 1 while messages wait that waited at its return
        # the others
        ("cut", "i4"),  # 1 while what is in flight is broken off
        ("bytes", "i8"),  # that wait
        ("first", "i4"),  # that waits, and the last
        ("end", "i4"),
        ("first_caught", "i4"),  # likewise
        ("end_caught", "i4"),
        ("returns", "f8"),
        ("returned", "f8"),  # when it was back last, or its broker was
        ("ready", "f8"),  # when the next message of its session may be sent
        ("absence", "i4"),  # the one after that, and where the user's end
        ("absences_end", "i4"),
        ("quality", "i4"),  # the rows of its subscriptions, up to
        ("qualities_end", "i4"),
        ("session", "i4"),  # what becomes of it in this absence
        ("place", "i4"),  # the first of its user's places, up to
        ("places_end", "i4"),
    ],
    align=True,
)
"""A user's leg."""

ABSENCE = np.dtype([("start", "f8"), ("end", "f8"), ("session", "i8")], align=True)
"""An absence of a user, as in `Absences`."""

SUBSCRIBED = np.dtype([("topic", "i8"), ("time", "f8"), ("qos", "i8")], align=True)
"""From when (s) on a user's subscription to a topic has a quality of service."""

ANSWERS_BY_KIND = ("puback_messages", "pubrec_messages", "pubrel_messages", "pubcomp_messages")
"""Counts of answers by kind: (re)sent by quality of service 1, and those of quality 2 in order."""
QUALITY_COUNTS = (*ANSWERS_BY_KIND, "client_retransmissions", "client_duplicates")

SPEED = np.dtype([("latency", "f8"), ("rate", "f8"), ("window", "i8")], align=True)
"""The capacity of legs: latency (s), bytes per second, messages in flight (0: no limit)."""

_INTEGER = np.dtype([("value", "i8")])
_FLOAT = np.dtype([("value", "f8")])
LEG_ARRAYS = {
    "legs": LEG,
    "messages": LEG_MESSAGE,
    "absences": ABSENCE,
    "speeds": SPEED,
    "disconnects": _INTEGER,
    "subscribed": SUBSCRIBED,
    "by_quality": _INTEGER,
    "edges": _FLOAT,
    "received": _INTEGER,
    "places": POINT,
    "sites": POINT,
}
LEG_STATISTICS = ("pairs", "counters", "sums", "delays", "topics")
"""The recorder's (`sim.brokers.statistics.records.Statistics`)."""
_INTEGERS = (
    "free",  # the first message that is
    "frees",  # how many
    "noted",  # of `received`: topic and user of each delivery, where
    "notes",  # that is asked for
    "room",  # for this many
    "delay_keys",  # that are taken, of
    "delay_slots",
    "by_topic",  # whether delays of topics are recorded
    "windows",
    "delivery",  # the next one
    "place",  # the next of its users
    "bound",  # messages that may wait; -1: any
    "bytes_bound",  # likewise
    "overflow",
    "until",
    "jitter_key",
    "session_bound",  # messages and bytes that may wait in a session; -1: any
    "session_bytes",
    "session_overflow",
    "survives",  # whether sessions outlive a crash of their broker
    "longest",  # the most messages that have waited in a session
    "qualities",  # whether messages go by quality of service
    "order",  # of the next message that is sent
    "loss_key",
    "quality_key",
)
_REALS = ("warm_up", "loss", "timeout", "share_0", "share_1", "per_arc")
LEG_STATE = np.dtype(
    [(name, "i8") for name in (*_INTEGERS, *LEG_ARRAYS, *LEG_STATISTICS)]
    + [(name, "f8") for name in ("jitter", "reconnect_after", "horizon", "oldest", "gap", *_REALS)],
    align=True,
)
"""All of it; `oldest` is how long a message may wait in a session, and `gap` lies between two that are sent from one (s);
`share_0` and `share_1` are the probabilities that a subscription has at most this quality, where that is not said; `per_arc` is the
time for half a radian of the distance to users (s)."""

leg_at = accessor(LEG)
leg_message_at = accessor(LEG_MESSAGE)
leg_speed_at = accessor(SPEED)
absence_at = accessor(ABSENCE)
subscribed_at = accessor(SUBSCRIBED)
leg_integer_at = accessor(_INTEGER)
leg_real_at = accessor(_FLOAT)

FINISHED, DELAYS_FULL, RECEIPTS_FULL, NO_MESSAGE = range(4)
"""Why a kernel returned."""
