"""Who may come while the queue is worked off: a stretch of the latest past, once more.

Without them a policy would be judged by what it does to those who are there, and never by what
these leave to the next; and a cluster that is too small for what comes would look cheap.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from itertools import count, pairwise
from random import Random

from queryard.core.model import Query
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
    most_tasks = max(MOST_TASKS, _waiting(scheduler))
    found = []
    for world in range(worlds):
        first = Random(f"{world}:{state.now}").randrange(len(queries))
        at_s, tasks = state.now, 0
        coming: list[Coming] = []
        for number in count():
            place = (first + number) % len(queries)
            query = queries[place]
            at_s += gaps_s[place]
            tasks += sum(job.maps + job.reduces for job in query.jobs)
            is_late = at_s > state.now + takes_s and number >= LEAST_COMING
            if is_late or tasks > most_tasks:
                break
            again = _again(query, _free_name(number, state.queries), at_s)
            coming.append(Coming(Arrival(again, past.truth(query, scheduler)), past.told(query)))
        found.append(tuple(coming))
    return tuple(found)


def _waiting(scheduler: Scheduler) -> int:
    """How many tasks the queue has left."""
    jobs = scheduler.state.jobs.values()
    phases = (phase for job in jobs for phase in (job.map, job.reduce))
    return sum(phase.left for phase in phases if phase is not None)


def _again(query: Query, name: str, at_s: float) -> Query:
    """The query as another one, at another time, with as much time until its deadline."""
    due_s = query.deadline_s
    if due_s is not None:
        due_s += at_s - query.submit_s
    return replace(query, id=name, submit_s=at_s, deadline_s=due_s, idempotency_key="")


def _free_name(number: int, taken: Container[str]) -> str:
    """Nobody has it who is there."""
    name = f"coming-{number}"
    while name in taken:
        name += "'"
    return name
