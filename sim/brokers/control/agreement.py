"""Agreement of brokers without the manager on whether a new configuration stands (DYNATOPS III.D4): all fall back, or none does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sim.brokers.control.transition import Stage, Transition

Step = Callable[[Transition, int], None]
"""The actions of one broker in a transition."""


COUNTER = "reconfiguration_overhead"
"""What messages count as."""


class Agreement:
    """Brokers that have given up waiting for the manager ask each other. If any has FINISH, the new configuration stands.

    `send((here, there), counter, message)` sends from one broker to another; `finish`, `restore` and `resume` are the protocol's.
    """

    def __init__(
        self,
        send: Callable[[tuple[int, int], str, Callable[[], None]], None],
        finish: Step,
        restore: Step,
        resume: Step,
    ) -> None:
        self._send = send
        self._finish, self._restore, self._resume = finish, restore, resume

    def _send_to_others(self, transition: Transition, broker: int, message: Callable[[int], None]) -> None:
        for other in transition.members:
            if other != broker:
                self._send((broker, other), COUNTER, partial(message, other))

    def ask(self, transition: Transition, broker: int) -> None:
        """Tell all others that the broker has no FINISH and accepts none any more, and ask whether they have one."""
        transition.stage[broker] = Stage.ASKING
        self._send_to_others(transition, broker, lambda other: self._on_question(transition, other, broker))
        self._fall_back_if_all_do(transition, broker)

    def _on_question(self, transition: Transition, broker: int, asking: int) -> None:
        if transition.given_up:
            return
        if transition.stage[broker] is Stage.FINISHED:
            self._send((broker, asking), COUNTER, partial(self._on_word_of_finish, transition, asking))
            return
        transition.refusals[broker] += 1
        if transition.stage[broker] is not Stage.ASKING:
            self.ask(transition, broker)
        self._fall_back_if_all_do(transition, broker)

    def _on_word_of_finish(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is Stage.ASKING:
            self._finish(transition, broker)

    def _fall_back_if_all_do(self, transition: Transition, broker: int) -> None:
        """Let the broker fall back if no broker has, or will get, FINISH."""
        if transition.stage[broker] is not Stage.ASKING or transition.refusals[broker] < len(transition.members) - 1:
            return
        transition.stage[broker] = Stage.FALLEN_BACK
        transition.outcome = False
        self._restore(transition, broker)
        self._send_to_others(transition, broker, lambda other: self._on_fallen_back(transition, other))
        self._resume_if_all_fell_back(transition, broker)

    def _on_fallen_back(self, transition: Transition, broker: int) -> None:
        transition.fallen_back[broker] += not transition.given_up
        self._resume_if_all_fell_back(transition, broker)

    def _resume_if_all_fell_back(self, transition: Transition, broker: int) -> None:
        if (
            transition.stage[broker] is Stage.FALLEN_BACK
            and transition.fallen_back[broker] == len(transition.members) - 1
        ):
            self._resume(transition, broker)
