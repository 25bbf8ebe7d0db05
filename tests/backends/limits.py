"""Limits of tests: a time after which a run ends, with every process that it has started."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import hangs

from bench.ray.processes import descendants

LIMIT_S = 120.0
LOOK_S = 1.0


@contextlib.contextmanager
def hard_limit(seconds: float) -> Iterator[None]:
    """End the run if this takes longer: all stacks are shown, all processes below are killed."""

    def end() -> None:
        hangs.show_stacks()
        for process in descendants(os.getpid()):
            process.kill()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Memory:
    """The most memory that the processes below this one have used at once, by looks at them.

    Pages that processes share count once in all (`Pss`); those of the object store are in it.
    """

    def __init__(self, others: set[int]) -> None:
        self.most_bytes = 0
        self._others = others
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="test-memory", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            found = {process.pid for process in descendants(os.getpid())} - self._others
            self.most_bytes = max(self.most_bytes, sum(map(_memory_bytes, found)))


def _memory_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
