"""Portals at work: what each asks for goes to the one that does it."""

from __future__ import annotations

from collections.abc import Callable

from . import commands as c
from . import replies
from .blocks import Block
from .bridge import Activity, Bridge, Plan
from .commanding import Commander, show_columns
from .copy_options import CopyIn, CopyOut
from .portals import Portal, Portals
from .receiving import Receiver
from .sending import Outlet, Sender
from .transactions import Transactions
from .types import Column

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
        self._block = block
        self._portals = portals
        self.transactions = Transactions(bridge, block, portals, outlet.send)
        self._sender = Sender(outlet, bridge, self.transactions)
        self._receiver = Receiver(outlet, bridge, self.transactions)
        self._commander = Commander(
            outlet, bridge, portals, self._sender, self.transactions, forget
        )

    async def columns(
        self, portal: Portal, activity: Activity, *, keeps: bool = True
    ) -> tuple[Column, ...]:
        """The columns that a portal gives; none for what gives no rows.

        A statement whose columns are known only once it runs, as a PIVOT, is begun here; unless
        the portal is kept for its rows (`keeps`), it is ended again.
        """
        work = portal.work
        if portal.rows is not None:
            return portal.rows.columns
        if portal.catalog_values is not None:
            return (await self._sender.ask_catalog(portal)).columns
        if isinstance(work, Plan):
            if work.opaque:
                return await self._begun(portal, activity, keeps=keeps)
            return work.columns
        if isinstance(work, c.Show):
            return show_columns(work.name)
        if isinstance(work, c.Fetch) and not work.moves:
            return await self.columns(self._portals.cursor(work.name), activity)
        return ()

    async def _begun(
        self, portal: Portal, activity: Activity, *, keeps: bool
    ) -> tuple[Column, ...]:
        self._block.check()
        await self._sender.start(portal, activity, alone=False)
        if portal.rows is None:
            return ()
        if not keeps:
            await self.transactions.drop([portal])
        return portal.rows.columns

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
            await self._sender.copy(work, activity)
        elif isinstance(work, CopyIn):
            self._block.check()
            await self._receiver.copy(work, portal.text, activity, alone=alone)
        elif isinstance(work, Plan) or portal.catalog_values is not None:
            self._block.check()
            await self._sender.start(portal, activity, alone=alone)
            await self._sender.send_rows(portal, most, activity, describes=describes)
        elif work is not None:
            if not isinstance(work, _IN_FAILED):
                self._block.check()
            await self._commander.run(work, portal, activity, describes=describes)
