"""What is looked at, what a worker is asked, and what follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from queryard.core.scheduler import Scheduler
from queryard.portfolio.arrivals import Expected
from queryard.portfolio.patterns import Pattern
from queryard.portfolio.trials import Profile

from ..estimates.forecasts import Fork


class View(Protocol):
    """What is looked at: the coordinator, on its own thread."""

    @property
    def kernel(self) -> Scheduler: ...
    def sharers(self) -> dict[str, str]: ...


@dataclass(slots=True)
class Question:
    """What a worker is asked. `left` are those of its queries that have not ended meanwhile."""

    number: int
    asked_s: float
    trigger: str
    pattern: Pattern
    fork: Fork
    queries: int
    left: set[str]
    candidates: Mapping[str, Profile]
    # How many slot-seconds a core-second takes at present.
    pace: float = 1.0
    # What is likely to arrive meanwhile.
    expected: tuple[Expected, ...] = ()

    @property
    def size(self) -> int:
        """How many queries are simulated per candidate."""
        return self.queries + len(self.expected)

    @property
    def since_s(self) -> float:
        """The time of the fork, from which candidates are simulated."""
        return self.fork.kernel.state.now


class Choice(NamedTuple):
    """A policy to be followed from now on."""

    name: str
    profile: Mapping[str, Any]
    reason: str


class Look(NamedTuple):
    """What follows from a look: a choice from memory, a question, and when to look again.

    `wants_worker` says that there would be a question, if a worker could be asked.
    """

    choice: Choice | None = None
    question: Question | None = None
    next_s: float = math.inf
    wants_worker: bool = False


class Wanted(NamedTuple):
    """What a worker was wanted for, when there was none."""

    at_s: float
    trigger: str
    queries: int
