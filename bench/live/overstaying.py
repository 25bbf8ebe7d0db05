"""A clairvoyant scheduler whose slots overstay as long as steps of DuckDB were seen to.

It knows the real work of each query and how wide it runs alone. Slots are a fluid, as in
`queryard.sim.references`; but a slot that is revoked goes on with its query until the step ends.
How long that takes is measured: in a run of a session, each revoked slot says when it has left. A
query of the simulation draws from what was seen of its template, or else of all. As in a session,
one such slot at a time may be replaced at once, by a thread beyond the number of slots; the threads
then share the cores. A revoked slot that its query may have again before it has left just stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from queryard.backends.local.member import LeasedExecution
from queryard.load import Alone, Ground, Played, Request, play
from queryard.load.targets import SessionTarget

_ROUNDING = 1e-9
# By template, how long revoked slots took to leave.
Overstays = Mapping[str, Sequence[float]]


@dataclass
class Task:
    """One query: what is left of its work, and the slots that work on it."""

    request: Request
    left_s: float
    widest: float
    due_s: float | None
    held: float = 0.0
    # Until when revoked slots stay, and how many.
    leaving: list[tuple[float, float]] = field(default_factory=list)

    @property
    def threads(self) -> float:
        return self.held + sum(slots for _, slots in self.leaving)


# The smallest is served first; the time is the second argument.
Rule = Callable[[Task, float], tuple[float, ...]]


def shortest(task: Task, now: float) -> tuple[float, ...]:
    """The least work left."""
    return (task.left_s,)


def earliest_deadline(task: Task, now: float) -> tuple[float, ...]:
    """The earliest deadline that can be met yet; then the least work left."""
    if task.due_s is None or _slack_s(task, now) < 0:
        return (1.0, task.left_s)
    return (0.0, task.due_s)


def least_laxity(task: Task, now: float) -> tuple[float, ...]:
    """The least time to spare for a deadline that can be met yet; then the least work left."""
    if task.due_s is None or _slack_s(task, now) < 0:
        return (1.0, task.left_s)
    return (0.0, _slack_s(task, now))


def _slack_s(task: Task, now: float) -> float:
    assert task.due_s is not None
    return task.due_s - now - task.left_s / task.widest + _ROUNDING


def clairvoyant(
    requests: Sequence[Request],
    alone: Mapping[str, Alone],
    slots: int,
    rule: Rule,
    overstays: Overstays,
    seed: int = 0,
) -> dict[str, float]:
    """The response of each request, in seconds.

    Without overstaying steps, a small query goes before a large one at once:

    >>> alone = {"long": Alone(10.0, 20.0), "short": Alone(1.0, 2.0)}
    >>> asked = [Request("1", 0.0, "t", "long", ""), Request("2", 1.0, "t", "short", "")]
    >>> clairvoyant(asked, alone, 2, shortest, {})
    {'1': 11.0, '2': 1.0}

    With steps of half a second, one slot is replaced at once, so that three threads share two
    cores; the other one comes when it comes:

    >>> found = clairvoyant(asked, alone, 2, shortest, {"long": [0.5]})
    >>> {name: round(response_s, 2) for name, response_s in found.items()}
    {'1': 11.0, '2': 1.33}
    """
    draw = Random(f"overstaying/{seed}")
    seen = [seconds for found in overstays.values() for seconds in found]
    coming = sorted(requests, key=lambda request: -request.time_s)
    tasks: list[Task] = []
    responses: dict[str, float] = {}
    now = 0.0
    while coming or tasks:
        while coming and coming[-1].time_s <= now + _ROUNDING:
            tasks.append(_task(coming.pop(), alone, slots))
        _deal(tasks, slots, now, rule, lambda task: _stay_s(task, overstays, seen, draw))
        busy = sum(task.threads for task in tasks)
        share = min(1.0, slots / busy) if busy else 1.0
        ends = [task.left_s / (task.threads * share) for task in tasks if task.threads]
        ends += [until - now for task in tasks for until, _ in task.leaving]
        if coming:
            ends.append(coming[-1].time_s - now)
        step_s = max(_ROUNDING, min(ends))
        now += step_s
        for task in list(tasks):
            task.left_s -= task.threads * share * step_s
            task.leaving = [(until, n) for until, n in task.leaving if until > now + _ROUNDING]
            if task.left_s <= _ROUNDING:
                tasks.remove(task)
                responses[task.request.id] = now - task.request.time_s
    return {request.id: responses[request.id] for request in requests}


def _task(request: Request, alone: Mapping[str, Alone], slots: int) -> Task:
    found = alone[request.template]
    within_s = request.due_within_s(alone)
    due_s = None if within_s is None else request.time_s + within_s
    widest = min(float(slots), found.work_s / found.alone_s) or 1.0
    return Task(request, widest * found.alone_s, widest, due_s)


def _stay_s(task: Task, overstays: Overstays, seen: Sequence[float], draw: Random) -> float:
    found = overstays.get(task.request.template) or seen
    return draw.choice(found) if found else 0.0


def _deal(
    tasks: list[Task], slots: float, now: float, rule: Rule, stay_s: Callable[[Task], float]
) -> None:
    """Revoke what others are to have, and give what is free to the first."""
    tasks.sort(key=lambda task: (rule(task, now), task.request.time_s))
    left = slots
    wanted: list[float] = []
    for task in tasks:
        wanted.append(min(task.widest, left))
        left -= wanted[-1]
    for task, most in zip(tasks, wanted, strict=True):
        if task.held > most + _ROUNDING:
            stays_s = stay_s(task)
            if stays_s > 0:
                task.leaving.append((now + stays_s, task.held - most))
            task.held = most
        while task.leaving and task.held < most - _ROUNDING:
            until, back = task.leaving.pop()
            kept = min(back, most - task.held)
            task.held += kept
            if back > kept:
                task.leaving.append((until, back - kept))
    overstaying = sum(n for task in tasks for _, n in task.leaving)
    free = slots - sum(task.held for task in tasks) - max(0.0, overstaying - 1.0)
    for task, most in zip(tasks, wanted, strict=True):
        given = max(0.0, min(free, most - task.held))
        task.held += given
        free -= given


# --- measured ------------------------------------------------------------------------------------


class _Watched(SessionTarget):
    """A session of which it is known which query was which request."""

    def request_of(self, query: str) -> str | None:
        return self._requests.get(query)


def play_watched(
    requests: Sequence[Request],
    policy: str,
    ground: Ground,
    alone: Mapping[str, Alone],
    history: Path | None = None,
) -> tuple[Played, dict[str, list[float]]]:
    """Play requests in a session; by template, how long revoked slots took to leave."""
    templates = {request.id: request.template for request in requests}
    overstays: dict[str, list[float]] = {}
    target = _Watched(policy, ground, policy, history=history)
    try:
        with _departures() as departures:
            played = play(requests, target, alone)
        for query, after_s in departures:
            template = templates.get(target.request_of(query) or "")
            if template is not None:
                overstays.setdefault(template, []).append(after_s)
    finally:
        target.close()
    return played, overstays


@contextmanager
def _departures() -> Iterator[list[tuple[str, float]]]:
    """(query, seconds) of each slot that leaves after it was revoked."""
    found: list[tuple[str, float]] = []
    left = LeasedExecution.left

    def noted(run: LeasedExecution, after_s: float) -> None:
        found.extend((member.query, after_s) for member in list(run.members.values())[:1])
        left(run, after_s)

    with patch.object(LeasedExecution, "left", noted):
        yield found


def told(overstays: Overstays) -> str:
    """What was measured, in words."""
    seen = sorted(seconds for found in overstays.values() for seconds in found)
    if not seen:
        return "no slot was revoked"
    at = [seen[min(len(seen) - 1, math.floor(share * len(seen)))] * 1e3 for share in (0.5, 0.9)]
    return (
        f"{len(seen)} revoked slots left after {at[0]:.0f} ms (median), {at[1]:.0f} ms (90th "
        f"percentile), {seen[-1] * 1e3:.0f} ms (longest)"
    )
