"""Statements that the server answers by itself, and that never reach DuckDB: what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Direction = Literal["forward", "backward", "absolute", "relative"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True)
class Begin:
    modes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class Release:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """Set some values; None is the value at the start."""

    values: tuple[tuple[str, str | None], ...]
    local: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """Look for names without a schema in this one."""

    schema: str


@dataclass(frozen=True, slots=True)
class SetModes:
    """Modes of this transaction, or of all later ones."""

    modes: tuple[tuple[str, str], ...]
    session: bool


@dataclass(frozen=True, slots=True)
class Reset:
    name: str  # "all" for all


@dataclass(frozen=True, slots=True)
class Show:
    name: str  # "all" for all


@dataclass(frozen=True, slots=True)
class Discard:
    what: str


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str | None  # None for all


@dataclass(frozen=True, slots=True)
class Declare:
    name: str
    query: str
    hold: bool
    binary: bool
    scroll: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """Rows of a cursor: how many, None for all; or which one. A MOVE drops them."""

    name: str
    rows: int | None
    moves: bool
    how: Direction = "forward"


@dataclass(frozen=True, slots=True)
class CloseCursor:
    name: str | None  # None for all


@dataclass(frozen=True, slots=True)
class Nothing:
    """A statement that there is nothing to do for: its tag is the answer."""

    tag: str


Command = (
    Begin
    | Commit
    | Rollback
    | Savepoint
    | Release
    | RollbackTo
    | Set
    | Use
    | SetModes
    | Reset
    | Show
    | Discard
    | Deallocate
    | Declare
    | Fetch
    | CloseCursor
    | Nothing
)
