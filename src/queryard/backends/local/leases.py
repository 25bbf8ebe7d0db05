"""Divisible jobs on the threads of this process: slots are granted, revoked and written off."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, cast

from queryard.backends.protocol import (
    NATIVE_JOB,
    BackendReport,
    JoinRefused,
    Leased,
    Post,
    QueryUsed,
    RunEnded,
    RunJoined,
    RunReport,
)
from queryard.backends.workers import Start
from queryard.core.commands import Grant, Revoke
from queryard.core.events import AnswerReported, LeaseEnded
from queryard.core.model import JobId
from queryard.engine.errors import QueryCancelled
from queryard.engine.threads import CoreConfinement, CoreSpread
from queryard.results.fan import Fan

from .member import SOON_S, LeasedExecution, Member, Reporting, Serving, SlotLease
from .watch import Watch

Error = float | None
PROGRESS_S = 0.25
# Memory in use is measured once per this many reports of an execution.
LOOK_AT_MEMORY = 4
# This many overstaying slots may be written off at a time. Each is replaced by a burst slot, so the
# process runs that many threads more than it has slots. While a tenant below its guarantee waits,
# as many as there are slots may be written off: steps that cannot be interrupted must not cost the
# tenant its guarantee.
MOST_BURSTS = 1
# For how long a slot's thread keeps to the core on which it began. Longer gained 2 % on queries of
# 0.2 s; but two processes may have chosen one core.
STAYS_S = 0.2
# A slot that has computed nothing for this long is offered to other queries.
IDLE_S = 0.004


class Engine(Protocol):
    """What makes a statement ready to be served: `queryard.engine.native.NativeEngine` does."""

    def open(self, statement: Any, output: Fan) -> Serving:
        """A query that no slot has worked on yet; instant."""


class LocalLeases:
    """The executions under way, by run and by job; `start` runs something on a slot's thread."""

    def __init__(
        self,
        engine: Engine,
        start: Start,
        slots: int,
        node: str,
        spread: CoreSpread | None = None,
    ) -> None:
        """`node` is named where a query ends that never had a slot; `spread` is that of `start`."""
        self._spread = spread or CoreSpread(0)
        # Whether a waiting tenant has less than its guarantee.
        self.guarantee_unmet = False
        self._slots = slots
        self._node = node
        self._report = BackendReport()
        self._engine = engine
        self._start = start
        self._post: Post = _nothing
        self._watch = Watch(self._look)
        self._lock = threading.Lock()
        self._runs: dict[str, LeasedExecution] = {}
        self._jobs: dict[str, LeasedExecution] = {}
        self._bursting = 0
        # Overstaying threads share a core or two; the burst slots have the other cores.
        self._confinement = CoreConfinement(MOST_BURSTS + slots + 1)

    def begin(self, post: Post) -> None:
        self._post = post

    def report(self) -> BackendReport:
        """What it has cost so far."""
        return self._report._replace(cpu_s=self._watch.cpu_s)

    # --- what there is to run ------------------------------------------------------------------

    def add(self, query: str, work: Leased) -> None:
        run = self._runs.get(work.run)
        if work.statement is None:
            if run is None or run.query.ended or not run.wanted or not run.fan.join(work.output):
                self._post(JoinRefused(query))
                return
            with self._lock:
                self._enter(run, query, work)
                self._post(RunJoined(query))
            return
        fan = Fan(work.output)
        run = LeasedExecution(work.run, self._engine.open(work.statement, fan), fan)
        with self._lock:
            self._runs[work.run] = run
            self._enter(run, query, work)
        # Not `isinstance`: that takes longer than all else here.
        if hasattr(run.query, "reports_to"):
            reporting = cast(Reporting, run.query)
            member = run.members[_job(query)]
            reporting.reports_to(partial(self._answered, member.job), member.meter)

    def _enter(self, run: LeasedExecution, query: str, work: Leased) -> None:
        job = _job(query)
        run.members[job] = Member(
            query, job, work.width, work.output, self._post, narrow=work.narrow
        )
        run.wanted.add(query)
        self._jobs[job] = run

    def _answered(
        self,
        job: str,
        batch: int,
        changes: Sequence[float],
        core_s: float,
        error: Error,
        left: float | None,
    ) -> None:
        *before, change = changes
        self._post(AnswerReported(0.0, job, batch, change, core_s, error, tuple(before), left))

    def stop(self, query: str, error: BaseException) -> None:
        """A query leaves its execution; an execution without queries is cancelled."""
        job = _job(query)
        run = self._jobs.get(job)
        if run is None:
            return
        run.fan.leave(run.members[job].output)
        run.wanted.discard(query)
        if run.wanted:
            return
        if run.query.on_session:
            # Cancel now: a late interrupt would hit the next statement on this connection.
            run.query.cancel(error)
        else:
            self._start(partial(run.query.cancel, error))

    def forget(self, query: str) -> None:
        with self._lock:
            run = self._jobs.pop(_job(query), None)
            if run is None:
                return
            run.wanted.discard(query)
            needed = any(self._jobs.get(job) is run for job in run.members)
            if not needed and self._runs.get(run.name) is run:
                del self._runs[run.name]

    # --- commands ------------------------------------------------------------------------------

    def grant(self, command: Grant) -> None:
        with self._lock:
            run = self._jobs[command.job]
            member = run.members[command.job]
            member.node = command.node
            leases = [SlotLease(command.node) for _ in range(command.slots)]
            member.leases += leases
        for lease in leases:
            self._watch.add(run)
            self._start(partial(self._serve, run, member, lease), stays=True)

    def revoke(self, command: Revoke) -> None:
        with self._lock:
            run = self._jobs.get(command.job)
            if run is None:
                return
            member = run.members[command.job]
            taken = member.choose_leases(command.node, command.slots)
        for lease in taken:
            run.query.withdraw(lease)
        if taken:
            self._write_off(run, member, time.monotonic())
            self._watch.poll_soon(run)

    # --- on a slot's thread --------------------------------------------------------------------

    def _serve(self, run: LeasedExecution, member: Member, lease: SlotLease) -> None:
        query = run.query
        lease.stay = member.meter.enter()
        lease.began_s = time.monotonic()
        try:
            query.serve(lease)
        except BaseException as error:
            # A defect of Queryard's own must not lose a slot.
            query.cancel(error)
        finally:
            member.meter.leave(lease.stay)
        self._watch.remove(run)
        with self._lock:
            member.leases.remove(lease)
            self._confinement.release(lease.thread)
            written_off = lease.written_off_s is not None
            if lease.revoked_s is not None:
                run.left(time.monotonic() - lease.revoked_s)
            if lease.written_off_s is not None:
                took_s = time.monotonic() - lease.written_off_s
                self._bursting -= 1
                self._count(burst_s=took_s)
                member.burst_s += took_s
            ended = query.ended
            member.end_told = member.end_told or (ended and not written_off)
        self._post(QueryUsed(member.query, member.usage))
        if ended:
            self._post_end(run)
            if not written_off:
                self._post(_end(query, member.job, lease.node, 1))
            self._tell_end(run)
        elif not written_off:
            self._post(LeaseEnded(0.0, member.job, lease.node, 1, "revoked"))

    def _post_end(self, run: LeasedExecution) -> None:
        """Post the end of an execution once, with its error."""
        # Under the lock, so that no other thread posts the end of a lease before it.
        with self._lock:
            if not run.end_posted:
                run.end_posted = True
                if (lost_s := run.query.lost_sprint_s) is not None:
                    self._count(sprints=1, restarts=int(lost_s > 0.0), restart_s=lost_s)
                self._post(RunEnded(run.name, run.query.error, run.fan.started))

    def _count(self, **more: float) -> None:
        """Count something, under the lock."""
        report = self._report
        self._report = report._replace(
            **{name: getattr(report, name) + value for name, value in more.items()}
        )

    def _tell_end(self, run: LeasedExecution) -> None:
        """Post the end also for members without slots."""
        with self._lock:
            untold = [m for m in run.members.values() if not (m.end_told or m.counted)]
            for member in untold:
                member.end_told = True
        for member in untold:
            self._post(_end(run.query, member.job, member.node or self._node, 0))

    # --- looking on ----------------------------------------------------------------------------

    def _look(self, run: LeasedExecution, now: float) -> None:
        """Report on an execution with slots: progress, idle and overstaying slots, memory."""
        members = list(run.members.values())
        adapts = len(members) == 1 and len(self._jobs) > 1 and run.query.computes
        for member in members:
            member.meter.look()
            if adapts:
                member.adapt(now, IDLE_S)
            else:
                member.widen()
            self._set_free(member, now)
            self._write_off(run, member, now)
        if now - run.told_s >= PROGRESS_S:
            run.told_s = now
            run.reports += 1
            looks = run.reports % LOOK_AT_MEMORY == 1
            memory_bytes = run.query.memory_bytes() if looks else None
            usage = {member.query: member.usage for member in members}
            self._post(RunReport(run.name, run.query.progress(), memory_bytes, usage))

    def _set_free(self, member: Member, now: float) -> None:
        """Let slots that have been inside for a while run on any core: other programs may run."""
        for lease in list(member.leases):
            if now - lease.began_s >= STAYS_S:
                self._free(lease)

    def _free(self, lease: SlotLease) -> None:
        if not lease.is_free and lease.thread:
            lease.is_free = True
            self._spread.free(lease.thread)

    def _write_off(self, run: LeasedExecution, member: Member, now: float) -> None:
        """Report an overstaying slot to the kernel as returned; a burst slot may replace it."""
        patience_s = min(run.patience_s, SOON_S) if self.guarantee_unmet else run.patience_s
        for lease in list(member.leases):
            late = lease.revoked_s is not None and now - lease.revoked_s >= patience_s
            if not late or lease.written_off_s is not None or run.query.ended:
                continue
            with self._lock:
                if lease not in member.leases:
                    continue
                self._free(lease)
                self._confinement.confine(lease.thread)
                if self._bursting >= MOST_BURSTS + (self._slots if self.guarantee_unmet else 0):
                    continue
                self._bursting += 1
                self._count(bursts=1)
                lease.written_off_s = now
            self._post(LeaseEnded(0.0, member.job, lease.node, 1, "revoked"))

    # --- the end -------------------------------------------------------------------------------

    def cancel_all(self) -> None:
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.query.cancel(QueryCancelled("the session was closed"))

    def close(self) -> None:
        self._watch.close()


def _end(query: Serving, job: str, node: str, slots: int) -> LeaseEnded:
    if query.error is None:
        return LeaseEnded(0.0, job, node, slots, "finished")
    return LeaseEnded(0.0, job, node, slots, "failed", str(query.error))


def _job(query: str) -> str:
    return str(JobId(query, NATIVE_JOB))


def _nothing(event: object) -> None:
    pass
