"""Facts, in the past tense, each with the time at which it happened.

They are the only input of the kernel: the simulator draws them from a hidden truth, the live
driver reports what really happened, and a recorded list of them replays a run.
Events are named tuples because tens of thousands are made a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .model import Node, Query, Table
from .speedup import Speedup

# What a failure means for the next attempt: it is made, and this one counts towards the most
# there may be; so it is, and at another node first, since the node may be to blame; it is made, and
# this one does not count (the work itself is not to blame); or it is not made, because it would
# fail again.
Retry = Literal["count", "elsewhere", "free", "never"]


class QuerySubmitted(NamedTuple):
    """A query was asked for; a known idempotency key makes it the earlier query again."""

    time_s: float
    query: Query


class EstimateChanged(NamedTuple):
    """A prediction of a job's seconds per map and reduce task, or its core-seconds of work.

    Of divisible work also how much faster it gets with more slots. Where what a scan has parsed
    can be kept for others, `make_s` is what parsing and keeping takes, and `ride_s` what reading
    what was kept takes; per map, or of the whole of divisible work.
    """

    time_s: float
    job: str
    map_s: float | None = None
    reduce_s: float | None = None
    work_s: float | None = None
    speedup: Speedup | None = None
    make_s: float | None = None
    ride_s: float | None = None


class TaskFinished(NamedTuple):
    """A launch ended well; `place` is the node its output lives on, None if it is durable.

    Where several tasks ride on one launch, `rider_bytes` says what each of them has left that ended
    well, by its job; `output_bytes` is the sum.
    """

    time_s: float
    launch: int
    place: str | None = None
    output_bytes: float = 0.0
    rider_bytes: Mapping[str, float] | None = None


class TaskFailed(NamedTuple):
    """A launch ended without a result: an error, or the effect of a `Kill`.

    With `retry` "never" its query fails at once, with the cause. Where several tasks ride on one
    launch, `job` may name the rider that failed: the launch goes on for the others, and its end
    is told by a further event. Without `job` none of its tasks has a result.
    """

    time_s: float
    launch: int
    cause: str
    retry: Retry = "count"
    job: str = ""


class Progressed(NamedTuple):
    """A divisible job has done this share (0 to 1) of its work.

    It may fall: there was more to do than it seemed.
    """

    time_s: float
    job: str
    done: float


class AnswerReported(NamedTuple):
    """An online job answered after a mini-batch (counted from 1).

    `change` is the magnitude by which the answer moved, `core_s` the work the batch took,
    `error` the width of its confidence interval where the engine gives one. Batches may be read
    together: then `before` has the changes of those before it, and each took `core_s`. `left` is
    the share of the first answer's error that is expected to be left, where the engine can say.
    """

    time_s: float
    job: str
    batch: int
    change: float
    core_s: float
    error: float | None = None
    before: tuple[float, ...] = ()
    left: float | None = None


class WidthChanged(NamedTuple):
    """From now on a divisible job can use so many slots, 0 included.

    A query with a slow reader, for example, can use none: it is held, with its memory.
    """

    time_s: float
    job: str
    width: int


class MemoryChanged(NamedTuple):
    """From now on a query reserves so much memory; with 0 it needs none.

    The reservation can move from one query to another this way, if both share one run.
    """

    time_s: float
    query: str
    memory_bytes: float


class LeaseEnded(NamedTuple):
    """Slots came back from a divisible job: revoked, or because it finished or failed.

    0 slots: it finished or failed while it held none there. A job that failed and is tried again
    (`retry`) begins from nothing, once all its slots are back; by default its query fails.
    """

    time_s: float
    job: str
    node: str
    slots: int
    outcome: Literal["revoked", "finished", "failed"]
    cause: str = ""
    retry: Retry = "never"


class NodeJoined(NamedTuple):
    time_s: float
    node: Node


class NodeLost(NamedTuple):
    """A node is gone, with all that ran there and the outputs that lived there.

    What ran there may be the cause of it, and too many such losses end its query
    (`Settings.max_losses`). `spared` are divisible jobs that had slots of the node by name only, so
    that none of it was their doing.
    """

    time_s: float
    node: str
    cause: str = ""
    spared: tuple[str, ...] = ()


class NodeSilent(NamedTuple):
    """A node does not answer any more, or (not `silent`) answers again.

    It may be lost, so that it takes no new work meanwhile; what runs there goes on.
    """

    time_s: float
    node: str
    silent: bool


class TableChanged(NamedTuple):
    """A table appeared, or has other splits from now on."""

    time_s: float
    table: Table


class SegmentsKept(NamedTuple):
    """This share of a table (0 to 1) is kept parsed now: a job that reads it there only rides."""

    time_s: float
    table: str
    share: float


class QueryCancelled(NamedTuple):
    time_s: float
    query: str
    cause: str = "cancelled"


class PolicyChosen(NamedTuple):
    """From now on decisions follow this profile (its data form, so that a log replays).

    `by` and `reason` say what has chosen it, and why; decisions do not depend on them.
    """

    time_s: float
    profile: Mapping[str, Any]
    reason: str = ""
    by: str = ""


class Paused(NamedTuple):
    """From now on no waiting query starts; what runs goes on. `by` says on whose word."""

    time_s: float
    by: str = ""


class Resumed(NamedTuple):
    """Waiting queries may start again."""

    time_s: float


class Woke(NamedTuple):
    """The time asked for by `WakeAt` has come."""

    time_s: float


Event = (
    QuerySubmitted
    | EstimateChanged
    | TaskFinished
    | TaskFailed
    | Progressed
    | AnswerReported
    | WidthChanged
    | MemoryChanged
    | LeaseEnded
    | NodeJoined
    | NodeLost
    | NodeSilent
    | TableChanged
    | SegmentsKept
    | QueryCancelled
    | PolicyChosen
    | Paused
    | Resumed
    | Woke
)
