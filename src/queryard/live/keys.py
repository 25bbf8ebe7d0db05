"""What has run under an idempotency key, in the history: it does not run again after a restart.

Before a statement with side effects begins, the history is told so, and told again at its end. One
that was begun and has no end may have run: the process has ended between its commit and that word.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
import warnings
from collections.abc import Iterator

from queryard.core.errors import QueryardError
from queryard.history import DoneRow, DoneState, History, HistoryReader, HistoryWarning

from .admission.limits import AlreadyRan, MayHaveRun, came_with_another
from .request import QueryRequest

# Two requests with one key enter one after the other; those with other keys hardly ever wait.
_LOCKS = 64
# How long a key waits for the last word on its query of before.
WAIT_S = 5.0


class KeyRecord:
    """The keys of one history, from any thread; without a history nothing is known of them."""

    def __init__(self, history: History | None) -> None:
        self._history = history
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))
        # Begun by this process, and the last word is not written.
        self._begun: dict[tuple[str, str], threading.Event] = {}

    @contextlib.contextmanager
    def held(self, request: QueryRequest) -> Iterator[None]:
        """Hold the key of a request while it enters."""
        with self._locks[hash(_key(request)) % _LOCKS]:
            yield

    def check(self, request: QueryRequest) -> None:
        """Raise if a statement has run under its key, or may have; reads the file."""
        last_word = self._begun.get(_key(request))
        if last_word is not None:
            last_word.wait(WAIT_S)
        found = self._found(request)
        if found is None or found.state == "undone":
            return
        if found.statement != request.asked_hash:
            raise came_with_another(request.idempotency_key)
        key = f"idempotency_key {request.idempotency_key!r}"
        when = f"{datetime.datetime.fromtimestamp(found.ended_at):%Y-%m-%d at %H:%M:%S}"
        if found.state == "done":
            raise AlreadyRan(
                f"{key}: its statement has run already, as query {found.query}, and ended well on "
                f"{when}; it was not run again. Use another key to run it again",
                found.query,
            )
        raise MayHaveRun(
            f"{key}: its statement was begun as query {found.query} on {when}, and the history "
            "does not say how it ended: it may have run, as a whole or in part. It was not run "
            "again; look at the data, and use another key if it has to run",
            found.query,
        )

    def begin(self, request: QueryRequest, query: str) -> None:
        """A statement is about to run under its key; it waits until this is in the file."""
        if self._history is not None:
            self._begun[_key(request)] = threading.Event()
            self._write(request, query, "begun")

    def end(self, request: QueryRequest, query: str, ran: bool | None) -> None:
        """It has run or not; None where that cannot be told. It waits until this is in the file."""
        if self._history is None:
            return
        try:
            if ran is not None:
                self._write(request, query, "done" if ran else "undone")
        finally:
            if (last_word := self._begun.pop(_key(request), None)) is not None:
                last_word.set()

    def _write(self, request: QueryRequest, query: str, state: DoneState) -> None:
        history = self._history
        assert history is not None
        tenant, key = _key(request)
        history.done(DoneRow(tenant, key, request.asked_hash, query, time.time(), state))
        if history.flush():
            return
        why = history.error or "the file is slow, or another program holds it"
        # Where warnings are errors, the query goes on all the same.
        with contextlib.suppress(HistoryWarning):
            warnings.warn(
                f"query {query}: that its idempotency key is {state} was not written to the "
                f"history: {why}; after a crash its statement could run again",
                HistoryWarning,
                stacklevel=2,
            )

    def _found(self, request: QueryRequest) -> DoneRow | None:
        if self._history is None or not self._history.file.is_file():
            return None
        with HistoryReader(self._history.file) as reader:
            return reader.done(*_key(request))


def check_no_transaction(request: QueryRequest, in_transaction: bool) -> None:
    """Refuse a key where a transaction may undo the statement, and the key would not know.

    What ends the transaction may have one, and so may BEGIN.
    """
    if request.guards_sending or not request.has_side_effects:
        return
    if request.leaves_open(in_transaction) and any(
        statement.kind != "TRANSACTION" for statement in request.statements
    ):
        raise QueryardError(
            f"idempotency_key {request.idempotency_key!r}: the statement is part of a transaction, "
            "which may be rolled back; give the key to its COMMIT, or send all statements from "
            "BEGIN to COMMIT as one text"
        )


def _key(request: QueryRequest) -> tuple[str, str]:
    return request.tenant, request.idempotency_key
