"""COPY … FROM STDIN: rows taken from the client, and inserted once all are there."""

from __future__ import annotations

import asyncio

from queryard.core.errors import QueryardError
from queryard.sql.catalog.database import DatabaseTable

from . import replies
from .bridge import Activity, Bridge
from .copy_options import CopyIn
from .copy_rows_in import RowsIn
from .errors import BadMessage, FatalError, PostgresError
from .frames import Frame
from .problems import as_postgres
from .sending import Outlet
from .texts import Text
from .transactions import Transactions


class Receiver:
    """Takes the rows of one session's COPYs."""

    def __init__(self, outlet: Outlet, bridge: Bridge, transactions: Transactions) -> None:
        self._outlet = outlet
        self._bridge = bridge
        self._transactions = transactions

    async def copy(self, copy: CopyIn, text: Text, activity: Activity, *, alone: bool) -> None:
        self._check_target(copy)
        await self._bridge.follow_settings()
        columns = await self._bridge.call(
            self._bridge.client.describe, f"SELECT {copy.names} FROM {copy.table}"
        )
        # A transaction begins before the client sends anything: it may not be possible.
        await self._transactions.before_write("COPY", alone=alone)
        folder = await self._bridge.call(self._bridge.client.client.instance.place_for_rows)
        most_bytes = self._bridge.limits.copy_bytes
        rows = RowsIn(copy, list(columns.names), list(columns.types), folder, most_bytes)
        try:
            self._outlet.send(replies.copy_in(len(columns.names), copy.format == "binary"))
            await self._outlet.drain()
            await self._receive(rows, activity)
            await self._insert(rows, text, activity)
        finally:
            await asyncio.shield(self._bridge.call(rows.close))
        self._outlet.send(replies.complete(f"COPY {rows.rows}"))

    def _check_target(self, copy: CopyIn) -> None:
        """Refuse at once what would be refused after all rows were sent."""
        client = self._bridge.client
        parts = [word.strip('"') for word in copy.table.split(".")]
        found = client.catalog.find(*parts)
        if found is None:
            return  # a temporary table, or none: DuckDB tells
        writes = client.client.reach.access.writes
        if isinstance(found, DatabaseTable) and found.database.alias.lower() not in writes:
            alias = found.database.alias
            raise PostgresError(
                "42501", f"COPY {copy.table}: this client may read the database {alias} only"
            )
        if isinstance(found, DatabaseTable) or client.client.instance.has_made(parts[-1]):
            return  # what the client has made stands before the tables of the catalog
        raise PostgresError(
            "42501", f"COPY {copy.table}: it is a table of files, which clients cannot change"
        )

    async def _receive(self, rows: RowsIn, activity: Activity) -> None:
        while True:
            frame = await self._next(activity)
            if frame.letter == "d":
                await self._bridge.call(rows.feed, frame.body)
            elif frame.letter == "c":
                await self._bridge.call(rows.end)
                return
            elif frame.letter == "f":
                reason = frame.body.rstrip(b"\0").decode("utf-8", "replace")
                raise PostgresError("57014", f"COPY from stdin failed: {reason}")
            elif frame.letter not in "HS":
                raise BadMessage(f"unexpected message {frame.letter!r} during COPY from stdin")

    async def _next(self, activity: Activity) -> Frame:
        """The next message; a client that pauses for too long holds others up."""
        limit_s = self._bridge.limits.transaction_s
        waiting = asyncio.ensure_future(self._outlet.receive())
        activity.waits(waiting)
        try:
            async with asyncio.timeout(limit_s):
                return await waiting
        except TimeoutError:
            raise FatalError(
                "25P03", f"terminating connection: COPY from stdin came to a halt for {limit_s:g} s"
            ) from None
        except asyncio.CancelledError:
            if not activity.cancelled:
                raise
            raise PostgresError("57014", "canceling statement due to user request") from None
        finally:
            activity.waits(None)

    async def _insert(self, rows: RowsIn, text: Text, activity: Activity) -> None:
        try:
            await self._bridge.load(text.sql, rows.statement(), activity)
        except QueryardError as error:
            problem = as_postgres(error)
            if problem.sqlstate[:2] == "22":
                problem.where = await self._bridge.call(rows.culprit)
            raise problem from None
