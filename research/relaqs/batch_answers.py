"""Answers of online queries batch by batch, drawn from a stated distribution.

What a batch adds to one number of an answer (a column of a group) is a sum over some hundreds or
millions of rows: a gamma with mean 1 and shape rows / (1 + CV²), CV = 1 being the spread of
the values. The answer after i batches is the mean of these; the last one is exact. In a nested
query rows near the inner aggregate are decided anew with every batch, which adds a fresh normal
error, a part of the sampling error at that time. Bootstrap trials each weigh the rows of a batch
by chance and keep their own answer, as in iOLAP; the width is what 95 % of them span.

Rows per batch are those of TPC-H at 100 GB in 50 batches. Left out are 3 and 11: their groups have
a handful of rows each (§4.6 lets these be ignored).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

SPREAD_OF_VALUES = 1.0
TRIALS = 100


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """A query's answer: how many numbers it has, and how many rows per batch each rests on.

    `redecided` is the fresh error of a nested query, of its sampling error.
    """

    name: str
    numbers: int
    rows: float
    redecided: float = 0.0


KINDS = (
    AnswerKind("TPC-H 1", 32, 3e6),
    AnswerKind("TPC-H 5", 5, 2700),
    AnswerKind("TPC-H 6", 1, 2.4e5),
    # 18,000 groups, of which 32 stand for all.
    AnswerKind("TPC-H 16", 32, 12),
    AnswerKind("TPC-H 17", 1, 1200, redecided=0.3),
    # A narrow filter.
    AnswerKind("TPC-H 19", 1, 240),
)


@dataclass(frozen=True, slots=True)
class Number:
    """One number of an answer: its value and the width of its interval after every batch."""

    values: tuple[float, ...]
    widths: tuple[float, ...]


def draw_answer(kind: AnswerKind, batches: int, rng: Random) -> list[Number]:
    """All numbers of the answer of one query."""
    return [_number(kind, batches, rng) for _ in range(kind.numbers)]


def _number(kind: AnswerKind, batches: int, rng: Random) -> Number:
    shape = kind.rows / (1 + SPREAD_OF_VALUES**2)
    noise = 1 / math.sqrt(shape)
    sums = accumulate(rng.gammavariate(shape, 1 / shape) for _ in range(batches))
    values = []
    for batch, total in enumerate(sums, 1):
        sampling = noise * math.sqrt((1 - batch / batches) / batch)
        values.append(total / batch + kind.redecided * sampling * rng.gauss(0.0, 1.0))
    trials = [0.0] * TRIALS
    widths = []
    for batch in range(1, batches + 1):
        trials = [trial + rng.gauss(0.0, noise) for trial in trials]
        ordered = sorted(trials)
        # The second lowest and highest of a hundred: 2.5 % lie beyond on either side.
        cut = round(0.025 * TRIALS)
        widths.append((ordered[-1 - cut] - ordered[cut]) / batch)
    return Number(tuple(values), tuple(widths))


def over_running_maximum(changes: Sequence[float]) -> list[float]:
    """1 for the first batch, then every change over the largest so far (the paper's metric).

    >>> over_running_maximum([2.0, 1.0, 4.0])
    [1.0, 1.0, 0.5, 1.0]
    """
    largest = accumulate(changes, max)
    return [1.0, *(c / most if most else 0.0 for c, most in zip(changes, largest, strict=True))]


def steps(values: Sequence[float]) -> list[float]:
    """By how much each value differs from the one before."""
    return [abs(new - old) for old, new in pairwise(values)]


def progress(numbers: Sequence[Number]) -> list[float]:
    """ReLAQS's metric, the mean over all numbers of an answer."""
    return _means([over_running_maximum(steps(number.values)) for number in numbers])


def width_change(numbers: Sequence[Number]) -> list[float]:
    """The same of the widths of intervals."""
    return _means([over_running_maximum(steps(number.widths)) for number in numbers])


def width(numbers: Sequence[Number]) -> list[float]:
    """Widths, over the first one."""
    return _means([[each / number.widths[0] for each in number.widths] for number in numbers])


def true_error(numbers: Sequence[Number]) -> list[float]:
    """How far the answers are from the exact ones, over the largest such distance."""
    rows = []
    for number in numbers:
        away = [abs(value - number.values[-1]) for value in number.values]
        rows.append([distance / max(away) for distance in away])
    return _means(rows)


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
