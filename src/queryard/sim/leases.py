"""Divisible jobs in simulated time: work done between one decision and the next.

There are no time slices. A job's slots work at the sum of their speeds, as far as its speed-up
curve lets them; whenever their number changes, the work done so far is added up and the end of the
batch is computed again.
"""

from __future__ import annotations

import math
import random

from queryard.core.events import AnswerReported
from queryard.core.model import Job
from queryard.workload.model import JobTruth

from .circles import Reader


class LeasedJob:
    """The progress of one divisible job."""

    __slots__ = (
        "answer",
        "answers",
        "batch",
        "batches",
        "left_s",
        "nodes",
        "overhead_s",
        "rate",
        "reader",
        "since_s",
        "spec",
        "summed",
        "target_error",
        "truth",
        "version",
        "work_s",
    )

    def __init__(
        self, job_id: str, spec: Job, truth: JobTruth, target_error: float | None, seed: int
    ) -> None:
        assert spec.divisible is not None
        self.spec = spec
        self.truth = truth
        self.target_error = target_error
        self.batches = spec.divisible.batches
        self.batch = 1
        # Where it is in the table it scans, if any; from the next `skip` on.
        self.reader: Reader | None = None
        self.nodes: dict[str, int] = {}
        # What its slots could do together, and what they do.
        self.summed = 0.0
        self.rate = 0.0
        self.since_s = 0.0
        self.version = 0
        self.answers = _answers(truth, self.batches, random.Random(f"{seed}:{job_id}"))
        self.answer = 0.0
        self._open_batch()

    def _open_batch(self) -> None:
        if self.reader is not None:
            self.work_s = self.left_s = self.reader.open_batch_s(self.batch)
        else:
            self.work_s = self.left_s = self.truth.batch_work_s(self.batch, self.batches)
        self.overhead_s = self.truth.batch_overhead_s

    def skip(self, share: float) -> None:
        """Begin with this share of the whole work done (a forecast starts in the middle)."""
        done = share * self.batches
        self.batch = min(self.batches, int(done) + 1)
        self._open_batch()
        self.left_s = self.work_s * max(0.0, 1.0 - (done - (self.batch - 1)))

    def advance(self, now: float) -> None:
        """Add up what was done since the last look; a paused job does nothing."""
        elapsed = now - self.since_s
        self.since_s = now
        if self.rate <= 0 or elapsed <= 0:
            return
        fixed = min(self.overhead_s, elapsed)
        self.overhead_s -= fixed
        self.left_s = max(0.0, self.left_s - (elapsed - fixed) * self.rate)

    def change(self, now: float, node: str, slots: int, speed: float) -> None:
        self.advance(now)
        self.nodes[node] = self.nodes.get(node, 0) + slots
        if self.nodes[node] <= 0:
            del self.nodes[node]
        self.summed = self.summed + slots * speed if self.nodes else 0.0
        self.rate = self.summed
        if self.nodes and not self.truth.speedup.is_perfect:
            held = sum(self.nodes.values())
            self.rate *= self.truth.speedup.speed(held) / held
        self.version += 1

    def next_s(self, now: float) -> float:
        """When the batch will end if nothing changes."""
        return now + self.overhead_s + self.left_s / self.rate if self.rate > 0 else math.inf

    @property
    def done(self) -> float:
        """The share of all work that is done."""
        of_batch = 1.0 - self.left_s / self.work_s if self.work_s else 1.0
        return min(1.0, (self.batch - 1 + of_batch) / self.batches)

    def end_batch(self, now: float, job_id: str) -> tuple[AnswerReported | None, bool]:
        """Close the batch: the answer it gives, and whether the job is finished."""
        batch = self.batch
        last = batch == self.batches
        report = None
        stop = False
        if self.batches > 1:
            value, error = self.answers[batch - 1]
            report = AnswerReported(
                now, job_id, batch, abs(value - self.answer), self.work_s, error
            )
            self.answer = value
            stop = self.target_error is not None and error <= self.target_error
        if not last:
            self.batch += 1
            self._open_batch()
        else:
            self.left_s = 0.0
        self.version += 1
        return report, last or stop


def _answers(truth: JobTruth, batches: int, draw: random.Random) -> list[tuple[float, float]]:
    """(answer, error) after each batch: a mean over more and more of a finite table."""
    if batches == 1:
        return []
    if truth.errors:
        return _measured_answers(truth, batches, draw)
    scale = truth.sigma / math.sqrt(max(1.0, truth.rows / batches))
    total = 0.0
    values = []
    for batch in range(1, batches + 1):
        total += draw.gauss(0.0, scale)
        values.append((total / batch, truth.error_after(batch, batches)))
    return values


def _measured_answers(
    truth: JobTruth, batches: int, draw: random.Random
) -> list[tuple[float, float]]:
    """The same where the error was measured: as far from the exact answer as it says.

    Of a mean of independent batches the distances, from the last batch to the first, grow by
    independent steps; so do these, by as much as the errors do.
    """
    values = [(0.0, 0.0)]
    away, before = 0.0, 0.0
    for batch in range(batches - 1, 0, -1):
        error = truth.error_after(batch, batches)
        # A median of normal errors is 0.674 of their standard deviation.
        away += draw.gauss(0.0, math.sqrt(max(0.0, error**2 - before**2)) / 0.6745)
        before = max(error, before)
        values.append((away, error))
    return values[::-1]
