"""Every invariant of the kernel, checked from scratch. Tests call this after every step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from .entities import JobState
from .kernel import Kernel
from .lifecycle import DONE, HELD, PENDING, RUNNING
from .model import MAP, REDUCE
from .phases import PhaseState
from .pools import needs_memory


class BrokenInvariant(AssertionError):
    """The kernel contradicts itself: a bug, never a user's mistake."""


def validate(scheduler: Kernel) -> None:
    """Raise `BrokenInvariant` with everything that is wrong."""
    wrong = [
        *_nodes(scheduler),
        *_tasks(scheduler),
        *_queries(scheduler),
        *_pools(scheduler),
        *_rankings(scheduler),
        *(problem for part in scheduler.parts for problem in part.violations(scheduler.state)),
    ]
    if wrong:
        raise BrokenInvariant(f"at {scheduler.state.now}: " + "; ".join(wrong))


def _nodes(scheduler: Kernel) -> Iterator[str]:
    state = scheduler.state
    maps: Counter[str] = Counter()
    reduces: Counter[str] = Counter()
    leased: Counter[str] = Counter()
    for run in (*state.running.values(), *state.beaten.values()):
        (maps if run.tasks[0].kind == MAP else reduces)[run.node] += 1
        if run.node not in state.nodes:
            yield f"launch {run.number} runs on the unknown node {run.node}"
    for job in state.jobs.values():
        for node_id, lease in job.leases.items():
            leased[node_id] += sum(lease)
            if min(lease) < 0 or not any(lease):
                yield f"job {job.id} has the lease {lease} on {node_id}"
    for node in state.nodes.values():
        found = (maps[node.id], reduces[node.id], leased[node.id])
        if found != (node.maps, node.reduces, node.leased):
            yield f"node {node.id} counts {node.maps, node.reduces, node.leased}, runs {found}"
        if node.free < 0 or node.free + sum(found) != node.spec.slots:
            yield f"node {node.id} has {node.spec.slots} slots, {node.free} free, {found} used"
    slots = sum(node.spec.slots for node in state.nodes.values() if not node.draining)
    if slots != state.total_slots:
        yield f"the cluster counts {state.total_slots} slots and has {slots}"


def _tasks(scheduler: Kernel) -> Iterator[str]:
    state = scheduler.state
    running: Counter[tuple[str, str]] = Counter()
    again: Counter[str] = Counter()
    folding: Counter[str] = Counter()
    seen: set[tuple[str, str, int]] = set()
    yield from _twins(scheduler)
    for run in state.running.values():
        if run.number in state.twins and run.tasks[0] in seen:
            again[run.tasks[0].job] += 1
            continue
        for task in run.tasks:
            running[task.job, task.kind] += 1
            folding[task.job] += task.kind == REDUCE and bool(run.round)
            if task in seen:
                yield f"task {task} runs twice"
            seen.add(task)
            job = state.jobs.get(task.job)
            if job is None:
                yield f"task {task} runs for a job that is gone"
    for job in state.jobs.values():
        for kind, phase in ((MAP, job.map), (REDUCE, job.reduce)):
            if phase is not None:
                yield from _phase(job, phase, running[job.id, kind])
        if job.folding != folding[job.id] or job.folds < 0:
            yield f"job {job.id} counts {job.folding} reduces that fold, {folding[job.id]} run"
        slots = running[job.id, MAP] + running[job.id, REDUCE] + again[job.id]
        slots += sum(sum(lease) for lease in job.leases.values())
        if slots != job.slots:
            yield f"job {job.id} counts {job.slots} slots and has {slots}"
        held = sum(lease[HELD] for lease in job.leases.values())
        if held > job.width and not job.finishing:
            yield f"job {job.id} holds {held} slots, more than its width {job.width}"
        yield from _host(scheduler, job)
        if job.reduce is not None and job.reduce.done and job.blockers:
            yield f"job {job.id} has reduced before its upstream jobs were done"


def _twins(scheduler: Kernel) -> Iterator[str]:
    """Launches that run at once for one task name each other, and one that was beaten is out."""
    state = scheduler.state
    for number, other in state.twins.items():
        runs = [state.running.get(number), state.running.get(other)]
        if state.twins.get(other) != number or None in runs:
            yield f"launches {number} and {other} are said to do one task"
        elif runs[0].tasks != runs[1].tasks or len(runs[0].tasks) > 1:  # type: ignore[union-attr]
            yield f"launches {number} and {other} do not do one task"
    if both := state.beaten.keys() & (state.running.keys() | state.killed):
        yield f"launches {sorted(both)} were beaten, and count all the same"


def _host(scheduler: Kernel, job: JobState) -> Iterator[str]:
    """A divisible job that has started holds slots of one host only, which is there."""
    state = scheduler.state
    hosts = {state.nodes[node_id].host for node_id in job.leases if node_id in state.nodes}
    if job.stays and hosts - {job.host}:
        yield f"job {job.id} has started on {job.host!r} and holds slots of {sorted(hosts)}"
    if job.host and not job.stays:
        yield f"job {job.id} is bound to {job.host!r} and may use slots of any host"
    is_open = not job.done and job.query.stage != "ending"
    if job.host and is_open and job.host not in state.hosts:
        yield f"job {job.id} has started on {job.host!r}, which is no host of the cluster"


def _phase(job: JobState, phase: PhaseState, running: int) -> Iterator[str]:
    counts = phase.counts
    where = f"{phase.kind}s of {job.id}"
    if min(counts) < 0 or sum(counts) != phase.spec.tasks:
        yield f"{where}: {counts} of {phase.spec.tasks}"
    if job.query.stage != "ending" and counts[RUNNING] != running:
        yield f"{where}: {counts[RUNNING]} counted as running, {running} run"
    if phase.taken is not None:
        pending = phase.taken.count(0)
    else:
        pending = phase.spec.tasks - phase.cursor + len(phase.returned or ())
    pending += len(phase.aside)
    if not phase.failed_at.keys() >= set(phase.aside):
        yield f"{where}: {phase.aside} were set aside and have failed nowhere"
    if job.query.stage != "ending" and pending != counts[PENDING]:
        yield f"{where}: {counts[PENDING]} counted as pending, {pending} are"
    if phase.kind == MAP and phase.outputs:
        placed = [index for done in phase.outputs.values() for index in done]
        if len(placed) != len(set(placed)) or len(placed) > counts[DONE]:
            yield f"{where}: outputs {sorted(placed)} for {counts[DONE]} finished tasks"


def _queries(scheduler: Kernel) -> Iterator[str]:
    state = scheduler.state
    reserved = 0.0
    for query in state.queries.values():
        slots = sum(job.slots for job in query.jobs)
        if slots != query.slots:
            yield f"query {query.id} counts {query.slots} slots and has {slots}"
        if query.slots and query.started_s is None:
            yield f"query {query.id} uses slots and has not started"
        if query.started_s is not None:
            reserved += query.memory_bytes
        open_jobs = sum(not job.done for job in query.jobs)
        if open_jobs != query.open_jobs or not open_jobs:
            yield f"query {query.id} counts {query.open_jobs} open jobs and has {open_jobs}"
        for job in query.jobs:
            blockers = sum(job in up.downstream and not up.done for up in query.jobs)
            if blockers != job.blockers:
                yield f"job {job.id} counts {job.blockers} blockers and has {blockers}"
        left = sum(job.left_s for job in query.jobs)
        if abs(left - query.left_s) > 1e-6 * max(1.0, query.total_s):
            yield f"query {query.id} counts {query.left_s} s of work left and has {left} s"
    if abs(reserved - state.reserved_bytes) > 1e-6 * max(1.0, reserved):
        yield f"{state.reserved_bytes} bytes count as reserved, {reserved} are"


def _pools(scheduler: Kernel) -> Iterator[str]:
    state, tree = scheduler.state, scheduler.tree
    used: dict[int, float] = defaultdict(int)
    for number in state.running:
        for leaf, part in scheduler.filling.charges.payers(number):
            used[leaf] += part
    for job in state.jobs.values():
        used[job.query.pool] += sum(sum(lease) for lease in job.leases.values())
    if tree.slots != state.total_slots:
        yield f"shares are of {tree.slots} slots, the cluster has {state.total_slots}"
    for pool in reversed(tree.pools.values()):
        if scheduler.filling.charges.meters and used[pool.index] != pool.used:
            yield f"pool {pool.path!r} counts {pool.used} slots and uses {used[pool.index]}"
        if pool.parent is not None:
            used[pool.parent.index] += used[pool.index]


def _rankings(scheduler: Kernel) -> Iterator[str]:
    state, tree = scheduler.state, scheduler.tree
    for job in state.jobs.values():
        expected = scheduler.standing.usable_lanes(job)
        if expected != job.lanes:
            yield f"job {job.id} stands in lanes {job.lanes:b}, could use {expected:b}"
        for lane in range(tree.lanes):
            if (job in job.query.runnable[lane]) != bool(job.lanes >> lane & 1):
                yield f"job {job.id} and its query disagree on lane {lane}"
    for pool in tree.pools.values():
        if pool.order is None:
            continue
        for ranking in pool.all_rankings:
            if not ranking.is_sound:
                yield f"a ranking of pool {pool.path!r} is out of order"
            if not ranking.keys.keys() <= pool.members.keys():
                yield f"pool {pool.path!r} ranks a candidate that is not a member"
        for lane, (free, gate) in enumerate(zip(pool.lanes, pool.gates, strict=True)):
            aside = {uid: hosts for (uid, at), hosts in pool.homes.items() if at == lane}
            for uid, hosts in aside.items():
                if not state.apart or hosts != pool.hosts_of(pool.members[uid], lane):
                    yield f"pool {pool.path!r} ranks a candidate by the hosts {hosts}"
            for uid in free.keys if state.apart else ():
                if pool.hosts_of(pool.members[uid], lane) != aside.get(uid, ()):
                    yield f"pool {pool.path!r} offers any slot to a candidate bound to a host"
            if pool.ready[lane] != len({*free.keys, *aside}) + len(gate.keys):
                yield f"pool {pool.path!r} counts {pool.ready[lane]} ready candidates"
            for uid in gate.keys:
                if not needs_memory(pool.members[uid].query):
                    yield f"pool {pool.path!r} keeps a query at the gate that may pass"
            for uid in free.keys:
                if needs_memory(pool.members[uid].query):
                    yield f"pool {pool.path!r} lets a query pass that needs memory first"
