"""Tasks that are far behind their like run a second time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from queryard.core.commands import Launch
from queryard.core.entities import JobState
from queryard.core.model import MAP
from queryard.core.nodes import NodeState
from queryard.core.parts import Speculation
from queryard.core.phases import PhaseState
from queryard.core.state import State

from ..checks import at_least
from ..checks import share as a_share

# So fast a node must be for a second run, as a share of the speed of the first one's: a little
# less than equal, since speeds are measured.
LEAST_SPEED = 0.75


class Late(Speculation):
    """Run a task again elsewhere once it has taken several times as long as its like. O(slots).

    A task is late if it has run for `factor` times the mean of the tasks of its phase that have
    ended (in proportion to its input, where sizes are known), and for `least_s` longer than that
    mean; `done` is the share of the phase that must have ended before. The most behind comes first.
    At most `share` of the slots, and always one, serve second runs. Only slots are used that
    nothing else can use at that moment, at nodes that are not much slower than that of the first.
    Reduces that may still wait for maps, and launches that share a read, are left alone.

    With tasks that took 2 s and a factor of 2, one that runs for 4 s is run again; it began
    elsewhere, so the query has its rows after about 6 s, however slow its first node is.
    """

    name = "late"

    def __init__(
        self, factor: float = 2.0, done: float = 0.5, share: float = 0.1, least_s: float = 1.0
    ) -> None:
        self.factor = at_least("factor", factor, 1.0)
        self.done = a_share("done", done)
        self.share = a_share("share", share)
        self.least_s = at_least("least_s", least_s, 0.0)
        # When the next task will be late, as of the last time this was asked.
        self._next_s: float | None = None

    def behind(self, state: State) -> Sequence[Launch]:
        self._next_s = None
        room = max(1, int(self.share * state.total_slots)) - len(state.twins) // 2
        if room <= 0:
            return ()
        late: list[tuple[float, int, Launch]] = []
        next_s = math.inf
        for number, run in state.running.items():
            like_s = self._like_s(run, state)
            if like_s is None:
                continue
            due_s = run.time_s + max(self.factor * like_s, like_s + self.least_s)
            if due_s <= state.now:
                late.append((-(state.now - run.time_s) / max(like_s, 1e-9), number, run))
            else:
                next_s = min(next_s, due_s)
        self._next_s = next_s if next_s < math.inf else None
        return [run for _, _, run in sorted(late)[:room]]

    def _like_s(self, run: Launch, state: State) -> float | None:
        """What a task like that of a launch takes; None if it cannot be run again, or as yet."""
        if len(run.tasks) > 1 or run.round or run.number in state.twins:
            return None
        if run.number in state.killed:
            return None
        job_id, kind, index = run.tasks[0]
        job: JobState = state.jobs[job_id]
        if job.query.stage != "running":
            return None
        phase: PhaseState | None = job.map if kind == MAP else job.reduce
        assert phase is not None
        if kind != MAP and not job.maps_done:
            return None
        tasks = phase.spec.tasks
        if not phase.mean.n or phase.done < self.done * tasks:
            return None
        mean_bytes = phase.spec.bytes / tasks
        part = phase.spec.size_of(index) / mean_bytes if mean_bytes > 0 else 1.0
        return phase.mean.mean * max(part, 1e-9)

    def goes(self, run: Launch, node: NodeState, state: State) -> bool:
        here = state.nodes[run.node].spec
        if run.tasks[0].kind == MAP:
            fast = node.spec.map_speed >= LEAST_SPEED * here.map_speed
        else:
            fast = node.spec.reduce_speed >= LEAST_SPEED * here.reduce_speed
        return fast and node.id != run.node

    def wake_s(self, state: State) -> float | None:
        return self._next_s
