"""The tidy rows a journal is read into: one per query, launch, lease and node.

Times are on the journal's clock. An end of None means that the journal stops before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from queryard.core.events import AnswerReported
from queryard.core.model import Kind, Node, Query, TaskId

Outcome = Literal["finished", "failed", "cancelled", "unfinished"]
LaunchOutcome = Literal["finished", "failed", "killed", "lost", "running"]
LeaseOutcome = Literal["finished", "failed", "revoked", "lost", "running"]


class Reading(NamedTuple):
    """What the map tasks of one launch read from tables.

    `bytes` counts a split once however many tasks ride on it, `alone_bytes` once for every
    rider. Of the tasks, `placed` have a split that prefers some node, and `local` of those
    were launched on such a node.
    """

    bytes: float = 0.0
    alone_bytes: float = 0.0
    placed: int = 0
    local: int = 0


@dataclass(slots=True)
class QueryRow:
    """One query, from its submission to its end.

    `task_s` is POSUM's e: the seconds of its tasks, each counted once by the attempt that last
    succeeded, and its slot-seconds under leases. A task that rode along in a merged launch took
    as long as the launch. `slot_s` is what the query used of the cluster: every attempt counts,
    and riders divide their launch between them.
    """

    query: Query
    submit_s: float
    start_s: float | None = None
    end_s: float | None = None
    outcome: Outcome = "unfinished"
    cause: str = ""
    task_s: float = 0.0
    slot_s: float = 0.0
    attempts: int = 0
    retries: int = 0

    @property
    def response_s(self) -> float | None:
        """Seconds from submission to a result; None for a query that gave none."""
        if self.end_s is None or self.outcome != "finished":
            return None
        return self.end_s - self.submit_s

    @property
    def wait_s(self) -> float | None:
        """Seconds from submission to the first launch or grant."""
        return None if self.start_s is None else self.start_s - self.submit_s


@dataclass(slots=True)
class LaunchRow:
    """One occupation of one slot by a task, or by several that share a read."""

    number: int
    node: str
    tasks: tuple[TaskId, ...]
    round: str
    start_s: float
    reading: Reading
    end_s: float | None = None
    outcome: LaunchOutcome = "running"

    @property
    def kind(self) -> Kind:
        return self.tasks[0].kind


@dataclass(slots=True)
class LeaseRow:
    """`slots` slots of a node that a divisible job got and gave back together."""

    job: str
    node: str
    slots: int
    start_s: float
    end_s: float | None = None
    outcome: LeaseOutcome = "running"


@dataclass(slots=True)
class NodeRow:
    """One stay of a node in the cluster; a node that comes back has a second row."""

    node: Node
    joined_s: float
    lost_s: float | None = None


@dataclass(slots=True)
class RunRows:
    """A journal as rows, queries by id in the order of their submission."""

    queries: dict[str, QueryRow] = field(default_factory=dict)
    launches: list[LaunchRow] = field(default_factory=list)
    leases: list[LeaseRow] = field(default_factory=list)
    nodes: list[NodeRow] = field(default_factory=list)
    answers: list[AnswerReported] = field(default_factory=list)
    duplicates: int = 0
    last_step_s: float = 0.0

    @property
    def first_submit_s(self) -> float | None:
        return min((row.submit_s for row in self.queries.values()), default=None)

    @property
    def closed_s(self) -> float:
        """When the last query ended; the last step while one has not.

        What the cluster does after its last query counts for no query, so metrics end here.
        """
        ends = [row.end_s for row in self.queries.values() if row.end_s is not None]
        if ends and len(ends) == len(self.queries):
            return max(ends)
        return self.last_step_s

    @property
    def makespan_s(self) -> float | None:
        """TET: first submission to last end; a lower bound while a query is unfinished."""
        first_s = self.first_submit_s
        return None if first_s is None else self.closed_s - first_s
