"""What each token may use of a server, counted; beyond it there is a clear error.

Connections and open results are counts, held rows are bytes, and statements have a rate: as many
as a second allows may come at once, after a pause. Held rows are those that were read and are kept,
and those that wait for their reader; beyond the limit queries pause.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable

from queryard.core.errors import QueryardError
from queryard.live.admission.limits import Refused
from queryard.results.errors import NoRoom

from .config import ServiceLimits


class TooMany(Refused):
    """A limit of the server is reached; `retry_after_s` is None where waiting does not help."""


class TooManyConnections(TooMany):
    """A client that cannot be served beside those that are connected."""


class TooLarge(QueryardError):
    """A request of more bytes than are allowed."""


class Draining(QueryardError):
    """The server is about to stop, and takes no further queries."""


class Usage:
    """What all tokens use now; calls come from any thread and take a moment."""

    def __init__(
        self,
        limits: ServiceLimits,
        clock: Callable[[], float] = time.monotonic,
        waiting_bytes: float = math.inf,
    ) -> None:
        """`waiting_bytes` is the memory for rows of all tokens that wait for their readers."""
        self.limits = limits
        self._most_waiting_bytes = waiting_bytes
        self._waiting_bytes = 0
        # Frees rows of a token that were read, if it can.
        self.relieve: Callable[[str], None] = lambda token: None
        self._clock = clock
        self._lock = threading.Lock()
        self._connections: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        # Of each token: statements that may come at once, and when that was true.
        self._allowance: dict[str, tuple[float, float]] = {}

    # --- statements ------------------------------------------------------------------------------

    def check_size(self, size_bytes: int) -> None:
        """Refuse a request that is too large."""
        most = self.limits.request_bytes
        if size_bytes > most:
            raise TooLarge(
                f"the request has {size_bytes:,} bytes, and {most:,} are allowed; send a shorter "
                "statement, or raise `request` in [service.limits]"
            )

    def count_statement(self, token: str) -> None:
        """A token sends a statement; refused beyond its rate."""
        rate = self.limits.statements_per_s
        most = max(1.0, rate)
        with self._lock:
            now_s = self._clock()
            left, at_s = self._allowance.get(token, (most, now_s))
            left = min(most, left + (now_s - at_s) * rate)
            if left >= 1.0:
                self._allowance[token] = left - 1.0, now_s
                return
            self._allowance[token] = left, now_s
        wait_s = (1.0 - left) / rate if rate > 0 else None
        again = "" if wait_s is None else f"; send the next in {wait_s:.2g} s"
        raise TooMany(
            f"token {token!r} may send {rate:g} statements per second, and has sent more{again}",
            wait_s,
        )

    # --- connections -----------------------------------------------------------------------------

    def connect(self, token: str) -> None:
        """A further connection of a token; refused beyond the limits."""
        limits = self.limits
        with self._lock:
            total, own = self._connections.total(), self._connections[token]
            if total < limits.connections and own < limits.connections_per_token:
                self._connections[token] += 1
                return
        if own >= limits.connections_per_token:
            raise TooManyConnections(
                f"token {token!r} has {own} connections, and {limits.connections_per_token} are "
                "allowed; close some, or raise connections_per_token in [service.limits]"
            )
        raise TooManyConnections(
            f"the server has {total} connections, and {limits.connections} are allowed; try again "
            "when others have left, or raise connections in [service.limits]"
        )

    def connections_of(self, token: str) -> int:
        """How many connections a token has."""
        return self._connections[token]

    def disconnect(self, token: str) -> None:
        self._take(self._connections, token, 1)

    # --- results ---------------------------------------------------------------------------------

    def open_result(self, token: str) -> None:
        """A query begins for a token; refused beyond the limit."""
        most = self.limits.open_results
        with self._lock:
            if (count := self._open[token]) < most:
                self._open[token] += 1
                return
        raise TooMany(
            f"token {token!r} has {count} queries that run or have rows left to read, and {most} "
            "are allowed; read their rows, cancel some, or raise open_results in [service.limits]"
        )

    def close_result(self, token: str) -> None:
        self._take(self._open, token, 1)

    def room_bytes(self, token: str) -> int:
        """How many bytes of rows may still be held for a token."""
        return max(0, self.limits.result_bytes - self._bytes[token])

    def hold(self, token: str, size_bytes: int) -> None:
        """Rows are held for a token; the caller has made room."""
        with self._lock:
            self._bytes[token] += size_bytes

    def let_go(self, token: str, size_bytes: int) -> None:
        self._take(self._bytes, token, size_bytes)

    def wait(self, token: str, size_bytes: int, *, in_memory: bool) -> None:
        """Rows wait for their reader, or with a negative size, do so no more."""
        with self._lock:
            self._bytes[token] += size_bytes
            if self._bytes[token] <= 0:
                del self._bytes[token]
            if in_memory:
                self._waiting_bytes += size_bytes

    @property
    def memory_is_short(self) -> bool:
        """Whether rows that wait for their readers use all the memory that is for them."""
        return self._waiting_bytes >= self._most_waiting_bytes

    def account(self, token: str) -> TokenAccount:
        """What the rows of a token's queries are charged to."""
        return TokenAccount(self, token)

    # --- looking on ------------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        return self._sum(self._connections)

    @property
    def open_results(self) -> int:
        return self._sum(self._open)

    @property
    def waiting_bytes(self) -> int:
        """Rows in memory that no reader has taken yet."""
        return self._waiting_bytes

    @property
    def held_bytes(self) -> int:
        return self._sum(self._bytes)

    def forget_idle(self) -> None:
        """Forget rates of tokens that could send as many as ever."""
        rate = self.limits.statements_per_s
        whole_s = max(1.0, rate) / rate if rate > 0 else math.inf
        with self._lock:
            now_s = self._clock()
            kept = self._allowance.items()
            self._allowance = {name: had for name, had in kept if now_s - had[1] < whole_s}

    def _sum(self, counter: Counter[str]) -> int:
        with self._lock:
            return counter.total()

    def _take(self, counter: Counter[str], token: str, amount: int) -> None:
        with self._lock:
            counter[token] -= amount
            if counter[token] <= 0:
                del counter[token]


class TokenAccount:
    """Rows of a token that no reader has taken yet."""

    def __init__(self, usage: Usage, token: str) -> None:
        self._usage = usage
        self._token = token

    def hold(self, size_bytes: int, *, in_memory: bool) -> None:
        self._usage.wait(self._token, size_bytes, in_memory=in_memory)

    def let_go(self, size_bytes: int, *, in_memory: bool) -> None:
        self._usage.wait(self._token, -size_bytes, in_memory=in_memory)

    @property
    def crowded(self) -> bool:
        return self._usage.memory_is_short or self._is_over

    @property
    def _is_over(self) -> bool:
        usage = self._usage
        if usage.room_bytes(self._token):
            return False
        usage.relieve(self._token)
        return not usage.room_bytes(self._token)

    def refusal(self) -> NoRoom | None:
        if not self._is_over:
            return None
        most = self._usage.limits.result_bytes
        return NoRoom(
            f"token {self._token!r} has {most:,} bytes of rows that are not read, and no more are "
            "allowed; read or cancel its other queries, ask for fewer rows, or raise `result` in "
            "[service.limits]"
        )
