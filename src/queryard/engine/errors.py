"""What can go wrong with a statement, told so that its author can act on it."""

from __future__ import annotations

import re
from typing import Literal

from queryard.core.errors import QueryardError
from queryard.results.errors import (
    DatabaseBusy,
    Deadlock,
    NoRoom,
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
    QueryTimedOut,
)
from queryard.sql.catalog.advice import with_way_out

__all__ = [
    "DatabaseBusy",
    "Deadlock",
    "InputMissing",
    "NeedsSession",
    "NoRoom",
    "NotAllowed",
    "OutOfMemory",
    "QueryCancelled",
    "QueryFailed",
    "QueryTimedOut",
    "at_place",
    "failure",
    "failure_kind",
    "has_local_cause",
    "is_syntax_error",
    "missing_table",
]


class InputMissing(QueryardError):
    """Rows that a task reads are not there (yet, or any more); the task is not at fault."""


class NotAllowed(QueryardError):
    """A statement that this session may not run, with the reason and the remedy."""


class NeedsSession(NotAllowed):
    """A statement that changes the state of a session, of a client that has none."""


_MISSING = re.compile(r"Catalog Error: Table with name (.+?) does not exist")
_STACK = re.compile(r"\n\nStack Trace:.*", re.DOTALL)
_READ_ONLY = re.compile(r'on database "(.+?)" which is attached in read-only mode')
_MEMORY = "Out of Memory Error"
_INTERRUPT = "INTERRUPT Error"


def failure(text: str) -> QueryFailed:
    """The error for a message of DuckDB's.

    >>> failure("Catalog Error: Table with name x does not exist!")
    QueryFailed('Catalog Error: Table with name x does not exist!')
    """
    text = with_way_out(_STACK.sub("", text).strip()) or "DuckDB gave no reason"
    if text.startswith(_INTERRUPT):
        return QueryCancelled("cancelled")
    if (found := _READ_ONLY.search(text)) is not None:
        return QueryFailed(
            f"the database {found.group(1)} is open for reading only; open the session for "
            "writing: connect(write=True), --write"
        )
    if text.startswith(_MEMORY):
        # DuckDB's advice is to set what a session may not set.
        what = text.partition("\n\nPossible solutions")[0].rstrip()
        return OutOfMemory(
            f"{what}\nGive the query more memory (`memory=` of submit, or a larger budget in "
            "connect), or make its intermediate results smaller."
        )
    return QueryFailed(text)


FailureKind = Literal["never", "may pass"]
# How DuckDB begins its messages where the same statement may succeed at another time.
_MAY_PASS = re.compile(r"(IO|HTTP|Connection|TransactionContext) Error")


def failure_kind(error: BaseException) -> FailureKind:
    """Whether work that failed with this error would never succeed, or may if it is run again.

    A wrong statement and wrong data stay wrong, and so does a program. Memory, disks and networks
    change, and work that was stopped has not failed by itself.

    >>> failure_kind(failure("Conversion Error: Could not convert string 'a' to INT32"))
    'never'
    >>> failure_kind(failure("IO Error: Could not read from file")), failure_kind(ImportError("x"))
    ('may pass', 'never')
    """
    if isinstance(error, OutOfMemory | NoRoom | InputMissing | QueryCancelled):
        return "may pass"
    if isinstance(error, QueryardError):
        return "may pass" if _MAY_PASS.match(str(error)) else "never"
    # RuntimeError is what Python raises where no further thread can be started.
    passing = OSError | MemoryError | EOFError | RuntimeError
    return "may pass" if isinstance(error, passing) else "never"


# What may differ from one machine to another, unlike a conflict of transactions.
_LOCAL = re.compile(r"(IO|HTTP|Connection) Error")


def has_local_cause(error: BaseException) -> bool:
    """Whether the machine may be why work has failed, so that it may succeed at another one.

    Memory that a query has reserved is as small anywhere else, and rows that are missing are so.

    >>> has_local_cause(failure("IO Error: Could not write file: No space left on device"))
    True
    >>> has_local_cause(OSError(28, "No space left on device"))
    True
    >>> has_local_cause(failure("Out of Memory Error: failed to allocate"))
    False
    """
    if isinstance(error, NoRoom):
        return True
    if isinstance(error, QueryardError):
        return bool(_LOCAL.match(str(error)))
    return failure_kind(error) == "may pass"


def at_place(error: BaseException, place: str) -> QueryFailed:
    """The same error, with the place where it happened.

    >>> at_place(OSError(28, "No space left on device"), "node a1 at 10.0.0.5")
    QueryFailed('OSError: [Errno 28] No space left on device (at node a1 at 10.0.0.5)')
    """
    if not isinstance(error, QueryFailed):
        found = QueryFailed(f"{type(error).__name__}: {error} (at {place})")
        found.__cause__ = error
        return found
    found = type(error)(f"{error} (at {place})")
    found.__cause__ = error.__cause__
    return found


def is_syntax_error(error: BaseException) -> bool:
    """Whether DuckDB's parser says so.

    >>> is_syntax_error(failure('Parser Error: syntax error at or near "x"'))
    True
    """
    return str(error).startswith("Parser Error")


def missing_table(text: str) -> str | None:
    """The table that is not there, by DuckDB's words; None if they are about something else.

    >>> missing_table("Catalog Error: Table with name x does not exist!"), missing_table("no")
    ('x', None)
    """
    found = _MISSING.match(text)
    return None if found is None else found.group(1)
