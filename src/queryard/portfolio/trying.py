"""Where candidates are tried out: in this process, or in others (`Workers`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from queryard.core.scheduler import Scheduler

from .rehearsal import Scene, rehearse
from .what_if import Profile, Trial, try_out


class Trying(Protocol):
    """Tries candidates out on the queue (see `what_if.try_out`), and on the past."""

    def try_out(
        self, scheduler: Scheduler, candidates: Mapping[str, Profile], **given: Any
    ) -> list[Trial]: ...

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]: ...


class Here:
    """In this process."""

    def try_out(
        self, scheduler: Scheduler, candidates: Mapping[str, Profile], **given: Any
    ) -> list[Trial]:
        return try_out(scheduler, candidates, **given)

    def rehearse(self, scene: Scene, candidates: Mapping[str, Profile]) -> list[Trial]:
        return rehearse(scene, candidates)
