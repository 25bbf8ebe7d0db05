"""Commands that the server itself carries out: settings, cursors, transactions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from queryard.sql.catalog.quoting import identifier, literal

from . import commands as c
from . import oids, replies
from .bridge import Activity, Bridge
from .errors import PostgresError, not_supported
from .portals import Portal, Portals
from .rows import Encoder, Rows, data_rows, no_rows
from .scrolling import Scroll
from .sending import Outlet, Sender
from .settings import UnknownSetting
from .texts import Text
from .transactions import Transactions
from .types import Column, WireType

_TEXT = WireType(oids.TEXT)


class Commander:
    """Carries out the commands of one session."""

    def __init__(
        self,
        outlet: Outlet,
        bridge: Bridge,
        portals: Portals,
        sender: Sender,
        transactions: Transactions,
        forget: Callable[[str | None], bool],
    ) -> None:
        """`forget` drops a prepared statement, or all, and says whether it was there."""
        self._outlet = outlet
        self._bridge = bridge
        self._settings = bridge.settings
        self._portals = portals
        self._sender = sender
        self._transactions = transactions
        self._forget = forget
        # Settings of DuckDB's own that this session has changed.
        self._set_in_duckdb: set[str] = set()

    async def run(
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
        block = self._transactions.block
        if isinstance(command, c.Begin):
            return self._transactions.begin(command)
        if isinstance(command, c.Commit | c.Rollback):
            commit = isinstance(command, c.Commit)
            return await self._transactions.end(commit=commit, chain=command.chain)
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
            if command.local and not self._transactions.block.open:
                words = "SET LOCAL can only be used in transaction blocks"
                self._outlet.send(replies.notice(words, "25P01", "WARNING"))
            for name, value in command.values:
                await self._set(name, value, text, local=command.local)
            return "SET"
        if isinstance(command, c.Use):
            await self._use(command.schema, text)
            return "USE"
        if isinstance(command, c.SetModes):
            self._transactions.set_modes(
                command.modes, "default_transaction" if command.session else "transaction"
            )
            return "SET"
        if isinstance(command, c.Reset):
            await self._reset(command.name)
            return "RESET"
        assert isinstance(command, c.Discard)
        if command.what == "all":
            if self._transactions.block.open:
                raise PostgresError("25001", "DISCARD ALL cannot run inside a transaction block")
            await self._transactions.drop(self._portals.take_all(held=True))
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

    async def _use(self, schema: str, text: Text) -> None:
        if schema not in self._bridge.schemas():
            await self._bridge.run(text.sql)  # DuckDB says what is wrong
            return
        before = self._settings["search_path"]
        self._settings.set("search_path", schema)
        try:
            await self._bridge.follow_settings()
        except BaseException:
            self._settings.set("search_path", before)
            raise

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
        columns = show_columns(name)
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
            self._sender.describe(columns, forms)
        await self._sender.stream(rows, None, data_rows(columns, forms, "UTC"))
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
        await self._sender.start(own, activity, alone=True)
        await self._sender.send_rows(own, None, activity, describes=True)

    async def _declare(self, command: c.Declare) -> str:
        if not self._transactions.block.open and not command.hold:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        text = Text(command.query)
        self._bridge.client.count(command.query)
        if await self._bridge.concerns_catalog(text):
            portal = Portal(text, None, [], counted=True)
        else:
            plan = await self._bridge.plan(command.query)
            if plan.writes or not (plan.columns or plan.opaque):
                raise PostgresError("42P11", "cursors can only be declared for queries")
            portal = Portal(text, plan, counted=True)
        portal.hold, portal.binary = command.hold, command.binary
        portal.scrolls = command.scroll
        self._portals.add(command.name, portal)
        return "DECLARE CURSOR"

    async def _fetch(
        self, command: c.Fetch, portal: Portal, activity: Activity, *, describes: bool
    ) -> None:
        cursor = self._portals.cursor(command.name)
        await self._sender.start(cursor, activity, alone=True)
        rows = cursor.rows
        assert rows is not None
        forms = (cursor if cursor.binary else portal).forms_for(rows.columns)
        if describes and not command.moves:
            self._sender.describe(rows.columns, forms)
        encode = data_rows(rows.columns, forms, self._settings["timezone"])
        if command.moves:
            encode = no_rows
        if cursor.scrolls:
            sent = await self._scroll(cursor, command, encode)
        else:
            skipped, most = _forward(command)
            if skipped:
                await self._sender.stream(rows, skipped, no_rows)
            sent, _ = await self._sender.stream(rows, most, encode)
        self._outlet.send(replies.complete(f"{'MOVE' if command.moves else 'FETCH'} {sent}"))

    async def _scroll(self, cursor: Portal, command: c.Fetch, encode: Encoder) -> int:
        assert cursor.rows is not None
        if cursor.scroll is None:
            cursor.scroll = Scroll(cursor.rows)
        chunk = await self._bridge.call(cursor.scroll.fetch, command.how, command.rows, encode)
        for data in chunk.data:
            self._outlet.send(data)
            await self._outlet.drain()
        return chunk.rows

    async def _close_cursor(self, name: str | None) -> str:
        if name is None:
            await self._transactions.drop(self._portals.take_all(held=True))
            return "CLOSE CURSOR ALL"
        self._portals.cursor(name)
        await self._transactions.drop(self._portals.take(name))
        return "CLOSE CURSOR"

    async def _deallocate(self, name: str | None) -> str:
        if name is None:
            self._forget(None)
            return "DEALLOCATE ALL"
        if not self._forget(name):
            await self._bridge.run(f"DEALLOCATE {identifier(name)}")
        return "DEALLOCATE"


def _forward(command: c.Fetch) -> tuple[int, int | None]:
    """How many rows a cursor that only goes forward passes over, and how many it then gives."""
    if command.how == "forward":
        return 0, command.rows
    if command.how == "relative" and command.rows is not None and command.rows > 0:
        return command.rows - 1, 1
    raise PostgresError(
        "55000", "cursor can only scan forward", hint="declare it with SCROLL to go back"
    )


def show_columns(name: str) -> tuple[Column, ...]:
    names = ("name", "setting", "description") if name == "all" else (_SHOWN.get(name, name),)
    return tuple(Column(each, _TEXT) for each in names)


_SHOWN = {"timezone": "TimeZone", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle"}


def _names(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]
