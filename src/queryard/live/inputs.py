"""What the coordinator is told: everything that happens to a host."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from queryard.backends.protocol import BackendEvent
from queryard.core.events import Woke
from queryard.engine.kept_tables import KeptColumns
from queryard.estimate.work import Prediction

from .request import QueryRequest
from .work.base import Work


class ClientPort(Protocol):
    """What the coordinator must know of a client; instant, and without side effects."""

    @property
    def id(self) -> str: ...

    def needs_own(self, request: QueryRequest) -> bool:
        """Whether it must run on the client's own connection, where one query runs at a time."""

    def is_pooled(self, request: QueryRequest) -> bool:
        """Whether it runs on an instance of the pool, with memory that it reserves."""

    def concerns(self, earlier: QueryRequest, later: QueryRequest) -> bool:
        """Whether side effects of a query may change what a later one sees."""

    def databases(self, request: QueryRequest) -> Mapping[str, bool]:
        """The databases that it needs a turn at, and whether it may write them."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on the client's own connection."""

    @property
    def lock_s(self) -> float | None:
        """How long it waits for a turn at most, if not as long as it may."""

    def not_staged(self, request: QueryRequest) -> str | None:
        """Why the planner is not asked to split a query; None if it is."""

    @property
    def settings(self) -> Hashable:
        """What the client has set by now."""

    def statement(
        self, request: QueryRequest, memory_bytes: int, sprints: bool, settings: Any
    ) -> Any:
        """What the engine runs for it, under these settings."""


class Submit(NamedTuple):
    """A client asks for something. `token` names the caller that waits for a `Reply`.

    `key` is equal for queries that have the same answer; None where that may differ each time.
    `wait_s` is how long it is expected to wait, where a limit asks for it.
    """

    token: Hashable
    query: str
    client: ClientPort
    request: QueryRequest
    prediction: Prediction
    key: Hashable | None = None
    wait_s: float = 0.0


class Cancel(NamedTuple):
    """A query is not wanted any more."""

    query: str
    error: BaseException


class Release(NamedTuple):
    """No handle of a query is held: its rows cannot be read any more.

    `complete` says that all of them had come.
    """

    query: str
    output: Any
    complete: bool


class TimeLimitReached(NamedTuple):
    query: str


class WithinReached(NamedTuple):
    """The time is over within which an online query was to answer."""

    query: str


class Planned(NamedTuple):
    """The planner has split a query into jobs.

    If its plan is still open, `prediction` is what it is expected to take natively, by DuckDB's
    plan; None if there is nothing better than before.
    """

    query: str
    work: Work
    prediction: Prediction | None = None


class ChoosePlan(NamedTuple):
    """A query that left its plan open has waited for company."""

    query: str


class FoundKept(NamedTuple):
    """All that a query reads of tables of text is kept in parsed segments."""

    query: str
    kept: KeptColumns


class PlanFailed(NamedTuple):
    """The planner cannot split a query (`reason`), or failed itself (`error`)."""

    query: str
    reason: str
    error: BaseException | None = None


class Predicted(NamedTuple):
    """More is known of a query that has not ended."""

    query: str
    prediction: Prediction


class ReaderState(NamedTuple):
    """The reader of a query has fallen behind, or has caught up."""

    query: str
    behind: bool


class HandedOver(NamedTuple):
    """The rows of a staged query were passed to its reader, or that failed."""

    query: str
    error: BaseException | None


class ChoosePolicy(NamedTuple):
    """Another policy is to be followed; `by` says by what it was chosen."""

    profile: Mapping[str, Any]
    reason: str = ""
    by: str = ""


class Pause(NamedTuple):
    """No waiting query is to start; `by` says on whose word."""

    by: str


class Resume(NamedTuple):
    """Waiting queries may start again."""


class Recalled(NamedTuple):
    """What widths and tasks of earlier sessions have taught, by the name of the model."""

    learnt: Mapping[str, Any]


class AcquireConnection(NamedTuple):
    """A caller wants the client's own connection for itself; a `Reply` says that it has it."""

    token: Hashable
    client: ClientPort


class ReleaseConnection(NamedTuple):
    """The caller that had the client's own connection is done."""

    token: Hashable
    client: ClientPort


class AcquireTurn(NamedTuple):
    """A caller wants its turn at databases, to look at them; a `Reply` says that it has it."""

    token: Hashable
    client: ClientPort
    wants: Mapping[str, bool]


class ReleaseTurn(NamedTuple):
    """The caller that had its turn is done."""

    token: Hashable


class TurnOverdue(NamedTuple):
    """A query, or a caller, has waited for its turn for as long as it may: for so many seconds."""

    token: Hashable
    waited_s: float


class ClientLeft(NamedTuple):
    """The transaction of a client is over: it was closed, or has rolled back."""

    client: ClientPort


class Close(NamedTuple):
    """The host ends: every query with it."""

    error: BaseException


class Rested(NamedTuple):
    """A node of a cluster that got no work may be given some again."""


Input = (
    Submit
    | Cancel
    | Release
    | TimeLimitReached
    | WithinReached
    | Planned
    | PlanFailed
    | FoundKept
    | ChoosePlan
    | Predicted
    | ReaderState
    | HandedOver
    | ChoosePolicy
    | Pause
    | Resume
    | Recalled
    | AcquireConnection
    | ReleaseConnection
    | AcquireTurn
    | ReleaseTurn
    | TurnOverdue
    | ClientLeft
    | Rested
    | Close
    | Woke
    | BackendEvent
)
