"""Candidates tried out on the present of a session: in a worker, within a limit of processor time.

The fork is the worker's own, so that it may be changed: it looks at drifting orders less often
where the queue is long, and what its nodes have cost so far does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from queryard.core.changes import apply
from queryard.core.errors import QueryardError
from queryard.core.events import EstimateChanged
from queryard.core.scheduler import Scheduler
from queryard.sim.coarse import coarsen, longer_turns, look_every_s
from queryard.sim.conditions import Conditions

from .arrivals import Expected
from .trials import Profile, Trial, try_out

# Slots of a machine are there at once.
AT_ONCE = Conditions(node_boot_s=0.0)

# What former queries count beside the latest, in the pace; and which paces are told apart.
KEPT = 0.9
LEAST_PACE, MOST_PACE = 1.2, 20.0


@dataclass(frozen=True, slots=True)
class Untried:
    """A candidate that could not be tried out, and why."""

    name: str
    reason: str


class Pace:
    """How many slot-seconds a core-second takes: more than one where others use the machine, too.

    >>> pace = Pace()
    >>> pace.note(2.0, 2.1); pace.value
    1.0
    >>> pace.note(2.0, 18.0); round(pace.value, 1)
    5.2
    """

    def __init__(self) -> None:
        self._work_s = self._held_s = 0.0

    def note(self, work_s: float, held_s: float) -> None:
        """A query has used so much."""
        self._work_s = self._work_s * KEPT + work_s
        self._held_s = self._held_s * KEPT + held_s

    @property
    def value(self) -> float:
        found = self._held_s / self._work_s if self._work_s > 0 else 1.0
        return min(found, MOST_PACE) if found > LEAST_PACE else 1.0


def try_present(
    fork: Scheduler,
    candidates: Mapping[str, Profile],
    most_s: float,
    pace: float = 1.0,
    expected: Sequence[Expected] = (),
    rest: Callable[[], None] = lambda: None,
) -> list[Trial | Untried]:
    """What each candidate would make of the queue, in at most `most_s` processor seconds for all.

    A core-second takes `pace` slot-seconds, and queries are `expected` meanwhile. A candidate that
    fails spoils no other one.
    """
    state = fork.state
    if pace != 1.0:
        for job in state.jobs.values():
            # Tasks are estimated by the time that others took; divisible work by its core-seconds.
            if job.spec.divisible is not None:
                apply(state, EstimateChanged(state.now, job.id, work_s=job.work_s * pace))
    coming = [each._replace(work_s=each.work_s * pace) for each in expected]
    every_s = look_every_s(state)
    coarsen(fork, every_s)
    for node in state.nodes.values():
        node.since_s = state.now
    conditions = replace(AT_ONCE, progress_every_s=max(AT_ONCE.progress_every_s, every_s))
    each_s = most_s / max(1, len(candidates))
    found: list[Trial | Untried] = []
    for name, profile in candidates.items():
        one = {name: longer_turns(profile, every_s)}
        try:
            found += try_out(
                fork, one, most_s=each_s, conditions=conditions, expected=coming, rest=rest
            )
        except QueryardError as error:
            found.append(Untried(name, str(error)))
        except Exception as error:
            found.append(Untried(name, f"{type(error).__name__}: {error}"))
    return found
