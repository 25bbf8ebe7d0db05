"""A process that tries candidates out: a task and candidates come in, trials go out, pickled."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, NamedTuple

from queryard.core.errors import QueryardError

from .what_if import Profile, Trial

_LENGTH = struct.Struct("!Q")
# How politely a worker asks for a core.
NICE = 10
# So many objects may be left by trials until the garbage among them is collected.
GARBAGE = 500_000


class Request(NamedTuple):
    """What to do with candidates: a pickled function of them, of `rest` and of what is given.

    It is large; without one, the same is to be done as last time.
    """

    task: bytes | None
    candidates: Mapping[str, Profile]
    given: Mapping[str, Any]


def write(stream: IO[bytes], what: Any) -> None:
    packed = pickle.dumps(what, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(packed)))
    stream.write(packed)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("it ended without an answer")
    (length,) = _LENGTH.unpack(head)
    packed = stream.read(length)
    if len(packed) < length:
        raise EOFError("it ended in the middle of an answer")
    return pickle.loads(packed)


def serve(share: float) -> None:
    """Answer until the input ends; take no more than a share of a core."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    # Ctrl-C is for whoever started it, who then ends its input or itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # Whatever prints by mistake must not end up among the answers.
    sys.stdout = sys.stderr
    # In the middle of a trial there is little garbage, and looking for it takes long.
    gc.disable()
    task: Callable[..., list[Trial]] | None = None
    while True:
        try:
            request: Request = read(source)
        except EOFError:
            return
        pace = _Pace(share)
        answer: list[Trial] | str
        try:
            if request.task is not None:
                task = None  # whatever becomes of the new one
                task = pickle.loads(request.task)
            assert task is not None
            answer = task(request.candidates, rest=pace.rest, **request.given)
        except QueryardError as error:
            answer = str(error)
        except Exception as error:
            answer = f"a candidate could not be tried out ({type(error).__name__}: {error})"
        write(sink, answer)
        if gc.get_count()[0] > GARBAGE:
            gc.collect()


class _Pace:
    """Sleeps so that no more than a share of a core is used."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._began_s = time.perf_counter()
        self._began_cpu_s = time.process_time()

    def rest(self) -> None:
        used_s = time.process_time() - self._began_cpu_s
        ahead_s = used_s / self._share - (time.perf_counter() - self._began_s)
        if ahead_s > 0:
            time.sleep(ahead_s)
