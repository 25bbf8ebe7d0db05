"""Partial results of the maps of a job, put together before its reduces read them.

So what a query holds does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from queryard.core.model import TaskId

from .exchange import Piece
from .task import TaskOutcome, TaskSpec

# So many partial results of one job are put together into one.
FOLD_EVERY = 8
# Where more than this share of the rows is left, folding is of no use.
_MOST_LEFT = 0.7


class FoldSpec(NamedTuple):
    """Puts the outputs of some maps of a job, and what was put together before, into one."""

    job: str
    tasks: tuple[TaskId, ...]
    spec: TaskSpec


@dataclass(slots=True)
class Fold:
    """Partial results of a job that were put together, and those that wait for it."""

    pieces: tuple[Piece, ...] = ()
    tasks: set[TaskId] = field(default_factory=set)
    waiting: dict[TaskId, None] = field(default_factory=dict)  # in their order
    busy: bool = False
    useless: bool = False
    number: int = 0


class Folds:
    """The folds of one query, by job; its caller has a lock around every call."""

    def __init__(self) -> None:
        self._folds: dict[str, Fold] = {}

    def __getitem__(self, job: str) -> Fold:
        return self._folds.setdefault(job, Fold())

    def has(self, task: TaskId) -> bool:
        """Whether the output of a map was put together with those of others."""
        fold = self._folds.get(task.job)
        return fold is not None and task.kind == "map" and task in fold.tasks

    def wait(self, task: TaskId) -> None:
        """The output of a map may be put together with others."""
        self[task.job].waiting[task] = None

    def begin(self, job: str, outcomes: Mapping[TaskId, TaskOutcome]) -> list[TaskId]:
        """The maps of which the outputs are put together now; none if it is not the time."""
        fold = self[job]
        tasks = [task for task in fold.waiting if task in outcomes]
        if fold.busy or fold.useless or len(tasks) < FOLD_EVERY:
            return []
        fold.busy = True
        fold.number += 1
        return tasks

    def end(self, found: FoldSpec, outcome: TaskOutcome) -> None:
        """They were put together, and count in place of what they were."""
        fold = self[found.job]
        before = sum(piece.rows for each in found.spec.inputs for piece in each.pieces)
        # Groups that lie apart become no fewer: it would be done in vain again and again.
        fold.useless = outcome.rows > _MOST_LEFT * before
        fold.pieces = outcome.pieces
        fold.tasks.update(found.tasks)
        fold.waiting = {task: None for task in fold.waiting if task not in fold.tasks}

    def lost(self, place: str) -> Iterable[TaskId]:
        """A place is gone with the pieces there. The tasks that must run again for that."""
        gone: list[TaskId] = []
        for name, fold in self._folds.items():
            if any(piece.holder == place for piece in fold.pieces):
                gone += fold.tasks
                self._folds[name] = Fold(number=fold.number)
        return gone

    def keys(self) -> list[str]:
        """The keys under which rows that were put together lie."""
        return [piece.key for fold in self._folds.values() for piece in fold.pieces]
