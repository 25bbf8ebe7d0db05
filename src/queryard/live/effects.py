"""What the coordinator wants done; the loop has it carried out, in this order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

from queryard.backends.protocol import BackendCommand

from .facts import QueryFacts
from .inputs import Input
from .request import QueryRequest
from .work.base import Work


class Reply(NamedTuple):
    """Answer the waiting caller: with the id of its query, or with an error."""

    token: Hashable
    query: str = ""
    error: BaseException | None = None


class SetTimer(NamedTuple):
    """Post an input at a time."""

    time_s: float
    input: Input


class StartPlanning(NamedTuple):
    """Split a query into jobs, on another thread; `Planned` or `PlanFailed` answers."""

    query: str
    request: QueryRequest
    memory_bytes: int


class StartOnline(NamedTuple):
    """Plan a query that answers early, on another thread; `Planned` or `PlanFailed` answers."""

    query: str
    request: QueryRequest
    memory_bytes: int
    settings: Any


class AddWork(NamedTuple):
    """Make the work of a query known to the backend."""

    query: str
    work: Work


class Execute(NamedTuple):
    """A command of the kernel, for the backend."""

    command: BackendCommand


class GuaranteeUnmet(NamedTuple):
    """Whether, from now on, a waiting tenant has less than its guarantee."""

    unmet: bool


class StopWork(NamedTuple):
    """End what runs for a query alone."""

    query: str
    error: BaseException


class Forget(NamedTuple):
    """Nothing of a query runs any more; it may be given to the backend once more."""

    query: str


class CloseWork(NamedTuple):
    """Free the work of a query that begins again in another way; on another thread."""

    work: Work


class HandOver(NamedTuple):
    """All tasks of a query have ended: pass its rows to the reader, on another thread."""

    query: str
    work: Work


class Spill(NamedTuple):
    """The rows of a query that its reader has not taken go to a file from now on."""

    query: str


class FailOutput(NamedTuple):
    """The reader of a query meets an error."""

    query: str
    error: BaseException


class CloseOutput(NamedTuple):
    """No rows are read any more."""

    output: Any


class Refine(NamedTuple):
    """Improve the prediction of a query, on another thread; `Predicted` may answer."""

    query: str


Known = Literal["exactly", "at least", "running", "nothing"]


class Learn(NamedTuple):
    """A query has taken this much work: exactly, at least this much (it was stopped, or still
    runs), or nothing to learn from (it failed).
    """

    request: QueryRequest
    work_s: float
    peak_memory_bytes: int | None
    known: Known


class Publish(NamedTuple):
    """What is known of a query by now."""

    facts: QueryFacts


class RecordAsked(NamedTuple):
    """A query enters the kernel."""

    facts: QueryFacts


class RecordRefused(NamedTuple):
    """A query was refused by a limit."""

    query: str
    request: QueryRequest
    error: BaseException
    time_s: float


class Ended(NamedTuple):
    """Nothing of a query is left but its rows.

    `lasts` says that no open transaction may undo it; it is told of queries with a key.
    """

    facts: QueryFacts
    work: Work | None
    lasts: bool = True


Effect = (
    Reply
    | SetTimer
    | StartPlanning
    | StartOnline
    | AddWork
    | Execute
    | GuaranteeUnmet
    | StopWork
    | Forget
    | CloseWork
    | HandOver
    | Spill
    | FailOutput
    | CloseOutput
    | Refine
    | Learn
    | Publish
    | RecordAsked
    | RecordRefused
    | Ended
)
