"""The best fixed numbers of map and reduce slots for the work that is known."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.apportion import apportion
from queryard.core.nodes import NodeState
from queryard.core.state import State

from .static import Static

Workload = tuple[float, float]
# The numbers are computed again when the number of jobs has grown by this share.
NEWCOMERS = 1 / 16


def makespan_s(workloads: Sequence[Workload], map_slots: int, reduce_slots: int) -> float:
    """When a batch of (map, reduce) core-seconds ends under FIFO: the recursion of Alg. 1.

    >>> makespan_s([(8, 4), (4, 8)], 2, 2)
    10.0
    """
    maps_end = end = 0.0
    for map_s, reduce_s in workloads:
        maps_end += map_s / map_slots
        end = max(maps_end, end) + reduce_s / reduce_slots
    return end


def best_static(workloads: Sequence[Workload], slots: int) -> tuple[int, int]:
    """(s_m, s_r) with the shortest makespan, the smallest s_m of equal ones. O(S·n) at most.

    The loop of Alg. 1 ends at S - 1, where the printed one would divide by zero. Its recursion
    is a longest path: maps up to some job i, reduces from i on. Only the jobs on the upper
    hull of these pairs can decide, which leaves few of n to look at for each s_m.

    >>> best_static([(8, 4), (4, 8)], 4)
    (2, 2)
    >>> best_static([(40, 10)], 4), best_static([(10, 0)], 4), best_static([], 4)
    ((3, 1), (3, 1), (2, 2))
    """
    if slots < 2:
        raise ValueError(f"maps and reduces need two slots to divide, got {slots!r}")
    paths: list[Workload] = []
    before = 0.0
    after = sum(reduce_s for _, reduce_s in workloads)
    if not (after or any(map_s for map_s, _ in workloads)):
        return slots // 2, slots - slots // 2
    for map_s, reduce_s in workloads:
        before += map_s
        while len(paths) > 1 and _is_below(paths[-2], paths[-1], (before, after)):
            paths.pop()
        paths.append((before, after))
        after -= reduce_s
    choices = range(1, slots)
    best = min(choices, key=lambda s_m: max(m / s_m + r / (slots - s_m) for m, r in paths))
    return best, slots - best


def _is_below(left: Workload, middle: Workload, right: Workload) -> bool:
    """Whether the middle one lies on or under the line between its neighbours."""
    (a, b), (c, d), (e, f) = left, middle, right
    return (c - a) * (f - b) >= (d - b) * (e - a)


class BestStatic(Static):
    """Run as many maps and as many reduces at once as Alg. 1 finds best for the estimated work.

    TuMM §3.2. The batch is all active queries, jobs in FIFO order with what is left of them.
    The numbers are of the whole cluster and are kept exactly: each node has map slots in
    proportion to its slots, and what rounding leaves over goes to the nodes with the largest
    remainders. They are found anew when queries were submitted (many waiting: once a sixteenth
    as many have come) or slots came or went. O(1) per decision; O(n + S·h) for new numbers, h of
    the n jobs lying on the hull.

    One job with 40 core-seconds of maps and 10 of reduces on four slots: 3:1. Where 10:6 is best
    on four nodes of four slots, two nodes have 3:1 and two have 2:2.
    """

    name = "best-static"
    citation = "TuMM §3.2, Alg. 1"

    def __init__(self) -> None:
        self._set_ratio(1, 1)
        self._next_uid = 0
        self._resizes = -1
        # Node -> its map slots and reduce slots. A fork may share it: it is replaced as a whole.
        self._by_node: dict[str, tuple[int, int]] = {}

    def attach(self, state: State) -> None:
        self._next_uid = 0

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        if state.next_uid >= self._next_uid or state.resizes != self._resizes:
            self._find(state)
        return super().serve(node, state)

    def _slots_of(self, node: NodeState) -> tuple[int, int]:
        # A node that drains takes no new tasks, whatever it is said to have.
        return self._by_node.get(node.id) or self._divide(node.spec.slots)

    def _find(self, state: State) -> None:
        workloads = []
        for query in state.queries.values():
            for job in query.jobs:
                if job.map is not None:
                    reduce_s = job.reduce.left * job.reduce_s if job.reduce else 0.0
                    workloads.append((job.map.left * job.map_s, reduce_s))
        # Every new query and job takes an id, so ids tell how many have come.
        self._next_uid = state.next_uid + 1 + int(len(workloads) * NEWCOMERS)
        self._resizes = state.resizes
        nodes = {n.id: n.spec.slots for n in state.nodes.values() if not n.draining}
        total = state.total_slots
        if total < 2:
            self._by_node = dict.fromkeys(nodes, (1, 1))  # a single slot serves both
            return
        map_slots, _ = best_static(workloads, total)
        shares = apportion([slots * map_slots / total for slots in nodes.values()])
        self._by_node = {
            node: (maps, slots - maps)
            for (node, slots), maps in zip(nodes.items(), shares, strict=True)
        }
