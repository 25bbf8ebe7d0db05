"""Native execution: DuckDB plans and runs whole statements, on slots that are lent to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from queryard.results.streams import Output
from queryard.sql.catalog import Catalog

from .capi import library
from .instances.pool import InstancePool
from .instances.settings import Settings
from .instances.spares import Spares
from .kept_tables import KeptColumns, KeptTables
from .native_query import NativeQuery, Parameters
from .online.circles import Circles
from .online.statement import OnlineStatement
from .places import OnPool, OnReadConnection, OnSession, Place
from .program import Program, ProgramRun
from .sealing.access import Access, Reach
from .segments import SegmentStore
from .session.session import SessionInstance
from .syntax.classify import Classified

__all__ = ["NativeEngine", "NativeQuery", "NativeStatement", "Parameters", "SentStatement"]


@dataclass(frozen=True, slots=True)
class NativeStatement:
    """What is to be run for a client: a script of statements, and how.

    A very short one may sprint (see `statement`) if it only reads and has no parameters. `kept`
    are tables of text, with the columns that are read of them, which are read from parsed segments
    as far as these are kept.
    """

    statements: tuple[Classified, ...]
    parameters: Parameters
    memory_bytes: int
    sprints: bool
    client: SessionInstance
    settings: Settings = ()
    kept: KeptColumns = ()


@dataclass(frozen=True, slots=True)
class SentStatement:
    """A script that only reads files, as another process can run it: plain data."""

    statements: tuple[tuple[str, str], ...]  # SQL and kind of each
    parameters: Parameters
    memory_bytes: int
    sprints: bool
    settings: Settings
    access: Access
    attaches: bool  # databases that it names

    @classmethod
    def of(cls, given: NativeStatement) -> SentStatement | None:
        """None if it needs its client's own instance, or what is kept in this process."""
        statements, client = given.statements, given.client
        if client.routing.needs_instance(statements) or given.kept:
            return None
        return cls(
            tuple((each.sql, each.kind) for each in statements),
            given.parameters,
            given.memory_bytes,
            given.sprints and _may_sprint(given),
            given.settings,
            client.reach.access,
            not client.writes,
        )


def _may_sprint(given: NativeStatement) -> bool:
    """Whether it is one statement that only reads, without parameters."""
    first = given.statements[0]
    one_read = len(given.statements) == 1 and first.reads
    return one_read and not (given.parameters or first.has_parameters)


class NativeEngine:
    """The pooled instances of one host, and which query runs where."""

    def __init__(
        self,
        catalog: Catalog,
        slots: int,
        pool_bytes: int,
        temp: Path,
        segments: SegmentStore | None = None,
    ) -> None:
        """Without a store of `segments` nothing that was parsed is kept."""
        _say_if_whole()
        self.catalog = catalog
        self.reach = Reach(Access(), catalog)
        """That of clients which may reach all."""
        self.segments = SegmentStore(0.0) if segments is None else segments
        self.pool = InstancePool(slots, pool_bytes, temp)
        self.spares = Spares(self.pool, catalog)
        self._circles = Circles()

    def open(
        self, given: NativeStatement | OnlineStatement | Program, output: Output
    ) -> NativeQuery | ProgramRun:
        """A query that no slot has worked on yet."""
        if isinstance(given, Program):
            return ProgramRun(given, output)
        if isinstance(given, OnlineStatement):
            # Most programs ask for no online answer, and should not wait for what makes it.
            from .online.query import OnlineQuery

            return OnlineQuery(self._pooled(given, True), given, output, self._circles)
        statements, client = given.statements, given.client
        may = _may_sprint(given)
        place: Place
        if client.routing.must_run(statements):
            place = OnSession(client)
            may = False
        elif client.routing.needs_read_connection(statements):
            place = OnReadConnection(client, given.settings)
        else:
            place = self._pooled(given, not client.writes)
        return NativeQuery(place, statements, output, given.parameters, given.sprints and may)

    def open_sent(self, given: SentStatement, reach: Reach, output: Output) -> NativeQuery:
        """A query that was sent by another process, whose client has this reach."""
        nothing_kept = KeptTables(self.segments, ())
        place = OnPool(
            self.pool,
            self.spares,
            reach,
            given.memory_bytes,
            given.settings,
            attaches=given.attaches,
            kept=nothing_kept,
        )
        statements = [Classified(sql, kind) for sql, kind in given.statements]
        return NativeQuery(place, statements, output, given.parameters, given.sprints)

    def _pooled(self, given: NativeStatement | OnlineStatement, attaches: bool) -> OnPool:
        kept = given.kept if isinstance(given, NativeStatement) else ()
        return OnPool(
            self.pool,
            self.spares,
            given.client.reach if isinstance(given, NativeStatement) else given.reach,
            given.memory_bytes,
            given.settings,
            attaches=attaches,
            kept=KeptTables(self.segments, kept),
            files=() if isinstance(given, NativeStatement) else given.files,
        )

    def close(self) -> None:
        self.pool.close()
        self.segments.close()


@cache
def _say_if_whole() -> None:
    """Warn once if the installed DuckDB cannot run a statement on several slots."""
    missing = library().missing_for_leases
    if missing:
        warnings.warn(
            f"the installed DuckDB does not export {', '.join(missing)}: each statement runs whole "
            "on one slot and cannot be paused; install the duckdb wheel from PyPI, version 2.0",
            RuntimeWarning,
            stacklevel=2,
        )
