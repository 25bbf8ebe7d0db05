"""A process that tries candidates out: a task and candidates come in, trials go out, pickled."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from queryard.core.errors import QueryardError

from .what_if import Profile, Trial

_LENGTH = struct.Struct("!Q")
# How politely a worker asks for a core.
NICE = 10


class Request(NamedTuple):
    """What to do with candidates, as a pickled function of them and of `rest`."""

    task: bytes
    candidates: Mapping[str, Profile]


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
    while True:
        try:
            request: Request = read(source)
        except EOFError:
            return
        pace = _Pace(share)
        answer: list[Trial] | str
        try:
            answer = pickle.loads(request.task)(request.candidates, rest=pace.rest)
        except QueryardError as error:
            answer = str(error)
        except Exception as error:
            answer = f"a candidate could not be tried out ({type(error).__name__}: {error})"
        write(sink, answer)


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
