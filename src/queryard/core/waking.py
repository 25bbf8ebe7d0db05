"""When the kernel is to be woken although nothing happens."""

from __future__ import annotations

from collections.abc import Iterable

from .commands import Command, WakeAt
from .parts import Part
from .state import State

# How early the live clock may ring.
EARLY_S = 1e-3


class Waking:
    """The times that were asked for and have not come yet."""

    def __init__(self) -> None:
        self.times_s: set[float] = set()

    def fork(self) -> Waking:
        copy = Waking()
        copy.times_s = self.times_s.copy()
        return copy

    def ask(self, time_s: float, out: list[Command]) -> None:
        """Ask to be woken at a time, once."""
        if time_s not in self.times_s:
            self.times_s.add(time_s)
            out.append(WakeAt(time_s))

    def ask_for(self, parts: Iterable[Part], state: State, out: list[Command]) -> None:
        """Ask for the times that parts want."""
        for part in parts:
            time_s = part.wake_s(state)
            if time_s is not None and time_s > state.now:
                self.ask(time_s, out)

    def ask_within(self, seconds: float, now: float, out: list[Command]) -> None:
        """Ask for the end of a tick (0 is none), if no other time comes before."""
        if seconds and not any(now < time_s <= now + seconds for time_s in self.times_s):
            self.ask(now + seconds, out)

    def came(self, now: float) -> None:
        """A time has come; a clock may ring a moment early."""
        self.times_s = {time_s for time_s in self.times_s if time_s > now + EARLY_S}
