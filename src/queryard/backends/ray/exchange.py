"""Rows pass between tasks: at their node as they are, to others when they are asked for.

What a task makes stays with the process that ran it, within the memory of its query, or in files
beyond it: with the process the rows are gone. Whether they are still needed is for others to say.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Partitions, Piece, PieceLost
from queryard.engine.staged.local_exchange import LocalExchange, LocalWriter

from .messages import Gone, Shared, Wanted
from .peers import MOST_UNDER_WAY, Ask, Asking, Peers, asks_for

# Of rows that several nodes ask for, at least so many bytes are put once for all of them.
SHARED_BYTES = 1 << 20
# So many bytes are asked for ahead at most, by one query at one node.
AHEAD_BYTES = 32 << 20

Stretches = list[list[tuple[int, pa.Table]]]
"""By the place of a piece: its rows in parts, each with its first row, as they come."""


class RayExchange:
    """The way of one query, at one place, to rows at others. Any thread may call it.

    The `ref` of a piece says how to get it: the attempt that made it, at its holder; the rows
    themselves, as bytes, if they are few; or a reference to an object.
    """

    def __init__(self, peers: Peers, place: str, query: str) -> None:
        self._peers = peers
        self._ray = peers.ray
        self._place = place
        self._query = query
        self._lock = threading.Lock()
        # Objects live as long as their owner holds a reference.
        self._held: dict[Any, Any] = {}
        # By key and part: what a later attempt has made takes the place of what is asked for.
        self._ahead: dict[tuple[str, int | None], tuple[Piece, Ask]] = {}
        self._ahead_bytes = 0

    @property
    def place(self) -> str:
        return self._place

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> LocalWriter:
        raise AssertionError(f"{self._place} runs no tasks")

    def publish(self, key: str, rows: pa.Table) -> Piece:
        ref = self._held[key] = self.put(as_stream(rows))
        return Piece(key, None, self._place, rows.num_rows, rows.nbytes, ref)

    def put(self, value: Any) -> Any:
        """An object in the store, which is lost with this process."""
        return self._ray.put(value)

    def fetch(self, pieces: Sequence[Piece], cancelled: Cancellation | None = None) -> pa.Table:
        wanted = [piece for piece in pieces if piece.rows] or [pieces[0]]
        found: Stretches = [[] for _ in wanted]
        elsewhere: list[tuple[int, Piece]] = []
        asks: list[Ask] = []
        for place, piece in enumerate(wanted):
            if isinstance(piece.ref, bytes):
                told = of_stream(pa.py_buffer(piece.ref)).slice(0, piece.rows)
                found[place].append((0, told))
            elif (here := self._here(piece)) is not None:
                found[place].append((0, here))
            elif (ready := self._under_way(piece)) is not None:
                asks.append(ready)
                ready.places = [place]
            else:
                elsewhere.append((place, piece))
        asks += asks_for(elsewhere, self._peers.ask_bytes)
        self._take(asks, found, cancelled)
        return _in_order(found)

    def in_turn(self, pieces: Iterable[Piece]) -> Iterator[pa.Table]:
        """As `fetch`, some stretches of a large piece at a time: no more is held at once."""
        for piece in pieces:
            if not isinstance(piece.ref, int):
                yield self.fetch([piece])
                continue
            asks = asks_for([(0, piece)], self._peers.ask_bytes)
            for first in range(0, len(asks), MOST_UNDER_WAY):
                found: Stretches = [[]]
                self._take(asks[first : first + MOST_UNDER_WAY], found, None)
                yield _in_order(found)

    def _take(self, asks: Sequence[Ask], found: Stretches, cancelled: Cancellation | None) -> None:
        """Wait for answers, and put them where they belong."""
        for ask, answer in Asking(self._peers, self._query, cancelled).answers(asks):
            rows = of_stream(self._peers.pins.kept(answer, self._count_copy))
            first = 0
            for place, each in zip(ask.places, ask.wanted, strict=True):
                found[place].append((each.first, rows.slice(first, each.rows)))
                first += each.rows

    def _count_copy(self, copy: memoryview) -> None:
        """Rows were copied into the memory of this process."""

    def _here(self, piece: Piece) -> pa.Table | None:
        """The rows of a piece that lies at this place."""
        return None

    def _under_way(self, piece: Piece) -> Ask | None:
        """Where the rows of a piece are, or will be without being asked for again."""
        if not isinstance(piece.ref, int):
            ask = Ask("", answer=piece.ref)
            ask.add(0, piece, Wanted(piece.key, None, 0, 0, piece.rows), piece.bytes)
            return ask
        with self._lock:
            known = self._ahead.get((piece.key, piece.part))
            if known is None or known[0] != piece:
                return None
            self._forget_ahead(piece)
            return known[1]

    def _forget_ahead(self, piece: Piece) -> None:
        """Let go of rows of any attempt that were asked for ahead; under the lock."""
        known = self._ahead.pop((piece.key, piece.part), None)
        self._ahead_bytes -= 0 if known is None else known[1].bytes

    def ask_ahead(self, pieces: Iterable[Piece]) -> None:
        """A task will read these; have them on their way, as far as that is not too much."""
        for piece in pieces:
            asks = asks_for([(0, piece)], self._peers.ask_bytes)
            with self._lock:
                known = self._ahead.get((piece.key, piece.part))
                if (known and known[0] == piece) or piece.holder == self._place:
                    continue
                self._forget_ahead(piece)
                if len(asks) > 1 or self._ahead_bytes + piece.bytes > AHEAD_BYTES:
                    continue
                (ask,) = asks
                ask.answer = self._peers.ask(ask.holder, self._query, tuple(ask.wanted))
                if ask.answer is None:
                    continue  # its node is gone; the task will be told
                self._ahead[piece.key, piece.part] = piece, ask
                self._ahead_bytes += ask.bytes
            # It is not waited for: Ray begins to bring it here.
            self._ray.wait([ask.answer], num_returns=1, timeout=0)

    def lose(self, place: str) -> None:
        """A place is gone: tasks that wait for rows from there need not find out themselves."""
        self._peers.lose(place)
        with self._lock:
            for piece, _ in list(self._ahead.values()):
                if piece.holder == place:
                    self._forget_ahead(piece)

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._held.pop(key, None)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        """Let go of all objects."""
        with self._lock:
            self._held.clear()
            self._ahead.clear()
            self._ahead_bytes = 0


class NodeExchange(RayExchange):
    """What the tasks of a query have made at one node, and the way to the rest."""

    def __init__(
        self, peers: Peers, place: str, query: str, memory_bytes: float, temp: Path | None = None
    ) -> None:
        """Rows beyond `memory_bytes` go to files under `temp`."""
        super().__init__(peers, place, query)
        self._own = LocalExchange(memory_bytes, temp, place)
        self._asked: Counter[tuple[Wanted, ...]] = Counter()

    @property
    def objects(self) -> int:
        """How many outputs and objects are held."""
        with self._lock:
            return len(self._own.store) + len(self._held) + len(self._ahead)

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> LocalWriter:
        return self._own.open(key, attempt, schema, partitions)

    def _count_copy(self, copy: memoryview) -> None:
        self._own.store.count_until_freed(copy)

    def _here(self, piece: Piece) -> pa.Table | None:
        if piece.holder != self._place:
            return None
        if isinstance(piece.ref, int):
            rows = self._own.rows_of(piece, piece.ref)
        else:
            rows = self._own.fetch([piece])
        return rows if piece.rows else rows.slice(0, 0)

    def told(self, pieces: Sequence[Piece], attempt: int) -> tuple[Piece, ...]:
        """Pieces of a task of this node as others can ask for them."""
        return tuple(piece._replace(ref=attempt) for piece in pieces)

    def rows(self, wanted: tuple[Wanted, ...]) -> pa.Buffer | Shared | Gone:
        """What another place asks for."""
        gone = []
        tables = []
        for each in wanted:
            piece = Piece(each.key, each.part, self._place, 0, 0)
            try:
                held = self._own.rows_of(piece, each.attempt)
                tables.append(held.slice(each.first, each.rows))
            except PieceLost:
                gone.append(each.key)
        if gone:
            return Gone(tuple(gone))
        return self._shared(wanted, pa.concat_tables(tables))

    def _shared(self, wanted: tuple[Wanted, ...], rows: pa.Table) -> pa.Buffer | Shared:
        """An answer; what is asked for a second time lies in the object store from then on."""
        if rows.nbytes < SHARED_BYTES:
            return as_stream(rows)
        with self._lock:
            self._asked[wanted] += 1
            if self._asked[wanted] == 1:
                return as_stream(rows)
            if wanted not in self._held:
                self._held[wanted] = self.put(as_stream(rows))
            return Shared(self._held[wanted])

    def drop(self, keys: Iterable[str]) -> None:
        self._own.drop(keys)

    def settle(self) -> None:
        self._own.settle()

    def close(self) -> None:
        super().close()
        self._own.close()


def _in_order(found: Stretches) -> pa.Table:
    parts = (sorted(each, key=itemgetter(0)) for each in found)
    return pa.concat_tables(table for each in parts for _, table in each)


def as_stream(rows: pa.Table) -> pa.Buffer:
    """Rows as bytes, without what lies beside slices."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def of_stream(stream: pa.Buffer) -> pa.Table:
    """The rows, where they lie."""
    return pa.ipc.open_stream(stream).read_all()
