"""Estimates with intervals, by leaving out one file at a time (the jackknife).

For sums this is the t-interval over totals per file; for averages, ratios and variances it is the
delta method. Files are the units, so rows of a file may be as much alike as they like. The spread
is multiplied by the share that is not read yet: when all is read, nothing is uncertain.

No interval is given where it would be wrong too often: of fewer than 30 rows, of groups that lie
in few of the files, and where one file makes most of the spread, as heavy tails do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .sample import Sample
from .student import student_t

FEW_ROWS = 30
FEW_FILES = 5
# Files are called unlike each other if chance makes such a largest one in a thousandth of cases.
_UNLIKELY = 0.001
# A file that moves the estimate by less than this share of it is no sign of a heavy tail: counts
# over blocks of nearly equal size differ by a row or two.
_NEGLIGIBLE = 0.001
# One row may make this share of the spread of the files.
_MOST_OF_A_ROW = 0.1
# What is not linear in sums is off by this part of half an interval at most.
_MOST_BIAS = 0.15
_ROUNDING = 1e-9
_GUMBEL_DEVIATION = math.pi / math.sqrt(6)
_GUMBEL_KURTOSIS = 5.4

Note = Literal["", "few rows", "few files", "heavy tail", "all zero", "no interval"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What leaving out each file does to an estimate: sum, sum of squares and largest square.

    `row` is the square of what leaving out the one row does that changes it most, if that is known.
    `tail` is above 1 if the largest values of files do not show that tails are light (`tail_of`).
    """

    total: float
    squares: float
    largest: float
    row: float = 0.0
    tail: float = 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and where that of the whole table lies; `note` says why no interval is given."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: Note = ""

    @property
    def error(self) -> float | None:
        """Half the interval, relative to the value; None without an interval.

        >>> Estimate(200.0, 190.0, 210.0).error
        0.05
        """
        if self.value is None or self.low is None or self.high is None:
            return None
        half = max(self.high - self.value, self.value - self.low)
        if half == 0:
            return 0.0
        return half / abs(self.value) if self.value else math.inf


def changes_of(
    value: float,
    without: Sequence[float],
    without_row: Sequence[float] = (),
    tail: float = 0.0,
) -> Changes:
    """The changes of an estimate from its values without each of the files, or without one row.

    >>> changes_of(10.0, [9.0, 11.0, 10.0], [9.5])
    Changes(total=0.0, squares=2.0, largest=1.0, row=0.25, tail=0.0)
    """
    differences = [each - value for each in without]
    squares = [d * d for d in differences]
    row = max(((each - value) ** 2 for each in without_row), default=0.0)
    largest = max(squares, default=0.0)
    return Changes(math.fsum(differences), math.fsum(squares), largest, row, tail)


def estimate(
    value: float | None,
    changes: Changes | None,
    rows: int,
    files: int,
    sample: Sample,
    confidence: float = 0.95,
) -> Estimate:
    """The estimate of a group of which `rows` were read, in so many `files`.

    >>> five = Sample(5, 100, 500.0, 10_000.0)
    >>> found = estimate(100.0, changes_of(100.0, [98.0, 99.0, 100.0, 101.0, 102.0]), 400, 5, five)
    >>> round(found.low, 1), round(found.high, 1)
    (92.3, 107.7)
    """
    if value is None or not math.isfinite(value):
        return Estimate(None, note="no interval")
    if sample.complete:
        return Estimate(value, value, value)
    if rows < FEW_ROWS:
        return Estimate(value, note="few rows")
    if files < FEW_FILES or sample.files < FEW_FILES:
        return Estimate(value, note="few files")
    if changes is None or not math.isfinite(changes.squares):
        return Estimate(value, note="no interval")
    if changes.squares <= sample.files * (_ROUNDING * value) ** 2:
        return _agreeing(value, sample, confidence)
    if is_heavy(changes, sample.files) and changes.largest > (_NEGLIGIBLE * value) ** 2:
        return Estimate(value, note="heavy tail")
    half = half_width(changes, sample, confidence)
    bias = (sample.files - 1) / sample.files * changes.total * (1 - sample.fraction)
    if abs(bias) > _MOST_BIAS * half:
        return Estimate(value, note="few files")
    value -= bias
    return Estimate(value, value - half, value + half)


def _agreeing(value: float, sample: Sample, confidence: float) -> Estimate:
    """All files give the same. What was never seen may still be a share 3/n, as of any group.

    Of zeros that is nothing, whatever the other values are: there is no interval.
    """
    if not value:
        return Estimate(value, note="all zero")
    half = abs(value) * min(unseen_share(sample, confidence), 1.0)
    return Estimate(value, value - half, value + half)


def unseen_share(sample: Sample, confidence: float) -> float:
    """The share of the table that rows may have of which none was read.

    Of n random rows none is in a group of a share 3/n with a probability of 5 %. Blocks count as
    one row each, since all rows of a group may lie in one of them.
    """
    seen = sample.rows if sample.kind == "shuffled" else float(sample.files)
    if seen <= 0:
        return 1.0
    return min(-math.log(1 - confidence) / seen, 1.0) * (1 - sample.fraction)


def half_width(changes: Changes, sample: Sample, confidence: float) -> float:
    """Half the interval: t times the standard error of the jackknife, for what is not read."""
    count = sample.files
    if count < 2:
        return math.inf
    squares = max(changes.squares - changes.total * changes.total / count, 0.0)
    variance = squares * (count - 1) / count * (1 - sample.fraction)
    return student_t(confidence, count - 1) * math.sqrt(variance)


def is_heavy(changes: Changes, files: int) -> bool:
    """Whether one file makes more of the spread than chance explains, or one row much of it.

    Files are compared by Grubbs's test for outliers. Where tails are heavy, neither is seen in the
    very samples that miss the largest rows; so the largest values of files must show that they are
    not.

    >>> is_heavy(changes_of(0.0, [1.0, -1.0, 1.2, -1.1, 0.9, -1.0]), 6)
    False
    >>> is_heavy(changes_of(0.0, [0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 50.0]), 9)
    True
    """
    if files < 3 or changes.squares <= 0:
        return False
    t = student_t(1 - _UNLIKELY / files, files - 2)
    share = t * t / (files - 2 + t * t) * (files - 1) / files
    return (
        changes.tail > 1
        or changes.largest > share * changes.squares
        or changes.row > _MOST_OF_A_ROW * changes.squares
    )


def tail_of(deviation: float, files: int, moments: int) -> float:
    """How far the largest values of files are from showing that some moments exist: 1 is just.

    If a share 1/x^a of the values lies beyond x, the logarithms of largest values have a Gumbel
    distribution with a standard `deviation` of π/√6/a; light tails have less. An estimate has an
    interval if its spread has a limit: for sums a must be above 2, for variances above 4 (the
    `moments`). What the deviation of so many `files` shows is good to a standard error.

    >>> [round(tail_of(1.28 / a, 10, 2), 1) for a in (1.5, 2, 4)]
    [1.8, 1.3, 0.7]
    """
    if files < FEW_FILES:
        return 0.0
    sure = 1 + math.sqrt((_GUMBEL_KURTOSIS - 1) / (4 * files))
    return moments * sure * deviation / _GUMBEL_DEVIATION
