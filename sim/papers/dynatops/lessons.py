"""What “DYNATOPS” teaches, in sentences with the numbers of the runs."""

from __future__ import annotations

from collections.abc import Iterator

from sim.papers.claims import Lesson
from sim.papers.dynatops.poisson import break_even
from sim.papers.dynatops.readings import CHORD, GREEDY, LEAST, NEW
from sim.papers.quantities import gain, mean_gain, mean_of


def lessons() -> Iterator[Lesson]:
    """What selection brings, what placement brings, what they cost, and when it pays."""
    selected, placed, chord, ten = "DYNATOPS (BS)", NEW, "Bayeux on Chord", ("point", "c = 10")
    changes, messages, delay, cost = (
        "broker_subscription_changes",
        "notification_overhead",
        "tree_delay",
        "reconfiguration_overhead",
    )
    text = "Selection, in the Poisson model on equal routes, saves {} of the changes of brokers' subscriptions, "
    text += "{} of the messages, and {} of the delay from the root on."
    yield Lesson("fig-7a", text, tuple(mean_gain(each, selected, chord, "rate") for each in (changes, messages, delay)))
    text = "Placement saves {} of the messages that are left, and {} of the delay; the places with the least delay, {}."
    least_possible = mean_gain(delay, LEAST, selected, "rate")
    numbers = tuple(mean_gain(each, placed, selected, "rate") for each in (messages, delay))
    yield Lesson("fig-7a", text, (*numbers, least_possible))
    text = "The price: a spread of load (standard deviation by mean) of {}, where random assignment has {}, "
    text += "and {} messages of reconfigurations."
    spread = (mean_of("load_stddev", selected), mean_of("load_stddev", chord))
    yield Lesson("fig-7a", text, (*spread, mean_of(cost, placed)))
    text = "Against links of a topic-connected overlay that follow every change, it pays after {} of fast changes."
    yield Lesson("fig-7a", text, (break_even(cost),))
    text = "In the location model, c = 10, on equal routes, selection saves {} of the messages, and with placement {}, "
    text += "and {} of the delay from the root on; places found by annealing save {}."
    numbers = (gain(messages, selected, CHORD, *ten), gain(messages, GREEDY, CHORD, *ten))
    delays = (gain(delay, GREEDY, CHORD, *ten), gain(delay, "ours: BS + anneal", CHORD, *ten))
    yield Lesson("fig-6c", text, (*numbers, *delays))
