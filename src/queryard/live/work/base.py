"""What a kind of work tells the coordinator, the backend and the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from queryard.backends import protocol
from queryard.core.events import EstimateChanged, MemoryChanged, Retry
from queryard.core.model import Job, Table
from queryard.core.speedup import Speedup
from queryard.estimate.tasks.planned import PlannedQuery
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream


class Moved(NamedTuple):
    """What the first slot of a query changes: the queries that begin with it, and the memory that
    another query reserves from now on.
    """

    started: Sequence[str]
    events: Sequence[MemoryChanged]


class Outlined(Protocol):
    """What is expected of a query in tasks."""

    def jobs(self) -> tuple[Job, ...]:
        """The jobs, as the kernel sees them."""

    def estimates(self, expected_s: float, speedup: Speedup) -> list[EstimateChanged]:
        """What is expected of each job."""

    def planned(self) -> PlannedQuery | None:
        """What its plan expects of its tasks; None where it is not made of tasks."""

    def moved_bytes(self, nodes: int) -> float:
        """How many bytes its tasks are expected to pass on to others, if they run at so many
        nodes.
        """


class Work(Outlined, Protocol):
    """One active query, by one kind of work."""

    @property
    def memory_bytes(self) -> int:
        """What the query reserves when it enters the kernel."""

    @property
    def hands_over(self) -> bool:
        """Whether its rows are handed over after its last task, and not as they are made."""

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        """The tables that its jobs scan, by name: a fingerprint, and the splits."""

    def for_backend(self, output: ResultStream) -> protocol.Work:
        """What the backend is given."""

    def entered(self) -> Moved:
        """It enters the kernel."""

    def granted(self) -> Moved:
        """The kernel gave it a slot."""

    def left(self) -> Sequence[MemoryChanged]:
        """Its query is not wanted any more."""

    def on_failure(self, error: BaseException) -> Retry:
        """What a failed attempt means."""

    def needs_more(self, error: BaseException, most_bytes: int) -> bool:
        """Whether a failed task needs more memory than was guessed for its query."""

    def hand_over(self, output: ResultStream) -> None:
        """Pass its rows to the reader; on a thread of its own, if `hands_over`."""

    def close(self) -> None:
        """Its query has ended: free everything; on a thread of its own."""

    def explanation(self) -> Explanation | None:
        """Its jobs, and what came of them; None where DuckDB's own plan is to be asked for."""
