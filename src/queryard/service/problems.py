"""What each error means to a client: a status of HTTP, a type, a title and an SQLSTATE.

All listeners use this one table. The text of a problem is the error's own, as the command line
prints it; an error that is no `QueryardError` is a defect, of which the client sees no details.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from queryard.core.errors import InvalidProfile, QueryardError
from queryard.engine.errors import InputMissing, NeedsSession, NotAllowed
from queryard.engine.parameters import WrongParameters
from queryard.history.errors import HistoryError
from queryard.live.admission.limits import AlreadyRan, MayHaveRun, Refused
from queryard.results.errors import (
    DatabaseBusy,
    Deadlock,
    NoRoom,
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
    QueryTimedOut,
)
from queryard.sql.catalog import CatalogError

from .limits import Draining, TooLarge, TooMany, TooManyConnections

TYPE_PREFIX = "urn:queryard:problem:"


class Unauthorized(QueryardError):
    """A request without a valid token."""


class NotAdmin(QueryardError):
    """A request that only an admin's token may make."""


class UnknownQuery(QueryardError):
    """A query that does not exist, has expired, or is another tenant's: the answer is the same."""


class UnknownName(QueryardError):
    """A table, session or page that is not there."""


class RowsGone(QueryardError):
    """Rows that were there, and are kept no more."""


class Conflict(QueryardError):
    """A change that does not fit what has been changed before it."""


class InvalidRequest(QueryardError):
    """A request that cannot be understood."""


class NotAcceptable(QueryardError):
    """A format in which rows cannot be given."""


class Stopped(QueryCancelled):
    """A query that was cancelled since the server stops, and its grace time is over."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: a row of the table."""

    name: str
    status: int
    title: str
    sqlstate: str

    @property
    def type(self) -> str:
        """A URI, as RFC 9457 wants it."""
        return TYPE_PREFIX + self.name


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, as told to a client."""

    kind: Kind
    detail: str
    retry_after_s: float | None = None
    line: int | None = None
    """The line of the statement that DuckDB's message points to."""

    @property
    def sqlstate(self) -> str:
        return self.kind.sqlstate


DEFECT = Kind("defect", 500, "The server has a defect", "XX000")
FAILED = Kind("failed", 422, "The statement failed", "58000")

# The most special class first: the first row that fits counts.
BY_CLASS: tuple[tuple[type[BaseException], Kind], ...] = (
    (Unauthorized, Kind("unauthorized", 401, "A valid token is needed", "28000")),
    (NotAdmin, Kind("not-admin", 403, "Only an admin may do this", "42501")),
    (NeedsSession, Kind("needs-session", 403, "The statement needs a session", "42501")),
    (NotAllowed, Kind("not-allowed", 403, "The statement is not allowed", "42501")),
    (UnknownQuery, Kind("unknown-query", 404, "There is no such query", "26000")),
    (UnknownName, Kind("not-found", 404, "There is no such thing", "42704")),
    (RowsGone, Kind("rows-gone", 410, "The rows are not kept any more", "24000")),
    (Conflict, Kind("conflict", 409, "The change does not fit those before it", "55000")),
    (NotAcceptable, Kind("not-acceptable", 406, "The format is not known", "22023")),
    (InvalidRequest, Kind("invalid-request", 422, "The request is not valid", "22023")),
    (TooLarge, Kind("too-large", 413, "The request is too large", "54000")),
    (TooManyConnections, Kind("too-many-connections", 429, "Too many connections", "53300")),
    (TooMany, Kind("too-many", 429, "A limit of the server is reached", "53400")),
    (Refused, Kind("refused", 429, "The query was not admitted", "53400")),
    (AlreadyRan, Kind("already-ran", 409, "The statement has run already", "55000")),
    (MayHaveRun, Kind("may-have-run", 409, "The statement may have run already", "55000")),
    (Deadlock, Kind("deadlock", 409, "Two transactions wait for each other", "40P01")),
    (DatabaseBusy, Kind("database-busy", 409, "Others use the database", "55P03")),
    (Draining, Kind("draining", 503, "The server takes no queries now", "57P03")),
    (WrongParameters, Kind("wrong-parameters", 422, "The parameters do not fit", "22023")),
    (OutOfMemory, Kind("out-of-memory", 422, "The query ran out of memory", "53200")),
    (NoRoom, Kind("no-room", 507, "There is no room for the rows", "53100")),
    (QueryTimedOut, Kind("timed-out", 422, "The query ran into its time limit", "57014")),
    (Stopped, Kind("stopped", 503, "The server stops", "57P01")),
    (QueryCancelled, Kind("cancelled", 409, "The query was cancelled", "57014")),
    (InvalidProfile, Kind("invalid-profile", 422, "The profile is not valid", "22023")),
    (InputMissing, FAILED),
    (HistoryError, Kind("history", 503, "The history cannot be read", "58000")),
    (CatalogError, Kind("catalog", 422, "The data cannot be read", "58030")),
    (QueryFailed, FAILED),
    (QueryardError, Kind("invalid", 422, "The request is not valid", "22023")),
    (TimeoutError, Kind("timeout", 504, "There was no answer in time", "57014")),
)

# How DuckDB begins its messages.
BY_HEADING: dict[str, Kind] = {
    "Binder Error": Kind("binding", 422, "The statement does not fit the data", "42601"),
    "Catalog Error": Kind("unknown-name", 422, "The statement names what is not there", "42704"),
    "Parser Error": Kind("syntax", 422, "The statement has a syntax error", "42601"),
    "Syntax Error": Kind("syntax", 422, "The statement has a syntax error", "42601"),
    "Constraint Error": Kind("constraint", 409, "A constraint was violated", "23000"),
    "Dependency Error": Kind("dependency", 409, "Other objects depend on it", "2BP01"),
    "Conversion Error": Kind("conversion", 422, "A value cannot be converted", "22P02"),
    "Out of Range Error": Kind("out-of-range", 422, "A value is out of range", "22003"),
    "Invalid Input Error": Kind("invalid-input", 422, "A value is not valid", "22023"),
    "Mismatch Type Error": Kind("type-mismatch", 422, "A value has another type", "42804"),
    "Not implemented Error": Kind("not-implemented", 422, "DuckDB cannot do this", "0A000"),
    "Permission Error": Kind("not-allowed", 403, "The statement is not allowed", "42501"),
    "TransactionContext Error": Kind("transaction", 409, "The transaction failed", "25000"),
    "IO Error": Kind("input-output", 422, "A file cannot be read or written", "58030"),
    "HTTP Error": Kind("input-output", 422, "A file cannot be read or written", "58030"),
    "INTERNAL Error": DEFECT,
    "FATAL Error": DEFECT,
}

# Finer than the heading: what DuckDB says of names and kinds of errors.
_FINER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Catalog Error: Table with name .* does not exist"), "42P01"),
    (
        re.compile(r"Catalog Error: (Scalar|Aggregate|Table|Macro).* Function .*does not exist"),
        "42883",
    ),
    (re.compile(r"Catalog Error: .* with name .* already exists"), "42P07"),
    (re.compile(r"Catalog Error: Schema with name .* does not exist"), "3F000"),
    (re.compile(r"Catalog Error: Type with name .* does not exist"), "42704"),
    (re.compile(r"Binder Error: Referenced table .* not found"), "42P01"),
    (re.compile(r"Binder Error: (Referenced column|Table .* does not have a column)"), "42703"),
    (re.compile(r"Binder Error: Ambiguous reference"), "42702"),
    (re.compile(r"Binder Error: No function matches"), "42883"),
    (re.compile(r"Binder Error: .*must appear in the GROUP BY"), "42803"),
    (re.compile(r"Binder Error: (Cannot compare|Cannot mix|Could not choose)"), "42804"),
    (re.compile(r"Constraint Error: .*(Duplicate key|duplicate key|PRIMARY KEY|UNIQUE)"), "23505"),
    (re.compile(r"Constraint Error: NOT NULL"), "23502"),
    (re.compile(r"Constraint Error: CHECK"), "23514"),
    (re.compile(r"Constraint Error: .*foreign key", re.IGNORECASE), "23503"),
    (re.compile(r".*[Dd]ivision by zero"), "22012"),
    (re.compile(r"Conversion Error: .*out of range"), "22003"),
    (re.compile(r"the database .* is open for reading only"), "25006"),
)
_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)


def problem_of(error: BaseException) -> Problem:
    """What a client is told of an error.

    >>> found = problem_of(QueryFailed("Catalog Error: Table with name x does not exist!"))
    >>> found.kind.status, found.sqlstate, found.kind.type
    (422, '42P01', 'urn:queryard:problem:unknown-name')
    >>> problem_of(ZeroDivisionError("secret")).detail
    'the server has a defect (ZeroDivisionError); its log has the details'
    """
    kind = next((kind for known, kind in BY_CLASS if isinstance(error, known)), DEFECT)
    if kind is DEFECT:
        name = type(error).__name__
        return Problem(kind, f"the server has a defect ({name}); its log has the details")
    text = str(error)
    if kind is FAILED:
        kind = BY_HEADING.get(text.partition(":")[0], FAILED)
        finer = next((state for pattern, state in _FINER if pattern.match(text)), kind.sqlstate)
        kind = Kind(kind.name, kind.status, kind.title, finer)
    line = _LINE.search(text)
    return Problem(
        kind,
        text,
        error.retry_after_s if isinstance(error, Refused) else None,
        None if line is None else int(line.group(1)),
    )
