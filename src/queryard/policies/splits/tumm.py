"""Map and reduce slots that follow the work left of each kind."""

from __future__ import annotations

from queryard.core.nodes import NodeState
from queryard.core.state import State

from ..checks import above_zero
from .lanes import BOTH_MAPS_FIRST, BOTH_REDUCES_FIRST
from .running_work import SplitByWork
from .tumm_formulas import ALPHA, bounded, feedback, lacks_maps, map_share, target


class Tumm(SplitByWork):
    """Serve the kind that lacks more slots of its share of the work left in running jobs. O(1).

    TuMM §4: the target s_m = floor(w'_m / (w'_m + w'_r) · S) (Eq. 4), moved by `alpha` times
    the change of that share since its last move (Eq. 6), spread over the nodes by Alg. 3.
    Deviations: moves are truncated toward zero and start again from the target whenever a
    job changes phase, as the printed form drifts; the bounds [k, S - k] apply where s_m is
    used, so that a share at the bound and back leaves nothing behind. If the kind has no task,
    the other is served. A merged scan counts once per rider.

    5 map and 7 reduce slots on two equal nodes become 2 and 4 on one, 3 and 3 on the other.
    """

    name = "tumm"
    citation = "TuMM §4, Alg. 2 and 3"

    def __init__(self, alpha: float = ALPHA) -> None:
        self.alpha = above_zero("alpha", alpha)
        super().__init__()
        self._slots = 0
        self._nodes = 0
        self._active_nodes = 0
        self._map_slots = 0
        # The share of maps in the work, and the phases, that led to `_map_slots`.
        self._share = 0.5
        self._phases = 0

    def attach(self, state: State) -> None:
        super().attach(state)
        self._slots = 0

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        maps = bounded(self._wanted_maps(state), self._slots, self._active_nodes)
        work = self._work
        wanted = (maps, self._slots - maps)
        running = (work.maps, work.reduces)
        here = (node.maps, node.reduces)
        # Where all nodes drain, there is nothing to divide: only what began there goes on.
        if not self._slots or lacks_maps(wanted, running, node.spec.slots, here):
            return BOTH_MAPS_FIRST
        return BOTH_REDUCES_FIRST

    def _wanted_maps(self, state: State) -> int:
        """s_m, before its bounds."""
        work = self._work
        share = map_share(work.map_work_s, work.reduce_work_s)
        if state.total_slots != self._slots or len(state.nodes) != self._nodes:
            self._resize(state)
            self._map_slots = target(share, self._slots)
        elif work.phases != self._phases:
            self._map_slots = target(share, self._slots)
        else:
            moved = feedback(self._map_slots, self._share, share, self._slots, self.alpha)
            if moved == self._map_slots:
                # Not yet a whole slot: the change goes on counting from where it began.
                return moved
            self._map_slots = moved
        self._share = share
        self._phases = work.phases
        return self._map_slots

    def _resize(self, state: State) -> None:
        self._slots = state.total_slots
        self._nodes = len(state.nodes)
        self._active_nodes = sum(not node.draining for node in state.nodes.values())
