"""How much faster divisible work gets with more slots: a curve as data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import InvalidModel


@dataclass(frozen=True, slots=True)
class Speedup:
    """A share of the work that is serial, and the most slots of which the work makes any use.

    It is Amdahl's law with an end. While the serial share is done, all slots but one wait. Two
    numbers fit what is measured on few slots, and the curve is concave: each further slot gains
    less than the one before it.

    >>> half = Speedup(serial=0.5)
    >>> [round(half.speed(slots), 2) for slots in (0, 1, 2, 4)]
    [0.0, 1.0, 1.33, 1.6]
    >>> Speedup(most=2).speed(64), PERFECT.speed(64)
    (2.0, 64.0)
    """

    serial: float = 0.0
    most: float = math.inf

    def __post_init__(self) -> None:
        if not _is_number(self.serial) or not 0 <= self.serial <= 1:
            raise InvalidModel(f"speedup: serial must be a share from 0 to 1, got {self.serial!r}")
        if not _is_number(self.most) or not self.most >= 1:
            raise InvalidModel(f"speedup: most must be a number of at least 1, got {self.most!r}")

    @property
    def is_perfect(self) -> bool:
        """Whether every slot does as much as the first."""
        return not self.serial and self.most == math.inf

    def speed(self, slots: float) -> float:
        """Core-seconds of work per second on so many slots of speed 1."""
        used = slots if slots < self.most else self.most
        if not self.serial or used <= 1:
            return float(used)
        return 1.0 / (self.serial + (1.0 - self.serial) / used)

    def gain(self, slots: int) -> float:
        """What one more slot adds to the speed, beside so many.

        >>> Speedup(serial=0.5).gain(0), round(Speedup(serial=0.5).gain(1), 2)
        (1.0, 0.33)
        """
        return self.speed(slots + 1) - self.speed(slots)

    def useful(self, slots: int, worth: float = 0.5) -> int:
        """How many of the slots are used well: each adds at least so much to the speed.

        >>> Speedup(serial=0.5).useful(64), Speedup(serial=0.05).useful(64), PERFECT.useful(64)
        (1, 9, 64)
        """
        return max(1, sum(self.gain(place) >= worth for place in range(slots)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


PERFECT = Speedup()
"""As fast as there are slots."""
