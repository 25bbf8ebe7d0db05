"""Table 5.5 of the thesis: average scores of re-runs, and their margins at 90 %."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from research.numbers import margin


class Score(NamedTuple):
    """An average and its margin."""

    average: float
    margin: float

    def __str__(self) -> str:
        return f"{self.average:,.0f} ± {self.margin:,.0f}"


class Published(NamedTuple):
    """A row: how often it was run, and 100·S_B, V_D and their sum."""

    runs: int
    batch: Score
    deadline: Score
    mixed: Score

    def by(self, objective: str) -> float:
        """The average by an objective: in units of its own, so that only ratios compare."""
        of = {"batch": self.batch, "deadline": self.deadline, "mixed": self.mixed}
        return of[objective].average


def _row(runs: int, *numbers: float) -> Published:
    batch, deadline, mixed = (Score(*numbers[at : at + 2]) for at in (0, 2, 4))
    return Published(runs, batch, deadline, mixed)


PUBLISHED: Mapping[int, Mapping[str, Published]] = {
    1: {
        "srtf": _row(4, 352, 21, 378, 85, 731, 94),
        "locf": _row(4, 423, 63, 442, 59, 865, 91),
        "edls-sh": _row(4, 5892, 992, 132, 43, 6024, 1034),
        "edls-pr": _row(4, 1351, 559, 160, 27, 1511, 586),
        "mixed": _row(9, 457, 69, 290, 43, 748, 95),
        "deadline": _row(7, 626, 137, 280, 68, 907, 179),
        "batch": _row(8, 399, 55, 270, 34, 669, 82),
    },
    2: {
        "srtf": _row(4, 265, 10, 416, 130, 681, 139),
        "locf": _row(4, 316, 18, 384, 133, 701, 149),
        "edls-sh": _row(4, 4189, 791, 154, 27, 4343, 787),
        "edls-pr": _row(4, 1352, 531, 337, 195, 1689, 522),
        "mixed": _row(5, 288, 26, 376, 175, 665, 197),
        "deadline": _row(4, 591, 343, 325, 53, 917, 375),
        "batch": _row(4, 378, 102, 467, 260, 845, 362),
    },
}


def score(values: Sequence[float]) -> Score:
    """Ours in the same terms."""
    return Score(statistics.fmean(values), margin(values, 90))
