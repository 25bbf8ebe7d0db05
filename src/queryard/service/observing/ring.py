"""Figures over time in bounded memory: cells of equal length in a ring.

A cell holds, for every figure, the sum of its values times the seconds each of them held. So means
over any stretch of cells are exact, and a coarse ring has the same sums as a fine one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """What fell into one cell: from `at`, over so many `seconds`, the sum of each figure."""

    at: float
    seconds: float
    sums: tuple[float, ...]


class Ring:
    """The last `cells` cells of `cell_s` seconds each, of `figures` figures.

    >>> ring = Ring(cells=2, cell_s=10.0, figures=1)
    >>> for at in (100.0, 105.0, 110.0, 120.0):
    ...     ring.add(at, 5.0, [at])
    >>> [(cell.at, cell.seconds, cell.sums) for cell in ring.since(0.0)]
    [(110.0, 5.0, (110.0,)), (120.0, 5.0, (120.0,))]
    """

    def __init__(self, cells: int, cell_s: float, figures: int) -> None:
        self.cell_s = cell_s
        self._cells = cells
        self._width = figures + 2  # of each cell: its number, its seconds, its sums
        self._values = array("d", bytes(8 * cells * self._width))
        self._first = 0
        self._count = 0
        # Whether it has forgotten cells.
        self.has_forgotten = False

    @property
    def began_at(self) -> float | None:
        """The start of the oldest cell; None while there is none."""
        return self._values[self._place(0)] * self.cell_s if self._count else None

    def add(self, at: float, seconds: float, sums: Sequence[float]) -> None:
        """Something over some seconds, which belongs to the cell that `at` lies in.

        A time before the newest cell, after the clock was set back, counts for that cell.
        """
        number = at // self.cell_s
        if not self._count or number > self._values[self._place(self._count - 1)]:
            self._open(number)
        place = self._place(self._count - 1)
        self._values[place + 1] += seconds
        for figure, amount in enumerate(sums, place + 2):
            self._values[figure] += amount

    def _open(self, number: float) -> None:
        if self._count < self._cells:
            self._count += 1
        else:
            self._first = (self._first + 1) % self._cells
            self.has_forgotten = True
        place = self._place(self._count - 1)
        self._values[place : place + self._width] = array("d", bytes(8 * self._width))
        self._values[place] = number

    def _place(self, index: int) -> int:
        return (self._first + index) % self._cells * self._width

    def since(self, at: float) -> Iterator[Cell]:
        """Cells that begin at a time or later, the oldest first."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._values[self._place(middle)] * self.cell_s < at:
                low = middle + 1
            else:
                high = middle
        for index in range(low, self._count):
            place = self._place(index)
            number, seconds, *sums = self._values[place : place + self._width]
            yield Cell(number * self.cell_s, seconds, tuple(sums))


def gathered(cells: Iterable[Cell], since: float, step_s: float, steps: int) -> list[Cell | None]:
    """Cells added up by steps of time; None for a step in which there is none.

    Every cell counts for the step that it begins in, so that sums stay what they are.
    """
    found: list[Cell | None] = [None] * steps
    for cell in cells:
        step = int((cell.at - since) // step_s)
        if not 0 <= step < steps:
            continue
        old = found[step]
        if old is None:
            found[step] = cell._replace(at=since + step * step_s)
        else:
            sums = tuple(a + b for a, b in zip(old.sums, cell.sums, strict=True))
            found[step] = Cell(old.at, old.seconds + cell.seconds, sums)
    return found
