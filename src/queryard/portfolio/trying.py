"""Where candidates are tried out: in this process, or in others (`Workers`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from queryard.core.scheduler import Scheduler

from .rehearsal import Scene, rehearse
from .what_if import Profile, Trial, Worlds, try_out


class Tries(Protocol):
    """Tries candidates out on one queue, again and again (see `what_if.try_out`)."""

    def __call__(self, candidates: Mapping[str, Profile], *, worlds: Worlds) -> list[Trial]: ...


class Trying(Protocol):
    """Tries candidates out on a queue as it is now, and on the past."""

    def over(self, scheduler: Scheduler, **given: Any) -> Tries: ...

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]: ...


class Here:
    """In this process."""

    def over(self, scheduler: Scheduler, **given: Any) -> Tries:
        return partial(try_out, scheduler, **given)

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]:
        return rehearse(scene, candidates)
