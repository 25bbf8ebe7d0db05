"""What a client asks for, whatever the version it says it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Hello:
    """A client that wants to connect, with the versions of the protocol that it speaks."""

    token: str
    duckdb: str
    platform: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """Run a text, and answer with its columns and first rows."""

    sql: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """The next rows of a result."""

    result: int


@dataclass(frozen=True, slots=True)
class Append:
    """Insert rows into a table: a record batch of Arrow with all its columns, in their order."""

    schema: str
    table: str
    rows: Any


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The client is done."""


Request = Prepare | Fetch | Append | Disconnect
