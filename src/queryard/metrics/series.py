"""A value that changes at instants."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class StepSeries:
    """`values[i]` holds from `times_s[i]` to the next; before the first it is 0.

    >>> used = StepSeries.of_changes([(0, 2), (5, -1), (10, -1)])
    >>> used.at(7), used.mean(0, 10)
    (1, 1.5)
    """

    times_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    @classmethod
    def of_points(cls, points: Iterable[tuple[float, float]]) -> StepSeries:
        """A series through (time, value), in the order of time; repeated values are left out.

        >>> StepSeries.of_points([(0, 2), (5, 2), (6, 1)])
        StepSeries(times_s=(0, 6), values=(2, 1))
        """
        times_s: list[float] = []
        values: list[float] = []
        last = 0.0
        for time_s, value in points:
            if value != last:
                times_s.append(time_s)
                values.append(value)
                last = value
        return cls(tuple(times_s), tuple(values))

    @classmethod
    def of_changes(cls, changes: Iterable[tuple[float, int]]) -> StepSeries:
        """The running sum of (time, change), one point per instant at which it changes.

        >>> StepSeries.of_changes([(5, -1), (5, 1), (0, 2)])
        StepSeries(times_s=(0,), values=(2,))
        """
        total = 0
        total_at: dict[float, float] = {}
        for time_s, change in sorted(changes):
            total += change
            total_at[time_s] = total
        return cls.of_points(total_at.items())

    def at(self, time_s: float) -> float:
        place = bisect_right(self.times_s, time_s)
        return self.values[place - 1] if place else 0.0

    def integral(self, start_s: float, end_s: float) -> float:
        """The area under the series between two times."""
        if end_s <= start_s:
            return 0.0
        inside = slice(bisect_right(self.times_s, start_s), bisect_right(self.times_s, end_s))
        times_s = (start_s, *self.times_s[inside], end_s)
        values = (self.at(start_s), *self.values[inside])
        return sum(
            value * (after_s - before_s)
            for value, (before_s, after_s) in zip(values, pairwise(times_s), strict=True)
        )

    def mean(self, start_s: float, end_s: float) -> float:
        """The time-weighted mean between two times."""
        if end_s <= start_s:
            return self.at(start_s)
        return self.integral(start_s, end_s) / (end_s - start_s)
