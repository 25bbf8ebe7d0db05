"""One active query, as the coordinator knows it."""

from __future__ import annotations

from collections.abc import Hashable

from queryard.backends.protocol import Usage
from queryard.core.speedup import PERFECT
from queryard.estimate.work import Prediction

from ..facts import QueryFacts, QueryView
from ..inputs import ClientPort
from ..request import QueryRequest
from ..work.base import Work
from ..work.native import SharedExecution


class Entry:
    """Mutable; the coordinator alone changes it."""

    def __init__(
        self,
        query: str,
        client: ClientPort,
        request: QueryRequest,
        prediction: Prediction,
        key: Hashable | None,
        submitted_s: float,
    ) -> None:
        self.id = query
        self.client = client
        self.request = request
        self.prediction = prediction
        # The work that is expected by now, which may be more than was predicted.
        self.expected_s = prediction.work_s
        # How much faster it gets with more slots, as the kernel was told last.
        self.speedup = PERFECT
        self.key = key
        # The settings of its client when its execution began.
        self.settings: Hashable = ()
        self.submitted_s = submitted_s
        self.started_s: float | None = None
        self.ended_s: float | None = None
        self.error: BaseException | None = None
        # The error of its last failed attempt.
        self.failure: BaseException | None = None
        # None while it is queued, is being planned, or waits to join an execution.
        self.work: Work | None = None
        self.joining: Work | None = None
        self.run: SharedExecution | None = None
        self.memory_bytes = 0
        self.usage = Usage()
        self.progress = 0.0
        self.peak_memory_bytes: int | None = None
        self.shares_with = ""
        self.reasons: tuple[str, ...] = ()
        # A database that others use, while it waits for its turn.
        self.waits_for = ""
        # Its engine has finished it without an error; it cannot be cancelled any more.
        self.done = False
        # After its failure, run it again with this much memory.
        self.again_bytes: int | None = None
        # It has failed at a node of a cluster and is to run at another one: its error there.
        self.elsewhere = ""
        # Whether its reader is behind, and how many slots its plan can use.
        self.behind = False
        self.width: int | None = None
        # Whether it is in the history.
        self.recorded = False

    @property
    def work_s(self) -> float:
        """Core-seconds attributed to it."""
        if self.shares_with:
            return 0.0
        return self.usage.work_s if self.run is None else self.run.work_s

    def view(self, slots: int) -> QueryView:
        """Its row in a list of queries; `slots` work on it now."""
        return QueryView(
            id=self.id,
            sql=self.request.sql,
            tenant=self.request.tenant,
            priority=self.request.priority,
            status="running" if self.started_s is not None else "waiting",
            slots=slots,
            progress=self.progress,
            submitted_s=self.submitted_s,
            started_s=self.started_s,
            deadline_s=self.request.deadline_s,
            predicted_work_s=self.prediction.work_s,
            work_s=self.work_s,
        )

    def facts(self) -> QueryFacts:
        return QueryFacts(
            id=self.id,
            request=self.request,
            submitted_s=self.submitted_s,
            prediction=self.prediction,
            expected_s=self.expected_s,
            memory_bytes=self.memory_bytes,
            started_s=self.started_s,
            ended_s=self.ended_s,
            error=self.error,
            work_s=self.work_s,
            usage=self.usage,
            progress=1.0 if self.ended_s is not None else self.progress,
            shares_with=self.shares_with,
            reasons=self.reasons,
            waits_for=self.waits_for,
            peak_memory_bytes=self.peak_memory_bytes,
            work=self.work,
        )
