"""Watches what fails during a transition, and gives the transition up where that lasts for a timeout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.brokers.control.agreement import Step
from sim.brokers.control.transition import Stage, Transition
from sim.brokers.control.trees import TreeControl
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder


class Ends(NamedTuple):
    """The steps of the protocol by which a transition ends: those of one broker, and the last."""

    finish: Step
    restore: Step
    resume: Step
    over: Callable[[Transition], None]


class TransitionWatch:
    """Gives a transition up, at once for all, `timeout` seconds after something failed that lasts.

    That is a broker that is down and takes part, or any link that is cut. Unless the manager has sent FINISH or a broker has it,
    all fall back. If brokers have resumed by then, the transition is over, though publications held back may not have left their roots.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        control: TreeControl,
        engine: Engine,
        timeout: float,
        ends: Ends,
        manager_dead: Sequence[tuple[float, float]],
    ) -> None:
        self._fabric, self._clock, self._recorder, self._outages = fabric, fabric.clock, recorder, fabric.outages
        self._control, self._engine, self._timeout = control, engine, timeout
        self._finish, self._restore, self._resume, self._over = ends
        self._down_since = np.full(len(fabric.node_of), math.inf)
        self._cut_since = math.inf
        self._manager_dead = manager_dead
        self._transition: Transition | None = None
        self._manager: simpy.Process | None = None

    def taking_part(self) -> NDArray[np.int64]:
        """The brokers that take part in transitions: all but those that the overlay routes around."""
        return np.arange(len(self._down_since)) if self._outages is None else np.flatnonzero(~self._outages.bypassed)

    @property
    def hampered(self) -> bool:
        """Whether a broker that takes part has been down, or a link been cut, for as long as it takes to time out."""
        since = min(self._cut_since, self._down_since[self.taking_part()].min(initial=math.inf))
        return bool(since + self._timeout <= self._clock.now)

    def manager_down(self, now: float) -> bool:
        """Whether the manager is dead."""
        return any(start <= now < end for start, end in self._manager_dead)

    def interrupt(self, transition: Transition) -> None:
        """The manager waits for answers no longer."""
        if transition.answers is not None and self._manager is not None:
            transition.answers = None
            self._manager.interrupt()

    def begin(self, transition: Transition, manager: simpy.Process) -> None:
        """A transition begins."""
        self._transition, self._manager = transition, manager
        self._wait()

    def end(self) -> None:
        """The transition is over."""
        self._transition = None

    def outages_changed(self) -> None:
        """Brokers are down or links are cut, other than before."""
        assert self._outages is not None
        now = self._clock.now
        self._down_since = np.where(self._outages.down, np.minimum(self._down_since, now), math.inf)
        self._cut_since = min(self._cut_since, now) if self._outages.cuts else math.inf
        self._wait()

    def _wait(self) -> None:
        """Look at the present transition again when what fails now has lasted for a timeout."""
        if self._transition is not None:
            for since in sorted({self._cut_since, *self._down_since.tolist()} - {math.inf}):
                look = partial(self._look_at, self._transition)
                self._clock.call(max(since + self._timeout, self._clock.now), CONTROL, look)

    def _look_at(self, transition: Transition) -> None:
        """Give a transition up if something has failed for too long."""
        if self._transition is not transition or not self.hampered:
            return
        self._engine.stop_waiting()
        if len(transition.resumed) == len(transition.members):
            self._over(transition)
            return
        self.interrupt(transition)
        transition.given_up = True
        stages, members, stands = transition.stage, transition.members, transition.outcome
        if stands is None:
            stands = transition.finishing and Stage.ASKING not in stages
        ended = Stage.FINISHED, Stage.FALLEN_BACK
        informed = sum(stages[broker] not in ended for broker in members)
        self._recorder.count("reconfiguration_overhead", self._clock.now, 2 * informed)
        self._control.before_change()
        for broker in members:
            if stands and stages[broker] is not Stage.FINISHED:
                self._finish(transition, broker)
            elif not stands and stages[broker] is not Stage.FALLEN_BACK:
                stages[broker] = Stage.FALLEN_BACK
                self._restore(transition, broker)
        for broker in members:
            self._resume(transition, broker)
        self._clock.call(self._clock.now + self._timeout, CONTROL, partial(self._look_at, transition))
