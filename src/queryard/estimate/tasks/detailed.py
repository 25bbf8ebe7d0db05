"""POSUM's Detailed predictor: rates of local and remote maps, and of each phase of a reduce."""

from __future__ import annotations

from operator import attrgetter

from .model import TaskFeatures
from .standard import Standard
from .tallies import PAST_JOBS, Pick

_LOCAL, _REMOTE = attrgetter("local_rate"), attrgetter("remote_rate")
_SHUFFLE, _MERGE, _REST = (
    attrgetter("shuffle_rate"),
    attrgetter("merge_rate"),
    attrgetter("rest_rate"),
)
_FIRST = attrgetter("first_shuffle_s")


class Detailed(Standard):
    """Maps by the rate of local or of remote ones; reduces by shuffle, merge and reduce rates.

    POSUM eq. 3.3 and 3.4. The shuffle of a first-wave reduce takes a fixed time. Where it is not
    known whether a map is local, or `places` is off (which did better in the paper), the rate is
    that of all maps. Where phases were not measured, reduces are those of Standard.

    >>> from queryard.estimate.tasks.model import Seen
    >>> detailed = Detailed()
    >>> detailed.learn(Seen(TaskFeatures("a", "map", "s", input_bytes=10.0, is_local=True), 1.0))
    >>> detailed.learn(Seen(TaskFeatures("a", "map", "s", input_bytes=10.0, is_local=False), 3.0))
    >>> task = TaskFeatures("b", "map", "s", input_bytes=20.0)
    >>> detailed.predict(task._replace(is_local=True)), detailed.predict(task)
    (2.0, 4.0)
    """

    def __init__(self, places: bool = True, past_jobs: int = PAST_JOBS) -> None:
        super().__init__(past_jobs=past_jobs)
        self._places = places

    def map_s(self, task: TaskFeatures) -> float | None:
        if self._places and task.is_local is not None and task.input_bytes is not None:
            rate = self._rate(task, _LOCAL if task.is_local else _REMOTE)
            if rate is not None:
                return task.input_bytes * rate
        return super().map_s(task)

    def reduce_s(self, task: TaskFeatures) -> float | None:
        input_bytes = self.reduce_bytes(task)
        merge, rest = self._rate(task, _MERGE), self._rate(task, _REST)
        if input_bytes is None or merge is None or rest is None:
            return super().reduce_s(task)
        shuffle_s = self._rate(task, _FIRST) if task.is_first_wave else None
        if shuffle_s is None:
            shuffle = self._rate(task, _SHUFFLE)
            if shuffle is None:
                return super().reduce_s(task)
            shuffle_s = input_bytes * shuffle
        return shuffle_s + input_bytes * (merge + rest)

    def _rate(self, task: TaskFeatures, pick: Pick) -> float | None:
        """Of the past, else of the job itself, as reduces of Standard have it."""
        past = self.tallies.past(task, pick)
        return self.tallies.own(task, pick) if past is None else past
