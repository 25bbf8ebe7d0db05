"""How often intervals hold the truth, when files are drawn again and again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from queryard.estimate.online import (
    Estimate,
    Sample,
    SampleKind,
    changes_of,
    estimate,
    quantile_estimate,
    tail_of,
)

from .populations import SHARES, FileSums, Stored

# Of so many files the largest values are known, as in an online query.
TAILED = 10


@dataclass(frozen=True, slots=True)
class Sums:
    """Scaled sums over files: rows that passed, x and its squares around the centre, y."""

    passed: float
    x: float
    squares: float
    y: float
    centre: float


def _variance(sums: Sums) -> float:
    if sums.passed <= 1:
        return math.nan
    return (sums.squares - sums.x * sums.x / sums.passed) / (sums.passed - 1)


def _total(sums: Sums) -> float:
    return sums.x + sums.centre * sums.passed


ESTIMATORS: Mapping[str, Callable[[Sums], float]] = {
    "SUM": _total,
    "COUNT": lambda sums: sums.passed,
    "AVG": lambda sums: _total(sums) / sums.passed if sums.passed else math.nan,
    "ratio": lambda sums: sums.y / _total(sums) if _total(sums) else math.nan,
    "VAR": _variance,
    "STDDEV": lambda sums: math.sqrt(max(_variance(sums), 0.0)),
}
QUANTILES: tuple[str, ...] = ("median", "0.9 quantile")
NAMES = (*ESTIMATORS, *QUANTILES)


@dataclass(slots=True)
class Cell:
    """How many intervals were shown, and how many of them held the truth."""

    drawn: int = 0
    shown: int = 0
    held: int = 0
    width: float = 0.0

    def add(self, found: Estimate, true: float) -> None:
        self.drawn += 1
        if found.low is None or found.high is None:
            return
        self.shown += 1
        slack = 1e-9 * abs(true)
        self.held += found.low - slack <= true <= found.high + slack
        self.width += (found.high - found.low) / 2 / abs(true) if true else 0.0

    @property
    def coverage(self) -> float | None:
        return self.held / self.shown if self.shown else None


def coverage(data: Stored, kind: SampleKind, read: int, draws: int, rng: Random) -> dict[str, Cell]:
    """Draw so many files, `draws` times, and compare every interval with the truth."""
    everything = [(f.rows, f.passed, f.x, f.squares, f.y) for f in data.files]
    rows_total = math.fsum(row[0] for row in everything)
    true = _evaluated(everything, data.centre, rows_total, ())
    cells = {name: Cell() for name in NAMES}
    for _ in range(draws):
        places = rng.sample(range(len(data.files)), read)
        chosen = [everything[i] for i in places]
        sample = Sample(read, len(data.files), sum(c[0] for c in chosen), rows_total, kind)
        passed, files = int(sum(c[1] for c in chosen)), sum(c[1] > 0 for c in chosen)
        whole = _evaluated(chosen, data.centre, rows_total, ())
        rows = _rows([data.files[i] for i in places], data.centre)
        without_row = [_evaluated(chosen, data.centre, rows_total, row) for row in rows]
        without = [_evaluated(chosen, data.centre, rows_total, each) for each in chosen]
        tails = _tails([data.files[i] for i in places[:TAILED]])
        for place, name in enumerate(ESTIMATORS):
            changes = changes_of(
                whole[place],
                [each[place] for each in without],
                [each[place] for each in without_row] if name != "COUNT" else (),
                tails[name],
            )
            found = estimate(whole[place], changes, passed, files, sample)
            cells[name].add(found, true[place])
        for place, share in enumerate(SHARES):
            parts = [data.files[i].quantiles[place] for i in places]
            found = quantile_estimate(share, parts, sample)
            cells[QUANTILES[place]].add(found, data.quantiles[place])
    return cells


def _rows(files: Sequence[FileSums], centre: float) -> list[tuple[float, ...]]:
    """The sums of single rows that may change an estimate most: of the least and largest values."""
    files = [file for file in files if file.passed]
    if not files:
        return []
    low, high = min(f.low for f in files) - centre, max(f.high for f in files) - centre
    high_y = max(f.high_y for f in files)
    return [(0, 1, low, low**2, 0), (0, 1, high, high**2, 0), (0, 0, 0, 0, high_y)]


def _tails(files: Sequence[FileSums]) -> dict[str, float]:
    """What the largest values of files say of tails, by estimator."""
    files = [file for file in files if file.passed]
    values = _tail([max(abs(f.low), abs(f.high)) for f in files], 2)
    # From the mean of the file itself: means that drift are no tails.
    squares = _tail([max(f.mean - f.low, f.high - f.mean) for f in files], 4)
    parts = _tail([abs(f.high_y) for f in files], 2)
    return {
        "SUM": values,
        "COUNT": 0.0,
        "AVG": values,
        "ratio": max(values, parts),
        "VAR": squares,
        "STDDEV": squares,
    }


def _tail(largest: Sequence[float], moments: int) -> float:
    logs = [math.log(value) for value in largest if value > 0]
    return tail_of(statistics.stdev(logs), len(logs), moments) if len(logs) > 1 else 0.0


def _evaluated(
    chosen: Sequence[tuple[float, ...]], centre: float, rows_total: float, left_out: Sequence[float]
) -> list[float]:
    """All estimators over some files, without one of them."""
    sums = [sum(column) for column in zip(*chosen, strict=True)]
    if left_out:
        sums = [total - part for total, part in zip(sums, left_out, strict=True)]
    scale = rows_total / sums[0]
    passed, x, squares, y = (scale * each for each in sums[1:])
    scaled = Sums(passed, x, squares, y, centre)
    return [compute(scaled) for compute in ESTIMATORS.values()]
