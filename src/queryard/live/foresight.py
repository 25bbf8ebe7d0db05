"""What is expected of queries: predicted as they come, planned beside, corrected while they run.

Nobody waits for it. A query is submitted with what is known at once; DuckDB's plan is asked for on
a thread of its own, and so are forecasts, for no more than a small share of the time.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from queryard.backends.local import NATIVE_JOB
from queryard.backends.member import Run as Served
from queryard.core.events import EstimateChanged, Event, Progressed
from queryard.engine.calibration import machine_rates
from queryard.engine.errors import QueryCancelled, QueryTimedOut
from queryard.history import PastRow
from queryard.sql.statistics.store import cache_folder

from .asked import Asked
from .overlook import Overlook
from .prediction import Prediction, Predictor
from .record import Record

# A new estimate is told if it differs from the last by this share.
WORTH_TELLING = 0.05
# At most this share of a core goes into forecasts nobody has asked for.
FORECAST_SHARE = 0.005
# Memory in use is looked at with every so many reports of a run, until a template's need is known.
LOOK_AT_MEMORY = 4
# Of a query that runs already, no plan is asked for that would cost as much as the query.
WORTH_PLANNING_S = 0.2
# A query that takes less need not be compared with the past.
PATIENCE_S = 0.1


class Foresight:
    """Predictions and forecasts of one session's queries."""

    def __init__(
        self,
        predictor: Predictor,
        post: Callable[..., None],
        records: Mapping[str, Record],
        past: Callable[[], Iterable[PastRow]],
    ) -> None:
        self._predictor = predictor
        self._post = post
        self._records = records
        self._past = past
        self._overlook: Overlook | None = None
        self._calibrated = False
        self._recalled = False
        self._next_forecast_s = 0.0
        self._new: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._look_ahead, name="queryard-foresight")
        self._thread.daemon = True
        self._started = False

    def forecasts_by(self, overlook: Overlook) -> None:
        self._overlook = overlook

    # --- as they come ----------------------------------------------------------------------------

    def expect(self, record: Record) -> None:
        """What is known at once."""
        prediction = self._predictor.first(record.asked)
        record.prediction = prediction
        record.expected_s = prediction.work_s

    def work_s(self, asked: Asked) -> float:
        """Core-seconds of a query that is not there yet."""
        return self._predictor.first(asked).work_s

    def submitted(self, record: Record) -> None:
        """The kernel knows it; look closer."""
        if not self._started:
            self._started = True
            self._thread.start()
        self._new.put(record)

    def _look_ahead(self) -> None:
        while (record := self._new.get()) is not None:
            # A mistake in here may cost a better estimate, and nothing else.
            with contextlib.suppress(Exception):
                self._recall(record)
                self._refine(record)
            with contextlib.suppress(Exception):
                self._forecast(record)

    def _recall(self, record: Record) -> None:
        """Remember earlier sessions; not for the sake of one query that is over in a moment."""
        if not self._recalled and not record.over.wait(PATIENCE_S):
            self._recalled = True
            self._predictor.recall(self._past())

    def _refine(self, record: Record) -> None:
        if record.ended or record.run is None or record.prediction is None:
            return
        if record.prediction.by == "template":
            return
        # It may have come before the past was remembered.
        better: Prediction | None = self._predictor.first(record.asked)
        if better is not None and better.by != "template":
            if record.started_s is not None and record.expected_s < WORTH_PLANNING_S:
                return
            self._calibrate()
            better = self._predictor.refine(record.asked)
        if better is None or record.ended:
            return
        record.prediction = better
        record.expected_s = better.work_s
        self._post(_estimate(record))

    def _calibrate(self) -> None:
        """See how fast this machine is, before the first plan is judged."""
        if not self._calibrated:
            self._calibrated = True
            self._predictor.rates = machine_rates(cache_folder() / "rates.json")

    def _forecast(self, record: Record) -> None:
        """Say now when it will end, to see later how good that was; not too often."""
        overlook = self._overlook
        if overlook is None or record.ended or time.monotonic() < self._next_forecast_s:
            return
        began_s = time.thread_time()
        found = overlook.forecasts()
        cost_s = time.thread_time() - began_s
        self._next_forecast_s = time.monotonic() + cost_s / FORECAST_SHARE
        for query, forecast in found.items():
            other = self._records.get(query)
            if other is not None and other.forecast is None:
                other.forecast = forecast
                overlook.foreseen(other)

    # --- while they run (on the watch's thread) --------------------------------------------------

    def follow(self, served: Served) -> None:
        """Tell the kernel how far a run is, and if it turns out to be more than was expected."""
        done_s, progress = served.work_s, served.query.progress()
        memory_bytes = None
        events: list[Event] = []
        for job in list(served.members):
            record = self._records.get(job.partition("/")[0])
            if record is None or record.prediction is None:
                continue
            prediction = record.prediction
            if prediction.memory_bytes is None and served.reports % LOOK_AT_MEMORY == 1:
                memory_bytes = memory_bytes or served.query.memory_bytes()
                if memory_bytes:
                    record.peak_memory_bytes = max(record.peak_memory_bytes or 0, memory_bytes)
            if self._predictor.running(record.asked, done_s):
                events += self._raise_waiting(record.asked)
            total_s = max(done_s, self._predictor.revise(prediction, done_s, progress))
            before_s = record.expected_s
            if abs(total_s - before_s) > WORTH_TELLING * before_s:
                record.expected_s = total_s
                events.append(_estimate(record))
                if before_s < WORTH_PLANNING_S <= total_s and prediction.by in ("bytes", "guess"):
                    self._new.put(record)  # it was taken for too short to be planned
            done = min(1.0, done_s / record.expected_s) if record.expected_s > 0 else 0.0
            events.append(Progressed(0.0, job, done))
        if events:
            self._post(*events)

    def _raise_waiting(self, asked: Asked) -> list[Event]:
        """Those of the same template that wait will take as much as one that runs has taken."""
        events: list[Event] = []
        for record in list(self._records.values()):
            waits = record.run is not None and record.started_s is None and not record.ended
            if waits and record.asked.template == asked.template:
                prediction = self._predictor.first(record.asked)
                if prediction.work_s > record.expected_s * (1 + WORTH_TELLING):
                    record.prediction = prediction
                    record.expected_s = prediction.work_s
                    events.append(_estimate(record))
        return events

    def learn(self, record: Record, work_s: float, error: BaseException | None = None) -> None:
        """A query has ended: its like will take as long, or at least as long if it was stopped."""
        if record.prediction is None:
            return
        if error is None:
            self._predictor.learn(record.asked, work_s, record.peak_memory_bytes)
        elif isinstance(error, QueryCancelled | QueryTimedOut) and work_s > 0:
            self._predictor.learn(record.asked, work_s, record.peak_memory_bytes, "at least")
        else:
            self._predictor.forget(record.asked)

    def close(self) -> None:
        self._new.put(None)
        if self._started and threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        self._predictor.close()


def _estimate(record: Record) -> EstimateChanged:
    return EstimateChanged(0.0, f"{record.id}/{NATIVE_JOB}", work_s=record.expected_s)
