"""This machine as a cluster: a slot is a thread.

Native queries are served by as many slots as the kernel grants; tasks of staged queries run one a
slot. Whatever happens is posted as an event; the driver gives it its time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from queryard.core.commands import Grant, Kill, Launch, Revoke
from queryard.core.events import LeaseEnded, Progressed, TaskFailed, TaskFinished, WidthChanged
from queryard.core.model import Kind
from queryard.engine.errors import QueryCancelled
from queryard.engine.meter import Meter
from queryard.engine.native import NativeQuery
from queryard.engine.threads import Corner

from .member import Member, Run, SlotLease
from .watch import Watch
from .workers import Workers

NODE = "local"
NATIVE_JOB = "native"
"""The one job of a native query: its id is the query's, and this."""
PROGRESS_S = 0.25
# So many slots that overstay may be written off at a time: the next query runs beside them, on as
# many slots more than there are. While a tenant below its guarantee waits, as many more as there
# are slots: steps that cannot be called back must not cost it what it was promised.
MOST_BURSTS = 1
# A slot that has computed nothing for so long is offered to others.
IDLE_S = 0.02

Event = LeaseEnded | Progressed | TaskFailed | TaskFinished | WidthChanged


class StagedTasks(Protocol):
    """A staged query, as far as a backend knows it."""

    def run(self, job: str, kind: Kind, index: int) -> float:
        """Run one task on the calling thread; its output in bytes."""

    def cancel(self, error: BaseException) -> None:
        """Stop all tasks that run now."""


class LocalBackend:
    """Slots of this process.

    `follow` hears now and then how far the members of a run are; `speeds` below 1 make a node as
    much slower, by pauses after its tasks. `owes` says, from any thread and at once, whether a
    tenant waits that has less than its guarantee.
    """

    def __init__(
        self,
        slots: int,
        post: Callable[[Event], None],
        follow: Callable[[Run], None] | None = None,
        speeds: Mapping[str, float] | None = None,
        owes: Callable[[], bool] = lambda: False,
    ) -> None:
        self.slots = slots
        self.bursts = 0
        self.burst_s = 0.0
        self._post = post
        self._follow = follow or self._tell_progress
        self._speeds = speeds or {}
        self._owes = owes
        self._workers = Workers()
        self._watch = Watch(self._look)
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._by_query: dict[NativeQuery, Run] = {}
        self._staged: dict[str, tuple[StagedTasks, Meter]] = {}
        self._launched: dict[int, str] = {}
        self._bursting = 0
        # Those that overstay share a core or two, and leave the others to what runs in their place.
        self._corner = Corner(MOST_BURSTS + slots + 1)

    @property
    def watch_cpu_s(self) -> float:
        """Processor seconds spent on looking at running statements."""
        return self._watch.cpu_s

    # --- what there is to run ------------------------------------------------------------------

    def add_native(self, job: str, query: NativeQuery, width: int) -> Member:
        """Make a native query known before the kernel hears of it; it may be a run already."""
        with self._lock:
            run = self._by_query.setdefault(query, Run(query))
            member = Member(job, width, self._post)
            run.members[job] = member
            self._runs[job] = run
        if len(run.members) == 1:
            wake = query.output.on_room
            query.output.on_full = lambda: _each(run, Member.reader_is_behind)

            def on_room() -> None:
                _each(run, Member.reader_has_room)
                wake()

            query.output.on_room = on_room
        return member

    def errand(self, work: Callable[[], None]) -> None:
        """Run something on a thread beside the slots: planning, handing over rows."""
        self._workers.start(work)

    def add_staged(self, query: str, tasks: StagedTasks) -> Meter:
        meter = Meter()
        with self._lock:
            self._staged[query] = (tasks, meter)
        return meter

    def forget(self, query: str) -> None:
        """A query has ended; nothing of it is running."""
        with self._lock:
            self._staged.pop(query, None)
            run = self._runs.pop(f"{query}/{NATIVE_JOB}", None)
            # Its meter stays with the run, whose cost it has borne; a member may have another run.
            if run is not None and not any(self._runs.get(job) is run for job in run.members):
                del self._by_query[run.query]

    # --- commands ------------------------------------------------------------------------------

    def obey(self, command: Grant | Revoke | Launch | Kill) -> None:
        """Begin to carry out a command; what comes of it is posted."""
        match command:
            case Grant():
                self._grant(command)
            case Revoke():
                self._revoke(command)
            case Launch():
                with self._lock:
                    self._launched[command.number] = command.tasks[0].job
                self._workers.start(partial(self._run_tasks, command))
            case Kill():
                self._kill(command)

    def _grant(self, command: Grant) -> None:
        with self._lock:
            run = self._runs[command.job]
            member = run.members[command.job]
            leases = [SlotLease(command.node) for _ in range(command.slots)]
            member.leases += leases
        for lease in leases:
            self._watch.add(run)
            self._workers.start(partial(self._serve, run, member, lease))

    def _revoke(self, command: Revoke) -> None:
        with self._lock:
            run = self._runs.get(command.job)
            if run is None:
                return
            member = run.members[command.job]
            taken = member.call_back(command.node, command.slots)
        for lease in taken:
            run.query.withdraw(lease)
        if taken:
            self._write_off(run, member, time.monotonic())
            self._watch.hasten(run)

    def _serve(self, run: Run, member: Member, lease: SlotLease) -> None:
        query = run.query
        lease.stay = member.meter.enter()
        try:
            query.serve(lease)
        except BaseException as error:
            # A mistake of Queryard's own must not cost a slot.
            query.cancel(error)
        finally:
            member.meter.leave(lease.stay)
        self._watch.remove(run)
        with self._lock:
            member.leases.remove(lease)
            self._corner.release(lease.thread)
            written_off = lease.written_off_s is not None
            if lease.revoked_s is not None:
                run.left(time.monotonic() - lease.revoked_s)
            if lease.written_off_s is not None:
                took_s = time.monotonic() - lease.written_off_s
                self._bursting -= 1
                self.burst_s += took_s
                member.burst_s += took_s
            ended = query.ended
            member.end_told = member.end_told or (ended and not written_off)
        if ended:
            if not written_off:
                self._post_end(query, member.job, lease.node, 1)
            self._tell_end(run)
        elif not written_off:
            self._post(LeaseEnded(0.0, member.job, lease.node, 1, "revoked"))

    def _tell_end(self, run: Run) -> None:
        """Members without slots hear of the end, too."""
        with self._lock:
            untold = [m for m in run.members.values() if not (m.end_told or m.counted)]
            for member in untold:
                member.end_told = True
        for member in untold:
            self._post_end(run.query, member.job, NODE, 0)

    def _post_end(self, query: NativeQuery, job: str, node: str, slots: int) -> None:
        if query.error is None:
            self._post(LeaseEnded(0.0, job, node, slots, "finished"))
        else:
            self._post(LeaseEnded(0.0, job, node, slots, "failed", str(query.error)))

    def _run_tasks(self, command: Launch) -> None:
        output_bytes = 0.0
        began = time.monotonic()
        try:
            for task in command.tasks:
                query, _, job = task.job.rpartition("/")
                with self._lock:
                    staged = self._staged.get(query)
                if staged is None:
                    raise LookupError(f"query {query} has ended")
                tasks, meter = staged
                stay = meter.enter()
                try:
                    output_bytes += tasks.run(job, task.kind, task.index)
                finally:
                    meter.leave(stay)
            speed = self._speeds.get(command.node, 1.0)
            time.sleep(max(0.0, (time.monotonic() - began) * (1.0 / speed - 1.0)))
        except BaseException as error:
            self._post(TaskFailed(0.0, command.number, str(error) or type(error).__name__))
        else:
            self._post(TaskFinished(0.0, command.number, command.node, output_bytes))
        finally:
            with self._lock:
                self._launched.pop(command.number, None)

    def _kill(self, command: Kill) -> None:
        with self._lock:
            job = self._launched.get(command.number)
            staged = self._staged.get(job.rpartition("/")[0]) if job is not None else None
        if staged is not None:
            self._workers.start(partial(staged[0].cancel, QueryCancelled("killed")))

    # --- looking on ----------------------------------------------------------------------------

    def _look(self, run: Run, now: float) -> None:
        """What there is to see of a run that slots are inside of."""
        members = list(run.members.values())
        adapts = len(members) == 1 and len(self._runs) > 1 and run.query.computes
        for member in members:
            if adapts:
                member.adapt(now, IDLE_S)
            else:
                member.widen()
            self._write_off(run, member, now)
        if now - run.told_s >= PROGRESS_S:
            run.told_s = now
            run.reports += 1
            self._follow(run)

    def _write_off(self, run: Run, member: Member, now: float) -> None:
        """Tell the kernel that a slot is back which overstays; another may take its place."""
        for lease in list(member.leases):
            late = lease.revoked_s is not None and now - lease.revoked_s >= run.patience_s
            if not late or lease.written_off_s is not None or run.query.ended:
                continue
            with self._lock:
                if lease not in member.leases:
                    continue
                self._corner.confine(lease.thread)
                if self._bursting >= MOST_BURSTS and not self._may_exceed():
                    continue
                self._bursting += 1
                self.bursts += 1
                lease.written_off_s = now
            self._post(LeaseEnded(0.0, member.job, lease.node, 1, "revoked"))

    def _may_exceed(self) -> bool:
        """Whether one more may be written off, for a tenant that is below its guarantee."""
        return self._bursting < MOST_BURSTS + self.slots and self._owes()

    def _tell_progress(self, run: Run) -> None:
        for job in list(run.members):
            self._post(Progressed(0.0, job, run.query.progress()))

    def close(self, timeout_s: float = 10.0) -> bool:
        """Stop all threads, and cancel what still runs; False if some go on longer than that."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            runs = list(self._runs.values())
            staged = list(self._staged.values())
        for run in runs:
            run.query.cancel()
        for tasks, _ in staged:
            tasks.cancel(QueryCancelled("the session was closed"))
        stopped = self._workers.close(deadline)
        self._watch.close()
        return stopped


def _each(run: Run, tell: Callable[[Member], None]) -> None:
    for member in list(run.members.values()):
        tell(member)
