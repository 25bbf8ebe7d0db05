"""Slots that fail: what runs on them raises now and then, where a real failure would show."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

from queryard.engine.instances.pool import InstancePool
from queryard.engine.native import NativeQuery
from queryard.engine.staged.tasks import StagedTasks
from queryard.engine.statement import Statement

MARK = "injected"
"""Part of the text of every failure that was made on purpose."""


class SlotFailed(RuntimeError):
    """A slot has failed on purpose."""


class Faults:
    """How often what fails, and how often it has."""

    def __init__(self, seed: int, rate: float) -> None:
        self.made: Counter[str] = Counter()
        self._rate = rate
        self._rng = Random(f"faults/{seed}")
        self._lock = threading.Lock()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let them happen as long as the context lasts."""
        with ExitStack() as patched:
            # A slot, between two pieces of work for a statement.
            patched.enter_context(self._before(Statement, "_serve_once", self._rate / 4))
            # A slot, as it comes to a query.
            patched.enter_context(self._before(NativeQuery, "serve", self._rate / 2))
            # The instance a query was to have.
            patched.enter_context(self._before(InstancePool, "take", self._rate / 2))
            # A task of a staged query, which is tried again.
            patched.enter_context(self._before(StagedTasks, "run", 2 * self._rate))
            yield

    @contextmanager
    def _before(self, owner: type, name: str, rate: float) -> Iterator[None]:
        real: Callable[..., Any] = getattr(owner, name)

        def sometimes(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                fails = self._rng.random() < rate
                if fails:
                    self.made[f"{owner.__name__}.{name}"] += 1
            if fails:
                raise SlotFailed(f"{MARK} failure of a slot")
            return real(*arguments, **options)

        setattr(owner, name, sometimes)
        try:
            yield
        finally:
            setattr(owner, name, real)
