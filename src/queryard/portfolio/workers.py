"""Processes that try candidates out, beside the one that decides.

Not `multiprocessing`: it runs the user's program again in every child unless that is guarded. A
worker is a Python process that runs `serve` and ends when its input does, so that none outlives the
process that started it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import IO, Any

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler

from .trials import Profile, Trial, try_out

# What a worker runs; the first argument is the folder of the package.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from queryard.portfolio.workers import serve
serve(float(sys.argv[2]))
"""
CLOSE_S = 2.0
_LENGTH = struct.Struct("!Q")
# Workers give way to all else.
NICE = 10
# Garbage is collected between trials, once there are so many objects.
GARBAGE = 500_000


class Workers:
    """So many processes (one per core), started when needed; each uses at most `share` of a core.

    One that dies is replaced once; then its error is raised.
    """

    def __init__(self, count: int | None = None, share: float = 1.0) -> None:
        if count is None:
            count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if count < 1:
            raise QueryardError(f"there must be at least one worker, got {count!r}")
        if not 0 < share <= 1:
            raise QueryardError(f"the share of a core must be above 0 and at most 1, got {share!r}")
        self._count = count
        self._share = share
        self._processes: list[_Worker] = []
        self._lock = threading.Lock()

    def try_out(
        self, scheduler: Scheduler, candidates: Mapping[str, Profile], **given: Any
    ) -> list[Trial]:
        """As `trials.try_out`; each worker gets its part of the candidates."""
        names = list(candidates)
        count = min(self._count, len(names))
        bare = scheduler.fork()
        bare.journal = None  # trials do not need it, and it is large
        dealt = [{name: candidates[name] for name in names[n::count]} for n in range(count)]
        requests = [
            pickle.dumps(partial(try_out, bare, part, **given), pickle.HIGHEST_PROTOCOL)
            for part in dealt
        ]
        with self._lock:
            while len(self._processes) < count:
                self._processes.append(_Worker(self._share))
            with ThreadPoolExecutor(count) as threads:
                asked = [threads.submit(self._ask, n, of) for n, of in enumerate(requests)]
                try:
                    trials = [trial for future in as_completed(asked) for trial in future.result()]
                except BaseException:
                    # Ctrl-C, or one has failed: the others need not go on.
                    self._stop()
                    raise
        found = {trial.name: trial for trial in trials}
        return [found[name] for name in names]

    def _ask(self, number: int, request: bytes) -> list[Trial]:
        for attempt in (1, 2):
            worker = self._processes[number]
            try:
                return worker.ask(request)
            except (OSError, EOFError) as error:
                if worker.killed:
                    raise QueryardError("the trial was given up") from None
                worker.close()
                if attempt == 2:
                    raise QueryardError(f"a worker of the portfolio died twice: {error}") from error
                self._processes[number] = _Worker(self._share)
        raise AssertionError("not reached")

    def _stop(self) -> None:
        """End all trials under way; the next call starts new processes."""
        for worker in self._processes:
            worker.kill()
        self._processes.clear()

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            for worker in self._processes:
                worker.close()
            self._processes.clear()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Worker:
    """One process, seen from the one that decides."""

    def __init__(self, share: float) -> None:
        self.killed = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(Path(__file__).parents[2]), repr(share)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, request: bytes) -> list[Trial]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _write(self._process.stdin, request)
        answer: list[Trial] | str = pickle.loads(_read(self._process.stdout))
        if isinstance(answer, str):
            raise QueryardError(answer)
        return answer

    def kill(self) -> None:
        self.killed = True
        self._process.kill()
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _write(stream: IO[bytes], packed: bytes) -> None:
    stream.write(_LENGTH.pack(len(packed)))
    stream.write(packed)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("it ended without an answer")
    (length,) = _LENGTH.unpack(head)
    packed = stream.read(length)
    if len(packed) < length:
        raise EOFError("it ended in the middle of an answer")
    return packed


def serve(share: float) -> None:
    """In a worker: answer requests until the input ends, with at most a share of a core."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # A print by mistake must not end up among the answers.
    sys.stdout = sys.stderr
    # In the middle of a trial there is little garbage, and looking for it takes long.
    gc.disable()
    while True:
        try:
            request = _read(source)
        except EOFError:
            return
        pace = _Pace(share)
        answer: list[Trial] | str
        try:
            answer = pickle.loads(request)(rest=pace.rest)
        except QueryardError as error:
            answer = str(error)
        except Exception as error:
            answer = f"a candidate could not be tried out ({type(error).__name__}: {error})"
        _write(sink, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
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
