"""Online work: one divisible job that answers after every batch of its sample."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.backends.protocol import Leased
from queryard.core.events import MemoryChanged
from queryard.core.model import Divisible
from queryard.engine.online.statement import OnlineStatement
from queryard.engine.program import Program
from queryard.results.streams import ResultStream

from .base import Moved
from .leased import LeasedWork


class OnlineWork(LeasedWork):
    """It runs on leased slots like a native query, and may end before all is read.

    An iterative program of the user's runs the same way, on one slot, with a batch per step.
    """

    def __init__(
        self,
        query: str,
        statement: OnlineStatement | Program,
        width: int,
        batches: int,
        memory_bytes: int = 0,
    ) -> None:
        super().__init__(query, Divisible(width=width, batches=batches))
        self.memory_bytes = memory_bytes
        self._statement = statement
        self._width = width

    def for_backend(self, output: ResultStream) -> Leased:
        return Leased(self._query, self._width, output, self._statement)

    def entered(self) -> Moved:
        return Moved((), ())

    def granted(self) -> Moved:
        return Moved((self._query,), ())

    def left(self) -> Sequence[MemoryChanged]:
        return ()
