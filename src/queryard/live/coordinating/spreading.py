"""The plan of a query on a cluster: natively at one node, or in tasks at all of them."""

from __future__ import annotations

from queryard.core.model import JobId, Query
from queryard.core.speedup import PERFECT
from queryard.estimate.spreading import Crowd, Member, Verdict, at_once, compared
from queryard.estimate.work import Prediction

from ..request import QueryRequest
from ..sharing import Choice
from ..work.base import Outlined
from .ledger import Ledger

ASKED = "asked"
"""Stands for a query that has no id yet."""


class Spreading:
    """Chooses by predicted time, as the cluster and its load are now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def choice(
        self, request: QueryRequest, prediction: Prediction, work: Outlined | None = None
    ) -> Choice | None:
        """The plan of a query; None if it must be planned first (`work`) to tell."""
        crowd = self._crowd()
        if crowd is None:
            return Choice("native", "no node is there to run tasks")
        speedup = self._ledger.widths.curve(request.template, prediction, prediction.work_s)
        memory_bytes = float(request.memory_bytes or prediction.memory_bytes or 0)
        if work is None:
            verdict = at_once(crowd, prediction.work_s, speedup, memory_bytes)
            return None if verdict is None else _told(verdict)
        staged_s = self._staged_s(crowd, request, work)
        return _told(compared(crowd, prediction.work_s, speedup, memory_bytes, staged_s))

    def _crowd(self) -> Crowd | None:
        state = self._ledger.kernel.state
        nodes = tuple(
            Member(node.spec.slots, node.spec.map_speed, node.spec.memory_bytes)
            for node in state.nodes.values()
            if not node.draining
        )
        return Crowd(nodes, len(state.queries)) if nodes else None

    def _staged_s(self, crowd: Crowd, request: QueryRequest, work: Outlined) -> float:
        query = Query(ASKED, work.jobs(), class_name=request.template)
        tasks, now = self._ledger.tasks, self._ledger.now
        usual = work.estimates(0.0, PERFECT)
        told = [*usual, *tasks.submitted(now, query, work.planned())]
        tasks.forget(ASKED)
        seconds = {JobId.of(event.job).name: (event.map_s or 0.0, event.reduce_s) for event in told}
        return crowd.staged_s(work.jobs(), seconds, work.moved_bytes(len(crowd.nodes)))


def _told(verdict: Verdict) -> Choice:
    return Choice("staged" if verdict.in_tasks else "native", verdict.reason)
