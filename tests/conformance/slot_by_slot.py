"""The deal among speed-up curves in its plain form: every slot by itself goes down the pool tree.

In a leaf it goes to the candidate that gains most by it, found by looking at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from queryard.core.claims import ON_THEIR_WAY, is_pressed
from queryard.core.deal import Homes
from queryard.core.entities import Candidate, JobState
from queryard.core.fitting import FittingDeal
from queryard.core.kernel import Kernel
from queryard.core.nodes import NodeState
from queryard.core.pools import Pool


@dataclass
class Place:
    """A candidate in the line of a leaf, and the job of it that was given a slot last."""

    number: int
    candidate: Candidate
    job: JobState | None = None
    gain: float = 1.0
    rests: bool = False

    def give(self, job: JobState, now: float) -> None:
        self.job = job
        as_first = job.map is not None or is_pressed(job, now)
        self.gain = 1.0 if as_first else job.speedup.gain(job.slots)


class SlotBySlot(FittingDeal):
    """Deals as `FittingDeal` must."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._has_one_node = self._is_plain = False
        holders = self._state.leaseholders.values()
        self._homes = {job.uid: Homes(kernel, job) for job in holders}
        self._lines: dict[object, tuple[int, list[Place]]] = {}

    def _release(self) -> None:
        super()._release()
        for _, line in self._lines.values():
            for place in line:
                if place.rests and place.job is not None:
                    place.rests = False
                    place.give(place.job, self._state.now)

    def _serve(self, leaf: Pool, lane: int, node: NodeState) -> bool:
        key = (leaf.index, lane, node.host if self._state.apart else "", node.draining)
        if key not in self._lines:
            candidates = self._line(leaf, lane, node)
            queries = max(leaf.queries, len(candidates)) + ON_THEIR_WAY
            self._lines[key] = queries, [Place(*pair) for pair in enumerate(candidates)]
        queries, line = self._lines[key]
        while waiting := [place for place in line if not place.rests]:
            best = max(
                waiting,
                key=lambda place: (
                    place.gain * (queries - place.number),
                    place.job is not None,
                    -place.number,
                ),
            )
            if self._attempt(best.candidate, lane, node):
                best.give(self._dealt[-1][0], self._state.now)
                best.rests = self._dealt[-1][0].uid in self._sated
                return True
            line.remove(best)
        return False
