"""Map and reduce slots for each node by its own speed at either kind."""

from __future__ import annotations

from queryard.core.model import MAP, REDUCE
from queryard.core.nodes import NodeState
from queryard.core.state import State

from .lanes import BOTH_MAPS_FIRST, BOTH_REDUCES_FIRST
from .running_work import SplitByWork
from .tumm_formulas import divide_node, map_share


class HeterogeneousTumm(SplitByWork):
    """Divide a node's slots by the tasks left in running jobs times its own task times. O(1).

    TuMM §5.2, Alg. 4: s_m = floor(S · t_m·n'_m / (t_m·n'_m + t_r·n'_r)) with the node's means;
    a slot that rounding leaves over goes to reduces if maps are slower here, relative to the
    cluster, than reduces are; the kind that lacks more on the node is served, or the other if
    it has no task. A node without a mean of its own takes the cluster's, and that, before
    anything has ended, what is expected of the running jobs. The cluster's means are looked
    up again after as many decisions as there are nodes. Deviation: while no running job has
    maps left, a waiting one of mean size counts, as with no least number of map slots none
    could begin before the last reduce was launched.

    With 30 maps and 10 reduces left, a node that takes 1 s for either runs 3 maps and 1
    reduce on its four slots; one that takes 3 s for a reduce runs 2 and 2.
    """

    name = "h-tumm"
    citation = "TuMM §5.2, Alg. 4"

    def __init__(self) -> None:
        super().__init__()
        self._decisions_left = 0
        self._map_s: float | None = None
        self._reduce_s: float | None = None

    def attach(self, state: State) -> None:
        super().attach(state)
        self._decisions_left = 0

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        work = self._work
        map_s, reduce_s = self._cluster_means(state)
        own_map_s = node.map_mean.or_else(map_s)
        own_reduce_s = node.reduce_mean.or_else(reduce_s)
        maps_left: float = work.maps_left
        if not maps_left and work.jobs_waiting:
            maps_left = work.maps_waiting / work.jobs_waiting
        share = map_share(own_map_s * maps_left, own_reduce_s * work.reduces_left)
        # t_m(node) / t_m > t_r(node) / t_r, without dividing by a mean of 0
        maps_are_slow = own_map_s * reduce_s > own_reduce_s * map_s
        maps, reduces = divide_node(node.spec.slots, share, maps_are_slow)
        if maps - node.maps > reduces - node.reduces:
            return BOTH_MAPS_FIRST
        return BOTH_REDUCES_FIRST

    def _cluster_means(self, state: State) -> tuple[float, float]:
        self._decisions_left -= 1
        if self._decisions_left <= 0:
            self._decisions_left = len(state.nodes)
            self._map_s = state.observed_s(MAP)
            self._reduce_s = state.observed_s(REDUCE)
        map_s, reduce_s, work = self._map_s, self._reduce_s, self._work
        if map_s is None and work.maps_left:
            map_s = work.map_work_s / work.maps_left
        if reduce_s is None and work.reduces_left:
            reduce_s = work.reduce_work_s / work.reduces_left
        # Of a kind of which nothing is known a task takes as long as one of the other: 1:1.
        if map_s is None:
            map_s = 1.0 if reduce_s is None else reduce_s
        return map_s, map_s if reduce_s is None else reduce_s
