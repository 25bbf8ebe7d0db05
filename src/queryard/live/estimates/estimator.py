"""What is expected of queries: known at once as they come, and looked at closer beside.

No query waits for it. DuckDB's plan is asked for on a thread of its own, and the past of earlier
sessions is remembered there, too.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence

from queryard.engine.calibration import machine_rates
from queryard.estimate.work import Prediction
from queryard.history import PastRow
from queryard.sql.statistics.store import cache_folder

from ..request import QueryRequest
from ..ticket import Ticket
from .prediction import Predictor
from .refinement import WORTH_PLANNING_S, WORTH_TELLING

# A query that takes less need not be compared with the past.
PATIENCE_S = 0.1
# So long the thread is waited for at the end.
CLOSE_S = 5.0


class Estimator:
    """Predictions of one host's queries; from any thread.

    `found` is told of a better prediction, `looked` after each query that was looked at, and
    `failed` of an error that cost a better estimate and nothing else.
    """

    def __init__(
        self,
        predictor: Predictor,
        past: Callable[[], Iterable[PastRow]],
        found: Callable[[str, Prediction], None],
        looked: Callable[[Ticket], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._predictor = predictor
        self._past = past
        self._found = found
        self._looked = looked
        self._failed = failed
        self._calibrated = False
        self._recalled = False
        self._new: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="queryard-estimator", daemon=True)
        self._started = False

    def first(self, request: QueryRequest) -> Prediction:
        """What is known at once."""
        return self._predictor.first(request)

    def learn(
        self, request: QueryRequest, work_s: float, peak_bytes: int | None, known: str
    ) -> bool:
        """A query has taken so much; whether its like that wait should be looked at again."""
        match known:
            case "exactly" | "at least":
                self._predictor.learn(request, work_s, peak_bytes, known)
            case "running":
                return self._predictor.running(request, work_s)
            case _:
                self._predictor.forget(request)
        return False

    def raise_waiting(self, request: QueryRequest, waiting: Sequence[Ticket]) -> None:
        """Queries of the same template that wait will take as much as one that runs has taken.

        There may be many of them: that is seen to beside.
        """
        self._new.put(lambda: self._raise(request, waiting))

    def _raise(self, request: QueryRequest, waiting: Sequence[Ticket]) -> None:
        better = self._predictor.first(request)
        for ticket in waiting:
            facts = ticket.facts
            waits = facts.started_s is None and facts.ended_s is None
            is_more = better.work_s > facts.expected_s * (1 + WORTH_TELLING)
            if waits and is_more and facts.request.template == request.template:
                self._found(ticket.id, better)

    def look_closer(self, ticket: Ticket) -> None:
        """The kernel knows a query by now; find out more of it, beside."""
        if not self._started:
            self._started = True
            self._thread.start()
        self._new.put(lambda: self._look_at(ticket))

    @property
    def behind(self) -> int:
        """How many queries are still to be looked at."""
        return self._new.qsize()

    def _work(self) -> None:
        while (work := self._new.get()) is not None:
            try:
                work()
            except Exception as error:
                self._failed(error)

    def _look_at(self, ticket: Ticket) -> None:
        self._recall(ticket)
        self._refine(ticket)
        self._looked(ticket)

    def _recall(self, ticket: Ticket) -> None:
        """Remember earlier sessions; not for the sake of one query that is over in a moment."""
        if not self._recalled and not ticket.over.wait(PATIENCE_S):
            self._recalled = True
            self._predictor.recall(self._past())

    def _refine(self, ticket: Ticket) -> None:
        facts = ticket.facts
        if facts.ended_s is not None or facts.prediction.by == "template":
            return
        # It may have come before the past was remembered.
        better: Prediction | None = self._predictor.first(facts.request)
        if better is not None and better.by != "template":
            if facts.started_s is not None and facts.expected_s < WORTH_PLANNING_S:
                return
            self._calibrate()
            better = self._predictor.refine(facts.request)
        if better is not None and not ticket.ended:
            self._found(ticket.id, better)

    def _calibrate(self) -> None:
        """See how fast this machine is, before the first plan is judged."""
        if not self._calibrated:
            self._calibrated = True
            self._predictor.rates = machine_rates(cache_folder() / "rates.json")

    def close(self) -> None:
        self._new.put(None)
        if self._started and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_S)
        self._predictor.close()
