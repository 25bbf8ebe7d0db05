"""A cursor of PEP 249: one statement at a time, rows as they come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from queryard.engine.native import Parameters
from queryard.engine.syntax.classify import classify
from queryard.live import Answer

from .errors import InterfaceError, ProgrammingError, translating
from .transactions import Transactions

Row = tuple[Any, ...]
Description = tuple[str, str, None, None, int | None, int | None, None]
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


class Cursor:
    """Made by `Connection.cursor`."""

    def __init__(self, connection: Transactions) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[Description] | None = None
        self.rowcount = -1
        self.lastrowid: None = None
        self._answer: Answer | None = None
        self._closed = False

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """Run a statement; of several, the rows are those of the last."""
        self._check_open()
        self._drop()
        with translating():
            statements = classify(sql)
            for statement in statements[:-1]:
                self._run(statement, ())
            answer = self._run(statements[-1], parameters or ())
            if not answer.returns_rows:
                self.rowcount = answer.changed or 0
                answer.close()
                return self
            self.description = _description(answer)
        self._answer = answer
        return self

    def _run(self, statement: Any, parameters: Parameters) -> Answer:
        self.connection.before(statement)
        answer = self.connection.session.sql(statement.sql, parameters)
        self.connection.after(statement)
        return answer

    def executemany(self, sql: str, every: Iterable[Parameters]) -> Cursor:
        """Run a statement once for each set of parameters."""
        changed = 0
        for parameters in every:
            self.execute(sql, parameters)
            if self.description is not None:
                self._drop()
                raise ProgrammingError("executemany is for statements without rows; use execute")
            changed += self.rowcount
        self.rowcount = changed
        return self

    def fetchone(self) -> Row | None:
        with translating():
            return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        with translating():
            return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        with translating():
            return list(self._rows())

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _rows(self) -> Answer:
        self._check_open()
        if self._answer is None:
            raise InterfaceError("there are no rows to fetch; execute a query first")
        return self._answer

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """PEP 249 wants it; there is nothing to prepare."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249 wants it; there is nothing to prepare."""

    def close(self) -> None:
        """Fetch no more; a query that still runs is cancelled."""
        self._drop()
        self._closed = True

    def _drop(self) -> None:
        answer, self._answer = self._answer, None
        self.description = None
        self.rowcount = -1
        if answer is not None:
            answer.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed; make another with Connection.cursor")
        self.connection.session  # noqa: B018  # complains if it is closed

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _description(answer: Answer) -> list[Description]:
    found: list[Description] = []
    for name, kind in zip(answer.columns, answer.types, strict=True):
        decimal = _DECIMAL.fullmatch(kind)
        precision = int(decimal[1]) if decimal else None
        scale = int(decimal[2]) if decimal else None
        found.append((name, kind, None, None, precision, scale, None))
    return found
