"""Who may come while the queue is worked off: a stretch of the latest past, once more.

Without them a policy would be judged by what it does to those who are there, and never by what
these leave to the next; and a cluster that is too small for what comes would look cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count, pairwise
from random import Random

from queryard.core.scheduler import Scheduler
from queryard.workload.model import Arrival

from .past import Past
from .what_if import Coming

# From fewer queries nothing is concluded about the next.
LEAST_PAST = 8
# They come for as long as the queue will take; at least so many do, and no more tasks than the
# queue has, or so many.
LEAST_COMING, MOST_TASKS = 5, 2_500


def foresee(past: Past, scheduler: Scheduler, worlds: int) -> tuple[tuple[Coming, ...], ...]:
    """By world, who comes: the past from anywhere on, as dense as it was, round and round.

    What closes the round is the time since the last one came.
    """
    state = scheduler.state
    queries = past.queries
    if len(queries) < LEAST_PAST:
        return ((),) * worlds
    gaps_s = [later.submit_s - one.submit_s for one, later in pairwise(queries)]
    gaps_s.insert(0, max(0.0, state.now - queries[-1].submit_s))
    takes_s = sum(query.left_s for query in state.queries.values()) / max(1, state.total_slots)
    waiting = sum(
        phase.left
        for job in state.jobs.values()
        for phase in (job.map, job.reduce)
        if phase is not None
    )
    found = []
    for world in range(worlds):
        at = Random(f"{world}:{state.now}").randrange(len(queries))
        at_s, tasks = state.now, 0
        coming: list[Coming] = []
        for number in count():
            place = (at + number) % len(queries)
            query = queries[place]
            at_s += gaps_s[place]
            tasks += sum(job.maps + job.reduces for job in query.jobs)
            is_late = at_s > state.now + takes_s and number >= LEAST_COMING
            if is_late or tasks > max(MOST_TASKS, waiting):
                break
            later_s = at_s - query.submit_s
            due_s = query.deadline_s
            again = replace(
                query,
                id=_free_name(number, state.queries),
                submit_s=at_s,
                deadline_s=None if due_s is None else due_s + later_s,
                idempotency_key="",
            )
            truth = past.truth(query, scheduler)
            coming.append(Coming(Arrival(again, truth), past.told(query)))
        found.append(tuple(coming))
    return tuple(found)


def _free_name(number: int, taken: Mapping[str, object]) -> str:
    """Nobody has it who is there."""
    name = f"coming-{number}"
    while name in taken:
        name += "'"
    return name
