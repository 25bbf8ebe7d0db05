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

    >>> first = AnswerReported(2.0, "q/agg", 1, 1.0, 1.0, error=8.0)
    >>> unsure_by_query([first, first._replace(time_s=4.0, batch=2, error=2.0)])
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
    told = sorted((time_s, job, left) for job in jobs for time_s, left in jobs[job])
    for time_s, name, left in told:
        now[name] = left
        if len(now) == len(jobs):
            found.append((time_s, max(now.values())))
    return tuple(found)
