"""Rows that lie at other places: asked for, and awaited.

A node keeps what its tasks have made, in memory and in files, and hands out what it is asked for: a
partition without the others, and nothing that is read where it was made. Answers travel through
Ray, large ones through its object store; there they lie only until they are read.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Piece, PieceLost

from .messages import Gone, Shared, Wanted
from .packing import carry_beside

# So many bytes are asked for at once, and as a part of the object store; and so many times, by one
# task.
ASK_BYTES, ASK_SHARE = 16 << 20, 1 / 32
MOST_UNDER_WAY = 4
# Answers are read where they lie, in the object store, up to this part of it by one process.
PINNED_SHARE = 1 / 8
# How often a task that waits for rows looks whether it must stop.
_LOOK_S = 0.1
# How soon to ask again a node that could not be reached.
_AGAIN_S = 0.2
# An answer that is here is read at once; one that has gone again meanwhile is waited for anew.
_GET_S = 1.0


class Pins:
    """Answers that are read where they lie; those beyond `most_bytes` are copied.

    A process has one: together its tasks must not keep the object store full. Any thread may call
    it.
    """

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._bytes = 0
        # Added to without the lock: buffers are freed anywhere, also under it.
        self._freed: deque[int] = deque()

    @property
    def bytes(self) -> int:
        """What is read where it lies now."""
        with self._lock:
            return self._counted()

    def _counted(self) -> int:
        while self._freed:
            self._bytes -= self._freed.popleft()
        return self._bytes

    def kept(self, answer: pa.Buffer, copied: Callable[[memoryview], None]) -> pa.Buffer:
        """The answer where it lies; or a copy, so that the object store need not keep it.

        `copied` is told of the copy, which is memory of this process.
        """
        with self._lock:
            pins = self._counted() + answer.size <= self._most_bytes
            self._bytes += answer.size if pins else 0
        if not pins:
            copy = memoryview(bytearray(answer))
            copied(copy)
            return pa.py_buffer(copy)
        # What reads the buffer keeps this view, not the Python object around the buffer.
        view = memoryview(answer)
        weakref.finalize(view, self._freed.append, answer.size).atexit = False
        return pa.py_buffer(view)


class Peers:
    """The processes at other nodes, by the names of nodes. Any thread may call it."""

    def __init__(self, ray: Any, store_bytes: float) -> None:
        """`store_bytes` is how large the object store is here."""
        self.ray = ray
        carry_beside(ray.ObjectRef, ray.actor.ActorHandle)
        self.ask_bytes = max(1, int(min(ASK_BYTES, store_bytes * ASK_SHARE)))
        self.pins = Pins(store_bytes * PINNED_SHARE)
        self._actors: dict[str, Any] = {}

    def meet(self, name: str, actor: Any) -> None:
        """A node has joined."""
        self._actors[name] = actor.rows.options(concurrency_group="rows")

    def lose(self, name: str) -> None:
        """A node is gone, and its name will not be used again."""
        self._actors.pop(name, None)

    def knows(self, name: str) -> bool:
        return name in self._actors

    def ask(self, name: str, query: str, wanted: tuple[Wanted, ...]) -> Any:
        """A reference to the answer; None if there is no such node any more."""
        rows = self._actors.get(name)
        return None if rows is None else rows.remote(query, wanted)


@dataclass(slots=True, eq=False)
class Ask:
    """Rows of one holder that are asked for at once; `places` is where each piece belongs.

    What lies in an object that was put has no holder: only Ray knows whether it is lost.
    """

    holder: str
    places: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    bytes: int = 0
    # Where the answer will be: known before if it was asked for ahead, or was put for all.
    answer: Any = None

    def add(self, place: int, piece: Piece, wanted: Wanted, size_bytes: int) -> None:
        self.places.append(place)
        self.pieces.append(piece)
        self.wanted.append(wanted)
        self.bytes += size_bytes


def asks_for(pieces: Iterable[tuple[int, Piece]], most_bytes: int) -> list[Ask]:
    """What to ask of which node, so many bytes at once; pieces come with their places."""
    found: list[Ask] = []
    filling: dict[str, Ask] = {}
    for place, piece in pieces:
        for wanted, size_bytes in _cut(piece, most_bytes):
            ask = filling.get(piece.holder)
            if ask is None or ask.bytes + size_bytes > most_bytes:
                ask = filling[piece.holder] = Ask(piece.holder)
                found.append(ask)
            ask.add(place, piece, wanted, size_bytes)
    return found


def _cut(piece: Piece, most_bytes: int) -> Iterable[tuple[Wanted, int]]:
    """The whole piece; or several stretches, if it is large."""
    number = max(1, min(-(-piece.bytes // most_bytes), piece.rows))
    for each in range(number):
        first, end = each * piece.rows // number, (each + 1) * piece.rows // number
        wanted = Wanted(piece.key, piece.part, piece.ref, first, end - first)
        yield wanted, piece.bytes // number


class Asking:
    """What one task asks for. Answers are taken as they come, a few at a time."""

    def __init__(self, peers: Peers, query: str, cancelled: Cancellation | None) -> None:
        self._peers = peers
        self._ray = peers.ray
        self._query = query
        self._cancelled = cancelled
        self._under_way: dict[Any, list[Ask]] = {}

    def answers(self, asks: Sequence[Ask]) -> Iterable[tuple[Ask, pa.Buffer]]:
        """Each with its answer, in any order; raises `PieceLost`."""
        waiting = deque(asks)
        while waiting or self._under_way:
            while waiting and len(self._under_way) < MOST_UNDER_WAY:
                self._send(waiting.popleft())
            for answer in self._ready():
                asked = self._under_way.pop(answer)
                found = self._got(answer, asked)
                if found is None:
                    waiting.extend(asked)
                elif isinstance(found, Shared):
                    self._under_way.setdefault(found.ref, []).extend(asked)
                else:
                    for ask in asked:
                        yield ask, found

    def _send(self, ask: Ask) -> None:
        if ask.answer is None:
            ask.answer = self._peers.ask(ask.holder, self._query, tuple(ask.wanted))
            if ask.answer is None:
                raise PieceLost(ask.pieces)
        self._under_way.setdefault(ask.answer, []).append(ask)

    def _ready(self) -> list[Any]:
        """Answers that are at this node; a node is told at once that a place is gone."""
        if self._cancelled is not None:
            self._cancelled.check()
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=_LOOK_S)
        if not ready:
            asks = [ask for asked in self._under_way.values() for ask in asked]
            lost = [ask for ask in asks if ask.holder and not self._peers.knows(ask.holder)]
            if lost:
                raise PieceLost(piece for ask in lost for piece in ask.pieces)
        return list(ready)

    def _got(self, answer: Any, asked: list[Ask]) -> Any:
        """The answer; None if it is not there after all, and is to be waited or asked for again."""
        errors = self._ray.exceptions
        pieces = [piece for ask in asked for piece in ask.pieces]
        try:
            found = self._ray.get(answer, timeout=_GET_S)
        except errors.GetTimeoutError:
            return None  # the object store has let go of it
        except errors.ActorUnavailableError:
            time.sleep(_AGAIN_S)
            for ask in asked:
                ask.answer = None
            return None
        except errors.RayError as error:
            # Whatever it was, the task that asks is not at fault; others make the rows again.
            raise PieceLost(pieces, _said(error)) from None
        if isinstance(found, Gone):
            raise PieceLost(piece for piece in pieces if piece.key in found.keys)
        return found


def _said(error: BaseException) -> str:
    """What Ray says; of an error at the node that was asked, what that was."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
