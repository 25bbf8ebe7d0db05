"""A process that tries candidates out, seen from both sides.

Not `multiprocessing`: it runs the user's program again in every child unless that is guarded, or
forks a process that has threads. A worker is a Python process that runs `serve` and ends when its
input does, so that none outlives the process that started it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from queryard.core.errors import QueryardError

# What a worker runs; the first argument is the folder of the package.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from queryard.portfolio.processes import serve
serve(float(sys.argv[2]), int(sys.argv[3]))
"""
CLOSE_S = 2.0
# Workers give way to all else.
NICE = 10
# Garbage is collected between trials, once there are so many objects.
GARBAGE = 500_000


class Answer(NamedTuple):
    """What a worker has found, and the processor seconds it has used since it began."""

    found: Any
    cpu_s: float


class Process:
    """One worker. It is asked by one thread at a time; another may kill it."""

    def __init__(self, share: float = 1.0, nice: int = NICE) -> None:
        self.killed = False
        place = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, place, repr(share), str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float | None:
        """The processor seconds it has used since it began; None where that cannot be seen."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
            used = stat.rpartition(")")[2].split()
            return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    def ask(self, request: Callable[..., Any]) -> Answer:
        """Have a function called there; OSError or EOFError if the worker dies meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        sink = _Sink(self._process.stdin)
        try:
            pickle.dump(request, sink, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except ValueError as error:
            raise EOFError(f"it was ended ({error})") from error  # the pipe is closed
        except pickle.UnpicklingError as error:
            raise EOFError(f"its answer cannot be read ({error})") from error
        if not isinstance(answer, Answer):
            raise EOFError(f"its answer is none ({type(answer).__name__})")
        if isinstance(answer.found, str):
            raise QueryardError(answer.found)
        return answer

    def kill(self) -> None:
        """End it at once, also if it is stopped or hangs."""
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


class _Sink:
    """Writes piece by piece, so that other threads of this process run between the pieces."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return self._stream.write(data)


def ready(rest: Callable[[], None]) -> str | None:
    """A request by which is seen that a worker has started."""
    return None


def serve(share: float, nice: int) -> None:
    """In a worker: answer requests until the input ends, with at most a share of a core."""
    with contextlib.suppress(OSError):
        os.nice(nice)
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # A print by mistake must not end up among the answers.
    sys.stdout = sys.stderr
    # In the middle of a trial there is little garbage, and looking for it takes long.
    gc.disable()
    while True:
        try:
            request = pickle.load(source)
        except EOFError:
            return
        pace = _Pace(share)
        found: Any
        try:
            found = request(rest=pace.rest)
        except QueryardError as error:
            found = str(error)
        except Exception as error:
            found = f"a candidate could not be tried out ({type(error).__name__}: {error})"
        try:
            pickle.dump(Answer(found, time.process_time()), sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
        except BrokenPipeError:
            os._exit(1)  # nothing waits for it any more, and there is nothing to flush
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
