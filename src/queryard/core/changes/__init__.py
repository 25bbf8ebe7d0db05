"""What each event does to the state, one file a subject. Only `State.apply` comes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import events as ev
from . import cluster, estimates, leases, queries, tasks

HANDLERS: dict[type, Callable[[Any, Any], None]] = {
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
    ev.TableChanged: cluster.table_changed,
    ev.PolicyChosen: cluster.policy_chosen,
    ev.Woke: cluster.woke,
}
