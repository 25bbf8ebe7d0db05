"""One session: messages in, replies out. It knows nothing of sockets.

The simple protocol runs a text at once; the extended one prepares, binds, describes and executes.
After an error of the extended protocol all messages up to the next Sync are skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from queryard.results.errors import QueryCancelled

from . import messages as m
from . import replies
from .blocks import Block
from .bridge import Activity, Bridge, Plan
from .copy_options import copy_of
from .errors import FatalError, PostgresError, not_supported
from .executing import Executor
from .frames import Frame
from .parameters import as_sql, null_of, values_of
from .portals import Portal, Portals, Prepared, check_room
from .problems import as_postgres
from .reading import command_of
from .settings import Settings
from .texts import Text, statements_of
from .types import Column, WireType


class Link(Protocol):
    """The way to the client."""

    def send(self, data: Any) -> None:
        """Put bytes into the buffer of what is sent."""

    async def drain(self) -> None:
        """Wait until the client has taken most of it."""

    async def receive(self) -> Frame:
        """The next message, of a COPY that takes rows."""

    def upcoming(self) -> int | None:
        """The letter of the next message, if it has come already."""

    async def coming(self) -> int:
        """The letter of the next message, once it has come."""


class Ended(Exception):
    """The session is over: the client has said so, or an error was fatal."""


class Session:
    """The state of one client's session; one message at a time."""

    def __init__(self, link: Link, bridge: Bridge) -> None:
        self._link = link
        self._bridge = bridge
        self._statements: dict[str, Prepared] = {}
        self.block = Block()
        self.portals = Portals(bridge.limits)
        self._activity: Activity | None = None
        self._executor = Executor(link, bridge, self.block, self.portals, self._forget)
        self._skipping = False
        self._told = bridge.settings.reported()

    @property
    def settings(self) -> Settings:
        return self._bridge.settings

    def cancel(self) -> None:
        """Stop what runs now; if nothing does, nothing happens."""
        if self._activity is not None:
            self._activity.cancel()

    # --- messages --------------------------------------------------------------------------------

    async def handle(self, frame: Frame) -> None:
        """Do what a message asks for; raises Ended at the end of the session."""
        letter = frame.letter
        if self._skipping and letter not in "SX":
            return
        self._activity = activity = Activity()
        try:
            message = m.read_message(frame)
            await self._dispatch(message, activity)
        except Ended:
            raise
        except Exception as error:
            await self._failed(error, letter, activity)
        finally:
            self._activity = None

    async def _dispatch(self, message: m.Message, activity: Activity) -> None:
        if isinstance(message, m.Query):
            await self._query(message.sql, activity)
        elif isinstance(message, m.Parse):
            await self._parse(message)
        elif isinstance(message, m.Bind):
            await self._bind(message, activity)
        elif isinstance(message, m.Describe):
            await self._describe(message, activity)
        elif isinstance(message, m.Execute):
            await self._execute(message, activity)
        elif isinstance(message, m.Close):
            await self._close(message)
        elif isinstance(message, m.Sync):
            self._skipping = False
            await self._executor.transactions.end_series(failed=False)
            await self.ready()
        elif isinstance(message, m.Flush):
            await self._link.drain()
        elif isinstance(message, m.Terminate):
            raise Ended
        elif isinstance(message, m.FunctionCall):
            raise not_supported("function calls by number are not possible; write a SELECT")
        elif isinstance(message, m.Secret):
            raise FatalError("08P01", "a password was not asked for")
        # Data for a COPY that was refused is on its way and means nothing.

    async def ready(self) -> None:
        """Say that the next message may come, and which settings have changed."""
        now = self._bridge.settings.reported()
        for name, value in now.items():
            if self._told.get(name) != value:
                self._link.send(replies.setting(name, value))
        self._told = now
        self._link.send(replies.ready(self.block.status))
        await self._link.drain()

    async def _failed(self, error: Exception, letter: str, activity: Activity) -> None:
        problem = self._problem(error, activity)
        self.block.fail()
        self._link.send(replies.error(problem))
        if problem.fatal:
            await self._link.drain()
            raise Ended
        await self._executor.transactions.after_error()
        if letter in "QS":
            await self.ready()
        else:
            self._skipping = True

    def _problem(self, error: Exception, activity: Activity) -> PostgresError:
        problem = as_postgres(error)
        if self._bridge.client.closed:
            return FatalError("57P01", f"terminating connection: {problem}")
        if activity.cancelled and isinstance(error, QueryCancelled):
            return PostgresError("57014", "canceling statement due to user request")
        return problem

    # --- the simple protocol ---------------------------------------------------------------------

    async def _query(self, sql: str, activity: Activity) -> None:
        await self._executor.transactions.drop(self.portals.take(""))
        self._statements.pop("", None)
        texts = await self._bridge.look(len(sql), statements_of, sql)
        if not texts:
            self._link.send(replies.EMPTY_QUERY)
        for text in texts:
            if text.parameters:
                raise PostgresError("42P02", f"there is no parameter ${text.parameters}")
            self._count(text)
            portal = await self._portal(text, text, [], (), runs=True)
            alone = len(texts) == 1
            await self._executor.execute(portal, None, activity, alone=alone, describes=True)
        await self._executor.transactions.end_series(failed=False)
        await self.ready()

    # --- the extended protocol -------------------------------------------------------------------

    async def _parse(self, message: m.Parse) -> None:
        texts = await self._bridge.look(len(message.sql), statements_of, message.sql)
        if len(texts) > 1:
            raise PostgresError(
                "42601", "cannot insert multiple commands into a prepared statement"
            )
        if message.name and message.name in self._statements:
            raise PostgresError("42P05", f'prepared statement "{message.name}" already exists')
        text = texts[0] if texts else Text("")
        self._check_block(text)
        check_room(self._statements, message.name, text, self._bridge.limits)
        self._statements[message.name] = Prepared(text, message.types)
        self._link.send(replies.PARSED)

    def _check_block(self, text: Text) -> None:
        """In a failed block only its end may be prepared."""
        if text.first not in ("rollback", "commit", "abort", "end", ""):
            self.block.check()

    def _statement(self, name: str) -> Prepared:
        found = self._statements.get(name)
        if found is None:
            named = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise PostgresError("26000", f"{named} does not exist")
        return found

    async def _bind(self, message: m.Bind, activity: Activity) -> None:
        prepared = self._statement(message.statement)
        text = prepared.text
        self._check_block(text)
        await self._executor.transactions.drop(self.portals.take("") if not message.portal else [])
        if prepared.counted:
            prepared.counted = False
        else:
            self._count(text)
        types = await self._types(prepared)
        size = len(text.sql) + sum(len(value or b"") for value in message.values)
        values, bound = await self._bridge.look(size, _bound, text, message, types)
        portal = await self._portal(text, bound, values, message.result_formats, runs=True)
        portal.described = prepared.described
        if isinstance(portal.work, Plan) and not portal.work.opaque:
            portal.check_described(portal.work.columns)
        self.portals.add(message.portal, portal)
        self._link.send(replies.BOUND)

    async def _types(self, prepared: Prepared) -> tuple[int, ...]:
        text = prepared.text
        if await self._asks_catalog(text):
            found = await self._bridge.describe_catalog(text, prepared.given)
            return found.parameters
        return await self._bridge.parameter_types(text, prepared.given)

    async def _asks_catalog(self, text: Text) -> bool:
        return _is_query(text) and await self._bridge.concerns_catalog(text)

    def _count(self, text: Text) -> None:
        """Count a statement before it is bound; commands are counted where they run anything."""
        if _is_query(text):
            self._bridge.client.count(text.sql)

    async def _portal(
        self, text: Text, bound: Text, values: list[Any], forms: tuple[int, ...], *, runs: bool
    ) -> Portal:
        """What a statement with its parameters asks for; a query is bound, unless it `runs` next
        and its columns can be told then. It was counted.
        """
        if not text.words:
            return Portal(text, None, forms=forms)
        work: Any = command_of(bound) or copy_of(bound)
        if work is not None:
            return Portal(bound, work, forms=forms)
        self.block.check()
        if await self._bridge.concerns_catalog(text):
            return Portal(text, None, values, forms, counted=True)
        plan = await self._bridge.plan(bound.sql, runs=runs)
        return Portal(bound, plan, forms=forms, counted=True)

    async def _describe(self, message: m.Describe, activity: Activity) -> None:
        if message.target == "portal":
            portal = self.portals[message.name]
            columns = await self._executor.columns(portal, activity)
            self._send_columns(columns, portal.forms_for)
            return
        prepared = self._statement(message.name)
        self._check_block(prepared.text)
        self._count(prepared.text)
        prepared.counted = True
        types, columns = await self._described(prepared, activity)
        prepared.described = tuple(column.type.oid for column in columns)
        self._link.send(replies.parameter_description([kind or 25 for kind in types]))
        self._send_columns(columns, lambda columns: (0,) * len(columns))

    async def _described(
        self, prepared: Prepared, activity: Activity
    ) -> tuple[tuple[int, ...], tuple[Column, ...]]:
        """The types of the parameters, and the columns, of a statement that is not bound."""
        text = prepared.text
        if await self._asks_catalog(text):
            found = await self._bridge.describe_catalog(text, prepared.given)
            pairs = zip(found.names, found.oids, strict=True)
            return found.parameters, tuple(Column(name, WireType(oid)) for name, oid in pairs)
        types = await self._bridge.parameter_types(text, prepared.given)
        sample = await self._bridge.look(len(text.sql), _sample, text, types)
        portal = await self._portal(sample, sample, [], (), runs=False)
        return types, await self._executor.columns(portal, activity, keeps=False)

    def _send_columns(
        self, columns: tuple[Column, ...], forms: Callable[[tuple[Column, ...]], tuple[int, ...]]
    ) -> None:
        if not columns:
            self._link.send(replies.NO_DATA)
            return
        fields = [column.field(form) for column, form in zip(columns, forms(columns), strict=True)]
        self._link.send(replies.row_description(fields))

    async def _execute(self, message: m.Execute, activity: Activity) -> None:
        portal = self.portals[message.portal]
        upcoming = self._link.upcoming()
        if upcoming is None and portal.writes_file:
            upcoming = await self._coming()
        alone = upcoming == ord("S")
        await self._executor.execute(portal, message.most_rows or None, activity, alone=alone)

    async def _coming(self) -> int | None:
        """The letter of the next message, which a client cannot put off for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._bridge.limits.stall_s):
                return await self._link.coming()
        return None

    async def _close(self, message: m.Close) -> None:
        if message.target == "statement":
            self._statements.pop(message.name, None)
        else:
            await self._executor.transactions.drop(self.portals.take(message.name))
        self._link.send(replies.CLOSED)

    def _forget(self, name: str | None) -> bool:
        """Forget a prepared statement, or all; whether it was there."""
        if name is None:
            self._statements.clear()
            return True
        return self._statements.pop(name, None) is not None

    async def close(self) -> None:
        """Free what the session holds."""
        await self._executor.transactions.drop(self.portals.take_all(held=True))


def _bound(text: Text, message: m.Bind, types: tuple[int, ...]) -> tuple[list[Any], Text]:
    """The values of the parameters, and the statement with them in their places."""
    values = values_of(message.values, types, message.formats)
    return values, _cut(text.filled(lambda number: as_sql(values[number - 1], types[number - 1])))


def _sample(text: Text, types: tuple[int, ...]) -> Text:
    """The statement with nulls in the places of its parameters."""
    return _cut(text.filled(lambda number: null_of(types[number - 1])))


def _cut(sql: str) -> Text:
    """A statement that is cut into words already."""
    made = Text(sql)
    _ = made.words  # they are kept with it
    return made


def _is_query(text: Text) -> bool:
    """Whether a statement is for DuckDB or the catalogs, and not for the server itself."""
    return bool(text.words) and command_of(text) is None and copy_of(text) is None
