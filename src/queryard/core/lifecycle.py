"""The life cycles of task, lease slot and query, as tables of transitions.

Tasks and lease slots are counted, not built: a move takes one from the counter it leaves and
adds one to the counter it enters. A query is an object with a name for its state. A move that
is not in the table cannot be made.

    task:   pending ──launched──▶ running ──finished──▶ done
               ▲ ▲─failed, lost, folded─┘                │
               └────────────output lost──────────────────┘
    lease:  free ──granted──▶ held ──revoked──▶ revoking ──returned──▶ free
               ▲───────────ended──┘
    query:  waiting ──started──▶ running ──completed──▶ finished
               ▲──returned: all its work is lost──┘
               ├──completed: its work was done elsewhere──▲
               └──cancelled, failed──┴──▶ ending ──cleared──▶ failed
"""

from __future__ import annotations

from typing import Literal

from .errors import InvalidEvent

PENDING, RUNNING, DONE = 0, 1, 2
TASK_MOVES = {
    "launched": (PENDING, RUNNING),
    "finished": (RUNNING, DONE),
    "failed": (RUNNING, PENDING),
    "lost": (RUNNING, PENDING),
    "folded": (RUNNING, PENDING),
    "output lost": (DONE, PENDING),
}

HELD, REVOKING = 0, 1
LEASE_MOVES: dict[str, tuple[int | None, int | None]] = {
    "granted": (None, HELD),
    "revoked": (HELD, REVOKING),
    "returned": (REVOKING, None),
    "ended": (HELD, None),
}

QueryStage = Literal["waiting", "running", "ending", "finished", "failed"]
QUERY_MOVES: dict[tuple[QueryStage, str], QueryStage] = {
    ("waiting", "started"): "running",
    ("running", "returned"): "waiting",
    ("running", "completed"): "finished",
    ("waiting", "completed"): "finished",
    ("waiting", "cancelled"): "ending",
    ("running", "cancelled"): "ending",
    ("waiting", "failed"): "ending",
    ("running", "failed"): "ending",
    ("ending", "cleared"): "failed",
}


def next_stage(query: str, stage: QueryStage, move: str) -> QueryStage:
    """The stage a query enters by this move."""
    try:
        return QUERY_MOVES[stage, move]
    except KeyError:
        raise InvalidEvent(f"query {query!r} is {stage}: it cannot be {move}") from None
