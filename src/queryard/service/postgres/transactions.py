"""Transactions of one session: begun and ended for real where something was written."""

from __future__ import annotations

from collections.abc import Callable

from . import commands as c
from . import replies
from .blocks import Block
from .bridge import Bridge
from .errors import PostgresError
from .portals import Portal, Portals


class Transactions:
    """The block of a session, and DuckDB's transaction behind it."""

    def __init__(
        self, bridge: Bridge, block: Block, portals: Portals, send: Callable[[bytes], None]
    ) -> None:
        self._bridge = bridge
        self._settings = bridge.settings
        self._portals = portals
        self._send = send
        self.block = block

    async def drop(self, portals: list[Portal]) -> None:
        """Close portals: queries that still run for them are cancelled."""
        for portal in portals:
            if portal.rows is not None:
                await self._bridge.call(portal.rows.close)

    async def before_write(self, what: str, *, alone: bool) -> None:
        """Open a real transaction where a later error or ROLLBACK must undo a statement."""
        if self._settings.is_on("transaction_read_only"):
            raise PostgresError("25006", f"cannot execute {what} in a read-only transaction")
        block = self.block
        if not block.real and (block.open or not alone):
            await self._bridge.run("BEGIN TRANSACTION")
            block.real = True
            block.implicit = not block.open
        block.writes += 1

    def check_alone(self, what: str, *, alone: bool) -> None:
        """Refuse what cannot be undone where a later error or ROLLBACK would have to undo it."""
        if self.block.open or self.block.real or not alone:
            raise PostgresError(
                "25001",
                f"{what} cannot run inside a transaction block, or beside other statements, since "
                "no ROLLBACK removes the file",
                hint="send it alone and outside of a transaction (autocommit), or use COPY … TO "
                "STDOUT",
            )

    async def end_series(self, *, failed: bool) -> None:
        """The end of a series of messages: what is in no block is committed, or rolled back."""
        block = self.block
        if block.open:
            return
        done = False
        try:
            if block.real:
                await self._end_real(commit=not failed)
            done = not failed
        finally:
            block.end()
            self._settings.end_series()
            await self.drop(self._portals.take_ended(committed=done))

    async def _end_real(self, *, commit: bool) -> None:
        """End DuckDB's transaction. One that cannot be committed is rolled back, and never kept."""
        try:
            if commit:
                await self._bridge.run("COMMIT")
        finally:
            # After a COMMIT there is nothing to undo.
            await self._bridge.call(self._bridge.client.roll_back)

    async def after_error(self) -> None:
        """Portals of a failed transaction are of no use; outside of a block it ends."""
        await self.drop(self._portals.take_all(held=False))
        block = self.block
        if block.open and block.real:
            # Others need not wait until the client says that it has seen the error.
            block.real, block.undone = False, True
            await self._end_real(commit=False)
        await self.end_series(failed=True)

    async def end(self, *, commit: bool, chain: bool) -> str:
        block, settings = self.block, self._settings
        commit = commit and block.status != b"E"
        tag = "COMMIT" if commit else "ROLLBACK"
        if not block.open and not block.real:
            words = "there is no transaction in progress"
            self._send(replies.notice(words, "25P01", "WARNING"))
            return tag
        await self.drop(self._portals.take_all(held=False))
        done, modes = False, settings.modes
        try:
            if block.real:
                await self._end_real(commit=commit)
            done = commit
        finally:
            block.end()
            settings.end(committed=done)
            await self.drop(self._portals.take_ended(committed=done))
        if chain:
            block.begin()
            settings.begin(modes)
        return tag

    def begin(self, command: c.Begin) -> str:
        if self.block.open:
            words = "there is already a transaction in progress"
            self._send(replies.notice(words, "25001", "WARNING"))
        else:
            self.block.begin()
            self._settings.begin()
        self.set_modes(command.modes, "transaction")
        return "BEGIN"

    def set_modes(self, modes: tuple[tuple[str, str], ...], prefix: str) -> None:
        for name, value in modes:
            self._settings.set(f"{prefix}_{name}", value)
