"""What was read of a table so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SampleKind = Literal["shuffled", "blocks"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some files (or blocks of neighbouring rows), chosen at random out of all."""

    files: int
    files_total: int
    rows: float
    rows_total: float
    kind: SampleKind = "shuffled"

    @property
    def fraction(self) -> float:
        """The share of the rows that was read.

        >>> Sample(5, 100, 50.0, 1000.0).fraction
        0.05
        """
        if self.rows_total <= 0:
            return 1.0
        return min(self.rows / self.rows_total, 1.0)

    @property
    def complete(self) -> bool:
        return self.files >= self.files_total
