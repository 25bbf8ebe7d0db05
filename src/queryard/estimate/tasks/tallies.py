"""Sums over tasks that have ended, job by job, and which jobs are like one another.

The past of a job is other jobs: the latest of its class or tenant of which tasks have ended, at
most `past_jobs`. Each counts once, however many tasks it has.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from queryard.core.model import MAP, Kind

from .model import Seen, TaskFeatures

# So many past jobs are remembered of a class and of a tenant.
PAST_JOBS = 20
# Jobs that may still be running.
MOST_JOBS = 10_000


class Average:
    """A mean that grows."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def fork(self) -> Average:
        fork = Average()
        fork.total, fork.count = self.total, self.count
        return fork


class JobTally:
    """What was seen of one job. Rates are seconds per byte, a mean over its tasks."""

    __slots__ = (
        "first_shuffle_s",
        "local_rate",
        "map_in_bytes",
        "map_out_bytes",
        "map_rate",
        "map_s",
        "merge_rate",
        "reduce_rate",
        "reduce_s",
        "remote_rate",
        "rest_rate",
        "shuffle_rate",
    )

    def __init__(self) -> None:
        self.map_s, self.map_rate = Average(), Average()
        self.local_rate, self.remote_rate = Average(), Average()
        self.map_in_bytes = self.map_out_bytes = 0.0
        self.reduce_s, self.reduce_rate = Average(), Average()
        self.shuffle_rate, self.merge_rate, self.rest_rate = Average(), Average(), Average()
        self.first_shuffle_s = Average()

    @property
    def selectivity(self) -> float | None:
        """Bytes that maps leave for each they read; None while none with an input has ended."""
        return self.map_out_bytes / self.map_in_bytes if self.map_in_bytes else None

    def fork(self) -> JobTally:
        fork = JobTally()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(fork, name, value.fork() if isinstance(value, Average) else value)
        return fork

    def add(self, seen: Seen, input_bytes: float | None) -> None:
        if seen.asked.kind == MAP:
            self._add_map(seen, input_bytes)
        else:
            self._add_reduce(seen, input_bytes)

    def _add_map(self, seen: Seen, input_bytes: float | None) -> None:
        self.map_s.add(seen.seconds)
        if input_bytes is None or input_bytes < 1:
            return
        rate = seen.seconds / input_bytes
        self.map_rate.add(rate)
        if seen.asked.is_local is not None:
            (self.local_rate if seen.asked.is_local else self.remote_rate).add(rate)
        if seen.output_bytes is not None:
            self.map_in_bytes += input_bytes
            self.map_out_bytes += seen.output_bytes

    def _add_reduce(self, seen: Seen, input_bytes: float | None) -> None:
        self.reduce_s.add(seen.seconds)
        if seen.shuffle_s is not None and seen.asked.is_first_wave:
            self.first_shuffle_s.add(seen.shuffle_s)
        if input_bytes is None or input_bytes < 1:
            return
        self.reduce_rate.add(seen.seconds / input_bytes)
        if seen.shuffle_s is not None and seen.merge_s is not None:
            rest_s = seen.seconds - seen.shuffle_s - seen.merge_s
            if not seen.asked.is_first_wave:
                self.shuffle_rate.add(seen.shuffle_s / input_bytes)
            self.merge_rate.add(seen.merge_s / input_bytes)
            self.rest_rate.add(rest_s / input_bytes)


Pick = Callable[[JobTally], Average]


class Tallies:
    """Jobs by their ids, and the latest of a class and of a tenant, maps and reduces apart."""

    def __init__(self, past_jobs: int = PAST_JOBS) -> None:
        self._past_jobs = past_jobs
        self._jobs: OrderedDict[str, JobTally] = OrderedDict()
        self._alike: dict[tuple[str, Kind, str], deque[str]] = {}

    def add(self, seen: Seen) -> None:
        job = seen.asked.job
        tally = self._jobs.get(job)
        if tally is None:
            tally = self._jobs[job] = JobTally()
            if len(self._jobs) > MOST_JOBS:
                self._jobs.popitem(last=False)
        for key in _keys(seen.asked):
            # One more than count, as one of them may be the job that is asked for.
            alike = self._alike.setdefault(key, deque(maxlen=self._past_jobs + 1))
            if job not in alike:
                alike.append(job)
        tally.add(seen, self.input_bytes(seen.asked))

    def fork(self) -> Tallies:
        """With those jobs only that tell something of others."""
        fork = Tallies(self._past_jobs)
        fork._alike = {key: alike.copy() for key, alike in self._alike.items()}
        told = {job for alike in fork._alike.values() for job in alike}
        fork._jobs.update((job, tally.fork()) for job, tally in self._jobs.items() if job in told)
        return fork

    def own(self, task: TaskFeatures, pick: Pick) -> float | None:
        """The mean of the task's own job."""
        tally = self._jobs.get(task.job)
        return None if tally is None else pick(tally).mean

    def past(self, task: TaskFeatures, pick: Pick) -> float | None:
        """The mean over past jobs of its class, else of its tenant."""
        for key in _keys(task):
            means = [mean for job in self._past(key, task) if (mean := pick(job).mean) is not None]
            if means:
                return sum(means) / len(means)
        return None

    def _past(self, key: tuple[str, Kind, str], task: TaskFeatures) -> list[JobTally]:
        """The latest jobs of a kind, without the task's own."""
        others = [job for job in self._alike.get(key, ()) if job != task.job]
        return [self._jobs[job] for job in others[-self._past_jobs :] if job in self._jobs]

    def selectivity(self, task: TaskFeatures) -> float | None:
        """Of its own maps, else of those of similar jobs."""
        own = self._jobs.get(task.job)
        if own is not None and own.selectivity is not None:
            return own.selectivity
        for key in _keys(task._replace(kind=MAP)):
            jobs = self._past(key, task)
            read = sum(job.map_in_bytes for job in jobs)
            if read:
                return sum(job.map_out_bytes for job in jobs) / read
        return None

    def input_bytes(self, task: TaskFeatures) -> float | None:
        """What a task reads: a map its split, a reduce its part of what the maps leave."""
        if task.kind == MAP:
            return task.input_bytes
        reduces = max(1, task.reduces)
        if task.shuffled_bytes is not None:
            return task.shuffled_bytes / reduces
        selectivity = self.selectivity(task)
        if selectivity is None or task.map_bytes is None:
            return None
        return selectivity * task.map_bytes / reduces


def _keys(task: TaskFeatures) -> list[tuple[str, Kind, str]]:
    """The past that counts: of the same class first; jobs without a class have only a tenant."""
    named = [("class", task.kind, task.class_name)] if task.class_name else []
    return [*named, ("tenant", task.kind, task.tenant)]
