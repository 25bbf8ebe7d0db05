"""Running mean and variance in one pass (Welford), as TuMM's Alg. 2 keeps them."""

from __future__ import annotations

from collections.abc import Iterable


class Mean:
    """
    >>> mean = Mean()
    >>> for value in (2.0, 4.0, 9.0): mean.add(value)
    >>> mean.n, mean.mean, round(mean.variance, 2)
    (3, 5.0, 13.0)
    """

    __slots__ = ("m2", "mean", "n")

    def __init__(self, n: int = 0, mean: float = 0.0, m2: float = 0.0) -> None:
        self.n = n
        self.mean = mean
        self.m2 = m2

    def add(self, value: float) -> None:
        self.n = n = self.n + 1
        mean = self.mean
        delta = value - mean
        self.mean = mean = mean + delta / n
        self.m2 += delta * (value - mean)

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
        self.mean += delta * other.n / n
        self.m2 += other.m2 + delta * delta * self.n * other.n / n
        self.n = n

    @property
    def variance(self) -> float:
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0

    def fork(self) -> Mean:
        return Mean(self.n, self.mean, self.m2)


def pooled_mean(means: Iterable[Mean]) -> float | None:
    """The mean over all values of several means; None if there are none yet."""
    n = 0
    total = 0.0
    for mean in means:
        n += mean.n
        total += mean.n * mean.mean
    return total / n if n else None
