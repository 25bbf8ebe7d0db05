"""What batches and circular scans have in common: one read of a block serves many jobs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Self

from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.parts import Ride, ScanSharing
from queryard.core.state import State


class MergedScan:
    """One merged (sub-)job: the blocks [first, stop) of a table, read once for its riders."""

    __slots__ = (
        "cursor",
        "first",
        "local",
        "local_cursors",
        "read",
        "riders",
        "round",
        "stop",
        "table",
        "unread",
    )

    def __init__(
        self, leader: JobState, round: str, riders: list[str], first: int, stop: int
    ) -> None:
        # The table as the leader saw it when it was submitted, whatever becomes of it.
        table, self.local = leader.scanned[0]
        self.table = table.name
        self.round = round
        self.riders = riders
        self.first = first
        self.stop = stop
        self.unread = stop - first
        self.read = bytearray(self.unread)
        # How far the blocks, and those of a node, were looked through.
        self.cursor = 0
        self.local_cursors: dict[str, int] = {}

    def take(self, node: str, state: State) -> int:
        """The next unread block, one that lives on the node if there is one. O(1), amortised."""
        self.unread -= 1
        read, first, stop = self.read, self.first, self.stop
        local = self.local.get(node)
        if local:
            at = self.local_cursors.get(node)
            if at is None:
                at = bisect_left(local, first)
            while at < len(local) and local[at] < stop:
                block = local[at]
                at += 1
                if not read[block - first]:
                    self.local_cursors[node] = at
                    read[block - first] = 1
                    return block
            self.local_cursors[node] = at
        offset = read.find(0, self.cursor)
        self.cursor = offset + 1
        read[offset] = 1
        return first + offset

    def fork(self) -> MergedScan:
        copy = MergedScan.__new__(MergedScan)
        copy.table = self.table
        copy.local = self.local
        copy.round = self.round
        copy.riders = self.riders.copy()
        copy.first = self.first
        copy.stop = self.stop
        copy.unread = self.unread
        copy.read = self.read.copy()
        copy.cursor = self.cursor
        copy.local_cursors = self.local_cursors.copy()
        return copy


class MergedScans(ScanSharing):
    """Rides on merged scans, and the blocks that a rider must read again alone.

    A block that could not be read, or the output of which was lost, is read again by each of its
    riders on its own, before anything else: which rider was at fault is not known yet.
    """

    work_conserving = False

    def __init__(self) -> None:
        # All of these know jobs by their ids, so that a fork keeps nothing of the original.
        self._again: dict[str, list[int]] = {}
        self._rounds = 0

    def fork(self) -> Self:
        twin = super().fork()
        twin._again = {job: blocks.copy() for job, blocks in self._again.items()}
        return twin

    def attach(self, state: State) -> None:
        self._again = {}
        # A round has at least one launch, so no round of an earlier policy had this number.
        self._rounds = state.next_launch

    def _new_round(self, table: str) -> str:
        self._rounds += 1
        return f"{table}#{self._rounds}"

    def _scan_for(self, job: JobState, state: State) -> MergedScan | None:
        """The merged scan on which the job has its turn; None if it does not share."""
        raise NotImplementedError

    def ride(self, job: JobState, node: NodeState, state: State) -> Ride | None:
        again = self._again.get(job.id)
        if again:
            return Ride(again.pop(), (job,), "")
        scan = self._scan_for(job, state)
        if scan is None:
            return None
        riders = [job]
        for job_id in scan.riders:
            rider = state.jobs.get(job_id)
            if rider is not None and rider is not job and rider.query.stage != "ending":
                riders.append(rider)
        return Ride(scan.take(node.id, state), tuple(riders), scan.round)

    def _read_again(self, job: JobState, index: int) -> None:
        self._again.setdefault(job.id, []).append(index)


def reads_whole_table(job: JobState, state: State) -> bool:
    """Whether the job reads the table as it is now, one map task per split."""
    return job.map is not None and job.scanned[0][0] is state.tables[job.spec.scans[0]]


def hold(jobs: Iterable[JobState], held_back: bool) -> list[JobState]:
    """Hold jobs back or let them go; returns the jobs for which this is new."""
    changed = [job for job in jobs if job.held_back != held_back]
    for job in changed:
        job.held_back = held_back
    return changed
