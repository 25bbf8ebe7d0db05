"""Whether a query runs natively on one node of a cluster, or in tasks on all of them.

Natively a query uses the slots of one node. In tasks it uses all slots, and pays for it: it is
planned and opened at every node, its tasks are sent one by one, and rows move between nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queryard.core.model import Job
from queryard.core.readable import several
from queryard.core.speedup import Speedup

# On two nodes within a quiet machine, bench/ray/overheads.py measured 0.07 s for a query of one
# task, 0.49 s for one of 64 (0.53 s by these), and 3.3 ns per byte. A busy machine takes more; the
# tasks of later queries teach what they really take, with all that is beside their work.
OPEN_S = 0.08
"""Of a query in tasks, whatever it reads: its plan is sent, instances are opened, rows fetched."""
TASK_S = 0.002
"""Of the driver, for each task."""
WAVE_S = 0.01
"""Of a slot, for each task beside its work: told of, opened, its end told."""
BYTE_S = 3.5e-9
"""For a byte that moves from one node to another: encoded, fetched, decoded."""
# In tasks a query does at least about the same work.
LEAST_WORK = 0.8
# A query that takes no longer natively is not worth planning for.
SHORT_S = 0.3
# Predictions are not so sure that less than this is worth splitting a query.
GAIN = 0.9

Seconds = Mapping[str, tuple[float, float | None]]
"""What a map task and a reduce task of each job take."""


class Member(NamedTuple):
    """A node of a cluster: its slots, its speed and its memory."""

    slots: int
    speed: float
    memory_bytes: float


class Crowd(NamedTuple):
    """The nodes of a cluster, and how many other queries are active."""

    nodes: tuple[Member, ...]
    others: int = 0

    @property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes)

    @property
    def capacity(self) -> float:
        """Slots, each counted by its speed."""
        return sum(node.slots * node.speed for node in self.nodes)

    @property
    def speed(self) -> float:
        return self.capacity / self.slots

    @property
    def most_bytes(self) -> float:
        """The memory of the largest node."""
        return max(node.memory_bytes for node in self.nodes)

    def native_s(self, work_s: float, speedup: Speedup) -> float:
        """What a query takes on the best node, which it shares with its part of the others.

        >>> Crowd((Member(4, 1.0, 1e9), Member(2, 3.0, 1e9))).native_s(12.0, Speedup())
        2.0
        """
        beside = 1 + self.others / len(self.nodes)
        return min(
            work_s / (speedup.speed(max(1.0, node.slots / beside)) * node.speed)
            for node in self.nodes
        )

    def least_staged_s(self, work_s: float) -> float:
        """What it takes in tasks at least, before it is planned."""
        return OPEN_S + LEAST_WORK * work_s * (1 + self.others) / self.capacity

    def staged_s(self, jobs: Sequence[Job], seconds: Seconds, moved_bytes: float) -> float:
        """What it takes in tasks: the longest chain of jobs, each in waves of tasks.

        >>> from queryard.core.model import Phase
        >>> two = Crowd((Member(2, 1.0, 1e9), Member(2, 1.0, 1e9)))
        >>> round(two.staged_s([Job("scan", map=Phase(8))], {"scan": (1.0, None)}, 0.0), 2)
        2.12
        """
        slots = max(1, int(self.slots / (1 + self.others)))
        ends: dict[str, float] = {}
        work_s, tasks = 0.0, 0
        for job in jobs:
            map_s, reduce_s = seconds.get(job.name, (0.0, None))
            took_s = 0.0
            for count, each_s in ((job.maps, map_s), (job.reduces, reduce_s or 0.0)):
                waves = math.ceil(count / slots)
                took_s += waves * (each_s / self.speed + WAVE_S)
                work_s += count * each_s
                tasks += count
            ends[job.name] = took_s + max((ends[name] for name in job.upstream), default=0.0)
        busy_s = work_s * (1 + self.others) / self.capacity
        away = 1 - 1 / len(self.nodes)
        moving_s = moved_bytes * away * BYTE_S / len(self.nodes)
        return OPEN_S + tasks * TASK_S + moving_s + max(max(ends.values()), busy_s)


class Verdict(NamedTuple):
    """Which of both, and what both are expected to take; None for what is not known."""

    in_tasks: bool
    native_s: float
    staged_s: float | None
    reason: str


def at_once(crowd: Crowd, work_s: float, speedup: Speedup, memory_bytes: float) -> Verdict | None:
    """What can be said without a staged plan; None if one must be made."""
    native_s = crowd.native_s(work_s, speedup)
    told = f"about {native_s:.2g} s natively on one node"
    if len(crowd.nodes) == 1:
        return Verdict(False, native_s, None, "the cluster has one node")
    if memory_bytes > crowd.most_bytes:
        return None
    if native_s <= SHORT_S:
        return Verdict(False, native_s, None, f"{told}, which is too short to be split")
    least_s = crowd.least_staged_s(work_s)
    if least_s >= GAIN * native_s:
        return Verdict(
            False, native_s, None, f"{told}, and at least {least_s:.2g} s in tasks on all nodes"
        )
    return None


def compared(
    crowd: Crowd, work_s: float, speedup: Speedup, memory_bytes: float, staged_s: float
) -> Verdict:
    """Which of both, where both are known."""
    native_s = crowd.native_s(work_s, speedup)
    slots, nodes = several(crowd.slots, "slot"), several(len(crowd.nodes), "node")
    if memory_bytes > crowd.most_bytes:
        return Verdict(
            True,
            native_s,
            staged_s,
            f"it needs about {memory_bytes / 1e9:.2g} GB of memory, and the largest node has "
            f"{crowd.most_bytes / 1e9:.2g} GB",
        )
    in_tasks = staged_s < GAIN * native_s
    told = (
        f"about {staged_s:.2g} s in tasks on {slots} of {nodes}, and "
        f"{native_s:.2g} s natively on one node"
    )
    return Verdict(in_tasks, native_s, staged_s, told)
