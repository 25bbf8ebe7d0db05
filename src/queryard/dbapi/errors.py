"""The exceptions of PEP 249, and which of Queryard's errors becomes which."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed, OutOfMemory, QueryCancelled, QueryFailed
from queryard.engine.parameters import WrongParameters
from queryard.sql.catalog import CatalogError


class Warning(builtins.Warning):
    """Important, but no error; Queryard has none so far."""


class Error(QueryardError):
    """Base of all errors of this module."""


class InterfaceError(Error):
    """The interface was used wrongly: something is closed, or there is nothing to fetch."""


class DatabaseError(Error):
    """Something is wrong with the data, the statement or the engine."""


class DataError(DatabaseError):
    """A value that cannot be: a number out of range, a date that does not exist."""


class OperationalError(DatabaseError):
    """Not the statement's fault: no memory, no time, no file; or it was cancelled."""


class IntegrityError(DatabaseError):
    """A constraint was violated."""


class InternalError(DatabaseError):
    """The engine itself is wrong."""


class ProgrammingError(DatabaseError):
    """A wrong statement: syntax, an unknown table, wrong parameters."""


class NotSupportedError(DatabaseError):
    """Something that cannot or may not be done here."""


# How DuckDB begins its messages.
_BY_HEADING: dict[str, builtins.type[DatabaseError]] = {
    "Binder Error": ProgrammingError,
    "Catalog Error": ProgrammingError,
    "Parser Error": ProgrammingError,
    "Syntax Error": ProgrammingError,
    "Constraint Error": IntegrityError,
    "Dependency Error": IntegrityError,
    "Conversion Error": DataError,
    "Out of Range Error": DataError,
    "Invalid Input Error": DataError,
    "Mismatch Type Error": DataError,
    "Not implemented Error": NotSupportedError,
    "Permission Error": NotSupportedError,
    "INTERNAL Error": InternalError,
    "FATAL Error": InternalError,
}


def translated(error: QueryardError) -> Error:
    """The error of this module for one of Queryard's.

    >>> translated(QueryFailed("Catalog Error: Table with name x does not exist!"))
    ProgrammingError('Catalog Error: Table with name x does not exist!')
    """
    if isinstance(error, Error):
        return error
    kind: builtins.type[Error] = DatabaseError
    if isinstance(error, NotAllowed):
        kind = NotSupportedError
    elif isinstance(error, WrongParameters):
        kind = ProgrammingError
    elif isinstance(error, OutOfMemory | QueryCancelled | CatalogError):
        kind = OperationalError
    elif isinstance(error, QueryFailed):
        kind = _BY_HEADING.get(str(error).partition(":")[0], OperationalError)
    return kind(str(error))


@contextmanager
def translating() -> Iterator[None]:
    """Errors inside come out as those of this module."""
    try:
        yield
    except Error:
        raise
    except QueryardError as error:
        raise translated(error) from error
