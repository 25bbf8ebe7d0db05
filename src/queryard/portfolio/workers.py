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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler

from .rehearsal import Scene, rehearse
from .what_if import MOST_LAUNCHES, RIGHT, Coming, Profile, Trial, Worlds, try_out
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

    def try_out(
        self,
        scheduler: Scheduler,
        candidates: Mapping[str, Profile],
        *,
        horizon_s: float = float("inf"),
        most_launches: int = MOST_LAUNCHES,
        worlds: Worlds = RIGHT,
        coming: Sequence[Sequence[Coming]] = (),
        within_s: float | None = None,
    ) -> list[Trial]:
        """As `what_if.try_out`, dealt out among the workers; `TooLate` if it takes too long."""
        task = partial(
            try_out,
            _bare(scheduler),
            horizon_s=horizon_s,
            most_launches=most_launches,
            worlds=worlds,
            coming=coming,
        )
        return self._deal(task, candidates, within_s)

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]:
        """As `rehearsal.rehearse`, dealt out among the workers."""
        return self._deal(partial(rehearse, scene), candidates)

    def _deal(
        self,
        task: Callable[..., list[Trial]],
        candidates: Mapping[str, Profile],
        within_s: float | None = None,
    ) -> list[Trial]:
        """Every worker does it with a part of the candidates.

        One that died is replaced, once; then its error is raised.
        """
        with self._lock:
            packed = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
            dealt = [dict(list(candidates.items())[n :: self._count]) for n in range(self._count)]
            dealt = [part for part in dealt if part]
            while len(self._processes) < len(dealt):
                self._processes.append(_Worker(self._share))
            until_s = None if within_s is None else time.monotonic() + within_s
            requests = [Request(packed, part) for part in dealt]
            with ThreadPoolExecutor(len(dealt)) as threads:
                asked = [
                    threads.submit(self._ask, n, request, until_s)
                    for n, request in enumerate(requests)
                ]
                try:
                    found = {trial.name: trial for future in asked for trial in future.result()}
                except BaseException:
                    # Nobody waits for the others: Ctrl-C, or one of them has failed.
                    self._stop()
                    raise
            return [found[name] for name in candidates]

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
            write(self._process.stdin, request)
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


def _bare(scheduler: Scheduler) -> Scheduler:
    """The kernel without its journal, which nobody needs there."""
    fork = scheduler.fork()
    fork.journal = None
    return fork
