"""Candidates tried out in other processes, beside the one that decides."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler

from .processes import Allowance, Process
from .trials import Profile, Trial, try_out


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
        self._allowance = Allowance(share)
        self._processes: list[Process] = []
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
        requests = [partial(try_out, bare, part, **given) for part in dealt]
        with self._lock:
            while len(self._processes) < count:
                self._processes.append(Process(self._allowance))
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

    def _ask(self, number: int, request: partial[list[Trial]]) -> list[Trial]:
        for attempt in (1, 2):
            worker = self._processes[number]
            try:
                found: list[Trial] = worker.ask(request).found
                return found
            except (OSError, EOFError) as error:
                if worker.killed:
                    raise QueryardError("the trial was given up") from None
                worker.close()
                if attempt == 2:
                    raise QueryardError(f"a worker of the portfolio died twice: {error}") from error
                self._processes[number] = Process(self._allowance)
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
