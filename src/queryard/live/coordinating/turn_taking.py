"""Queries, and callers that look at statements, wait here for their turns at databases."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from queryard.core.errors import QueryardError
from queryard.engine.errors import DatabaseBusy, Deadlock

from .. import effects as out
from .. import inputs
from .ending import Ending
from .entry import Entry
from .ledger import Ledger
from .turns import Turns

# How long a query waits, unless the host says otherwise.
WAIT_S = 120.0


class DatabaseTurns:
    """The turns of active queries. What a transaction holds belongs to its client."""

    def __init__(self, ledger: Ledger, ending: Ending) -> None:
        self._ledger = ledger
        self._ending = ending
        self._turns = Turns()
        self.wait_s = WAIT_S

    @property
    def empty(self) -> bool:
        return self._turns.empty

    def has(self, entry: Entry) -> bool:
        """Whether a query may use the databases that it names; else it waits, or has failed."""
        client = entry.client
        wants = client.databases(entry.request)
        owner = client.id if client.in_transaction else entry.id
        if not wants or self._turns.ask(entry.id, owner, wants):
            return True
        if self._turns.locked(entry.id):
            self._turns.withdraw(entry.id)
            self._ending.drop(entry, _deadlock(wants))
            return False
        entry.waits_for = self._turns.waits_for(entry.id)
        self._ledger.publish(entry)
        self._time(entry.id, client)
        return False

    def granted(self) -> Iterator[Entry]:
        """Queries that have their turn by now; callers are told here."""
        for token in self._turns.next():
            entry = self._entry(token)
            if entry is None:
                self._ledger.do(out.Reply(token))
            else:
                entry.waits_for = ""
                yield entry

    def leave(self, entry: Entry, *, held_own: bool) -> None:
        """A query has ended. What it held belongs to its transaction, if that is still open."""
        self._turns.withdraw(entry.id)
        client = entry.client
        if client.in_transaction and held_own:
            self._turns.pass_on(entry.id, client.id)
            return
        self._turns.release(entry.id)
        if not client.in_transaction:
            self._turns.release(client.id)

    # --- callers ---------------------------------------------------------------------------------

    def acquire(self, given: inputs.AcquireTurn) -> None:
        try:
            self._ledger.check_open()
        except QueryardError as error:
            self._ledger.do(out.Reply(given.token, error=error))
            return
        client = given.client
        owner = client.id if client.in_transaction else given.token
        if self._turns.ask(given.token, owner, given.wants):
            self._ledger.do(out.Reply(given.token))
        elif self._turns.locked(given.token):
            self._turns.withdraw(given.token)
            self._ledger.do(out.Reply(given.token, error=_deadlock(given.wants)))
        else:
            self._time(given.token, client)

    def release(self, given: inputs.ReleaseTurn) -> None:
        self._turns.withdraw(given.token)
        self._turns.release(given.token)

    def client_left(self, given: inputs.ClientLeft) -> None:
        self._turns.release(given.client.id)

    def waits(self, token: Hashable) -> bool:
        """Whether a query, or a caller, waits for its turn."""
        return bool(self._turns.waits_for(token))

    # --- waiting ---------------------------------------------------------------------------------

    def _time(self, token: Hashable, client: inputs.ClientPort) -> None:
        wait_s = self.wait_s if client.lock_s is None else min(self.wait_s, client.lock_s)
        overdue = inputs.TurnOverdue(token, wait_s)
        self._ledger.do(out.SetTimer(self._ledger.now + wait_s, overdue))

    def overdue(self, given: inputs.TurnOverdue) -> None:
        database = self._turns.waits_for(given.token)
        if not self._turns.withdraw(given.token):
            return
        error = DatabaseBusy(
            f"the database {database} was in use by transactions or queries of other clients for "
            f"{given.waited_s:g} s, and one writes it at a time; try again when they have ended"
        )
        entry = self._entry(given.token)
        if entry is None:
            self._ledger.do(out.Reply(given.token, error=error))
        else:
            self._ending.drop(entry, error)

    def _entry(self, token: Hashable) -> Entry | None:
        return self._ledger.entries.get(token) if isinstance(token, str) else None


def _deadlock(wants: Iterable[str]) -> Deadlock:
    return Deadlock(
        f"deadlock: this transaction waits for {', '.join(sorted(wants))}, and a transaction that "
        "has it waits for what this one holds; roll it back and try again"
    )
