"""Step by step larger, or smaller."""

from __future__ import annotations

from queryard.core.state import State

from ..checks import whole
from .periodic import Periodic


class PlusX(Periodic):
    """Add x nodes every period while queries are active, up to the maximum. O(1).

    From 4 nodes with x = 2 and a period of 30 s: 6 at the first query, 8 after 30 s, and so on.
    """

    name = "+x"
    citation = "POSUM Table 4.1 (+X)"

    def __init__(
        self, x: int = 1, period_s: float = 30.0, minimum: int = 1, maximum: int = 64
    ) -> None:
        super().__init__(period_s, minimum, maximum)
        self.x = whole("x", x, 1)

    def wanted(self, state: State) -> int:
        size = self.size(state)
        return size + self.x if state.queries else size


class MinusX(PlusX):
    """Take x nodes away every period, down to the minimum, busy or not. O(1).

    The text prints "increase" for this one too; the name and the sense say decrease.
    """

    name = "-x"
    citation = "POSUM Table 4.1 (-X)"

    def wanted(self, state: State) -> int:
        return self.size(state) - self.x
