"""Feed the record of a run to a fresh kernel and compare the decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from queryard.core.commands import Command
from queryard.core.journal import Journal, Step
from queryard.core.scheduler import Scheduler
from queryard.policies import compose


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step at which the fresh kernel decided otherwise."""

    number: int
    step: Step
    decided: tuple[Command, ...]

    def __str__(self) -> str:
        return (
            f"step {self.number} at {self.step.time_s}: recorded {self.step.commands}, "
            f"decided {self.decided}"
        )


def replay(
    journal: Journal, after_step: Callable[[Scheduler], None] | None = None
) -> Difference | None:
    """None if every recorded decision is made again, else where they part."""
    scheduler = Scheduler(compose, journal.profile, journal.kernel_settings())
    for number, step in enumerate(journal.steps, 1):
        decided = tuple(scheduler.handle(*step.events))
        if decided != step.commands:
            return Difference(number, step, decided)
        if after_step is not None:
            after_step(scheduler)
    return None
