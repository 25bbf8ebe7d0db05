"""Online work: one divisible job that answers after every batch of its sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryard.backends.protocol import Leased
from queryard.core.events import MemoryChanged
from queryard.core.model import Divisible, Split, Table
from queryard.engine.online.statement import OnlineStatement
from queryard.engine.program import Program
from queryard.engine.sampling import Sample
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
        sample: Sample | None = None,
    ) -> None:
        super().__init__(query, Divisible(width=width, batches=batches))
        self.memory_bytes = memory_bytes
        self._statement = statement
        self._width = width
        self._sample = sample

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        """The sample that it goes round, which is not cut as the table itself is."""
        if self._sample is None:
            return {}
        name = f"{self._sample.table} ({self._sample.kind})"
        splits = tuple(Split(part.bytes) for part in self._sample.parts)
        return {name: (self._sample.fingerprint, Table(name, splits))}

    def for_backend(self, output: ResultStream) -> Leased:
        return Leased(self._query, self._width, output, self._statement)

    def entered(self) -> Moved:
        return Moved((), ())

    def granted(self) -> Moved:
        return Moved((self._query,), ())

    def left(self) -> Sequence[MemoryChanged]:
        return ()
