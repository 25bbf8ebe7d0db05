"""How a query can end without an answer."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class QueryFailed(QueryardError):
    """DuckDB refused or could not finish a statement; the text is DuckDB's own."""


class OutOfMemory(QueryFailed):
    """A statement needed more than the memory it had reserved, and could not spill enough."""


class NoRoom(QueryFailed):
    """Rows could not be written to a file: the disk is full, or the folder takes nothing."""


class DatabaseBusy(QueryFailed):
    """A query that has waited too long for its turn at a database that others use."""


class Deadlock(DatabaseBusy):
    """A transaction that waits for another one, which waits for it."""


class QueryCancelled(QueryFailed):
    """The query was cancelled."""


class QueryTimedOut(QueryFailed):
    """The query ran into its time limit."""
