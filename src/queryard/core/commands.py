"""Decisions, in the imperative: what the driver must now make happen."""

from __future__ import annotations

from typing import NamedTuple

from .model import TaskId


class Launch(NamedTuple):
    """Run these tasks together in one slot of the node; several share one read of a split.

    `number` names the launch in the events that answer it. `round` is the merged sub-job the
    launch belongs to ("" outside shared scans): a new one has a start cost of its own. A reduce
    with a round folds what that round has left, and is launched again later.
    `time_s` is when it was decided.
    """

    number: int
    node: str
    tasks: tuple[TaskId, ...]
    round: str = ""
    time_s: float = 0.0


class Kill(NamedTuple):
    """Stop a launch; its slot is free when `TaskFailed` answers."""

    number: int


class Grant(NamedTuple):
    """Let this many more slots of the node work on a divisible job.

    `circle` is the shared scan of a table on which the job rides from now on: what one rider
    parses is kept for the others. With "" the job parses for itself.
    """

    job: str
    node: str
    slots: int
    circle: str = ""


class Revoke(NamedTuple):
    """Take slots back from a divisible job; `LeaseEnded` answers when they are free."""

    job: str
    node: str
    slots: int


class WakeAt(NamedTuple):
    """Post `Woke` at this time."""

    time_s: float


class Scale(NamedTuple):
    """Bring the cluster to this many nodes: add some, or wait for the `Release` of others."""

    nodes: int


class Release(NamedTuple):
    """A drained node is idle and no work needs it; `NodeLost` answers when it is gone."""

    node: str


class Finish(NamedTuple):
    """The query is complete; its result may be handed over."""

    query: str


class Fail(NamedTuple):
    """The query ended without a result; nothing of it runs any more."""

    query: str
    cause: str


Command = Launch | Kill | Grant | Revoke | WakeAt | Scale | Release | Finish | Fail
