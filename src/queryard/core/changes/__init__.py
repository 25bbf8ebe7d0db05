"""What each event does to the state, one file per subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import events as ev
from ..errors import InvalidEvent
from ..model import UNBOUNDED
from ..state import State
from . import cluster, estimates, leases, queries, tasks

_HANDLERS: dict[type, Callable[[State, Any], None]] = {
    ev.TaskFinished: tasks.finished,
    ev.TaskFailed: tasks.failed,
    ev.QuerySubmitted: queries.submitted,
    ev.QueryCancelled: queries.cancelled,
    ev.EstimateChanged: estimates.changed,
    ev.Progressed: leases.progressed,
    ev.AnswerReported: leases.answered,
    ev.WidthChanged: leases.resized,
    ev.MemoryChanged: queries.resized,
    ev.LeaseEnded: leases.ended,
    ev.NodeJoined: cluster.node_joined,
    ev.NodeLost: cluster.node_lost,
    ev.NodeSilent: cluster.node_silent,
    ev.TableChanged: cluster.table_changed,
    ev.SegmentsKept: cluster.segments_kept,
    ev.PolicyChosen: cluster.policy_chosen,
    ev.Paused: queries.paused,
    ev.Resumed: queries.resumed,
    ev.Woke: cluster.woke,
}


def apply(state: State, event: ev.Event) -> None:
    """Take note of one fact."""
    time_s = event.time_s
    before = state.now
    if not before <= time_s < UNBOUNDED:
        raise InvalidEvent(f"{event!r} lies before the present, {before!r}, or never comes")
    handler = _HANDLERS.get(type(event))
    if handler is None:
        raise InvalidEvent(f"{event!r} is not an event of the kernel")
    state.now = time_s
    try:
        handler(state, event)
    except InvalidEvent:
        state.now = before
        raise
