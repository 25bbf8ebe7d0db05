"""A process that tries candidates out, seen from both sides.

Not `multiprocessing`: it runs the user's program again in every child unless that is guarded, or
forks a process that has threads. A worker is a Python process that runs `serve` and ends when its
input does, so that none outlives the process that started it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
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

try:
    import resource
except ImportError:  # Windows: the system holds no worker to a limit
    resource = None  # type: ignore[assignment]

# What a worker runs; the first argument is the folder of the package.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from queryard.portfolio.processes import serve
serve(sys.argv[2], int(sys.argv[3]))
"""
CLOSE_S = 2.0
# How long the end of a worker is waited for whose pipe has ended.
ENDS_S = 1.0
# Workers give way to all else.
NICE = 10
# Garbage is collected between trials, once there are so many objects.
GARBAGE = 500_000


class Allowance(NamedTuple):
    """What a worker may use: of a core, for one request, and of memory.

    The first `at_once_s` processor seconds of a request may be used at once, and more at a `share`
    of a core: the worker rests between steps. A worker that uses `cpu_s` for one request is ended
    by the system, and one that has `memory_bytes` gets no more.
    """

    share: float = 1.0
    at_once_s: float = 0.0
    cpu_s: float = math.inf
    memory_bytes: float = math.inf

    def rest_s(self, used_s: float, passed_s: float) -> float:
        """How long to rest, after so many processor seconds within so much time.

        >>> half = Allowance(share=0.5, at_once_s=0.25)
        >>> half.rest_s(0.25, 0.25), half.rest_s(0.5, 0.5), half.rest_s(0.5, 2.0)
        (0.0, 0.25, 0.0)
        """
        beyond_s = max(0.0, used_s - self.at_once_s)
        return max(0.0, used_s - beyond_s + beyond_s / self.share - passed_s)


ALL = Allowance()
"""A whole core, without limits."""


class Answer(NamedTuple):
    """What a worker has found, and the processor seconds it has used since it began."""

    found: Any
    cpu_s: float


class Process:
    """One worker. It is asked by one thread at a time; another may kill it."""

    def __init__(self, allowance: Allowance = ALL, nice: int = NICE) -> None:
        self.killed = False
        # What it had used when it ended.
        self._used_s: float | None = None
        place = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, place, json.dumps(allowance), str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float | None:
        """The processor seconds it has used since it began; None where that cannot be seen."""
        if self._used_s is not None:
            return self._used_s
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
        except (EOFError, pickle.UnpicklingError) as error:
            raise EOFError(self._how_it_ended(error)) from error
        if not isinstance(answer, Answer):
            raise EOFError(f"its answer is none ({type(answer).__name__})")
        if isinstance(answer.found, str):
            raise QueryardError(answer.found)
        return answer

    def _how_it_ended(self, error: Exception) -> str:
        """What is to be said of a worker without an answer that can be read."""
        self._used_s = self.cpu_s()  # while it can be seen
        try:
            code = self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            return f"its answer cannot be read ({error})"
        if code >= 0:
            return f"it ended with code {code}"
        name = signal.Signals(-code).name
        why = ", since it used too much processor time" if name == "SIGXCPU" else ""
        return f"it was ended by {name}{why}"

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


def serve(given: str, nice: int) -> None:
    """In a worker: answer requests until the input ends, with an allowance (JSON)."""
    allowance = Allowance(*json.loads(given))
    with contextlib.suppress(OSError):
        os.nice(nice)
    _limit("RLIMIT_AS", allowance.memory_bytes)
    _limit("RLIMIT_CORE", 0)  # one that is ended leaves no file
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
        except MemoryError:
            os._exit(1)  # what is left of the request cannot be told from the next one
        _limit("RLIMIT_CPU", time.process_time() + allowance.cpu_s)
        pace = _Pace(allowance)
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
    """Sleeps so that no more of a core is used than may be."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._began_s = time.perf_counter()
        self._began_cpu_s = time.process_time()

    def rest(self) -> None:
        used_s = time.process_time() - self._began_cpu_s
        rest_s = self._allowance.rest_s(used_s, time.perf_counter() - self._began_s)
        if rest_s > 0:
            time.sleep(rest_s)


def _limit(name: str, most: float) -> None:
    """Have the system hold this process to a limit, where it knows one."""
    if most == math.inf or not hasattr(resource, name):
        return
    what = getattr(resource, name)
    _, hard = resource.getrlimit(what)
    soft = math.ceil(most) if hard == resource.RLIM_INFINITY else min(math.ceil(most), hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))
