"""Why a query waits, and what happened to it: the kernel in words.

What is ahead, and which rule, cap or reservation holds a query, is known here. *When* it will
start and end is a forecast (`queryard.sim.forecast`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Any

from .codec import encode_named
from .entities import JobState, QueryState
from .errors import QueryardError, unknown_name
from .journal import Step
from .kernel import Kernel
from .model import JobId, TaskId
from .pools import Pool
from .readable import several
from .state import State


@dataclass(frozen=True, slots=True)
class Why:
    """What holds a query: the reasons in words, and the ids of the queries ahead of it."""

    query: str
    stage: str
    slots: int
    pool: str
    rule: str
    ahead: tuple[str, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.query} is {self.stage}: " + "; ".join(self.reasons)


def why(scheduler: Kernel, query_id: str) -> Why:
    """What is ahead of an active query and which rule, cap or reservation holds it."""
    state = scheduler.state
    query = state.queries.get(query_id)
    if query is None:
        raise QueryardError(unknown_name("active query", query_id, state.queries))
    leaf = scheduler.tree.pools[query.pool]
    assert leaf.order is not None
    ahead = _ahead(state, leaf, query)
    return Why(
        query=query.id,
        stage=query.stage,
        slots=query.slots,
        pool=leaf.path or "all",
        rule=leaf.order.name,
        ahead=ahead,
        reasons=tuple(_reasons(scheduler, leaf, query, ahead)),
    )


def _ahead(state: State, leaf: Pool, query: QueryState) -> tuple[str, ...]:
    """Queries that stand before this one in some ranking it stands in."""
    own = {job.uid for job in query.jobs} | {query.uid}
    ahead: dict[str, None] = {}
    for lane, (ranking, gate) in enumerate(zip(leaf.lanes, leaf.gates, strict=True)):
        # Where it is bound to a host, jobs that are bound to others are not in its way.
        hosts = {host for uid in own for host in leaf.homes.get((uid, lane), ())}
        if not hosts or "" in hosts:
            hosts = set(leaf.apart)
        bound = [leaf.turns(leaf.apart[host][lane], state) for host in hosts]
        before: list[str] = []
        for _, uid in merge(leaf.turns(ranking, state), leaf.turns(gate, state), *bound):
            if uid in own:
                ahead.update(dict.fromkeys(before))
                break
            before.append(leaf.members[uid].query.id)
    return tuple(name for name in ahead if name != query.id)


def _reasons(
    scheduler: Kernel, leaf: Pool, query: QueryState, ahead: tuple[str, ...]
) -> Iterator[str]:
    state = scheduler.state
    if query.stage == "ending":
        yield f"it ends ({query.cause}); {several(query.slots, 'slot')} to come back"
        return
    if query.slots:
        yield f"{several(query.slots, 'slot')} at work on it"
    if not state.nodes:
        yield "the cluster has no nodes"
    if query.stage == "waiting" and state.paused_by is not None:
        by = f" by {state.paused_by}" if state.paused_by else ""
        yield f"no query starts: paused{by}"
        return
    demand = query.memory_bytes
    if query.stage == "waiting" and not state.fits(query):
        free = max(0.0, state.memory_bytes - state.reserved_bytes)
        where = ""
        if state.apart and query.is_of_one_host:
            where = f" on one of {len(state.hosts)} hosts"
        spared = state.spared_bytes(query)
        kept = f", of which {spared:g} are kept for small queries" if spared else ""
        yield f"it needs {demand:g} bytes of memory{where} and {free:g} are free{kept}"
    waiter = scheduler.admission.waiting()
    is_behind = query.stage == "waiting" and demand and waiter is not query
    if waiter and is_behind and not scheduler.admission.may_pass(query, waiter):
        yield f"memory is kept for {waiter.id}, which was refused first"
    pool: Pool | None = leaf
    while pool is not None:
        if pool.spec.cap < 1 and pool.used + 1 > pool.cap:
            yield f"pool {pool.path or 'all'} is at its cap of {several(pool.cap, 'slot')}"
        for rival in _guaranteed(scheduler, pool):
            slots = several(rival.guarantee, "slot")
            drawn = pool.parent is not None and pool.parent.drawn_s > -math.inf
            due = f"the {slots} that it drew" if drawn else f"its guarantee of {slots}"
            yield f"pool {rival.path} is below {due}"
        yield from _turns(pool, query)
        pool = pool.parent
    for job in query.jobs:
        end_s = scheduler.sharing.scanned_s(job, state)
        if end_s is not None:
            wait_s = end_s - state.now
            others = scheduler.sharing.companions(job, state)
            company = f" with {', '.join(others[:5])}" if others else ""
            company += f" and {len(others) - 5} more" if len(others) > 5 else ""
            yield (
                f"job {job.spec.name} rides on a shared scan{company} and has read all in "
                f"{wait_s:.3g} s"
            )
    runnable = [job for job in query.jobs if job.lanes]
    for job in runnable:
        if state.apart and job.host:
            yield f"job {job.spec.name} has started on {job.host!r} and can use its slots only"
    for job in query.jobs:
        yield from _elsewhere(job)
    if not runnable:
        yield from (_job_reason(job) for job in query.jobs if not job.done)
    elif ahead:
        assert leaf.order is not None
        first = ", ".join(ahead[:3]) + (" …" if len(ahead) > 3 else "")
        yield f"the order {leaf.order.name} puts {several(len(ahead), 'query')} before it: {first}"
    else:
        free_slots = _free_slots(state, runnable)
        if free_slots:
            yield f"{scheduler.policy.name} keeps back {several(free_slots, 'free slot')}"
        else:
            yield "it is next in its pool; all slots are busy"


def _elsewhere(job: JobState) -> Iterator[str]:
    """What of a job has failed at nodes, so that others come first."""
    failed = [("it", job.failed_at)] if job.failed_at is not None and not job.host else []
    for phase in (job.map, job.reduce):
        if phase is not None:
            failed += [(f"{phase.kind} {index}", phase.failed_at[index]) for index in phase.aside]
    for what, at in failed[:3]:
        yield f"job {job.spec.name}: {what} failed at {', '.join(at.places)}; others come first"


def _free_slots(state: State, jobs: list[JobState]) -> int:
    """Free slots that some of the jobs could use."""
    hosts = {job.host for job in jobs} if state.apart else {""}
    return sum(
        node.free
        for node in state.nodes.values()
        if node.host in hosts or ("" in hosts and not node.draining)
    )


def _turns(pool: Pool, query: QueryState) -> Iterator[str]:
    """Which pools have their turn before the query's pool."""
    if not pool.takes_turns or pool.parent is None or query.slots:
        return
    rivals = [other for other in pool.parent.names.values() if other.used or any(other.ready)]
    before = sorted((other.virtual_s, other.path) for other in rivals if other is not pool)
    first = [path for virtual_s, path in before if virtual_s < pool.virtual_s]
    if first:
        yield f"pools take turns; before {pool.path} comes {', '.join(first[:3])}"
    elif pool.used == 0 and before:
        yield f"pools take turns; {pool.path} is next"


def _guaranteed(scheduler: Kernel, pool: Pool) -> Iterator[Pool]:
    for rival in scheduler.tree.pools.values():
        same_parent = rival.parent is not None and rival.parent is pool.parent
        if same_parent and rival is not pool and rival.used < rival.guarantee and any(rival.ready):
            yield rival


def owes(scheduler: Kernel) -> bool:
    """Whether a pool waits that uses less than it is promised."""
    tree = scheduler.tree
    return any(
        pool.used < pool.spec.promised * tree.slots
        for pool in tree.pools.values()
        if pool.parent is not None and any(pool.ready)
    )


def _job_reason(job: JobState) -> str:
    name = job.spec.name
    if job.blockers:
        return f"job {name} waits for {several(job.blockers, 'upstream job')}"
    if job.held_back:
        return f"job {name} waits for the next round of the shared scan"
    if job.map is None:
        if job.restarting:
            return f"job {name} begins again after the return of {several(job.slots, 'slot')}"
        if job.is_stalled:
            return f"job {name} can use no slots now"
        return f"job {name} has all it can use: {several(job.slots, 'slot')}"
    if not job.maps_done:
        return f"job {name} runs its last {several(job.map.running, 'map')}"
    running = job.reduce.running if job.reduce else 0
    return f"job {name} runs its last {several(running, 'reduce')}"


def story(steps: list[Step], entity: str) -> list[tuple[float, str]]:
    """Everything in a journal that names a query, job, task, node or table.

    A query's story includes that of its jobs and tasks; a launch is told where its tasks are.
    """
    launches: set[int] = set()
    told: list[tuple[float, str]] = []
    for step in steps:
        for item in (*step.events, *step.commands):
            data = encode_named(item)
            number = data.get("launch", data.get("number"))
            if number in launches or _names(data, entity):
                if data["type"] == "Launch":
                    launches.add(data["number"])
                told.append((step.time_s, _sentence(data)))
    return told


def _names(data: Any, entity: str) -> bool:
    if isinstance(data, str):
        return data == entity or data.startswith(f"{entity}/") or data.startswith(f"{entity}:")
    if isinstance(data, dict):
        if "jobs" in data:  # a query as submitted; its jobs have no ids of their own there
            jobs = {str(JobId(data["id"], job["name"])) for job in data["jobs"]}
            tables = {table for job in data["jobs"] for table in job.get("scans", ())}
            return entity == data["id"] or entity in jobs or entity in tables
        if data.keys() == {"job", "kind", "index"}:
            return str(TaskId(**data)) == entity or _names(data["job"], entity)
        return any(_names(value, entity) for key, value in data.items() if key != "type")
    return isinstance(data, list) and any(_names(value, entity) for value in data)


def _sentence(data: dict[str, Any]) -> str:
    fields = {k: v for k, v in data.items() if k not in ("type", "time_s", "query", "tasks")}
    query = data.get("query")
    if query is not None:
        fields = {"query": query["id"] if isinstance(query, dict) else query, **fields}
    if "tasks" in data:
        fields["tasks"] = " ".join(str(TaskId(**task)) for task in data["tasks"])
    return " ".join([data["type"], *(f"{key}={value}" for key, value in fields.items())])
