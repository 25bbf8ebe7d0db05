"""Locality first: a job waits for a node that holds its data, but not for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.parts import Placement
from queryard.core.state import State

from ..checks import above_zero
from .local import find_local, nearest


class SkipLimited(Placement):
    """Skip a job without a task local to the node, at most as often as there are nodes. O(1).

    POSUM §5.3.2 (LOCF, with FIFO); after delay scheduling. The count starts again whenever a
    map of the job is launched. Reduces, jobs without scans and tables without known places are
    local everywhere. On two nodes a job with data on the first is declined twice by the
    second; its third offer there is taken, local or not. Divisible work does not wait: it starts
    where most of its data is, of the nodes with a free slot.

    A skipped slot stays free, so the nodes must offer it again: after `heartbeat_s`, as a
    Hadoop node would.
    """

    name = "locf"
    citation = "POSUM §5.3.2 (LOCF)"
    work_conserving = False

    def __init__(self, heartbeat_s: float = 3.0) -> None:
        self.heartbeat_s = above_zero("heartbeat_s", heartbeat_s)
        # Job -> how often it was skipped since its last launch.
        self._skips: dict[int, int] = {}
        self._skipped_s = -1.0
        self._heartbeat_at_s = -1.0

    def fork(self) -> Self:
        twin = super().fork()
        twin._skips = self._skips.copy()
        return twin

    def take_over(self, before: Self, state: State) -> None:
        self._skips = before._skips
        self._skipped_s, self._heartbeat_at_s = before._skipped_s, before._heartbeat_at_s

    def pick(self, job: JobState, node: NodeState, state: State) -> int | None:
        assert job.map is not None
        if not job.spec.scans:
            return job.map.take()
        index = find_local(job, node.id, state)
        if index is None and self._waits(job, state):
            self._skips[job.uid] = self._skips.get(job.uid, 0) + 1
            self._skipped_s = state.now
            return None
        self._skips.pop(job.uid, None)
        return job.map.take() if index is None else job.map.take_at(index)

    def accepts(self, job: JobState, node: NodeState, state: State) -> bool:
        return find_local(job, node.id, state) is not None or not self._waits(job, state)

    def home(self, job: JobState, nodes: Sequence[NodeState], state: State) -> NodeState | None:
        return nearest(job, nodes)

    def _waits(self, job: JobState, state: State) -> bool:
        """Whether a job may still be skipped by a node without its data."""
        return self._skips.get(job.uid, 0) < len(state.nodes) and _has_a_place(job, state)

    def wake_s(self, state: State) -> float | None:
        if self._heartbeat_at_s > state.now:
            return self._heartbeat_at_s
        if self._skipped_s != state.now:
            return None
        if not any(node.free and not node.draining for node in state.nodes.values()):
            return None  # the end of a task will bring the next offer
        self._heartbeat_at_s = state.now + self.heartbeat_s
        if len(self._skips) > len(state.jobs):
            active = {job.uid for job in state.jobs.values()}
            self._skips = {uid: n for uid, n in self._skips.items() if uid in active}
        return self._heartbeat_at_s


def _has_a_place(job: JobState, state: State) -> bool:
    """Whether some node of the cluster holds splits of what the job scans."""
    nodes = state.nodes.keys()
    return any(not nodes.isdisjoint(local) for _, local in job.scanned)
