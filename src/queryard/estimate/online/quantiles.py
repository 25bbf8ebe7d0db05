"""Quantiles of a whole table from quantiles of some of its files.

Each file tells its values at some shares around the wanted one. Together they give the share of
rows below any value, which is a ratio of sums over files and has an interval like any other. That
interval is carried back to values (Woodruff 1952). So it fits values that many rows have in common,
and needs no density.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from .intervals import FEW_FILES, FEW_ROWS, Estimate
from .sample import Sample
from .student import student_t

# Shares near the wanted one lie this close together, further away ever less so.
_APART = 0.001
_NEAR = 30
_FAR = (0.045, 0.07, 0.1, 0.15, 0.2, 0.3)


def shares_around(share: float) -> tuple[float, ...]:
    """The shares that are asked of each file: dense near the wanted one, and both ends.

    >>> shares = shares_around(0.5)
    >>> len(shares), shares[0], shares[-1], 0.5 in shares
    (75, 0.0, 1.0, True)
    """
    steps = [*(_APART * step for step in range(_NEAR + 1)), *_FAR]
    inside = {round(share + sign * step, 6) for step in steps for sign in (-1, 1)}
    return (0.0, *sorted(each for each in inside if 0 < each < 1), 1.0)


@dataclass(frozen=True, slots=True)
class FileQuantiles:
    """The values of a file at `shares_around` a share (as `quantile_disc` gives them)."""

    rows: int
    values: Sequence[float]


def quantile_estimate(
    share: float, files: Sequence[FileQuantiles], sample: Sample, confidence: float = 0.95
) -> Estimate:
    """The quantile of a group that has rows in these files, out of those of the sample.

    >>> found = [FileQuantiles(100, [i + 100 * s for s in shares_around(0.5)]) for i in range(6)]
    >>> middle = quantile_estimate(0.5, found, Sample(6, 100, 600.0, 10_000.0))
    >>> round(middle.low, 1), round(middle.value, 1), round(middle.high, 1)
    (51.0, 52.1, 54.4)
    """
    files = [file for file in files if file.rows > 0]
    rows = sum(file.rows for file in files)
    if not rows:
        return Estimate(None, note="no interval")
    pooled = _Pooled(share, files)
    value = pooled.value(share)
    if rows < FEW_ROWS:
        return Estimate(value, note="few rows")
    if len(files) < FEW_FILES or sample.files < FEW_FILES:
        return Estimate(value, note="few files")
    below = pooled.below(value)
    squares = math.fsum(
        (file.rows * (pooled.of(i, value) - below)) ** 2 for i, file in enumerate(files)
    )
    count = sample.files
    variance = squares * count / (count - 1) * (1 - sample.fraction) / rows**2
    half = student_t(confidence, count - 1) * math.sqrt(variance)
    return Estimate(value, pooled.value(share - half), pooled.value(share + half))


def _ranks(shares: Sequence[float], rows: int) -> list[float]:
    """The share of rows below the values that a file of so many rows tells; of that row, half."""
    return [(max(math.ceil(share * rows - 1e-9), 1) - 0.5) / rows for share in shares]


class _Pooled:
    """The shares of rows below values, over several files."""

    def __init__(self, share: float, files: Sequence[FileQuantiles]) -> None:
        asked = shares_around(share)
        self._shares = [_ranks(asked, file.rows) for file in files]
        self._files = files
        self._rows = sum(file.rows for file in files)
        self._values = sorted({value for file in files for value in file.values})

    def of(self, place: int, value: float, before: bool = False) -> float:
        """The share of a file up to a value, or before it; linear between what is known."""
        known, shares = self._files[place].values, self._shares[place]
        first, after = bisect_left(known, value), bisect_right(known, value)
        if after - first > 1:
            # Many rows have this value. Where they begin and end lies between two known shares.
            if before:
                return (shares[first - 1] + shares[first]) / 2 if first else 0.0
            return (shares[after - 1] + shares[after]) / 2 if after < len(known) else 1.0
        if after - first == 1:
            return shares[first]
        if first == 0 or after == len(known):
            return 0.0 if first == 0 else 1.0
        part = (value - known[first - 1]) / (known[first] - known[first - 1])
        return shares[first - 1] + part * (shares[first] - shares[first - 1])

    def below(self, value: float, before: bool = False) -> float:
        return (
            math.fsum(f.rows * self.of(i, value, before) for i, f in enumerate(self._files))
            / self._rows
        )

    def value(self, share: float) -> float:
        """The least value up to which there is such a share of the rows."""
        values = self._values
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            if self.below(values[middle]) >= share:
                high = middle
            else:
                low = middle + 1
        found = values[low]
        if low == 0:
            return found
        start, end = self.below(values[low - 1]), self.below(found, before=True)
        if end <= start or share >= end:
            return found
        part = max((share - start) / (end - start), 0.0)
        return values[low - 1] + part * (found - values[low - 1])
