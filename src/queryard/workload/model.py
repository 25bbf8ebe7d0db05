"""A workload: queries as the scheduler will see them, beside the truth it must not see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from queryard.core.errors import InvalidModel
from queryard.core.model import Job, Node, Query, Table, Tenant
from queryard.core.speedup import PERFECT, Speedup

from .error_curves import Points, error_at


@dataclass(frozen=True, slots=True)
class JobTruth:
    """What a job really takes, on a slot of speed 1 with local input and no other task on the node.

    A reduce ends at max(maps done, launch + `shuffle_s`) + `merge_s` + `reduce_s`.
    Divisible work takes `work_s` core-seconds in all, the batch i of a nested online job
    `work_s / batches + growth_s * i`; `batch_overhead_s` is the fixed wall time of a batch, and
    `speedup` how much faster it gets with more slots.
    Where what was parsed can be kept for others, `make_s` is what parsing and keeping takes, and
    `ride_s` what one query takes on what was kept, in place of `map_s` (or of `work_s`) for a query
    that parses for itself (`scan_costs` has what was measured). With 0 nothing can be kept.
    The error of an online answer is `sigma * sqrt((1 - f) / n)` with f the share of the rows
    read and n their number, out of `rows`; or, where it was measured, as `errors` say: pairs of the
    share read and the error (`error_curves` has some).
    Where tasks were measured one by one, `map_times_s` and `reduce_times_s` (shuffle and all) have
    the time of each, and the others are their means.
    """

    map_s: float = 1.0
    shuffle_s: float = 0.0
    merge_s: float = 0.0
    reduce_s: float = 0.0
    work_s: float = 0.0
    growth_s: float = 0.0
    batch_overhead_s: float = 0.0
    sigma: float = 1.0
    rows: float = 1e6
    map_output_bytes: float = 0.0
    map_times_s: tuple[float, ...] = ()
    reduce_times_s: tuple[float, ...] = ()
    speedup: Speedup = PERFECT
    make_s: float = 0.0
    ride_s: float = 0.0
    errors: Points = ()

    def __post_init__(self) -> None:
        if self._is_plain():
            return
        self._check_errors()
        for name in self.__slots__:
            given = getattr(self, name)
            if isinstance(given, Speedup) or name == "errors":
                continue
            for value in given if isinstance(given, tuple) else (given,):
                if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                    problem = f"{name} must be a finite number of at least 0, got {value!r}"
                    raise InvalidModel(problem)

    def _is_plain(self) -> bool:
        """A quick check that finds most values valid: a portfolio's trials make thousands."""
        if self.map_times_s or self.reduce_times_s or self.errors:
            return False
        values = (
            *(self.map_s, self.shuffle_s, self.merge_s, self.reduce_s, self.work_s, self.growth_s),
            *(self.batch_overhead_s, self.sigma, self.rows, self.map_output_bytes),
            *(self.make_s, self.ride_s),
        )
        try:
            return min(values) >= 0 and sum(values) < math.inf
        except TypeError:
            return False

    def _check_errors(self) -> None:
        shares = [share for share, _ in self.errors]
        if shares != sorted(set(shares)) or not all(0 < share < 1 for share in shares):
            raise InvalidModel(f"errors must stand by rising shares between 0 and 1, got {shares}")
        falling = [error for _, error in self.errors]
        if falling != sorted(falling, reverse=True) or not all(error > 0 for error in falling):
            raise InvalidModel(f"errors must be above 0 and never rise, got {falling}")

    def batch_work_s(self, batch: int, batches: int) -> float:
        """Core-seconds of mini-batch `batch`, counted from 1."""
        return self.work_s / batches + self.growth_s * batch

    def error_after(self, batch: int, batches: int) -> float:
        """The true error of an online answer after batch `batch`; the last is exact."""
        if self.errors:
            return error_at(self.errors, batch / batches)
        rows = max(1.0, self.rows / batches) * batch
        return self.sigma * math.sqrt((1.0 - batch / batches) / rows)

    def batches_run(self, batches: int, target_error: float | None) -> int:
        """How many batches an online job runs until its error is small enough."""
        if target_error is None or batches == 1:
            return batches
        enough = (i for i in range(1, batches) if self.error_after(i, batches) <= target_error)
        return next(enough, batches)

    def total_work_s(self, job: Job, target_error: float | None = None) -> float:
        """Core-seconds of the whole job at speed 1, or until its error is small enough."""
        if job.divisible is not None:
            batches = job.divisible.batches
            run = self.batches_run(batches, target_error)
            return self.work_s * run / batches + self.growth_s * run * (run + 1) / 2
        reduce_s = self.shuffle_s + self.merge_s + self.reduce_s
        return job.maps * self.map_s + job.reduces * reduce_s


@dataclass(frozen=True, slots=True)
class Arrival:
    """A query with the truth of each of its jobs, and when it is cancelled, if ever."""

    query: Query
    truth: Mapping[str, JobTruth]
    cancel_s: float | None = None
    size_bin: str = ""

    def __post_init__(self) -> None:
        missing = [job.name for job in self.query.jobs if job.name not in self.truth]
        if missing:
            raise InvalidModel(f"query {self.query.id!r}: no truth for the jobs {missing}")
        for job in self.query.jobs:
            truth = self.truth[job.name]
            for phase, times_s in (
                (job.map, truth.map_times_s),
                (job.reduce, truth.reduce_times_s),
            ):
                if times_s and (phase is None or phase.tasks != len(times_s)):
                    raise InvalidModel(
                        f"query {self.query.id!r}, job {job.name!r}: {len(times_s)} times for "
                        f"{phase.tasks if phase else 0} tasks; give one per task"
                    )

    @property
    def work_s(self) -> float:
        """Core-seconds of the query at speed 1; an online one stops at its target error."""
        target = self.query.target_error
        return sum(self.truth[job.name].total_work_s(job, target) for job in self.query.jobs)


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that users will do to a cluster.

    `tenants` are those with shares; queries may have others.
    """

    name: str
    arrivals: tuple[Arrival, ...]
    tables: tuple[Table, ...] = ()
    nodes: tuple[Node, ...] = ()
    tenants: tuple[Tenant, ...] = ()

    def __post_init__(self) -> None:
        names = [tenant.name for tenant in self.tenants]
        for name in names:
            if names.count(name) > 1:
                raise InvalidModel(f"two tenants have the name {name!r}")
        seen: set[str] = set()
        for arrival in self.arrivals:
            if arrival.query.id in seen:
                raise InvalidModel(f"two queries have the id {arrival.query.id!r}")
            seen.add(arrival.query.id)

    @property
    def tasks(self) -> int:
        """How many map and reduce tasks there are in all."""
        return sum(
            job.maps + job.reduces for arrival in self.arrivals for job in arrival.query.jobs
        )
