"""What a predictor of task times is asked, what it learns from, and what it is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from queryard.core.model import Job, Kind, Query


class TaskFeatures(NamedTuple):
    """A task before it runs, by what is known of it then; None is what is not known.

    `map_bytes` is the input of all maps of its job and `map_tasks` their number. Of a reduce,
    `shuffled_bytes` is what all maps have left for all reduces of the job, where that is known.
    """

    job: str
    kind: Kind
    class_name: str = ""
    tenant: str = ""
    input_bytes: float | None = None
    map_bytes: float | None = None
    map_tasks: int = 0
    reduces: int = 0
    shuffled_bytes: float | None = None
    is_local: bool | None = None
    is_first_wave: bool = False


def class_of(query: Query, job: Job) -> str:
    """The jobs that are like this one: of this name, in queries of the same class; "" if none."""
    return f"{query.class_name}/{job.name}" if query.class_name else ""


class Seen(NamedTuple):
    """A task that has ended, and what it took; the parts of a reduce where they were measured.

    Of a reduce that was launched before the maps of its job were done (`is_first_wave`), time
    counts from then on.
    """

    asked: TaskFeatures
    seconds: float
    output_bytes: float | None = None
    shuffle_s: float | None = None
    merge_s: float | None = None


class Predictor(Protocol):
    """Learns from tasks that have ended, and says what others will take."""

    def learn(self, seen: Seen) -> None:
        """A task has ended."""

    def predict(self, task: TaskFeatures) -> float | None:
        """Its seconds; None while nothing is known that bears on it."""

    def forget(self, job: str) -> None:
        """No task of the job will be asked for any more."""

    def fork(self) -> Predictor:
        """One for other jobs, that knows as much of those before them."""
