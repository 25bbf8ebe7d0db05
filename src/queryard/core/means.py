"""Means of values as they come: by Welford, as TuMM's Alg. 2 keeps them, and of the latest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

# How much the latest value counts in what is typical, once there were many.
LATEST = 0.02


class Mean:
    """Values are only put down when they come, and added up when the mean is read.

    >>> mean = Mean()
    >>> for value in (2.0, 4.0, 9.0): mean.add(value)
    >>> mean.n, mean.mean, round(mean.variance, 2)
    (3, 5.0, 13.0)
    """

    __slots__ = ("_m2", "_mean", "_n", "_new", "add")

    def __init__(self, n: int = 0, mean: float = 0.0, m2: float = 0.0) -> None:
        self._n = n
        self._mean = mean
        self._m2 = m2
        self._new: list[float] = []
        self.add: Callable[[float], None] = self._new.append

    def _look(self) -> None:
        """Reckon with what has come since the last look."""
        n, mean, m2 = self._n, self._mean, self._m2
        for value in self._new:
            n += 1
            delta = value - mean
            mean += delta / n
            m2 += delta * (value - mean)
        self._new.clear()
        self._n, self._mean, self._m2 = n, mean, m2

    @property
    def n(self) -> int:
        return self._n + len(self._new)

    @property
    def mean(self) -> float:
        if self._new:
            self._look()
        return self._mean

    @property
    def m2(self) -> float:
        """The sum of squared distances from the mean."""
        if self._new:
            self._look()
        return self._m2

    @property
    def variance(self) -> float:
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0

    def or_else(self, default: float) -> float:
        """The mean, or this while there is none.

        >>> Mean().or_else(7.0), Mean(1, 2.0).or_else(7.0)
        (7.0, 2.0)
        """
        if self._new:
            self._look()
            return self._mean
        return self._mean if self._n else default

    def merge(self, other: Mean) -> None:
        """Add all values of another mean.

        >>> a, b = Mean(2, 3.0, 2.0), Mean(1, 9.0)
        >>> a.merge(b); a.n, a.mean, a.m2
        (3, 5.0, 26.0)
        """
        n = self.n + other.n
        if not n:
            return
        delta = other.mean - self.mean
        self._m2 = self.m2 + (other.m2 + delta * delta * self.n * other.n / n)
        self._mean += delta * other.n / n
        self._n = n

    def fork(self) -> Mean:
        if self._new:
            self._look()
        return Mean(self._n, self._mean, self._m2)


class Typical:
    """The geometric mean of the latest values above 0; infinite before the first.

    >>> typical = Typical()
    >>> for value in (1.0, 100.0): typical.add(value)
    >>> round(typical.value, 6)
    10.0
    """

    __slots__ = ("_log", "_n")

    def __init__(self, n: int = 0, log: float = math.inf) -> None:
        self._n = n
        self._log = log

    def add(self, value: float) -> None:
        self._n += 1
        log = math.log(value)
        before = self._log if self._n > 1 else log
        self._log = before + (log - before) * max(LATEST, 1.0 / self._n)

    @property
    def value(self) -> float:
        return math.exp(self._log)

    def fork(self) -> Typical:
        return Typical(self._n, self._log)


def pooled_mean(means: Iterable[Mean]) -> float | None:
    """The mean over all values of several means; None if there are none yet."""
    n = 0
    total = 0.0
    for mean in means:
        if mean._new:
            mean._look()
        n += mean._n
        total += mean._n * mean._mean
    return total / n if n else None
