"""Rows sent to a client: of portals, one after another, and of COPY."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from . import replies
from .bridge import Activity, Bridge, Plan
from .copy_options import CopyOut
from .copying import CopyRows
from .errors import PostgresError, not_supported
from .frames import Frame
from .portals import Portal, tag_of
from .rows import Chunk, Encoder, Rows, data_rows
from .texts import Text
from .transactions import Transactions
from .types import Column, WireType


class Outlet(Protocol):
    """Where replies go."""

    def send(self, data: Any) -> None: ...
    async def drain(self) -> None: ...
    async def receive(self) -> Frame: ...


class Sender:
    """Starts what portals ask for, and sends their rows."""

    def __init__(self, outlet: Outlet, bridge: Bridge, transactions: Transactions) -> None:
        self._outlet = outlet
        self._bridge = bridge
        self._settings = bridge.settings
        self._transactions = transactions

    async def start(self, portal: Portal, activity: Activity, *, alone: bool) -> None:
        """Submit what a portal asks for, unless that was done."""
        if portal.started:
            activity.runs(portal.handle)
            return
        if portal.catalog_values is not None:
            await self.ask_catalog(portal)
            return
        assert isinstance(portal.work, Plan)
        plan = portal.work
        if portal.writes_file:
            self._transactions.check_alone("COPY … TO a file", alone=alone)
        if plan.writes:
            await self._transactions.before_write(plan.statement.words[0].upper(), alone=alone)
        portal.started = True
        tell = self._tell if self._settings.is_on("queryard.progress") else None
        started = await self._bridge.start(plan, activity, tell, counted=portal.counted)
        portal.rows, portal.handle = started.rows, started.handle
        portal.check_described(() if started.rows is None else started.rows.columns)
        if started.rows is None:
            portal.tag = tag_of(plan, started.changed)

    async def ask_catalog(self, portal: Portal) -> Rows:
        """The rows of a catalog query, which is asked once."""
        if portal.rows is not None:
            return portal.rows
        assert portal.catalog_values is not None
        answer = await self._bridge.ask_catalog(portal.text, portal.catalog_values)
        for name, value, local in answer.settings:
            self._settings.set(name, value, local=local)
        pairs = zip(answer.names, answer.oids, strict=True)
        columns = tuple(Column(name, WireType(oid)) for name, oid in pairs)
        portal.rows = Rows(columns, answer.table.to_batches())
        portal.started = True
        return portal.rows

    async def send_rows(
        self, portal: Portal, most: int | None, activity: Activity, *, describes: bool
    ) -> None:
        rows = portal.rows
        if rows is None:
            self._outlet.send(replies.complete(portal.tag))
            return
        forms = portal.forms_for(rows.columns)
        if describes:
            self.describe(rows.columns, forms)
        encode = data_rows(rows.columns, forms, self._settings["timezone"])
        sent, ended = await self.stream(rows, most, encode)
        if not ended:
            self._outlet.send(replies.SUSPENDED)
            return
        work = portal.work
        tag = tag_of(work, sent) if isinstance(work, Plan) else f"SELECT {sent}"
        self._outlet.send(replies.complete(tag))

    def describe(self, columns: tuple[Column, ...], forms: tuple[int, ...]) -> None:
        fields = [column.field(form) for column, form in zip(columns, forms, strict=True)]
        self._outlet.send(replies.row_description(fields))

    async def stream(self, rows: Rows, most: int | None, encode: Encoder) -> tuple[int, bool]:
        """Send rows, at most so many; how many were sent, and whether that was all."""
        if rows.at_hand:
            chunk = rows.next(most, encode)
            for data in chunk.data:
                self._outlet.send(data)
            await self._outlet.drain()
            return chunk.rows, chunk.ended
        sent = 0
        coming = self._coming(rows, most, encode)
        try:
            while True:
                chunk = await coming
                ended = chunk.ended or sent + chunk.rows == most
                if not ended:
                    # The next rows are encoded while the client takes these.
                    left = None if most is None else most - sent - chunk.rows
                    coming = self._coming(rows, left, encode)
                for data in chunk.data:
                    self._outlet.send(data)
                    await self._outlet.drain()
                sent += chunk.rows
                if ended:
                    return sent, chunk.ended
        finally:
            coming.cancel()

    def _coming(self, rows: Rows, most: int | None, encode: Encoder) -> asyncio.Future[Chunk]:
        coming = asyncio.ensure_future(self._bridge.call(rows.next, most, encode))
        # If the client leaves meanwhile, its error is of no interest.
        coming.add_done_callback(lambda done: done.cancelled() or done.exception())
        return coming

    async def copy(self, copy: CopyOut, activity: Activity) -> None:
        text = Text(copy.query)
        self._bridge.client.count(copy.query)
        portal = Portal(text, None, [], counted=True)
        if not await self._bridge.concerns_catalog(text):
            plan = await self._bridge.plan(copy.query)
            if plan.writes:
                raise not_supported("COPY … TO STDOUT: its query may only read")
            portal = Portal(text, plan, counted=True)
        await self.start(portal, activity, alone=True)
        rows = portal.rows
        if rows is None:
            raise PostgresError("42601", "COPY … TO STDOUT: its statement gives no rows")
        try:
            writer = CopyRows(copy, rows.columns, self._settings["timezone"])
            self._outlet.send(replies.copy_out(len(rows.columns), copy.format == "binary"))
            if head := writer.head():
                self._outlet.send(head)
            sent, _ = await self.stream(rows, None, writer.encode)
            if tail := writer.tail():
                self._outlet.send(tail)
        finally:
            await self._bridge.call(rows.close)
        self._outlet.send(replies.COPY_DONE + replies.complete(f"COPY {sent}"))

    async def _tell(self, words: str) -> None:
        self._outlet.send(replies.notice(words))
        await self._outlet.drain()
