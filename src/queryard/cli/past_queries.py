"""What became of a query, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queryard.history import QueryRecord


def told_of_past(query: QueryRecord) -> str:
    """What became of a query, in words."""
    if query.outcome == "lost":
        return _lost(query)
    if query.ended_s is None:
        return f"{query.query} is on its way; its session has not answered"
    text = f"{query.query} {query.outcome} after {query.ended_s - query.asked_s:.2f} s"
    if query.waited_s is not None:
        text += f", {query.waited_s:.2f} s of it waiting"
    if query.twin_of:
        text += f"\n- it shared the run of {query.twin_of}, which asked the same"
    if query.predicted_work_s is not None and query.work_s is not None and not query.twin_of:
        text += (
            f"\n- {query.predicted_work_s:.2f} core-seconds of work were predicted (by "
            f"{query.predicted_by}), and it took {query.work_s:.2f}"
        )
    if (error := query.forecast_error) is not None:
        when = "earlier" if error > 0 else "later"
        text += f"\n- when it came, an end {abs(error):.0%} {when} was forecast"
    return text if not query.error else f"{text}\n- {query.error}"


def _lost(query: QueryRecord) -> str:
    text = f"{query.query} was under way when the process of its session ended; it has no answer"
    if query.started_s is not None:
        text += (
            f"\n- it had waited for {query.waited_s:.2f} s, and held {query.held_s:.2f} "
            "slot-seconds until the session was last heard of"
        )
    return text
