"""A transaction block: what a client has begun, whether it has failed, and what was written in it.

BEGIN is a mark: it holds no slot and no transaction of DuckDB's. The first statement that writes
opens a real transaction, which ends as the block ends. So what was written is rolled back for real.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import PostgresError, not_supported


@dataclass
class Block:
    """The state of one session's transaction."""

    # b"I" none, b"T" in a block, b"E" in one that has failed.
    status: bytes = b"I"
    # Whether DuckDB has a transaction open for it.
    real: bool = False
    # Whether that one ends with the series of messages, since no BEGIN has asked for it.
    implicit: bool = False
    # Whether an error has undone all that was written in it.
    undone: bool = False
    writes: int = 0
    # Names, and how many writes there had been.
    savepoints: list[tuple[str, int]] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.status != b"I"

    def begin(self) -> None:
        self.status = b"T"
        self.implicit = False

    def end(self) -> None:
        self.status, self.real, self.implicit, self.writes = b"I", False, False, 0
        self.undone = False
        self.savepoints.clear()

    def fail(self) -> None:
        if self.status == b"T":
            self.status = b"E"

    def check(self) -> None:
        """Only the end of a failed block is possible in it."""
        if self.status == b"E":
            raise PostgresError(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )

    def save(self, name: str) -> None:
        self._check_open("SAVEPOINT")
        self.savepoints.append((name, self.writes))

    def release(self, name: str) -> None:
        self._check_open("RELEASE SAVEPOINT")
        del self.savepoints[self._find(name) :]

    def roll_back_to(self, name: str) -> None:
        """Back to a savepoint; possible where nothing was written since."""
        self._check_open("ROLLBACK TO SAVEPOINT")
        place = self._find(name)
        if self.undone:
            raise not_supported(
                "ROLLBACK TO SAVEPOINT: the error has undone the whole transaction, with what was "
                "written before the savepoint, since DuckDB has no savepoints",
                hint="ROLLBACK, and begin the transaction again",
            )
        if self.writes != self.savepoints[place][1]:
            raise not_supported(
                "ROLLBACK TO SAVEPOINT: something was written since, and DuckDB has no savepoints",
                hint="ROLLBACK undoes the whole transaction",
            )
        del self.savepoints[place + 1 :]
        self.status = b"T"

    def _check_open(self, what: str) -> None:
        if not self.open:
            raise PostgresError("25P01", f"{what} can only be used in transaction blocks")

    def _find(self, name: str) -> int:
        for place in reversed(range(len(self.savepoints))):
            if self.savepoints[place][0] == name:
                return place
        raise PostgresError("3B001", f'savepoint "{name}" does not exist')
