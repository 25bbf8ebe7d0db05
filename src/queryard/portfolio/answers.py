"""How unsure the provisional answers of online queries are, over time."""

from __future__ import annotations

from collections.abc import Iterable

from queryard.core.events import AnswerReported
from queryard.core.model import JobId
from queryard.metrics.online import error_left

# What the first answer leaves of not knowing: half; the rest goes as its error does.
FIRST = 0.5

Steps = tuple[tuple[float, float], ...]


def unsure_by_query(reported: Iterable[AnswerReported]) -> dict[str, Steps]:
    """By query: from when on it has an answer, and how unsure that is, from 0.5 down to 0.

    A query whose answer has several parts is as unsure as the worst of them.

    >>> told = [AnswerReported(t, "q/agg", n, 1.0, 1.0, e) for t, n, e in ((2.0, 1, 8.0), (4.0, 2, 2.0))]
    >>> unsure_by_query(told)
    {'q': ((2.0, 0.5), (4.0, 0.125))}
    """
    of_job: dict[str, list[AnswerReported]] = {}
    for answer in reported:
        of_job.setdefault(answer.job, []).append(answer)
    of_query: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for job, answers in of_job.items():
        steps = [
            (answer.time_s, FIRST * min(1.0, left))
            for answer, left in zip(answers, error_left(answers), strict=True)
        ]
        of_query.setdefault(JobId.of(job).query, {})[job] = steps
    return {query: _worst(jobs) for query, jobs in of_query.items()}


def _worst(jobs: dict[str, list[tuple[float, float]]]) -> Steps:
    if len(jobs) == 1:
        return tuple(next(iter(jobs.values())))
    now: dict[str, float] = {}
    found = []
    for time_s, job, left in sorted((t, job, left) for job in jobs for t, left in jobs[job]):
        now[job] = left
        if len(now) == len(jobs):
            found.append((time_s, max(now.values())))
    return tuple(found)
