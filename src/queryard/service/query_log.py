"""The log line of each query: its id, its tenant, and how it ended. Texts are not logged.

Errors that failed no query have a line, too.
"""

from __future__ import annotations

import logging

from queryard.engine.sealing.hiding import whole_reason

from .logs import log
from .problems import DEFECT, problem_of
from .submitted import Submitted


class QueryLog:
    """Hears of the queries of a yard."""

    def __init__(self, redacts: bool) -> None:
        self._redacts = redacts

    def began(self, submitted: Submitted) -> None:
        """Nothing is logged: the end of every query is."""

    def ended(self, submitted: Submitted) -> None:
        ticket = submitted.ticket
        timing, error = ticket.timing(), ticket.error
        problem = None if error is None else problem_of(error)
        told = None if problem is None or self._redacts else problem.detail.partition("\n")[0]
        reason = "" if error is None or self._redacts else whole_reason(error)
        log(
            f"query {ticket.status}",
            logging.ERROR if problem is not None and problem.kind is DEFECT else logging.INFO,
            query=submitted.id,
            tenant=submitted.tenant,
            token=submitted.principal.name,
            protocol=submitted.protocol,
            waited_s=_seconds(timing.submitted_s, timing.started_s),
            response_s=_seconds(timing.submitted_s, timing.ended_s),
            work_s=round(timing.work_s, 3),
            problem=None if problem is None else problem.kind.name,
            error=told,
            reason=reason or None,
        )

    def problem(self, kind: str, text: str) -> None:
        """Log an error that failed no query: it may have cost an estimate, or a choice of policy.

        Its text may have words of statements.
        """
        told = None if self._redacts else text.partition("\n")[0]
        log("a problem that failed no query", logging.WARNING, problem=kind, error=told)


def _seconds(since_s: float, until_s: float | None) -> float | None:
    return None if until_s is None else round(until_s - since_s, 3)
