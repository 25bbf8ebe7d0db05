"""Online jobs go round the splits of a table in one circular order, and may parse them together.

A job begins where the others are, so that all read the same splits at about the same time. Any
start is as good as another: the splits of a sample are in random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queryard.core.entities import JobState
from queryard.core.model import Table
from queryard.workload.model import JobTruth

from .segments import Segments


class Circles:
    """The jobs that have begun to read a table and not ended, and where the circle is."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        # Table -> the split that is read next, and how many jobs go round.
        self._at: dict[str, tuple[int, int]] = {}

    def join(self, table: str) -> int:
        """The split at which a new job begins."""
        place, riders = self._at.get(table, (0, 0))
        self._at[table] = place, riders + 1
        return place

    def reads(self, table: str, place: int) -> None:
        """A job reads the splits from this one on."""
        _, riders = self._at[table]
        self._at[table] = place, riders

    def leave(self, table: str) -> None:
        place, riders = self._at[table]
        if riders > 1:
            self._at[table] = place, riders - 1
        else:
            del self._at[table]


@dataclass(slots=True)
class Reader:
    """One job on the circle of its table: what its batches take.

    A split that one rider is parsing counts as parsed for the others, which in truth would wait
    for the rest of it.
    """

    circles: Circles
    known: JobState
    truth: JobTruth
    table: Table
    batches: int
    start: int

    @classmethod
    def of(cls, circles: Circles, known: JobState, truth: JobTruth) -> Reader | None:
        """On the circle from now on; None if the job scans nothing."""
        if not known.scanned or known.spec.divisible is None:
            return None
        table = known.scanned[0][0]
        batches = known.spec.divisible.batches
        return cls(circles, known, truth, table, batches, circles.join(table.name))

    def places(self, batch: int) -> Iterator[int]:
        """The splits that a batch, counted from 1, reads some of."""
        splits = len(self.table.splits)
        first = (batch - 1) * splits // self.batches
        stop = -(-batch * splits // self.batches)
        for place in range(first, stop):
            yield (self.start + place) % splits

    def open_batch_s(self, batch: int) -> float:
        """The core-seconds of a batch that begins now; what it parses for all is kept."""
        truth, name = self.truth, self.table.name
        places = list(self.places(batch))
        self.circles.reads(name, places[0])
        plain_s = truth.batch_work_s(batch, self.batches)
        if not truth.make_s:
            return plain_s
        total_s = 0.0
        for place in places:
            kept = self.circles.segments.kept(self.known.host, self.table, place)
            if self.known.circle:
                self.circles.segments.keep(self.known.host, self.table, place)
                total_s += truth.ride_s + (1.0 - kept) * truth.make_s
            else:
                total_s += kept * truth.ride_s + (1.0 - kept) * truth.work_s
        # Work that grows from batch to batch has nothing to do with parsing.
        return plain_s + (total_s / len(places) - truth.work_s) / self.batches

    def leave(self) -> None:
        self.circles.leave(self.table.name)
