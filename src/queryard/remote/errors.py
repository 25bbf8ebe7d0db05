"""From the problems that a server tells to the errors that an embedded session raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from queryard.core.errors import InvalidProfile, QueryardError
from queryard.engine.errors import NotAllowed
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

_PREFIX = "urn:queryard:problem:"


class ServerError(QueryardError):
    """A server that cannot be reached, is about to stop, or has a defect."""


class TokenRefused(QueryardError):
    """A token that is unknown, was revoked, has expired, or may not do what it was used for."""


class NotOnServer(QueryardError):
    """What only an embedded session can do, with what to do instead."""


class NotKnown(QueryardError):
    """A query, session or table that is not there, or belongs to another tenant."""


def _refused(text: str, problem: Mapping[str, Any]) -> QueryardError:
    return Refused(text, problem.get("retry_after_s"))


def _already_ran(text: str, problem: Mapping[str, Any]) -> QueryardError:
    return AlreadyRan(text, str(problem.get("query", "")))


def _may_have_run(text: str, problem: Mapping[str, Any]) -> QueryardError:
    return MayHaveRun(text, str(problem.get("query", "")))


def _plain(kind: type[QueryardError]) -> Callable[[str, Mapping[str, Any]], QueryardError]:
    return lambda text, problem: kind(text)


# By the last part of the problem's type.
_BY_NAME: Mapping[str, Callable[[str, Mapping[str, Any]], QueryardError]] = {
    "unauthorized": _plain(TokenRefused),
    "not-admin": _plain(TokenRefused),
    "needs-session": _plain(NotAllowed),
    "not-allowed": _plain(NotAllowed),
    "unknown-query": _plain(NotKnown),
    "not-found": _plain(NotKnown),
    "too-many-connections": _refused,
    "too-many": _refused,
    "refused": _refused,
    "already-ran": _already_ran,
    "may-have-run": _may_have_run,
    "draining": _plain(ServerError),
    "stopped": _plain(ServerError),
    "deadlock": _plain(Deadlock),
    "database-busy": _plain(DatabaseBusy),
    "defect": _plain(ServerError),
    "wrong-parameters": _plain(WrongParameters),
    "out-of-memory": _plain(OutOfMemory),
    "no-room": _plain(NoRoom),
    "timed-out": _plain(QueryTimedOut),
    "cancelled": _plain(QueryCancelled),
    "invalid-profile": _plain(InvalidProfile),
    "history": _plain(HistoryError),
    "catalog": _plain(CatalogError),
}
# Mistakes in a request, of which DuckDB knows nothing.
_OF_REQUESTS = frozenset(
    {"rows-gone", "not-acceptable", "invalid-request", "too-large", "invalid", "http"}
)


def error_of(problem: Mapping[str, Any]) -> QueryardError:
    """The error that a problem tells of.

    >>> told = {"type": "urn:queryard:problem:conversion", "detail": "Conversion Error: …"}
    >>> error_of(told)
    QueryFailed('Conversion Error: …')
    >>> error_of({"type": "urn:queryard:problem:cancelled", "detail": "cancelled"})
    QueryCancelled('cancelled')
    """
    name = str(problem.get("type", "")).removeprefix(_PREFIX)
    text = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
    if name in _BY_NAME:
        return _BY_NAME[name](text, problem)
    return QueryardError(text) if name in _OF_REQUESTS else QueryFailed(text)
