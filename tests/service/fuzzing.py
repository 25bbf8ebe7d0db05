"""What holds for each of many malformed messages: an answer soon, and nothing that is kept."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from queryard.service.observing.memory import resident_bytes

# Processor time of all threads, so that a busy machine is no reason to fail.
MESSAGE_S = 1.0
MORE_OBJECTS = 1_000
MORE_BYTES = 16 << 20
# A server keeps its ended queries for a while, and has threads that allocate.
SERVER_BYTES = 64 << 20


class TooSlow(BaseException):
    """A message takes too long; no `except Exception` of the code under test stops it."""


@dataclass
class Fuzzed:
    """How a run went; what grew did so between its middle and its end."""

    took_s: float = 0.0
    slowest_s: float = 0.0
    more_objects: int = 0
    more_bytes: int = 0

    def check_codec(self) -> None:
        assert self.slowest_s < MESSAGE_S, self
        assert self.more_objects < MORE_OBJECTS, self
        assert self.more_bytes < MORE_BYTES, self

    def check_server(self) -> None:
        assert self.slowest_s < MESSAGE_S, self
        assert self.more_bytes < SERVER_BYTES, self


def fuzz(messages: Iterable[bytes], number: int, answer: Callable[[bytes], object]) -> Fuzzed:
    """Hand messages to a codec or a server; what it raises is raised with its message."""
    found = Fuzzed()
    began_s = time.monotonic()
    with _alarm() as again:
        for turn, data in zip(range(number), messages, strict=False):
            if turn == number // 2:
                objects, held_bytes = _held()
            again()
            start_s = time.process_time()
            try:
                answer(data)
            except BaseException as error:
                error.add_note(f"the message: {data.hex()}")
                raise
            found.slowest_s = max(found.slowest_s, time.process_time() - start_s)
        more_objects, more_bytes = _held()
    found.more_objects, found.more_bytes = more_objects - objects, more_bytes - held_bytes
    found.took_s = time.monotonic() - began_s
    return found


@contextmanager
def _alarm() -> Iterator[Callable[[], object]]:
    """A call of what is given sets the alarm; it goes off in the code that takes too long."""

    def ring(_signal: int, _frame: object) -> None:
        raise TooSlow(f"more than {MESSAGE_S:g} s of processor time for one message")

    before = signal.signal(signal.SIGPROF, ring)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_PROF, MESSAGE_S)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _held() -> tuple[int, int]:
    """Blocks of small objects of Python, exact, and memory of the process, rough."""
    gc.collect()
    return sys.getallocatedblocks(), resident_bytes()
