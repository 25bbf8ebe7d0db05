"""How early approximate answers become good: time to x % error reduction (ReLAQS)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from queryard.core.events import AnswerReported
from queryard.core.model import JobId

from .response import mean
from .rows import QueryRow, RunRows

REDUCTIONS = (0.5, 0.7, 0.9, 0.99)


def error_left(answers: Sequence[AnswerReported]) -> list[float]:
    """What is left of the error after each answer of one job, 1 after the first.

    It is what the engine expects to be left, else the reported error relative to the first one.
    Where an answer came without either, it is ReLAQS's proxy for all: P_1 = 1, then the change of
    the answer over the largest change up to then, that of the second batch being the first that
    counts.
    """
    expected = [answer.left for answer in answers if answer.left is not None]
    if expected and len(expected) == len(answers):
        return expected
    errors = [answer.error for answer in answers if answer.error is not None]
    if errors and len(errors) == len(answers):
        return [error / errors[0] if errors[0] else 0.0 for error in errors]
    changes = [change for answer in answers for change in (*answer.before, answer.change)][1:]
    largest = accumulate(changes, max)
    pairs = zip(changes, largest, strict=True)
    proxies = [1.0, *(change / most if most else 0.0 for change, most in pairs)]
    ends = accumulate(len(answer.before) + 1 for answer in answers)
    return [proxies[end - 1] for end in ends]


@dataclass(frozen=True, slots=True)
class Reduction:
    """How soon the online queries reach one reduction of the error (0.9 is 90 %).

    `mean_s` is over the `reached` of the `queries`, from their submission.
    """

    reduction: float
    queries: int
    reached: int
    mean_s: float | None
    max_s: float | None


def time_to_reduction(run: RunRows, reduction: float) -> dict[str, float | None]:
    """By query: seconds from submission to the first answer with the error reduced by this share.

    A query with several answering jobs has it when all of them have. One that ran to its exact
    answer has no error left from then on; one that stops at a target error may never get there.
    """
    of_job: dict[str, list[AnswerReported]] = {}
    for answer in run.answers:
        of_job.setdefault(answer.job, []).append(answer)
    of_query: dict[str, list[list[AnswerReported]]] = {}
    for job, answers in of_job.items():
        of_query.setdefault(JobId.of(job).query, []).append(answers)
    return {
        name: _reached_s(row, of_query.get(name, []), reduction)
        for name, row in run.queries.items()
        if row.query.kind == "online"
    }


def _reached_s(
    row: QueryRow, jobs: Sequence[Sequence[AnswerReported]], reduction: float
) -> float | None:
    times_s = [_first_s(answers, 1.0 - reduction) for answers in jobs]
    known_s = [time_s for time_s in times_s if time_s is not None]
    reached = [max(known_s) - row.submit_s] if known_s and len(known_s) == len(times_s) else []
    if row.response_s is not None and row.query.target_error is None:
        reached.append(row.response_s)
    return min(reached, default=None)


def _first_s(answers: Sequence[AnswerReported], most_left: float) -> float | None:
    for answer, left in zip(answers, error_left(answers), strict=True):
        if left <= most_left + 1e-12:  # 1 - 0.9 is a little below 0.1
            return answer.time_s
    return None


def reductions(run: RunRows, levels: Iterable[float] = REDUCTIONS) -> tuple[Reduction, ...]:
    """One row per level; none where the run has no online query."""
    found = []
    for level in levels:
        times_s = time_to_reduction(run, level)
        reached = [time_s for time_s in times_s.values() if time_s is not None]
        if times_s:
            found.append(
                Reduction(
                    reduction=level,
                    queries=len(times_s),
                    reached=len(reached),
                    mean_s=mean(reached) if reached else None,
                    max_s=max(reached, default=None),
                )
            )
    return tuple(found)
