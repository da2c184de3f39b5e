"""The state of the compiled engine: the addresses of arrays of records, which its kernels change in place, and all scalars.

Kernels take this one record, STATE: passing the arrays themselves between kernels would take longer than most of their work.
"""

from __future__ import annotations

import numpy as np

from sim.brokers.data.compiled.records import (
    BUCKET,
    CARRIED,
    CELL,
    FLIGHT,
    FLOAT,
    HEAPED,
    IN_SERVICE,
    INTEGER,
    KEPT,
    LINE,
    MESSAGE,
    NOTE,
    OUTAGE,
    PENDING,
    PORT,
    POSITION,
    SENDING,
    SERVER,
    SLOT,
    SMALL,
    TALLY,
    VERSION,
    WAIT,
    WINDOW,
)
from sim.brokers.statistics.deliveries import DELIVERY
from sim.brokers.statistics.hops import HOP
from sim.brokers.statistics.ledger import LOST, LOST_COPIES

NONE = -1  # of messages, flights and positions: none
UPLINKED = -1  # stands for brokers below, at positions of uplinks
LINKED = -2  # likewise, at links over which a topic is flooded

# What a message is, and what its time means: when it arrives somewhere, or when the broker there has served it.
# REQUEST, ANSWER: a control message, an acknowledgement; brokers serve both, and no others from REQUEST on, ahead of publications.
# GONE: it carries nothing, for its broker has crashed; TIMER: it goes nowhere, and runs out.
UP, DOWN, FLOODED, REPEATED, REQUEST, ANSWER, GONE, TIMER = range(8)
SERVED = 8  # added to these
COMING = 16  # likewise, while a message has not come through the interface of the broker that it goes to

# What becomes of a message that is sent: it is on its way, or lost with a cause, a row of the ledger, as are those that follow
ON_ITS_WAY = 0
FULL, LOST_ON_LINK, CRASHED = LOST["queue_full"], LOST["link"], LOST["crashed"]
PARTED, EXPIRED = LOST["partitioned"], LOST["expired"]
HOP_LIMIT, DISCONNECTED = LOST["hop_limit"], LOST["disconnected"]

# What became of copies at a position: these, and a bit for each cause by which one was lost there; the rest of the number is how many
# hops the first copy of a flood took
ARRIVED, ACCEPTED, TRAVELLING, LOST_THERE = 1, 2, 4, 8
CAUSES_THERE = tuple(LOST[cause] for cause in LOST_COPIES)
DEPTH = LOST_THERE << 1 + CAUSES_THERE[-1] - CAUSES_THERE[0]

# How service times are drawn
DETERMINISTIC, EXPONENTIAL, GAMMA, LOGNORMAL, HISTOGRAM = range(5)
SERVICES = {
    "none": DETERMINISTIC,
    "deterministic": DETERMINISTIC,
    "exponential": EXPONENTIAL,
    "gamma": GAMMA,
    "lognormal": LOGNORMAL,
    "histogram": HISTOGRAM,
}

# What is noted of a flight, for the engine to act on
LEFT_ROOT, OVER = -1, -2  # or the cause by which it was lost on its way to its root
MOST_NOTES = 3  # that come of one event

_INTEGERS = (
    "sequence",  # of the next event that is scheduled
    "free_message",  # the first one
    "free_messages",  # how many
    "free_flight",
    "free_flights",
    "in_transit",  # flights
    "unrooted",  # publications that were released and have not left their roots
    "controls",  # control messages at brokers
    "next_pending",
    "pending_end",
    "epoch",  # trees and subscriptions may have changed since the one before
    "noted",  # notes that are taken, of
    "notes_room",
    "most_children",  # of a position
    "floods",  # whether topics are flooded
    "content",  # whether content is carried
    "heeds",  # whether what is noted is to be acted on at once
    "matches",  # whether brokers take time to match it
    "fields",  # that a publication of it has
    "traces",  # whether hops are traced
    "trace_key",
    "hops",  # that have been traced and not been taken away, of
    "hops_room",
    "hands_over",  # whether deliveries are passed on to users
    "handed",  # deliveries that have come and not been taken away, of
    "handed_room",
    "conjunctions",  # how many subscriptions, and
    "predicates",  # how many they have
    "cells_used",  # of
    "cells_room",
    "most_cells",  # that a publication needs
    "stopped_at",  # what it is about: a slot, a window, a control message, or what is kept
    "stopped_period",
    "stopped_number",  # the publication that leaves its root, and the broker that it came to
    "stopped_origin",
    "shared",  # whether groups share subscriptions
    "off_tree",  # the row of the ledger of what is due at brokers that are not on the tree
    "chosen",  # the version for the publication that leaves its root next, NONE if that is its slot's
    # the calendar
    "in_heap",
    "bucket",  # that is being emptied, counted from time 0
    "bucket_count",  # a power of two
    "in_buckets",
    "far",  # the first message beyond the buckets
    "in_far",
    "far_bucket",  # the first bucket that one of these belongs to
    "loaded",  # messages that have come to the heap since the width was last looked at
    "passed",  # buckets that have been emptied since
    "look_after",  # as many
    # what does not change
    "brokers",
    "groups",  # of brokers, between which hop times are known
    "on_sphere",  # whether hop times are computed from places instead
    "jitter_key",
    "service_key",
    "service_kind",  # one of those below
    "weighs",  # whether copies, users and bytes take time
    "wakes_up",  # whether idle servers take longer
    "servers_each",  # of a broker
    "fifo",  # whether control messages wait among publications
    "shares_many",  # how many
    "takes_time",  # whether brokers do
    "bound",  # of their queues; -1: none
    "bytes_bound",  # likewise
    "overflow",  # the number of the policy
    "makes_room",  # whether it drops publications that wait
    "faulty",  # whether something may fail; whether a broker is down or a link is cut; whether a link is; how many are by themselves
    "outage",
    "cuts",
    "cut_links_many",
    "avoids",  # whether the overlay routes around links; how many by themselves
    "avoided_links_many",
    "limited",  # whether links or interfaces have rates, or links lose messages
    "loss_key",
    "buffers",  # whether what waits for links is bounded
    "buffer",  # the bound in messages; -1: none
    "buffer_bytes",  # likewise
    "free_wait",  # the first one
    "free_waits",  # how many
    # of guarantees
    "guarantees",  # whether there is one
    "quality",  # of service between brokers, 1 or 2; -1: that of each publication
    "most_attempts",  # -1: any number
    "answers_take_time",  # whether brokers serve acknowledgements
    "free_kept",  # the first one
    "free_kepts",  # how many
    "kept_ever",
    "most_remembered",  # identities by a broker
    # the recorder's
    "delay_keys",  # that are taken, of
    "delay_slots",
    "by_topic",  # whether delays of topics are recorded
)
_REALS = (
    *(
        "now",
        "stopped_time",
        "per_second",
        "jitter",
        "warm_up",
        "horizon",
        "look_at",
        "traced_share",
        "shape",
        "sigma",
        "variance",
        "wake_up_half",
        "always_woken",
        "slowdown",
    ),
    "bandwidth",  # bytes per second; 0: any
    "interface",  # likewise
    "loss",  # the probability
    *("timeout", "backoff", "longest", "expire_after"),  # of guarantees; s, but for the factor
    *("base", "per_arc"),  # of hop times, likewise
)
ARRAYS = {
    "messages": MESSAGE,
    "flights": FLIGHT,
    "positions": POSITION,
    "tallies": TALLY,
    "slots": SLOT,
    "versions": VERSION,
    "servers": SERVER,
    "pending": PENDING,
    "notes": NOTE,
    "lines": LINE,  # links
    "waits": WAIT,
    "ports": PORT,  # brokers
    "sent": SENDING,  # by message
    "outages": OUTAGE,  # brokers
    "kept": KEPT,
    "carries": CARRIED,  # by message
    "remembered": INTEGER,  # brokers; identities
    "qos": SMALL,  # publications; with `quality` -1
    "cut_links": INTEGER,  # here · brokers + there, ascending
    "avoided_links": INTEGER,  # likewise
    "traced": HOP,
    "deliveries": DELIVERY,  # whose audience is a version
    "windows": WINDOW,
    "finished": INTEGER,  # flights, by period
    "cells": CELL,
    "free_cells": INTEGER,  # the first cell of the first free block of 2^i
    "heap": HEAPED,
    "buckets": BUCKET,
    "filled": INTEGER,  # a bit for each bucket
    "service": FLOAT,  # brokers; mean seconds
    "matching": FLOAT,  # brokers; mean seconds for every counter moved
    "send": FLOAT,  # brokers; mean seconds for a copy to a broker, to a user, for a byte
    "send_client": FLOAT,
    "per_byte": FLOAT,
    "acknowledgement": FLOAT,  # brokers; mean seconds for one
    "wake_up": FLOAT,  # brokers; s
    "relative": FLOAT,  # measured service times, relative to their mean, and the share of those up to each but the last
    "shares": FLOAT,
    "in_service": IN_SERVICE,
    "last_arrival": FLOAT,  # links; s
}
"""The arrays whose addresses the state holds."""
STATISTICS = ("pairs", "sums", "maxima", "traffic", "first_row", "delays", "topics")
"""The recorder's (`sim.brokers.statistics.records.Statistics`), likewise."""
HOP_TIMES = ("group", "between", "places")
"""The arrays of hop times (`sim.overlay.pair_times.TimesRecord`) whose addresses it holds."""
CONTENT = ("waiting", "waiting_from", "owner", "asked_from", "asked_field", "asked_value", "values", "host")
"""The arrays of subscriptions to content (`sim.brokers.data.content_subscriptions.Subscribed`) whose addresses it holds."""

STATE = np.dtype(
    [(name, "i8") for name in (*_INTEGERS, *ARRAYS, *STATISTICS, *HOP_TIMES, *CONTENT)]
    + [(name, "f8") for name in _REALS],
    align=True,
)
"""All of it."""


# Why the loop returned
(
    DONE,
    CHECK,
    CHOOSE,
    GROW,
    EMPTY_DELAYS,
    EMPTY_NOTES,
    EMPTY_HOPS,
    OPEN_WINDOW,
    LOOK,
    CONTROL_SERVED,
    IDLE,
    ROOTED_ALL,
    DETOUR,  # something that is kept has to take another route
) = range(13)
