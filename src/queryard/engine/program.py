"""An iterative program of the user's on leased slots, beside queries: a model being trained, say.

It takes one slot. Between two steps it gives the slot back if it is revoked, and goes on with the
next step once it has one again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.results.streams import Output

from .errors import QueryCancelled, QueryFailed
from .meter import Meter
from .statement import Lease

Step = Callable[[int], float | None]
"""One step, counted from 1: how far the result moved, at least 0; None once it is done."""

Reports = Callable[[int, Sequence[float], float, float | None, float | None], None]
"""Told after some steps or parts: the number of the last, how far the result moved with each, the
core-seconds of each, the relative error, the share of the first answer's error that is left."""

SCHEMA = pa.schema([("steps", pa.int64()), ("change", pa.float64())])
TYPES = ("BIGINT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class Program:
    """Steps of about the same work each, `work_s` core-seconds if that is known."""

    step: Step
    steps: int
    work_s: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise QueryardError(f"step: must be a function of the step's number, got {self.step!r}")
        steps: object = self.steps
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise QueryardError(f"steps: must be a whole number of at least 1, got {self.steps!r}")
        if not 0 < self.work_s < math.inf:
            raise QueryardError(f"work_s: must be seconds above 0, got {self.work_s!r}")


class ProgramRun:
    """Serves slots as a native query does."""

    on_session = False
    computes = False
    sprints = False
    sprinting = False
    seems_ready = False
    lost_sprint_s = None

    def __init__(self, program: Program, output: Output) -> None:
        self.error: BaseException | None = None
        self.ended = False
        self._program = program
        self._output = output
        self._serving = threading.Lock()
        self._began_s = time.monotonic()
        self._done = 0
        self._change = 0.0
        self._report: Reports | None = None

    def reports_to(self, report: Reports, meter: Meter) -> None:
        self._report = report

    @property
    def current_s(self) -> float:
        return time.monotonic() - self._began_s

    def serve(self, lease: Lease) -> None:
        lease.thread = threading.get_native_id()
        # A slot that was written off may still be inside of a step.
        with self._serving:
            while not lease.withdrawn and not self.ended:
                self._take_step()

    def _take_step(self) -> None:
        began_s = time.thread_time()
        try:
            change: object = self._program.step(self._done + 1)
        except BaseException as error:
            told = str(error) or type(error).__name__
            self._end(QueryFailed(f"step {self._done + 1} failed: {told}"))
            return
        self._done += 1
        if change is not None:
            if (
                isinstance(change, bool)
                or not isinstance(change, int | float)
                or not 0 <= change < math.inf
            ):
                problem = f"step {self._done} gave {change!r}; it must say how far the result moved"
                self._end(QueryFailed(f"{problem}, as a number of at least 0, or None at the end"))
                return
            self._change = float(change)
            if self._report is not None:
                core_s = time.thread_time() - began_s
                self._report(self._done, [self._change], core_s, None, None)
        if change is None or self._done == self._program.steps:
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if self.ended:
            return
        self.error, self.ended = error, True
        if error is not None:
            self._output.fail(error)
            return
        self._output.start(SCHEMA, TYPES)
        rows = {"steps": [self._done], "change": [self._change]}
        self._output.put(pa.RecordBatch.from_pydict(rows, SCHEMA))
        self._output.finish()

    def withdraw(self, lease: Lease) -> None:
        lease.withdrawn = True

    def poll(self) -> None:
        pass

    def progress(self) -> float:
        return 1.0 if self.ended else self._done / self._program.steps

    def memory_bytes(self) -> int | None:
        return None

    def cancel(self, error: BaseException | None = None) -> None:
        self._end(error or QueryCancelled("cancelled"))
