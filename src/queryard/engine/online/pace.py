"""How long the statements of an online query take, by how many parts they read."""

from __future__ import annotations

# Of what a statement takes, at least this share is for its parts.
PARTS_SHARE = 0.5


class Pace:
    """A statement takes some time whatever it reads, and more per part; learnt from the last two.

    >>> pace = Pace()
    >>> pace.learn(1, 0.02, 0.02)
    >>> pace.learn(3, 0.04, 0.04)
    >>> round(pace.fixed_s, 3), round(pace.part_s, 3), pace.most(0.155)
    (0.01, 0.01, 14)
    """

    def __init__(self) -> None:
        self.fixed_s = self.part_s = 0.0
        # Of the last statement: parts and seconds.
        self.last: tuple[int, float] = 0, 0.0

    def learn(self, parts: int, wall_s: float, held_s: float) -> None:
        """A statement has read so many parts, and held slots for so many slot-seconds, if known.

        Other queries may have had its slots for a while: that is no time of its own. With several
        slots it has held more seconds than it has taken.
        """
        took_s = min(wall_s, held_s) if held_s > 0 else wall_s
        before, before_s = self.last
        each_s = took_s / parts
        if not before:
            more_s = PARTS_SHARE * each_s
        elif parts == before:
            more_s = each_s - self.fixed_s / parts
        else:
            more_s = (took_s - before_s) / (parts - before)
        # Slots come and go: the difference of two times may be anything.
        self.part_s = min(max(more_s, PARTS_SHARE * each_s), each_s)
        self.fixed_s = took_s - self.part_s * parts
        self.last = parts, took_s

    def seconds(self, parts: int) -> float:
        """What a statement over so many parts will take; 0 before the first."""
        return self.fixed_s + self.part_s * parts

    def most(self, seconds: float) -> int:
        """How many parts can be read in a time, but one at least."""
        return max(1, int((seconds - self.fixed_s) / self.part_s)) if self.part_s else 1
