"""DuckDB instances for queries that only read, kept warm between queries.

Each started query has an instance to itself, because threads are lent to instances. The memory
limits of all of them together, idle ones too, never exceed the budget: an idle instance keeps
its cached data only until a query needs the memory.

An instance that was sealed serves queries of the same seal only (`queryard.engine.sealing.access`).
One that was never used can still be sealed, which takes a millisecond; opening one takes many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import QueryFailed
from ..sealing.access import Seal
from .attached import WAIT_S, Attached, SearchPath
from .footers import FooterCache
from .instance import MIN_MEMORY_BYTES, Connection, Instance
from .views import Views

ROOM_S = 10.0
# A further instance is opened only while fewer than this many per slot are idle.
IDLE_PER_SLOT = 3
# … for each of the seals of idle instances, up to this many.
MOST_KINDS = 4
# How many instances of one size are kept ready.
SPARES = 2


class PooledInstance:
    """An instance, a connection to it, what it has as views and attached, and knows of files."""

    def __init__(self, slots: int, memory_bytes: int, temp: Path, seal: Seal | None = None) -> None:
        self.instance = Instance(slots, memory_bytes, temp)
        self.connection = Connection(self.instance)
        self.is_new = True
        """Whether nothing was made in it yet."""
        self.views = Views()
        self.attached = Attached()
        self.search_path = SearchPath()
        self.footers = FooterCache()
        if seal is not None:
            self.close_to_others(seal)

    @property
    def seal(self) -> Seal | None:
        return self.instance.seal

    def serves(self, seal: Seal | None) -> bool:
        """Whether it can run a query of this seal."""
        return self.seal == seal or (self.seal is None and self.is_new)

    def close_to_others(self, seal: Seal) -> None:
        """Seal it; it must be new."""
        if self.seal is None:
            self.instance.close_to_others(seal)
            self.attached = Attached(wait_s=WAIT_S)
        self.is_new = False

    def close(self) -> None:
        self.connection.close()
        self.instance.close()
        self.attached.claims.release()


class InstancePool:
    """Hands out instances; at most `memory_bytes` of limits at any time."""

    def __init__(self, slots: int, memory_bytes: int, temp: Path) -> None:
        self._slots = slots
        self._memory_bytes = memory_bytes
        self._temp = temp
        self._lock = threading.Condition(threading.RLock())
        self._idle: list[PooledInstance] = []
        self._used_bytes = 0  # of those handed out
        self._closed = False

    def take(self, memory_bytes: int, seal: Seal | None = None) -> PooledInstance:
        """An instance with this limit; the caller has made sure that the budget allows it."""
        memory_bytes = max(memory_bytes, MIN_MEMORY_BYTES)
        with self._lock:
            if self._closed:
                raise QueryFailed("the session is closed")
            self._await_room(memory_bytes)
            self._used_bytes += memory_bytes
            chosen = self._best_idle(memory_bytes, seal)
            self._make_room()
            if chosen is not None and not chosen.instance.set_memory(memory_bytes):
                chosen.close()
                chosen = None
        try:
            # Without the lock: other queries are not to wait while one is opened.
            if chosen is None:
                chosen = PooledInstance(self._slots, memory_bytes, self._temp)
            if seal is not None:
                chosen.close_to_others(seal)
            chosen.is_new = False
            chosen.attached.claims.on_wanted = partial(self._yield, chosen)
        except BaseException:
            self.take_back(memory_bytes)
            if chosen is not None:
                chosen.close()
            raise
        return chosen

    def _best_idle(self, memory_bytes: int, seal: Seal | None) -> PooledInstance | None:
        """The instance used last has the warmest caches; another limit would evict them.

        So a further instance is opened while memory allows, and only a few sizes are requested.
        """
        fit = [idle for idle in self._idle if idle.serves(seal)]
        same = [idle for idle in fit if idle.instance.memory_bytes == memory_bytes]
        # New ones are kept for a seal that has none of its own yet.
        same.sort(key=lambda idle: not idle.is_new)
        if not same and self._may_have_more(0):
            return None
        if not fit:
            if self._idle:  # one that cannot serve makes way
                self._idle.pop(0).close()
            return None
        chosen = same[-1] if same else fit[-1]
        self._idle.remove(chosen)
        return chosen

    def _may_have_more(self, memory_bytes: int) -> bool:
        """Whether one more instance of this size fits the limits on count and memory."""
        # Instances of one seal are of no use to another.
        kinds = min(MOST_KINDS, len({idle.seal for idle in self._idle}) or 1)
        few = len(self._idle) < IDLE_PER_SLOT * self._slots * kinds
        return few and self._excess_bytes() + memory_bytes <= 0

    def open_spare(
        self,
        memory_bytes: int,
        prepare: Callable[[PooledInstance], None] | None,
    ) -> None:
        """Open one more idle instance of this size, unless there are enough or memory is short.

        One that is not prepared can serve any seal.
        """
        with self._lock:
            if not self.lacks(memory_bytes, prepare is None):
                return
            # Count the memory before opening, so that no other query takes it meanwhile.
            self._used_bytes += memory_bytes
        spare: PooledInstance | None = None
        try:
            spare = PooledInstance(self._slots, memory_bytes, self._temp)
            if prepare is not None:
                spare.is_new = False
                prepare(spare)
        finally:
            if spare is None:
                self.take_back(memory_bytes)
            else:
                self.give_back(spare)

    def lacks(self, memory_bytes: int, new: bool = False) -> bool:
        """Whether too few instances of this size are idle and memory for one more is free.

        Those count that any query can have which is not sealed, or with `new`, that any can have.
        """
        with self._lock:
            same = sum(
                idle.instance.memory_bytes == memory_bytes
                and (idle.is_new if new else idle.seal is None)
                for idle in self._idle
            )
            few = same < SPARES and not self._closed
            return few and self._may_have_more(memory_bytes)

    def give_back(self, used: PooledInstance) -> None:
        with self._lock:
            self._used_bytes -= used.instance.memory_bytes
            self._lock.notify_all()
            if self._closed:
                used.close()
            else:
                self._idle.append(used)

    def _yield(self, instance: PooledInstance, path: str) -> None:
        """A database that it has attached is to be written: let go, unless a query uses it."""
        with self._lock:
            if instance not in self._idle:
                return
            try:
                instance.attached.let_go(instance.connection)
            except QueryFailed:
                self._idle.remove(instance)
                instance.close()

    def discard(self, used: PooledInstance) -> None:
        """Take back one that is not fit for another query."""
        self.take_back(used.instance.memory_bytes)
        used.close()

    def lend(self, memory_bytes: int) -> None:
        """Give up memory for a while to an instance that is not of the pool."""
        with self._lock:
            if self._closed:
                raise QueryFailed("the session is closed")
            self._await_room(memory_bytes)
            self._used_bytes += memory_bytes
            self._make_room()

    def take_back(self, memory_bytes: int) -> None:
        """What was lent is free again."""
        with self._lock:
            self._used_bytes -= memory_bytes
            self._lock.notify_all()

    def _await_room(self, memory_bytes: int) -> None:
        """Wait: a query that has ended for the kernel may still hold memory to hand over rows."""
        most = self._memory_bytes - memory_bytes
        self._lock.wait_for(lambda: self._closed or self._used_bytes <= most, ROOM_S)

    def _make_room(self) -> None:
        """Shrink or close idle instances, the least recently used first."""
        for idle in list(self._idle):
            if (excess := self._excess_bytes()) <= 0:
                return
            kept = idle.instance.memory_bytes - excess
            if kept < MIN_MEMORY_BYTES or not idle.instance.set_memory(kept):
                self._idle.remove(idle)
                idle.close()

    def _excess_bytes(self) -> int:
        """What the limits of all instances are above the budget."""
        idle = sum(other.instance.memory_bytes for other in self._idle)
        return self._used_bytes + idle - self._memory_bytes

    @property
    def limits_bytes(self) -> int:
        """The sum of the limits of all instances."""
        with self._lock:
            return self._memory_bytes + self._excess_bytes()

    def close(self) -> None:
        """Close what is idle; what is in use closes when it comes back."""
        with self._lock:
            self._closed = True
            for idle in self._idle:
                idle.close()
            self._idle.clear()
