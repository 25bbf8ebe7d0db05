"""Leases in simulated time: grants and revokes in, batches, answers and returned slots out."""

from __future__ import annotations

import math

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.state import State

from .circles import Circles, Reader
from .leases import LeasedJob
from .ordering import WORK, Post
from .truth import Truth

# A job has outgrown its estimate when it has done (nearly) that much work, and is then expected
# to do half as much again as it has done.
OUTGROWN = 1.0 - 1e-9
GROWTH = 1.5
# Even if it has done nothing yet.
LEAST_S = 1e-2


class BatchEnds:
    """A note in the queue: the batch of a leased job ends, unless its slots changed since."""

    __slots__ = ("job", "version")

    def __init__(self, job: str, version: int) -> None:
        self.job = job
        self.version = version


class Outgrows:
    """A note in the queue: a leased job has done the work it was estimated to have in all."""

    __slots__ = ("job", "version")

    def __init__(self, job: str, version: int) -> None:
        self.job = job
        self.version = version


class Returns:
    """A note in the queue: slots that were revoked come back."""

    __slots__ = ("command",)

    def __init__(self, command: do.Revoke) -> None:
        self.command = command


def _errs(known: JobState, job: LeasedJob) -> bool:
    """Whether the estimate of a job without batches is wrong."""
    return known.work_known and job.batches == 1 and known.work_s != job.work_s


class Leasing:
    """All divisible jobs that slots have worked on."""

    def __init__(self, state: State, truth: Truth, post: Post, seed: int) -> None:
        self._state = state
        self._truth = truth
        self._post = post
        self._seed = seed
        self._circles = Circles(truth.segments)
        self._jobs: dict[str, LeasedJob] = {}
        # Query -> its jobs that slots have worked on.
        self._of_query: dict[str, set[str]] = {}
        # Jobs that have worked since their last report.
        self._busy: dict[str, LeasedJob] = {}
        self._reported_s = -math.inf
        # Versions of jobs that have lost all their work: notes in the queue still name them.
        self._lost: dict[str, int] = {}

    def _job(self, job_id: str) -> LeasedJob:
        job = self._jobs.get(job_id)
        if job is None:
            physics = self._truth.jobs[job_id]
            known = self._state.jobs[job_id]
            target = known.query.spec.target_error
            if self._truth.is_believed and not known.answers:
                target = None  # how its error falls is not known yet
            job = LeasedJob(job_id, physics.spec, physics.truth, target, self._seed)
            job.reader = Reader.of(self._circles, known, physics.truth)
            # A forecast continues a job at the progress that the kernel knows.
            job.skip(known.done_share)
            job.since_s = self._state.now
            job.version = self._lost.pop(job_id, 0)
            self._jobs[job_id] = job
            self._of_query.setdefault(known.query.id, set()).add(job_id)
        return job

    def resume(self) -> None:
        """Take up the leases the kernel has given."""
        for job in list(self._state.leaseholders.values()):
            for node, (held, revoking) in job.leases.items():
                self.grant(do.Grant(job.id, node, held + revoking))
                if revoking:
                    self.revoke(do.Revoke(job.id, node, revoking))

    def grant(self, command: do.Grant) -> None:
        state = self._state
        job = self._job(command.job)
        speed = state.nodes[command.node].spec.map_speed
        job.change(state.now, command.node, command.slots, speed)
        self._busy[command.job] = job
        self._expect(state.now, command.job, job)

    def revoke(self, command: do.Revoke) -> None:
        delay_s = self._truth.conditions.revoke_delay_s
        self._post(self._state.now + delay_s, WORK, Returns(command))

    def _expect(self, now: float, job_id: str, job: LeasedJob) -> None:
        end = job.next_s(now)
        if end == math.inf:
            return
        self._post(end, WORK, BatchEnds(job_id, job.version))
        known = self._state.jobs[job_id]
        if _errs(known, job):
            ahead_s = known.work_s - (job.work_s - job.left_s)
            outgrown_s = now + job.overhead_s + max(0.0, ahead_s) / job.rate
            if outgrown_s < end:
                self._post(outgrown_s, WORK, Outgrows(job_id, job.version))

    def happen(self, now: float, what: BatchEnds | Outgrows | Returns) -> list[ev.Event]:
        """The events a note in the queue leads to; none if it has become void."""
        if isinstance(what, Returns):
            return self._return(now, what.command)
        job = self._jobs.get(what.job)
        if job is None or job.version != what.version:
            return []
        if isinstance(what, BatchEnds):
            return self._end_batch(now, what.job, job)
        return self._outgrow(now, what.job, job)

    def _outgrow(self, now: float, job_id: str, job: LeasedJob) -> list[ev.Event]:
        """A job has done more work than estimated: report its progress and a new estimate."""
        events = self._report(now, job_id, job)
        self._reported_s = now
        for event in events:
            if isinstance(event, ev.EstimateChanged) and event.work_s is not None:
                at_s = now + (event.work_s - (job.work_s - job.left_s)) / job.rate
                if at_s < job.next_s(now):
                    self._post(at_s, WORK, Outgrows(job_id, job.version))
        return events

    def _end_batch(self, now: float, job_id: str, job: LeasedJob) -> list[ev.Event]:
        job.advance(now)
        report, finished = job.end_batch(now, job_id)
        events: list[ev.Event] = [report] if report is not None else []
        if not finished:
            self._expect(now, job_id, job)
            return events
        self._drop(job_id)
        for node, slots in sorted(job.nodes.items()):
            events.append(ev.LeaseEnded(now, job_id, node, slots, "finished"))
        return events

    def _return(self, now: float, command: do.Revoke) -> list[ev.Event]:
        job = self._jobs.get(command.job)
        if job is None or command.node not in job.nodes:
            return []  # it finished, or lost the node, in the meantime
        slots = min(command.slots, job.nodes[command.node])
        speed = self._state.nodes[command.node].spec.map_speed
        job.change(now, command.node, -slots, speed)
        self._expect(now, command.job, job)
        return [ev.LeaseEnded(now, command.job, command.node, slots, "revoked")]

    def progress(self, now: float) -> list[ev.Event]:
        """How far leased work is, told when something else happens, but not too often."""
        if not self._busy or now - self._reported_s < self._truth.conditions.progress_every_s:
            return []
        self._reported_s = now
        reports: list[ev.Event] = []
        for job_id, job in self._busy.items():
            reports += self._report(now, job_id, job)
        self._busy = {job_id: job for job_id, job in self._busy.items() if job.nodes}
        return reports

    def _report(self, now: float, job_id: str, job: LeasedJob) -> list[ev.Event]:
        """The progress of a job, from the work it has done; the work left is not observable.

        A job that has outgrown its estimate is expected to do half as much again as it has done.
        """
        job.advance(now)
        known = self._state.jobs[job_id]
        if not _errs(known, job):
            return [ev.Progressed(now, job_id, job.done)]
        done_s = job.done * job.work_s
        if done_s < known.work_s * OUTGROWN:
            return [ev.Progressed(now, job_id, done_s / known.work_s)]
        work_s = GROWTH * max(done_s, LEAST_S)
        told = ev.EstimateChanged(now, job_id, work_s=work_s)
        return [told, ev.Progressed(now, job_id, done_s / work_s)]

    def lose(self, now: float, node: NodeState) -> None:
        """A node is gone: what worked there works no more.

        With its host, jobs that started there lose all they did.
        """
        state = self._state
        others = (other.host for other in state.nodes.values() if other is not node)
        if node.host not in others:
            for job_id in [job for job in self._jobs if state.jobs[job].host == node.host]:
                self._lost[job_id] = self._jobs[job_id].version + 1
                self._drop(job_id)
        for job_id, job in self._jobs.items():
            if node.id in job.nodes:
                job.change(now, node.id, -job.nodes[node.id], node.spec.map_speed)
                self._expect(now, job_id, job)

    def forget(self, query: str) -> None:
        """A query has ended, whatever became of its jobs."""
        for job_id in self._of_query.pop(query, ()):
            self._drop(job_id)
            self._lost.pop(job_id, None)

    def _drop(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is not None and job.reader is not None:
            job.reader.leave()
        self._busy.pop(job_id, None)
