"""The mistakes in a scenario, collected to be reported at once, each with its place in the file or option."""

from __future__ import annotations

import sys
from pathlib import Path

from sim.base.naming import Keys
from sim.base.validation import UNKNOWN, dotted
from sim.scenario.sweep import Override


class Mistakes:
    """The mistakes in one scenario, whose file is `path`; `lines` are the lines of its keys.

    `names` are the names of its variants by number, added as they are read. `laid` is what the sweep overrides at the point being
    read.
    """

    def __init__(self, path: Path | None, lines: dict[Keys, int], names: list[str]) -> None:
        self.path, self.names = path, names
        self.laid: tuple[Override, ...] = ()
        self._places = {keys: (line, f"{path}:{line}") for keys, line in lines.items()}
        self._lines: set[tuple[int, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __str__(self) -> str:
        return "\n".join(text for _, text in sorted(self._lines))

    def override(self, keys: Keys, place: str) -> None:
        """Record another place for a key and all below it."""
        self._places = {known: at for known, at in self._places.items() if known[: len(keys)] != keys}
        for length in range(1, len(keys)):
            self._places.setdefault(keys[:length], (sys.maxsize, place))
        self._places[keys] = sys.maxsize, place

    def add(self, keys: Keys, text: str, variant: int | None = None) -> None:
        """Record a mistake, with the place of the longest part of its key path that has one."""
        swept = {one.keys: one.place for one in self.laid}
        for length in range(len(keys), 0, -1):
            known, rest = keys[:length], keys[length:]
            named: Keys = ("variant", self.names[variant], *known) if variant is not None else ()
            own: Keys = ("variant", variant, *known) if variant is not None else ()
            if place := swept.get(named) or swept.get(known):
                keys, text = self._once(place, text) if not rest else (place, text)
                keys = ("sweep", *keys, *rest)
                break
            if own in self._places or known in self._places:
                keys = (*(own if own in self._places else known), *rest)
                break
            if around := next((one.place for one in self.laid if one.keys[:length] in (named, known)), None):
                keys, text = self._once(around, text)
                keys, text = ("sweep", *keys), f"{dotted(known)}: {text}"
                break
        found = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in self._places), ())
        line, at = self._places[found] if found else (0, str(self.path or "scenario"))
        self._lines.add((line, f"{at}: {self._dotted(keys)}: {text}"))

    @staticmethod
    def _once(place: Keys, text: str) -> tuple[Keys, str]:
        """The message about an unknown key without its value, so that it is reported once."""
        if not text.startswith(UNKNOWN):
            return place, text
        return place[:-1] if isinstance(place[-1], int) else place, text.rpartition(" (found ")[0]

    def _dotted(self, keys: Keys) -> str:
        if keys[0] == "variant" and len(keys) > 1:
            keys = ("variant", self.names[int(keys[1])], *keys[2:])
        return dotted(keys)
