"""How far there is to go to an error, and what may hide in what is not read."""

from __future__ import annotations

import math

from .intervals import unseen_share
from .sample import Sample
from .student import student_t


def files_for(error: float, sample: Sample, wanted: float, confidence: float = 0.95) -> int:
    """After how many files the error is as small as wanted, by that of now.

    The spread of the files stays; of m out of n files the error is Student's t times the square
    root of (1/m - 1/n), times the spread.

    >>> five = Sample(5, 100, 5.0, 100.0)
    >>> files_for(0.05, five, 0.05), files_for(0.05, five, 0.01), files_for(0.05, five, 0.0)
    (5, 42, 100)
    """
    every = sample.files_total
    if error <= wanted or sample.complete:
        return sample.files
    if wanted <= 0 or math.isinf(error) or sample.files < 2:
        return every

    def width(files: int) -> float:
        return student_t(confidence, files - 1) * math.sqrt(1 / files - 1 / every)

    most = wanted / error * width(sample.files)
    low, high = sample.files, every
    while low < high:
        middle = (low + high) // 2
        if width(middle) <= most:
            high = middle
        else:
            low = middle + 1
    return low


def rows_hidden(sample: Sample, confidence: float = 0.95) -> float:
    """How many rows a group may have of which none was read.

    >>> round(rows_hidden(Sample(10, 100, 10_000.0, 100_000.0)))
    27
    """
    return unseen_share(sample, confidence) * sample.rows_total
