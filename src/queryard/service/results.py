"""The queries of clients without a connection of their own: found by id, kept until read or old.

A result is open while its query runs or has rows that were not read; a token has a limit of those.
Results that were read to the end stay for a while, in case the client did not get all of it, and
make way for others. A query whose client has left runs on for as long as its rows would be kept:
by then the client is back, or is not coming.
"""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

from queryard.engine.errors import QueryCancelled
from queryard.live.handle import Handle
from queryard.results.online import AnswerLog

from .kept_rows import KeptRows
from .principal import Principal
from .submitted import Submitted
from .yard import Yard, unknown_query

# Rows of all results together that are kept in memory; beyond it they go to files.
MEMORY_SHARE = 1 / 16
MOST_MEMORY_BYTES = 256 << 20


class KeptResult:
    """One query with its rows."""

    def __init__(self, submitted: Submitted, room: _TokenRoom) -> None:
        self.submitted = submitted
        self.ticket = submitted.ticket
        # Holds the interest in the rows: without it the query would be cancelled.
        self.handle: Handle | None = submitted.handle()
        self.rows = KeptRows(submitted.ticket.output, room)
        self.readers = 0
        # Clients that wait for its end or its answers, and read no rows.
        self.watchers = 0
        self.used_s = time.monotonic()
        # Whether it was read to the end, or has no rows to read.
        self.done = False
        # When a client of its token has left before the end, or was heard again after that.
        self.left_s: float | None = None

    @property
    def id(self) -> str:
        return self.submitted.id

    @property
    def token(self) -> str:
        return self.submitted.principal.name

    def leave(self, principal: Principal) -> None:
        """A client has left before the end; one of the query's own token may be missed."""
        if principal.name == self.token:
            self.left_s = time.monotonic()

    def hear(self, principal: Principal) -> None:
        """A client asks for it: if one has left, its token has further time to come back."""
        if self.left_s is not None:
            self.leave(principal)

    @property
    def log(self) -> AnswerLog | None:
        """The provisional answers of an online query."""
        online = self.ticket.request.online
        return None if online is None else online.log


class Results:
    """All results that are kept, by id; calls come from any thread."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._lock = threading.Lock()
        self._by_id: dict[str, KeptResult] = {}
        self._by_token: dict[str, dict[str, KeptResult]] = {}
        self._memory = _Memory(
            min(MOST_MEMORY_BYTES, int(yard.session.memory_bytes * MEMORY_SHARE))
        )
        yard.usage.relieve = self.relieve
        yard.every_second(self.expire)

    def keep(self, submitted: Submitted) -> KeptResult:
        """The result of a query that was entered with `kept=True`."""
        with self._lock:
            found = self._by_id.get(submitted.id)
            if found is not None:
                found.hear(submitted.principal)
                return found
            token = submitted.principal.name
            result = KeptResult(submitted, _TokenRoom(self, token))
            self._by_id[submitted.id] = result
            self._by_token.setdefault(token, {})[submitted.id] = result
        result.ticket.when_over(lambda: self._over(result))
        self._thin_out(token)
        return result

    def find(self, principal: Principal, query: str) -> KeptResult:
        """A result that a principal may see; all others are unknown to it."""
        with self._lock:
            found = self._by_id.get(query)
        if found is None or not principal.may_see(found.submitted.tenant):
            raise unknown_query(query)
        found.hear(principal)
        return found

    def all(self, principal: Principal) -> list[KeptResult]:
        """Those that a principal may see, the earliest first."""
        with self._lock:
            found = list(self._by_id.values())
        return [result for result in found if principal.may_see(result.submitted.tenant)]

    def read_to_end(self, result: KeptResult) -> None:
        """A reader has been given the last row."""
        self._settle(result)

    def cancel(self, result: KeptResult) -> None:
        """Stop a query, or free the rows of one that has ended; what became of it can be asked."""
        if not result.ticket.ended:
            self._yard.session.host.cancel(result.id, QueryCancelled("cancelled"))
        reason = f"query {result.id} was cancelled, and its rows are kept no more"
        # The error of the query comes first, where it has one.
        result.ticket.when_over(lambda: result.rows.close(reason))
        self._settle(result)

    def drop(self, result: KeptResult, reason: str) -> None:
        """Free everything of a result; a query that runs for it is cancelled."""
        with self._lock:
            if self._by_id.pop(result.id, None) is None:
                return
            own = self._by_token[result.token]
            del own[result.id]
            if not own:
                del self._by_token[result.token]
        host = self._yard.session.host
        if not result.ticket.ended:
            host.cancel(result.id, QueryCancelled(reason))
        result.rows.close(reason)
        result.handle = None  # with it goes the interest in the rows
        self._settle(result)

    def expire(self) -> None:
        """Drop what was not read for too long."""
        ttl_s = self._yard.config.limits.result_ttl_s
        now_s = time.monotonic()
        with self._lock:
            found = list(self._by_id.values())
        for result in found:
            # A query that runs is not old; one that waits for a reader is, and one that was left.
            waits = result.ticket.ended or result.ticket.output.full
            is_watched = result.watchers > 0 or result.ticket.request.has_side_effects
            left_s = None if is_watched else result.left_s
            if result.readers or (left_s is None and not waits):
                result.used_s = now_s
            elif now_s - max(result.used_s, left_s or 0.0) > ttl_s:
                self.drop(result, f"its rows were not read for {ttl_s:g} s; run the query again")

    def close(self) -> None:
        """Drop all of them."""
        with self._lock:
            found = list(self._by_id.values())
        for result in found:
            self.drop(result, "the server is closed")

    # --- inside ----------------------------------------------------------------------------------

    def _over(self, result: KeptResult) -> None:
        result.used_s = time.monotonic()
        if result.ticket.error is not None or result.ticket.request.has_side_effects:
            self._settle(result)

    def _settle(self, result: KeptResult) -> None:
        """It is not open any more."""
        if not result.done:
            result.done = True
            self._yard.settle(result.submitted)

    def _thin_out(self, token: str) -> None:
        """Keep about as many results that were read as may be open, the newest."""
        most = self._yard.config.limits.open_results
        # Not with every query: all results of the token are looked at.
        if len(self._by_token.get(token, ())) <= most + most // 8:
            return
        done = self._done(token)
        for result in done[: max(0, len(done) - most)]:
            self.drop(result, "it was read, and made way for others")

    def _done(self, token: str) -> list[KeptResult]:
        with self._lock:
            found = list(self._by_token.get(token, {}).values())
        return [each for each in found if each.done and each.ticket.ended and not each.readers]

    def make_room(self, token: str, size_bytes: int, rows: KeptRows, position: int) -> None:
        """Free rows that were read, of other results first; the newest rows are always kept."""
        usage = self._yard.usage

        def fits() -> bool:
            return usage.room_bytes(token) >= size_bytes

        if not fits():
            self.relieve(token, size_bytes)
            rows.free_for(position, fits)
        usage.hold(token, size_bytes)

    def relieve(self, token: str, size_bytes: int = 1) -> None:
        """Free rows of results that were read to the end, until there is room for some bytes."""
        for result in self._done(token):
            if self._yard.usage.room_bytes(token) >= size_bytes:
                return
            result.rows.free_read()

    def freed(self, token: str, size_bytes: int) -> None:
        self._yard.usage.let_go(token, size_bytes)

    @property
    def memory(self) -> _Memory:
        return self._memory

    def new_file(self) -> Path:
        return self._yard.session.host.temp / f"rows-{uuid.uuid4().hex}.arrow"


class _TokenRoom:
    """The room that one token has."""

    def __init__(self, results: Results, token: str) -> None:
        self._results = results
        self._token = token
        self.take_memory = results.memory.take
        self.give_memory = results.memory.give
        self.new_file = results.new_file

    def make_room(self, size_bytes: int, rows: KeptRows, position: int) -> None:
        self._results.make_room(self._token, size_bytes, rows, position)

    def freed(self, size_bytes: int) -> None:
        self._results.freed(self._token, size_bytes)


class _Memory:
    """How much of the memory for rows is in use."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self.used_bytes = 0

    def take(self, size_bytes: int) -> bool:
        with self._lock:
            if self.used_bytes + size_bytes > self._most_bytes:
                return False
            self.used_bytes += size_bytes
            return True

    def give(self, size_bytes: int) -> None:
        with self._lock:
            self.used_bytes -= size_bytes
