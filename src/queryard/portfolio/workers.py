"""Processes of our own that try candidates out, beside the one that decides.

Not `multiprocessing`: it runs the user's program again in every child unless that is guarded. A
worker is a Python of its own (`worker`), which ends when its input does, so that none outlives
whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler

from .rehearsal import Scene, rehearse
from .trying import Tries
from .what_if import RIGHT, Profile, Trial, Worlds, try_out
from .worker import Request, read, write

# What a worker runs; the first argument is where the package lies.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from queryard.portfolio.worker import serve
serve(float(sys.argv[2]))
"""
CLOSE_S = 2.0


class TooLate(QueryardError):
    """Trials took longer than there was time."""


class Workers:
    """So many processes (one a core), started when needed; each takes at most `share` of a core."""

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

    def over(self, scheduler: Scheduler, **given: Any) -> Tries:
        """As `what_if.try_out` over this queue, dealt out among the workers.

        The queue is sent to each of them once.
        """
        return partial(self._deal, _packed(partial(try_out, _bare(scheduler), **given)))

    def try_out(
        self,
        scheduler: Scheduler,
        candidates: Mapping[str, Profile],
        *,
        worlds: Worlds = RIGHT,
        within_s: float | None = None,
        **given: Any,
    ) -> list[Trial]:
        """As `what_if.try_out`; `TooLate` if it takes too long."""
        task = _packed(partial(try_out, _bare(scheduler), **given))
        return self._deal(task, candidates, within_s, worlds=worlds)

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]:
        """As `rehearsal.rehearse`, dealt out among the workers."""
        return self._deal(_packed(partial(rehearse, scene)), candidates)

    def _deal(
        self,
        task: bytes,
        candidates: Mapping[str, Profile],
        within_s: float | None = None,
        **given: Any,
    ) -> list[Trial]:
        """Every worker does it with one candidate after the other, until none is left.

        One that died is replaced, once; then its error is raised.
        """
        left = deque(Request(task, {name: of}, given) for name, of in candidates.items())
        with self._lock:
            count = min(self._count, len(left))
            while len(self._processes) < count:
                self._processes.append(_Worker(self._share))
            until_s = None if within_s is None else time.monotonic() + within_s
            found: dict[str, Trial] = {}
            with ThreadPoolExecutor(count) as threads:
                asked = [threads.submit(self._work, n, left, until_s) for n in range(count)]
                try:
                    for future in as_completed(asked):
                        found |= {trial.name: trial for trial in future.result()}
                except BaseException:
                    # Nobody waits for the others: Ctrl-C, or one of them has failed.
                    left.clear()
                    self._stop()
                    raise
            return [found[name] for name in candidates]

    def _work(self, number: int, left: deque[Request], until_s: float | None) -> list[Trial]:
        found: list[Trial] = []
        while True:
            try:
                request = left.popleft()
            except IndexError:
                return found
            found += self._ask(number, request, until_s)

    def _ask(self, number: int, request: Request, until_s: float | None) -> list[Trial]:
        for attempt in (1, 2):
            worker = self._processes[number]
            try:
                return worker.ask(request, until_s)
            except (OSError, EOFError) as error:
                if worker.killed:
                    raise QueryardError("the trial was given up") from None
                worker.close()
                self._processes[number] = _Worker(self._share)
                if until_s is not None and time.monotonic() >= until_s:
                    raise TooLate("the candidates could not be tried out in time") from None
                if attempt == 2:
                    raise QueryardError(f"a worker of the portfolio died twice: {error}") from error
        raise AssertionError("not reached")

    def _stop(self) -> None:
        """End what is under way; new processes are started for whoever asks next."""
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
    """One process, from this side."""

    def __init__(self, share: float) -> None:
        self.killed = False
        # What it was last told to do.
        self._task: bytes | None = None
        package = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(package), repr(share)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def kill(self) -> None:
        self.killed = True
        self._process.kill()
        self.close()

    def ask(self, request: Request, until_s: float | None) -> list[Trial]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        stopper = None
        if until_s is not None:
            left_s = max(0.0, until_s - time.monotonic())
            stopper = threading.Timer(left_s, self._process.kill)
            stopper.start()
        try:
            # What to do is large, and need not be said again.
            is_known = request.task is self._task
            write(self._process.stdin, request._replace(task=None) if is_known else request)
            self._task = request.task
            answer: list[Trial] | str = read(self._process.stdout)
        finally:
            if stopper is not None:
                stopper.cancel()
        if isinstance(answer, str):
            raise QueryardError(answer)
        return answer

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


def _packed(task: Callable[..., list[Trial]]) -> bytes:
    return pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)


def _bare(scheduler: Scheduler) -> Scheduler:
    """The kernel without its journal, which nobody needs there."""
    fork = scheduler.fork()
    fork.journal = None
    return fork
