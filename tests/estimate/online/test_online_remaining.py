"""What is left of the first answer's error, beside what really is."""

from __future__ import annotations

import math
import statistics
from itertools import accumulate
from random import Random

import pytest

from queryard.estimate.online import error_left

PARTS = 50


def misses(rng: Random, columns: int) -> tuple[list[float], list[float]]:
    """How far what is expected to be left, and the law of samples alone, are from the truth."""
    drawn = [[rng.gauss(100.0, 10.0) for _ in range(PARTS)] for _ in range(columns)]
    series = [[total / n for n, total in enumerate(accumulate(each), 1)] for each in drawn]
    off = [
        statistics.fmean(abs(each[n] - each[-1]) / each[-1] for each in series)
        for n in range(PARTS)
    ]
    expected, by_law = [], []
    for read in range(2, PARTS):
        fraction = read / PARTS
        told = [
            (each[0], each[read - 1], statistics.variance(parts[:read]))
            for each, parts in zip(series, drawn, strict=True)
        ]
        true = min(1.0, off[read - 1] / off[0])
        expected.append(abs(error_left(told, read, fraction) - true))
        law = math.sqrt((1 - fraction) / (1 - 1 / PARTS) / read)
        by_law.append(abs(law - true))
    return expected, by_law


@pytest.mark.parametrize("columns", [1, 10])
def test_it_is_nearer_to_the_truth_than_the_law_of_samples(columns: int) -> None:
    rng = Random(f"left/{columns}")
    expected, by_law = zip(*(misses(rng, columns) for _ in range(60)), strict=True)
    ours, laws = (statistics.fmean(map(statistics.fmean, each)) for each in (expected, by_law))
    assert ours < 0.75 * laws if columns == 1 else ours < laws


def test_a_first_answer_that_was_far_off_leaves_less() -> None:
    near, far = (error_left([(first, 100.0, 4.0)], 10, 0.1) for first in (101.0, 120.0))
    assert far < 0.1 < near < 1.0


def test_values_that_never_moved_have_no_error_left() -> None:
    assert error_left([(7.0, 7.0, 0.0)], 3, 0.1) == 0.0
    assert error_left([], 3, 0.1) == 0.0
    assert error_left([(0.0, 0.0, 0.0)], 1, 0.1) == 1.0
