"""The time axis that all charts of a figure share, in a unit that suits the longest run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .panels import Axis


class Unit(NamedTuple):
    name: str
    s: float


SECOND, MINUTE, HOUR = Unit("s", 1.0), Unit("min", 60.0), Unit("h", 3600.0)


def readable(seconds: float, digits: int = 3) -> str:
    """A time with so many digits that count, in a unit that suits it.

    >>> readable(2.71828), readable(1200), readable(90000)
    ('2.72 s', '20 min', '25 h')
    """
    unit = unit_for(seconds)
    return f"{rounded(seconds / unit.s, digits)} {unit.name}"


def rounded(value: float, digits: int = 3) -> str:
    """A number with so many digits that count, or all before the point.

    >>> rounded(0.01234), rounded(4360.3)
    ('0.0123', '4,360')
    """
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def unit_for(seconds: float) -> Unit:
    """The unit in which such a time is best read."""
    if seconds <= 10 * MINUTE.s:
        return SECOND
    return MINUTE if seconds <= 3 * HOUR.s else HOUR


@dataclass(frozen=True, slots=True)
class Timescale:
    """From the first submission, 0, to `end_s`."""

    end_s: float
    unit: Unit

    @classmethod
    def up_to(cls, ends_s: Iterable[float]) -> Timescale:
        """A scale to the latest of these times; to 1 s if there is none above 0."""
        end_s = max(ends_s, default=0.0) or 1.0
        return cls(end_s, unit_for(end_s))

    @property
    def axis(self) -> Axis:
        label = f"time since the first submission ({self.unit.name})"
        return Axis(label, 0.0, self.scaled(self.end_s))

    def scaled(self, seconds: float) -> float:
        return seconds / self.unit.s
