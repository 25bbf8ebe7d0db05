"""Candidates tried out on the present of a session: in a worker, within a limit of processor time.

The fork is the worker's own, so that it may be changed: it looks at drifting orders less often
where the queue is long, and what its nodes have cost so far does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler
from queryard.sim.coarse import coarsen, longer_turns, look_every_s
from queryard.sim.conditions import Conditions

from .trials import Profile, Trial, try_out

# Slots of a machine are there at once.
AT_ONCE = Conditions(node_boot_s=0.0)


@dataclass(frozen=True, slots=True)
class Untried:
    """A candidate that could not be tried out, and why."""

    name: str
    reason: str


def try_present(
    fork: Scheduler,
    candidates: Mapping[str, Profile],
    most_s: float,
    rest: Callable[[], None] = lambda: None,
) -> list[Trial | Untried]:
    """What each candidate would make of the queue, in at most `most_s` processor seconds for all.

    A candidate that fails spoils no other one.
    """
    state = fork.state
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
            found += try_out(fork, one, most_s=each_s, conditions=conditions, rest=rest)
        except QueryardError as error:
            found.append(Untried(name, str(error)))
        except Exception as error:
            found.append(Untried(name, f"{type(error).__name__}: {error}"))
    return found
