"""Users who go offline, second by second: who is there, what is in force, and what is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Offline:
    """What happens on whole seconds: `wants` at first, events (time, user, topic, ±1), publications (time, topic, publisher), and
    spans (user, start, end); a will is (topic, delay)."""

    wants: list[set[int]]
    events: list[tuple[int, int, int, int]]
    publications: list[tuple[int, int, int]]
    spans: list[tuple[int, int, int]]
    horizon: int
    expiry: float
    will: tuple[int, int] | None
    changes: set[tuple[int, int, int, int]] = field(default_factory=set)
    absences: set[tuple[int, int, int, str]] = field(default_factory=set)
    published: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for user in range(len(self.wants)):
            before = self.wants[user]
            for now in range(self.horizon):
                after = self.in_force(user, now)
                self.changes |= {(now, user, topic, 1) for topic in after - before}
                self.changes |= {(now, user, topic, -1) for topic in before - after}
                before = after
                if self.will is not None and self.will_is_published(user, now):
                    self.published.append((now, self.will[0], user))
            for now in range(self.horizon):
                if self.is_away(user, now) and self.left(user, now) == now:
                    self.note_absence(user, now)
        self.published += [row for row in self.publications if row[2] < 0 or not self.is_away(row[2], row[0])]

    def is_away(self, user: int, now: int) -> bool:
        return any(who == user and start <= now < end for who, start, end in self.spans)

    def left(self, user: int, now: int) -> int:
        while self.is_away(user, now - 1):
            now -= 1
        return now

    def wanted(self, user: int, until: float) -> set[int]:
        """What the user wants after all events up to a time."""
        wanted = set(self.wants[user])
        for time, who, topic, action in self.events:
            if who == user and time <= until:
                (wanted.add if action > 0 else wanted.discard)(topic)
        return wanted

    def in_force(self, user: int, now: int) -> set[int]:
        if not self.is_away(user, now):
            return self.wanted(user, now)
        left = self.left(user, now)
        return self.wanted(user, left - 0.5) if now < left + self.expiry else set()

    def will_is_published(self, user: int, now: int) -> bool:
        if self.will is None or not self.is_away(user, now):
            return False
        left = self.left(user, now)
        return now == min(left + self.will[1], left + self.expiry)

    def note_absence(self, user: int, left: int) -> None:
        end: Any = left
        while self.is_away(user, end):
            end += 1
        over = left + self.expiry
        if self.expiry > 0:
            self.absences.add((user, left, min(end, over), "resumed" if end <= over else "over"))
        if over < min(end, self.horizon):
            self.absences.add((user, int(over), end, "none"))
