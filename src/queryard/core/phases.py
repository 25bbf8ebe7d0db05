"""The counted tasks of a phase.

The next one is an index until tasks are taken out of order (for locality, or by a shared scan);
only then a byte per task says which are taken. Pending tasks that failed at a node, and may succeed
elsewhere, are set aside: they are taken by their own rule (`elsewhere`), and count as taken above.
"""

from __future__ import annotations

from .failed_at import FailedAt
from .lifecycle import DONE, PENDING, RUNNING
from .means import Mean
from .model import Kind, Phase


class PhaseState:
    """The counted tasks of one phase: how many are pending, running, done, and which is next."""

    __slots__ = (
        "aside",
        "counts",
        "cursor",
        "failed_at",
        "failures",
        "kind",
        "local_cursors",
        "losses",
        "mean",
        "milestone",
        "outputs",
        "returned",
        "spec",
        "taken",
        "told",
    )

    def __init__(self, kind: Kind, spec: Phase) -> None:
        self.kind = kind
        self.spec = spec
        self.counts = [spec.tasks, 0, 0]
        self.cursor = 0
        self.returned: list[int] | None = None
        self.taken: bytearray | None = None
        self.local_cursors: dict[tuple[str, int], int] | None = None
        self.failures: dict[int, int] | None = None
        # Task -> the nodes at which it has failed; and those of them that are pending.
        self.failed_at: dict[int, FailedAt] = {}
        self.aside: list[int] = []
        # Task -> how often it was at a node that was lost.
        self.losses: dict[int, int] | None = None
        # Node -> finished maps with their output there, where reduces will need it.
        self.outputs: dict[str, list[int]] = {}
        # How many tasks must be done until means are looked at (see `changes.tasks`).
        self.milestone = 1
        # Whether its mean was added to that of the class.
        self.told = False
        self.mean = Mean()

    @property
    def pending(self) -> int:
        return self.counts[PENDING]

    @property
    def running(self) -> int:
        return self.counts[RUNNING]

    @property
    def done(self) -> int:
        return self.counts[DONE]

    @property
    def left(self) -> int:
        """Tasks without a result yet."""
        return self.spec.tasks - self.counts[DONE]

    def take(self) -> int:
        """Take the first pending task."""
        if self.taken is not None:
            index = self.taken.find(0, self.cursor)
            self.taken[index] = 1
            self.cursor = index + 1
            return index
        if self.returned:
            return self.returned.pop()
        index = self.cursor
        self.cursor = index + 1
        return index

    def take_at(self, index: int) -> int:
        """Take one certain pending task, out of order."""
        self.open_taken()[index] = 1
        return index

    def open_taken(self) -> bytearray:
        """From now on remember task by task which are taken."""
        taken = self.taken
        if taken is None:
            taken = self.taken = bytearray(self.spec.tasks)
            taken[: self.cursor] = b"\1" * self.cursor
            for index in self.returned or ():
                taken[index] = 0
            self.returned = None
            self.cursor = 0
        return taken

    def give_back(self, index: int) -> None:
        """A taken task is pending again."""
        if index in self.failed_at:
            self.aside.append(index)
        elif self.taken is not None:
            self.taken[index] = 0
            if index < self.cursor:
                self.cursor = index
            self.local_cursors = None
        elif self.returned is None:
            self.returned = [index]
        else:
            self.returned.append(index)

    def take_aside(self, index: int) -> int:
        """Take a task that failed before."""
        self.aside.remove(index)
        return index

    def fork(self) -> PhaseState:
        copy = PhaseState.__new__(PhaseState)
        copy.kind = self.kind
        copy.spec = self.spec
        copy.counts = self.counts.copy()
        copy.cursor = self.cursor
        copy.returned = self.returned.copy() if self.returned else None
        copy.taken = None if self.taken is None else self.taken.copy()
        copy.local_cursors = self.local_cursors.copy() if self.local_cursors else None
        copy.failures = self.failures.copy() if self.failures else None
        copy.failed_at = self.failed_at.copy() if self.failed_at else {}
        copy.aside = self.aside.copy() if self.aside else []
        copy.losses = self.losses.copy() if self.losses else None
        outputs = self.outputs
        copy.outputs = {place: done.copy() for place, done in outputs.items()} if outputs else {}
        copy.milestone = self.milestone
        copy.told = self.told
        copy.mean = self.mean.fork()
        return copy
