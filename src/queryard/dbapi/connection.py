"""A connection of PEP 249: a session of its own, its transactions and its cursors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from queryard import connecting
from queryard.engine.native import Parameters

from . import errors
from .cursor import Cursor
from .errors import translating
from .transactions import Transactions


def connect(
    where: str | Path | None = None, *, autocommit: bool = False, **options: Any
) -> Connection:
    """Connect to data, or to a server by its address; the options are those of `queryard.connect`.

    Without `autocommit`, the first INSERT, UPDATE or DELETE begins a transaction, which `commit`
    or `rollback` ends.
    """
    with translating():
        session = connecting.connect(where, **options)
    return Connection(session, autocommit)


class Connection(Transactions):
    """Cursors of one session; close it, or use it with `with`, which commits and closes."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def cursor(self) -> Cursor:
        self.session  # noqa: B018  # complains if it is closed
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """A cursor that has executed a statement."""
        return self.cursor().execute(sql, parameters)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        try:
            if self._session is not None and self._session.is_here:
                if kind is None:
                    self.commit()
                else:
                    self.rollback()
        finally:
            self.close()
