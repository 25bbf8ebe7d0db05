"""Any error as a client of PostgreSQL sees it; the codes are those of all listeners."""

from __future__ import annotations

import logging

from ..problems import DEFECT, problem_of
from .catalog.answers import UnknownCatalogQuery
from .errors import PostgresError

_log = logging.getLogger(__name__)


def as_postgres(error: BaseException) -> PostgresError:
    """The error that is sent; a defect's details go to the log only.

    >>> from queryard.results.errors import QueryCancelled
    >>> as_postgres(QueryCancelled("cancelled")).sqlstate
    '57014'
    """
    if isinstance(error, PostgresError):
        return error
    if isinstance(error, UnknownCatalogQuery):
        return PostgresError(error.sqlstate, str(error))
    problem = problem_of(error)
    if problem.kind is DEFECT:
        _log.error("a PostgreSQL session met a defect", exc_info=error)
    text, _, detail = problem.detail.partition("\n")
    return PostgresError(problem.sqlstate, text, detail=detail.strip())
