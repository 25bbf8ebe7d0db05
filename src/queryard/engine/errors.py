"""What can go wrong with a statement, told so that its author can act on it."""

from __future__ import annotations

import re

from queryard.core.errors import QueryardError
from queryard.results.errors import OutOfMemory, QueryCancelled, QueryFailed, QueryTimedOut
from queryard.sql.catalog.advice import with_way_out

__all__ = [
    "NotAllowed",
    "OutOfMemory",
    "QueryCancelled",
    "QueryFailed",
    "QueryTimedOut",
    "failure",
    "missing_table",
]


class NotAllowed(QueryardError):
    """A statement that this session may not run, with the reason and the remedy."""


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


def missing_table(text: str) -> str | None:
    """The table that is not there, by DuckDB's words; None if they are about something else.

    >>> missing_table("Catalog Error: Table with name x does not exist!"), missing_table("no")
    ('x', None)
    """
    found = _MISSING.match(text)
    return None if found is None else found.group(1)
