"""How soon answers become good, under three readings of what the error of an answer is.

`sampling` is the standard error the simulator gives to every answer. `actual` is what the paper
plots: how far this very answer is from the exact one, over the largest such distance; by luck an
answer may be good early. `law` is the paper's derivation, an error of 1/i after batch i (§4.4).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from queryard.core.events import AnswerReported
from queryard.metrics.online import error_left
from queryard.metrics.runs import read_run
from queryard.policies.profiles import PROFILES
from queryard.sim.leases import LeasedJob
from queryard.workload import Arrival
from research.outcome import Interval, RunOptions
from research.trials import Setting

from .queries import Scene, setting

SAMPLING, ACTUAL, LAW = "sampling", "actual", "law"
READINGS = (SAMPLING, ACTUAL, LAW)
WORDS = {SAMPLING: "standard error", ACTUAL: "actual error", LAW: "error of 1/i"}
FAIR, RELAQS = "query-fair", "relaqs"
EXACT = 1.0
BY_CHANCE = "may be chance"
# Times that differ by less than this share are equal.
EQUAL = 5e-3
LEVELS = (*(step / 200 for step in range(40, 200)), 0.997, 0.998, 0.999, EXACT)

Profiles = Mapping[str, Mapping[str, Any]]
BOTH: Profiles = {FAIR: PROFILES[FAIR], RELAQS: PROFILES[RELAQS]}


@dataclass(frozen=True, slots=True)
class Curve:
    """One run: by reading, the seconds from submission of each query to each of `LEVELS`.

    Queries are in the order of their submission; `work_s` is what each takes in core-seconds.
    """

    times_s: Mapping[str, tuple[tuple[float, ...], ...]]
    work_s: tuple[float, ...]
    makespan_s: float

    def mean_s(self, reading: str) -> tuple[float, ...]:
        """The mean time of the queries to each of `LEVELS`."""
        columns = zip(*self.times_s[reading], strict=True)
        return tuple(sum(column) / len(self.work_s) for column in columns)

    def at(self, reading: str, level: float) -> float:
        """The mean time of the queries to a level."""
        place = LEVELS.index(level)
        return sum(times[place] for times in self.times_s[reading]) / len(self.work_s)

    def of_queries(self, reading: str, level: float) -> list[float]:
        """The time of every query to a level."""
        place = LEVELS.index(level)
        return [times[place] for times in self.times_s[reading]]


def relaqs_with(**settings: float) -> Mapping[str, Any]:
    """The published scheduler with other settings of its allocation."""
    pools = PROFILES[RELAQS]["pools"]
    online = {**pools["children"]["online"], "order": {"name": "progress", **settings}}
    return {
        **PROFILES[RELAQS],
        "pools": {**pools, "children": {**pools["children"], "online": online}},
    }


# Decisions half as often make long series of runs affordable; relaqs-time shows what it changes.
ROUGH_EPOCH_S = 10.0
ROUGH: Profiles = {**BOTH, RELAQS: relaqs_with(epoch_s=ROUGH_EPOCH_S)}


def curves(
    options: RunOptions, title: str, scene: Scene, seeds: int, profiles: Profiles = BOTH
) -> dict[str, list[Curve]]:
    """Every scheduler on the queries of every seed."""
    found: dict[str, list[Curve]] = {name: [] for name in profiles}
    for seed in range(seeds):
        options.tell(f"{title}, seed {seed}")
        built = setting(scene, seed)
        for name, profile in profiles.items():
            found[name].append(curve(built, profile, seed))
    return found


def curve(built: Setting, profile: Mapping[str, Any], seed: int) -> Curve:
    """One scheduler on the queries of one seed."""
    run = read_run(built.simulate(profile, seed).journal)
    of_job: dict[str, list[AnswerReported]] = {}
    for answer in run.answers:
        of_job.setdefault(answer.job, []).append(answer)
    times_s: dict[str, list[tuple[float, ...]]] = {reading: [] for reading in READINGS}
    for arrival in built.workload.arrivals:
        (job,) = arrival.query.jobs
        answers = of_job[arrival.query.job_id(job.name)]
        waited_s = [answer.time_s - arrival.query.submit_s for answer in answers]
        for reading, left in errors_left(arrival, answers, seed).items():
            times_s[reading].append(first_times(waited_s, left))
    return Curve(
        {reading: tuple(rows) for reading, rows in times_s.items()},
        tuple(arrival.work_s for arrival in built.workload.arrivals),
        run.makespan_s or 0.0,
    )


def errors_left(
    arrival: Arrival, answers: Sequence[AnswerReported], seed: int
) -> dict[str, list[float]]:
    """By reading, what is left of the error after each answer of a query."""
    (job,) = arrival.query.jobs
    job_id = arrival.query.job_id(job.name)
    values = [x for x, _ in LeasedJob(job_id, job, arrival.truth[job.name], None, seed).answers]
    away = [abs(value - values[-1]) for value in values]
    return {
        SAMPLING: error_left(answers),
        ACTUAL: [distance / max(away) for distance in away],
        LAW: [*(1.0 / answer.batch for answer in answers[:-1]), 0.0],
    }


def first_times(waited_s: Sequence[float], left: Sequence[float]) -> tuple[float, ...]:
    """When an error is first so much smaller, a time for each of `LEVELS`.

    >>> times_s = first_times([10.0, 20.0, 30.0], [1.0, 0.6, 0.0])
    >>> times_s[0], times_s[LEVELS.index(0.5)]
    (20.0, 30.0)
    """
    reached = [1.0 - least for least in accumulate(left, min)]
    return tuple(waited_s[bisect_left(reached, level - 1e-12)] for level in LEVELS)


def crossing(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The highest of `LEVELS` that is reached earlier by ours; 0 if there is none.

    >>> crossing([1.0] * len(LEVELS), [2.0] * (len(LEVELS) - 1) + [0.5])
    0.999
    """
    pairs = zip(LEVELS, ours, theirs, strict=True)
    sooner = (level for level, our_s, their_s in pairs if our_s < their_s * (1 - EQUAL))
    return max(sooner, default=0.0)


def crossings(
    found: Mapping[str, Sequence[Curve]], reading: str, ours: str = RELAQS
) -> list[float]:
    """The crossing point with fair sharing, seed by seed."""
    return [
        crossing(one.mean_s(reading), other.mean_s(reading))
        for one, other in zip(found[ours], found[FAIR], strict=True)
    ]


def chance(found: Interval) -> str:
    """A warning where a difference may be one of luck."""
    return BY_CHANCE if found.reaches(0.0) else ""


def mean_curve(runs: Sequence[Curve], reading: str) -> tuple[float, ...]:
    """Mean times over seeds, a time for each of `LEVELS`."""
    columns = zip(*(run.mean_s(reading) for run in runs), strict=True)
    return tuple(sum(column) / len(runs) for column in columns)


def times(runs: Sequence[Curve], reading: str, level: float) -> list[float]:
    """The mean time to a level, seed by seed."""
    return [run.at(reading, level) for run in runs]
