"""Prepared statements, and portals: statements with their parameters, on their way to rows.

SQL's cursors are portals with a name, and share the names with those of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queryard.engine.syntax.classify import copies_to
from queryard.live.handle import Handle

from ..config import ServiceLimits
from .bridge import SHORT, Plan
from .commands import Command
from .copy_options import CopyIn, CopyOut
from .errors import BadMessage, PostgresError, changed_plan
from .rows import Rows
from .scrolling import Scroll
from .texts import Text
from .types import Column


@dataclass(slots=True)
class Prepared:
    """A statement as it was sent; `given` are the types that the client has named."""

    text: Text
    given: tuple[int, ...] = ()
    # The types of its columns as the client was told them: it reads all rows by these.
    described: tuple[int, ...] | None = None
    # Whether it was counted for the rate of its token, for a Bind that is to come.
    counted: bool = False


@dataclass
class Portal:
    """What is to be done, and how far it is.

    `work` is a plan for DuckDB, a command for the server, a COPY, the text of a catalog query,
    or None for an empty statement.
    """

    text: Text
    work: Plan | Command | CopyOut | CopyIn | None
    catalog_values: list[Any] | None = None
    forms: tuple[int, ...] = ()
    hold: bool = False
    # Of a cursor WITH HOLD, whether its transaction was committed.
    kept: bool = False
    binary: bool = False
    rows: Rows | None = None
    handle: Handle | None = None
    started: bool = False
    tag: str = ""
    # Of a cursor that goes back.
    scrolls: bool = False
    scroll: Scroll | None = None
    # Whether its statement was counted for the rate of its token.
    counted: bool = False
    # The types of its columns that the client knows from its statement.
    described: tuple[int, ...] | None = None

    @property
    def writes_file(self) -> bool:
        """Whether it writes a file, which no ROLLBACK removes."""
        if not isinstance(self.work, Plan) or self.work.statement.kind != "COPY":
            return False
        return copies_to(self.work.statement)

    def check_described(self, columns: Sequence[Column]) -> None:
        """Refuse columns that the client would take for others: a file may have changed."""
        if self.described is None:
            return
        if len(columns) != len(self.described):
            raise changed_plan(f"it has {len(columns)} columns now")
        for column, oid in zip(columns, self.described, strict=True):
            if column.type.oid != oid:
                raise changed_plan(f"{column.name!r} is of type {column.type.oid} now, not {oid}")

    def forms_for(self, columns: Sequence[Column]) -> tuple[int, ...]:
        """The format of each column: one for all, or one for each."""
        if len(self.forms) <= 1:
            form = self.forms[0] if self.forms else int(self.binary)
            return (form,) * len(columns)
        if len(self.forms) != len(columns):
            raise BadMessage(
                f"bind message has {len(self.forms)} result formats but query has "
                f"{len(columns)} columns"
            )
        return self.forms


def check_room(
    held: Mapping[str, Prepared] | Mapping[str, Portal],
    name: str,
    new: Text,
    limits: ServiceLimits,
) -> None:
    """Refuse a further prepared statement, or portal, of a session beyond what one may hold.

    The one without a name takes the place of the one before it.
    """
    if name and len(held) - ("" in held) >= limits.prepared:
        problem = f"{limits.prepared:,} prepared statements and as many portals"
    elif len(new.sql) <= SHORT or limits.request_bytes >= len(new.sql) + sum(
        len(each.text.sql) for other, each in held.items() if other != name
    ):
        return
    else:
        problem = f"texts of {limits.request_bytes:,} characters in these"
    raise PostgresError(
        "53400",
        f"a connection may have {problem}, and this would be more",
        hint="close some (DEALLOCATE, CLOSE), or raise `prepared` or `request` in [service.limits]",
    )


class Portals:
    """All portals of a session."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._by_name: dict[str, Portal] = {}

    def __getitem__(self, name: str) -> Portal:
        try:
            return self._by_name[name]
        except KeyError:
            raise PostgresError("34000", f'portal "{name}" does not exist') from None

    def cursor(self, name: str) -> Portal:
        if not name or name not in self._by_name:
            raise PostgresError("34000", f'cursor "{name}" does not exist')
        return self._by_name[name]

    def add(self, name: str, portal: Portal) -> None:
        if name and name in self._by_name:
            raise PostgresError("42P03", f'cursor "{name}" already exists')
        check_room(self._by_name, name, portal.text, self._limits)
        self._by_name[name] = portal

    def take(self, name: str) -> list[Portal]:
        """Take a portal out, if it is there; the caller closes its rows."""
        found = self._by_name.pop(name, None)
        return [] if found is None else [found]

    def take_all(self, *, held: bool) -> list[Portal]:
        """Take all portals out; those that outlive a transaction only if `held`."""
        names = [name for name, portal in self._by_name.items() if held or not portal.hold]
        return [self._by_name.pop(name) for name in names]

    def take_ended(self, *, committed: bool) -> list[Portal]:
        """Take out what ends with a transaction: all but cursors WITH HOLD that were committed."""
        for portal in self._by_name.values():
            portal.kept = portal.kept or (portal.hold and committed)
        names = [name for name, portal in self._by_name.items() if not portal.kept]
        return [self._by_name.pop(name) for name in names]


def tag_of(plan: Plan, rows: int) -> str:
    """What a statement is called once it is complete.

    >>> from queryard.engine.syntax.classify import classify
    >>> tag_of(Plan("", classify("INSERT INTO t VALUES (1)")[0], ()), 1)
    'INSERT 0 1'
    >>> tag_of(Plan("", classify("CREATE TEMP TABLE t (a INT)")[0], ()), 0)
    'CREATE TABLE'
    """
    kind, words = plan.statement.kind, plan.statement.words
    if words[0] == "comment":
        return "COMMENT"
    if words[0] == "truncate":
        return "TRUNCATE TABLE"
    if kind == "INSERT":
        return f"INSERT 0 {rows}"
    if kind in ("SELECT", "UPDATE", "DELETE", "COPY"):
        return f"{kind} {rows}"
    if kind == "MERGE_INTO":
        return f"MERGE {rows}"
    if kind in ("CREATE", "DROP", "ALTER"):
        skipped = ("or", "replace", "temp", "temporary", "local", "persistent", "unique")
        what = next((word for word in words[1:] if word not in skipped), "")
        return f"{kind} {what.upper()}"
    return words[0].upper()
