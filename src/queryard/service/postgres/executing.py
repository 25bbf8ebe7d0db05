"""Portals at work: rows sent, commands done, transactions begun and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from queryard.sql.catalog.quoting import identifier, literal

from . import commands as c
from . import oids, replies
from .blocks import Block
from .bridge import Activity, Bridge, Plan
from .copying import CopyOut, CopyRows
from .errors import PostgresError, not_supported
from .portals import Portal, Portals, tag_of
from .rows import Encoder, Rows, data_rows, no_rows
from .settings import UnknownSetting
from .texts import Text
from .types import Column, WireType


class Outlet(Protocol):
    """Where replies go."""

    def send(self, data: Any) -> None: ...
    async def drain(self) -> None: ...


_TEXT = WireType(oids.TEXT)
_IN_FAILED = (c.Commit, c.Rollback, c.RollbackTo)


class Executor:
    """Executes the portals of one session."""

    def __init__(
        self,
        outlet: Outlet,
        bridge: Bridge,
        block: Block,
        portals: Portals,
        forget: Callable[[str | None], bool],
    ) -> None:
        """`forget` drops a prepared statement, or all, and says whether it was there."""
        self._outlet = outlet
        self._bridge = bridge
        self._settings = bridge.settings
        self._block = block
        self._portals = portals
        self._forget = forget
        # Settings of DuckDB's own that this session has changed.
        self._set_in_duckdb: set[str] = set()

    # --- portals ---------------------------------------------------------------------------------

    async def columns(self, portal: Portal) -> tuple[Column, ...]:
        """The columns that a portal gives; none for what gives no rows."""
        work = portal.work
        if portal.rows is not None:
            return portal.rows.columns
        if portal.catalog_values is not None:
            await self._ask_catalog(portal)
            return portal.rows.columns if portal.started and portal.rows else ()
        if isinstance(work, Plan):
            if work.opaque:
                raise not_supported(
                    "the columns of this statement are known only once it runs",
                    hint="send it in the simple protocol, or select from it as a subquery",
                )
            return work.columns
        if isinstance(work, c.Show):
            return _show_columns(work.name)
        if isinstance(work, c.Fetch) and not work.moves:
            return await self.columns(self._portals.cursor(work.name))
        return ()

    async def execute(
        self,
        portal: Portal,
        most: int | None,
        activity: Activity,
        *,
        alone: bool,
        describes: bool = False,
    ) -> None:
        """Run a portal, or let it go on; `alone` if no other statement is in its series."""
        work = portal.work
        if work is None and portal.catalog_values is None:
            self._outlet.send(replies.EMPTY_QUERY)
        elif isinstance(work, CopyOut):
            self._block.check()
            await self._copy(work, activity)
        elif isinstance(work, Plan) or portal.catalog_values is not None:
            self._block.check()
            await self._start(portal, activity, alone=alone)
            await self._send_rows(portal, most, activity, describes=describes)
        elif work is not None:
            if not isinstance(work, _IN_FAILED):
                self._block.check()
            await self._command(work, portal, activity, describes=describes)

    async def _start(self, portal: Portal, activity: Activity, *, alone: bool) -> None:
        """Submit what a portal asks for, unless that was done."""
        if portal.started:
            activity.runs(portal.handle)
            return
        if portal.catalog_values is not None:
            await self._ask_catalog(portal)
            return
        assert isinstance(portal.work, Plan)
        plan = portal.work
        if plan.writes:
            await self._before_write(plan, alone=alone)
        portal.started = True
        tell = self._tell if self._settings.is_on("queryard.progress") else None
        started = await self._bridge.start(plan, activity, tell)
        portal.rows, portal.handle = started.rows, started.handle
        if started.rows is None:
            portal.tag = tag_of(plan, started.changed)

    async def _ask_catalog(self, portal: Portal) -> None:
        if portal.started:
            return
        assert portal.catalog_values is not None
        answer = await self._bridge.ask_catalog(portal.text, portal.catalog_values)
        for name, value, local in answer.settings:
            self._settings.set(name, value, local=local)
        pairs = zip(answer.names, answer.oids, strict=True)
        columns = tuple(Column(name, WireType(oid)) for name, oid in pairs)
        portal.rows = Rows(columns, answer.table.to_batches())
        portal.started = True

    async def _send_rows(
        self, portal: Portal, most: int | None, activity: Activity, *, describes: bool
    ) -> None:
        rows = portal.rows
        if rows is None:
            self._outlet.send(replies.complete(portal.tag))
            return
        forms = portal.forms_for(rows.columns)
        if describes:
            self._describe(rows.columns, forms)
        encode = data_rows(rows.columns, forms, self._settings["timezone"])
        sent, ended = await self._stream(rows, most, encode)
        if not ended:
            self._outlet.send(replies.SUSPENDED)
            return
        work = portal.work
        tag = tag_of(work, sent) if isinstance(work, Plan) else f"SELECT {sent}"
        self._outlet.send(replies.complete(tag))

    def _describe(self, columns: tuple[Column, ...], forms: tuple[int, ...]) -> None:
        fields = [column.field(form) for column, form in zip(columns, forms, strict=True)]
        self._outlet.send(replies.row_description(fields))

    async def _stream(self, rows: Rows, most: int | None, encode: Encoder) -> tuple[int, bool]:
        """Send rows, at most so many; how many were sent, and whether that was all."""
        sent = 0
        while most is None or sent < most:
            left = None if most is None else most - sent
            chunk = await self._bridge.call(rows.next, left, encode)
            for data in chunk.data:
                self._outlet.send(data)
                await self._outlet.drain()
            sent += chunk.rows
            if chunk.ended:
                return sent, True
        return sent, False

    async def _copy(self, copy: CopyOut, activity: Activity) -> None:
        text = Text(copy.query)
        portal = Portal(text, None, [])
        if not await self._bridge.concerns_catalog(text):
            plan = await self._bridge.plan(copy.query)
            if plan.writes:
                raise not_supported("COPY … TO STDOUT: its query may only read")
            portal = Portal(text, plan)
        await self._start(portal, activity, alone=True)
        rows = portal.rows
        if rows is None:
            raise PostgresError("42601", "COPY … TO STDOUT: its statement gives no rows")
        try:
            writer = CopyRows(copy, rows.columns, self._settings["timezone"])
            self._outlet.send(replies.copy_out(len(rows.columns), copy.format == "binary"))
            if head := writer.head():
                self._outlet.send(head)
            sent, _ = await self._stream(rows, None, writer.encode)
            if tail := writer.tail():
                self._outlet.send(tail)
        finally:
            await self._bridge.call(rows.close)
        self._outlet.send(replies.COPY_DONE + replies.complete(f"COPY {sent}"))

    async def _tell(self, words: str) -> None:
        self._outlet.send(replies.notice(words))
        await self._outlet.drain()

    async def drop(self, portals: list[Portal]) -> None:
        """Close portals: queries that still run for them are cancelled."""
        for portal in portals:
            if portal.rows is not None:
                await self._bridge.call(portal.rows.close)

    # --- transactions ----------------------------------------------------------------------------

    async def _before_write(self, plan: Plan, *, alone: bool) -> None:
        """Open a real transaction where a later error or ROLLBACK must undo this statement."""
        if self._settings.is_on("transaction_read_only"):
            what = plan.statement.words[0].upper()
            raise PostgresError("25006", f"cannot execute {what} in a read-only transaction")
        block = self._block
        if not block.real and (block.open or not alone):
            await self._bridge.run("BEGIN TRANSACTION")
            block.real = True
            block.implicit = not block.open
        block.writes += 1

    async def end_series(self, *, failed: bool) -> None:
        """The end of a series of messages: what is in no block is committed, or rolled back."""
        block = self._block
        if block.open:
            return
        try:
            if block.real:
                await self._bridge.run("ROLLBACK" if failed else "COMMIT")
        finally:
            block.end()
            await self.drop(self._portals.take_all(held=False))

    async def after_error(self) -> None:
        """Portals of a failed transaction are of no use; outside of a block it ends."""
        await self.drop(self._portals.take_all(held=False))
        await self.end_series(failed=True)

    async def _end_block(self, *, commit: bool, chain: bool) -> str:
        block, settings = self._block, self._settings
        commit = commit and block.status != b"E"
        tag = "COMMIT" if commit else "ROLLBACK"
        if not block.open and not block.real:
            words = "there is no transaction in progress"
            self._outlet.send(replies.notice(words, "25P01", "WARNING"))
            return tag
        await self.drop(self._portals.take_all(held=False))
        done = False
        try:
            if block.real:
                await self._bridge.run("COMMIT" if commit else "ROLLBACK")
            done = commit
        finally:
            block.end()
            settings.end(committed=done)
        if chain:
            block.begin()
            settings.begin()
        return tag

    def _begin(self, command: c.Begin) -> str:
        if self._block.open:
            words = "there is already a transaction in progress"
            self._outlet.send(replies.notice(words, "25001", "WARNING"))
        else:
            self._block.begin()
            self._settings.begin()
        self._set_modes(command.modes, "transaction")
        return "BEGIN"

    def _set_modes(self, modes: tuple[tuple[str, str], ...], prefix: str) -> None:
        for name, value in modes:
            self._settings.set(f"{prefix}_{name}", value)

    # --- commands --------------------------------------------------------------------------------

    async def _command(
        self, command: c.Command, portal: Portal, activity: Activity, *, describes: bool
    ) -> None:
        if isinstance(command, c.Show):
            await self._show(command.name, portal, activity, describes=describes)
            return
        if isinstance(command, c.Fetch):
            await self._fetch(command, portal, activity, describes=describes)
            return
        self._outlet.send(replies.complete(await self._done(command, portal.text)))

    async def _done(self, command: c.Command, text: Text) -> str:
        """Do what a command asks for; what it is called once it is complete."""
        block = self._block
        if isinstance(command, c.Begin):
            return self._begin(command)
        if isinstance(command, c.Commit | c.Rollback):
            commit = isinstance(command, c.Commit)
            return await self._end_block(commit=commit, chain=command.chain)
        if isinstance(command, c.Savepoint):
            block.save(command.name)
            return "SAVEPOINT"
        if isinstance(command, c.Release):
            block.release(command.name)
            return "RELEASE"
        if isinstance(command, c.RollbackTo):
            block.roll_back_to(command.name)
            return "ROLLBACK"
        if isinstance(command, c.Declare):
            return await self._declare(command)
        if isinstance(command, c.CloseCursor):
            return await self._close_cursor(command.name)
        if isinstance(command, c.Deallocate):
            return await self._deallocate(command.name)
        if isinstance(command, c.Nothing):
            return command.tag
        return await self._set_something(command, text)

    async def _set_something(self, command: c.Command, text: Text) -> str:
        if isinstance(command, c.Set):
            for name, value in command.values:
                await self._set(name, value, text, local=command.local)
            return "SET"
        if isinstance(command, c.SetModes):
            self._set_modes(
                command.modes, "default_transaction" if command.session else "transaction"
            )
            return "SET"
        if isinstance(command, c.Reset):
            await self._reset(command.name)
            return "RESET"
        assert isinstance(command, c.Discard)
        if command.what == "all":
            if self._block.open:
                raise PostgresError("25001", "DISCARD ALL cannot run inside a transaction block")
            await self.drop(self._portals.take_all(held=True))
            self._forget(None)
            await self._reset("all")
        elif command.what in ("temp", "temporary"):
            raise not_supported("DISCARD TEMP", hint="drop temporary tables by their names")
        return f"DISCARD {command.what.upper()}"

    async def _set(self, name: str, value: str | None, text: Text, *, local: bool) -> None:
        try:
            if value is None:
                self._settings.reset(name, local=local)
            else:
                self._settings.set(name, value, local=local)
        except UnknownSetting:
            if "." in name:
                raise
            await self._bridge.run(text.sql)
            self._set_in_duckdb.add(name)

    async def _reset(self, name: str) -> None:
        if name == "all":
            self._settings.reset_all()
            for each in sorted(self._set_in_duckdb):
                await self._bridge.run(f"RESET {identifier(each)}")
            self._set_in_duckdb.clear()
            return
        try:
            self._settings.reset(name)
        except UnknownSetting:
            if "." in name:
                raise
            await self._bridge.run(f"RESET {identifier(name)}")

    async def _show(
        self, name: str, portal: Portal, activity: Activity, *, describes: bool
    ) -> None:
        columns = _show_columns(name)
        if name == "all":
            pairs = self._settings.all().items()
            values = [[n for n, _ in pairs], [v for _, v in pairs], [""] * len(pairs)]
        elif name in self._settings:
            values = [[self._settings[name]]]
        else:
            await self._show_of_duckdb(name, portal, activity, describes=describes)
            return
        rows = Rows(columns, [pa.record_batch([pa.array(v) for v in values], _names(columns))])
        forms = portal.forms_for(columns)
        if describes:
            self._describe(columns, forms)
        await self._stream(rows, None, data_rows(columns, forms, "UTC"))
        self._outlet.send(replies.complete("SHOW"))

    async def _show_of_duckdb(
        self, name: str, portal: Portal, activity: Activity, *, describes: bool
    ) -> None:
        """SHOW of a table, or of a setting that only DuckDB has."""
        if name in ("tables", "databases", "schemas") or name in self._bridge.table_names():
            sql = f"SHOW {name if name == 'tables' or name == 'databases' else identifier(name)}"
        else:
            sql = f"SELECT CAST(current_setting({literal(name)}) AS VARCHAR) AS {identifier(name)}"
        if not describes:
            raise not_supported(f"SHOW {name} works in the simple protocol only")
        own = Portal(Text(sql), await self._bridge.plan(sql))
        await self._start(own, activity, alone=True)
        await self._send_rows(own, None, activity, describes=True)

    async def _declare(self, command: c.Declare) -> str:
        if not self._block.open and not command.hold:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        text = Text(command.query)
        if await self._bridge.concerns_catalog(text):
            portal = Portal(text, None, [])
        else:
            plan = await self._bridge.plan(command.query)
            if plan.writes or not (plan.columns or plan.opaque):
                raise PostgresError("42P11", "cursors can only be declared for queries")
            portal = Portal(text, plan)
        portal.hold, portal.binary = command.hold, command.binary
        self._portals.add(command.name, portal)
        return "DECLARE CURSOR"

    async def _fetch(
        self, command: c.Fetch, portal: Portal, activity: Activity, *, describes: bool
    ) -> None:
        cursor = self._portals.cursor(command.name)
        await self._start(cursor, activity, alone=True)
        rows = cursor.rows
        assert rows is not None
        if command.moves:
            sent, _ = await self._stream(rows, command.rows, no_rows)
            self._outlet.send(replies.complete(f"MOVE {sent}"))
            return
        forms = (cursor if cursor.binary else portal).forms_for(rows.columns)
        if describes:
            self._describe(rows.columns, forms)
        encode = data_rows(rows.columns, forms, self._settings["timezone"])
        sent, _ = await self._stream(rows, command.rows, encode)
        self._outlet.send(replies.complete(f"FETCH {sent}"))

    async def _close_cursor(self, name: str | None) -> str:
        if name is None:
            await self.drop(self._portals.take_all(held=True))
            return "CLOSE CURSOR ALL"
        self._portals.cursor(name)
        await self.drop(self._portals.take(name))
        return "CLOSE CURSOR"

    async def _deallocate(self, name: str | None) -> str:
        if name is None:
            self._forget(None)
            return "DEALLOCATE ALL"
        if not self._forget(name):
            await self._bridge.run(f"DEALLOCATE {identifier(name)}")
        return "DEALLOCATE"


def _show_columns(name: str) -> tuple[Column, ...]:
    names = ("name", "setting", "description") if name == "all" else (_SHOWN.get(name, name),)
    return tuple(Column(each, _TEXT) for each in names)


_SHOWN = {"timezone": "TimeZone", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle"}


def _names(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]
