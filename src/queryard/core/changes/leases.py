"""Divisible work: slots are granted, revoked and come back; progress and answers are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..entities import Answer, JobState
from ..errors import InvalidEvent
from ..events import AnswerReported, LeaseEnded, Progressed, WidthChanged
from ..failed_at import failed_at
from ..lifecycle import HELD, LEASE_MOVES, REVOKING
from ..nodes import NodeState
from ..state import State
from . import estimates, queries


def _move(lease: list[int], move: str, slots: int) -> None:
    leave, enter = LEASE_MOVES[move]
    if leave is not None:
        lease[leave] -= slots
    if enter is not None:
        lease[enter] += slots


def _count(state: State, job: JobState) -> None:
    """Add up for how long a job has held how many slots; before their number changes."""
    elapsed_s = state.now - job.leased_since_s
    job.leased_since_s = state.now
    if job.slots:
        job.held_s += elapsed_s
        job.leased_s += elapsed_s * job.slots


def grant(state: State, job: JobState, node: NodeState) -> None:
    """Enter a lease of one slot decided by the scheduler."""
    _count(state, job)
    if not job.leases:
        job.lease_began_s = state.now
        if job.query.lease_began_s is None:
            job.query.lease_began_s = state.now
    job.begun = True
    if job.stays:
        job.host = node.host
    _move(job.leases.setdefault(node.spec.id, [0, 0]), "granted", 1)
    state.leaseholders[job.id] = job
    node.free -= 1
    node.leased += 1
    job.slots += 1
    job.query.slots += 1


def revoke(job: JobState, node_id: str, slots: int) -> None:
    """Enter that slots are on their way back."""
    _move(job.leases[node_id], "revoked", slots)


def beyond(job: JobState) -> Iterator[tuple[str, int]]:
    """(node, slots) that a job holds and cannot use: all of them once it or its query is over."""
    over = job.query.stage == "ending" or job.restarting
    if job.finishing and not over:
        return  # its slots come back by themselves
    surplus = sum(lease[HELD] for lease in job.leases.values()) - (0 if over else job.width)
    for node_id, lease in job.leases.items():
        slots = min(lease[HELD], surplus)
        if slots > 0:
            surplus -= slots
            yield node_id, slots


def resized(state: State, event: WidthChanged) -> None:
    job = state.jobs.get(event.job)
    if event.width < 0:
        raise InvalidEvent(f"{event!r}: a width is a number of slots, at least 0")
    if job is None or job.done:
        return  # it ended in the meantime
    if job.spec.divisible is None:
        raise InvalidEvent(f"{event!r}: only divisible jobs have a width; this one has tasks")
    job.width = event.width
    if not job.width and job.query.memory_bytes and job.query.stage == "waiting":
        state.notes.capacity = True  # no memory is kept for it any more
    state.notes.touched.append(job)
    state.notes.lease_cuts.append(job)


def ended(state: State, event: LeaseEnded) -> None:
    job = state.jobs.get(event.job)
    if event.slots == 0:
        _ended_without_slots(state, event, job)
        return
    node = state.nodes.get(event.node)
    if job is None or node is None or event.node not in job.leases:
        return  # the node was lost, and the lease with it
    lease = job.leases[event.node]
    if not 1 <= event.slots <= lease[HELD] + lease[REVOKING]:
        raise InvalidEvent(f"{event!r}: the job holds {sum(lease)} slots there")
    returned = min(event.slots, lease[REVOKING])
    _move(lease, "returned", returned)
    _move(lease, "ended", event.slots - returned)
    if not any(lease):
        del job.leases[event.node]
    node.free += event.slots
    node.leased -= event.slots
    state.notes.freed.append(node)
    give_back(state, job, event.slots)
    _close(state, event, job)


def _ended_without_slots(state: State, event: LeaseEnded, job: JobState | None) -> None:
    """A job finished or failed although no slot of the node worked on it."""
    if event.outcome == "revoked":
        raise InvalidEvent(f"{event!r}: revoked slots are at least 1")
    if job is None or job.done:
        return  # it ended in the meantime
    if job.spec.divisible is None:
        raise InvalidEvent(f"{event!r}: only divisible jobs hold leases; this one has tasks")
    state.notes.touched.append(job)
    _close(state, event, job)


def _close(state: State, event: LeaseEnded, job: JobState) -> None:
    """What the end of a lease means for its job."""
    query = job.query
    if query.stage == "ending":
        queries.clear(state, query)
    elif job.restarting:
        restart(state, job)
    elif event.outcome == "failed":
        _fail(state, event, job)
    elif event.outcome == "finished" or job.finishing:
        # The job is complete when its slots on all nodes are back.
        job.finishing = True
        job.done_share = 1.0
        estimates.update_totals(state, query)
        if not job.leases:
            queries.job_done(state, job)


def _fail(state: State, event: LeaseEnded, job: JobState) -> None:
    """A job failed: it is tried again, or its query fails with it."""
    cause = event.cause or "failed"
    if event.retry == "never":
        queries.end(state, job.query, "failed", f"job {job.id}: {cause}")
        return
    job.failures += event.retry in ("count", "elsewhere")
    if job.failures >= state.settings.max_attempts:
        times = f"job {job.id} failed {job.failures} times, the last time with"
        queries.end(state, job.query, "failed", f"{times}: {cause}")
        return
    if event.retry == "elsewhere" and event.node in state.nodes:
        job.failed_at = failed_at(job.failed_at, state.nodes[event.node].host, state.now)
        state.notes.avoided = True
    state.notes.lease_cuts.append(job)
    restart(state, job)


def restart(state: State, job: JobState) -> None:
    """All a divisible job did is lost; it is begun again, on any host, when its slots are back."""
    job.restarting = bool(job.leases)
    job.finishing = False
    job.done_share = 0.0
    job.answers = []
    job.held_s = job.leased_s = 0.0
    state.notes.touched.append(job)
    estimates.update_totals(state, job.query)
    if not job.leases:
        job.host = ""
        job.begun = False
        queries.wait_again(state, job.query)


def give_back(state: State, job: JobState, slots: int) -> None:
    """Slots no longer work on a job; its entry in `leases` is already changed."""
    _count(state, job)
    job.slots -= slots
    job.query.slots -= slots
    state.notes.ended_leases.append((job.query.pool, slots))
    state.notes.touched.append(job)
    if not job.leases:
        del state.leaseholders[job.id]
        job.queued_s, job.lease_began_s = state.now, None
        query = job.query
        if not any(other.leases for other in query.jobs):
            query.queued_s, query.lease_began_s = state.now, None


def progressed(state: State, event: Progressed) -> None:
    job = state.jobs.get(event.job)
    if job is None:
        return
    if not 0 <= event.done <= 1:
        raise InvalidEvent(f"{event!r}: done must lie between 0 and 1")
    if job.done or job.finishing or job.restarting:
        return
    job.done_share = event.done
    estimates.update_totals(state, job.query)
    state.notes.touched.append(job)


def answered(state: State, event: AnswerReported) -> None:
    """P_1 = 1, as there is no answer before the first; then changes over their maximum.

    A new maximum rescales the past (digest of ReLAQS). The time that slots were held is divided
    among batches that were read together.
    """
    job = state.jobs.get(event.job)
    if job is None:
        return
    together = len(event.before) + 1
    if event.batch < together or job.spec.divisible is None:
        raise InvalidEvent(f"{event!r}: answers come from divisible jobs, batches count from 1")
    if event.left is not None and not 0 <= event.left <= 1:
        raise InvalidEvent(f"{event!r}: left must lie between 0 and 1")
    if job.restarting:
        return  # of the attempt that was lost
    _count(state, job)
    slots = job.leased_s / job.held_s if job.held_s > 0 else 0.0
    wall_s = job.held_s / together
    first = event.batch - together + 1
    answers = list(job.answers)
    largest = known = max((answer.change for answer in answers[1:]), default=0.0)
    for batch, change in enumerate((*event.before, event.change), first):
        error, left = (event.error, event.left) if batch == event.batch else (None, None)
        largest = max(largest, change) if answers else largest
        progress = 1.0 if not answers else change / largest if largest > 0 else 0.0
        answers.append(Answer(batch, change, progress, event.core_s, error, wall_s, slots, left))
    if largest > known:
        rescaled = [replace(answer, progress=answer.change / largest) for answer in answers[1:]]
        answers[1:] = rescaled
    job.answers = answers
    job.held_s = job.leased_s = 0.0
    batches = job.spec.divisible.batches
    job.done_share = max(job.done_share, min(1.0, event.batch / batches))
    estimates.update_totals(state, job.query)
    state.notes.touched.append(job)
