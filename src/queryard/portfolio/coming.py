"""Who may come while the queue is worked off: a stretch of the latest past, once more.

Without them a policy would be judged by what it does to those who are there, and never by what
these leave to the next; and a cluster that is too small for what comes would look cheap.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice, pairwise
from random import Random

from queryard.core.model import Query
from queryard.core.scheduler import Scheduler
from queryard.workload.model import Arrival, JobTruth

from . import queue
from .past import Past
from .what_if import Coming

# From fewer queries nothing is concluded about the next.
LEAST_PAST = 8
# They come for so many times as long as the queue will take, and have no more tasks than it has, or
# so many.
HORIZON, LEAST_TASKS = 2.0, 500


def foresee(
    past: Past, scheduler: Scheduler, worlds: int, most: int
) -> tuple[tuple[Coming, ...], ...]:
    """By world, who comes: the past from any moment on, as dense as it was, round and round.

    What closes the round is the time since the last one came. In the place of one that has not
    ended comes another, as what it will take is not known; one that is too large does not come. The
    queue and they together have at most so many tasks.
    """
    state = scheduler.state
    latest = past.queries
    ended = [query for query in latest if query.id not in state.queries]
    waiting = queue.tasks(state)
    most_tasks = min(max(waiting, LEAST_TASKS), most - waiting)
    horizon_s = HORIZON * queue.takes_s(state)
    if len(ended) < LEAST_PAST or most_tasks <= 0:
        return ((),) * worlds
    truths: dict[str, dict[str, JobTruth]] = {}
    found = []
    for world in range(worlds):
        chance = Random(f"{world}:{state.now}")
        coming: list[Coming] = []
        left = most_tasks
        # Each has a task at least.
        for after_s, query in islice(_round(latest, state.now, chance), most_tasks):
            if after_s > horizon_s:
                break
            if query.id in state.queries:
                query = chance.choice(ended)
            tasks = sum(job.maps + job.reduces for job in query.jobs)
            if tasks > left:
                continue
            left -= tasks
            if query.id not in truths:
                truths[query.id] = past.truth(query, scheduler)
            again = _again(query, _free_name(len(coming), state.queries), state.now + after_s)
            coming.append(Coming(Arrival(again, truths[query.id]), past.told(query)))
        found.append(tuple(coming))
    return tuple(found)


def _round(queries: Sequence[Query], now: float, chance: Random) -> Iterator[tuple[float, Query]]:
    """Who comes after how long, from a moment on that is drawn; if all came at once, once."""
    gaps_s = [later.submit_s - one.submit_s for one, later in pairwise(queries)]
    gaps_s.insert(0, max(0.0, now - queries[-1].submit_s))
    round_s = sum(gaps_s)
    if round_s <= 0:
        yield from ((0.0, query) for query in queries)
        return
    at_s = -chance.random() * round_s
    for place in cycle(range(len(queries))):
        at_s += gaps_s[place]
        if at_s > 0:
            yield at_s, queries[place]


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
