"""What failed at a node of a cluster, and may not elsewhere: it is tried at another node.

The nodes at which something has failed are in the kernel; what they are worth is judged by what
succeeds elsewhere (`health`).
"""

from __future__ import annotations

from queryard.backends import protocol as told
from queryard.core import events as ev
from queryard.core.commands import Launch
from queryard.core.entities import JobState
from queryard.core.failed_at import FailedAt
from queryard.core.model import MAP, JobId, TaskId
from queryard.engine.errors import at_place, has_local_cause

from .. import effects as out
from .. import inputs
from .entry import Entry
from .health import REST_S
from .ledger import Ledger


class Attempts:
    """Of all queries at nodes; in one process there is no other node to try."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # --- tasks -----------------------------------------------------------------------------------

    def task_failed(self, given: told.LaunchFailed) -> tuple[told.LaunchFailed, ev.Retry]:
        """The failure of a task, with its node, and what it means for the next attempt."""
        launch = self._ledger.kernel.state.running.get(given.launch)
        if launch is None or not self._ledger.spreads:
            return given, "count"
        error = at_place(given.error, self._named(launch.node))
        self._ledger.health.failed(given.query, launch.node, str(error))
        return given._replace(error=error), "elsewhere"

    def task_succeeded(self, launch: Launch) -> None:
        """A task has ended well."""
        if not self._ledger.spreads:
            return
        task = launch.tasks[0]
        failed = self._failed_task(task)
        self._succeeded(JobId.of(task.job).query, launch.node, failed)

    def _failed_task(self, task: TaskId) -> FailedAt | None:
        job = self._ledger.kernel.state.jobs.get(task.job)
        phase = None if job is None else job.map if task.kind == MAP else job.reduce
        return None if phase is None else phase.failed_at.get(task.index)

    def _succeeded(self, query: str, node: str, failed: FailedAt | None) -> None:
        ledger = self._ledger
        places = () if failed is None else failed.places
        for name in ledger.health.succeeded(query, node, places, ledger.now):
            ledger.tell(ev.NodeSilent(ledger.now, name, True))
            ledger.do(out.SetTimer(ledger.now + REST_S, inputs.Rested()))

    # --- native queries --------------------------------------------------------------------------

    def run_ended(self, given: told.RunEnded, again: bool) -> BaseException | None:
        """A native query has ended at a node: its error, with the node if that may be why.

        If it is to run elsewhere, its entry says so from now on. If it runs `again` in any case,
        nothing is to be done.
        """
        ledger = self._ledger
        entry = ledger.entries.get(given.run)
        job = ledger.kernel.state.jobs.get(str(JobId(given.run, told.NATIVE_JOB)))
        error = given.error
        if entry is None or job is None:
            return error
        if error is None:
            self._succeeded(entry.id, given.node, job.failed_at)
        elif not again and entry.error is None and has_local_cause(error):
            before = "" if job.failed_at is None else ", ".join(job.failed_at.places)
            also = f", and before at {before}" if before else ""
            error = at_place(error, self._named(given.node) + also)
            ledger.health.failed(entry.id, given.node, str(error))
            if not given.rows_out and self._has_another(entry, job, given.node):
                entry.elsewhere = str(error)
        return error

    def _has_another(self, entry: Entry, job: JobState, node: str) -> bool:
        """Whether a query may run at another node than this one and those where it has failed."""
        state = self._ledger.kernel.state
        if entry.request.has_side_effects or job.failures + 1 >= state.settings.max_attempts:
            return False
        failed = {node, *(() if job.failed_at is None else job.failed_at.places)}
        return any(
            host.nodes and name not in failed and host.memory_bytes >= job.query.memory_bytes
            for name, host in state.hosts.items()
        )

    def lease_ended(self, event: ev.LeaseEnded) -> None:
        """Slots have come back: of a query that is to run elsewhere, this attempt has failed."""
        entry = self._ledger.entries.get(JobId.of(event.job).query)
        if entry is not None and entry.elsewhere and event.outcome == "failed":
            event = event._replace(retry="elsewhere", cause=entry.elsewhere)
        self._ledger.tell(event)

    # --- nodes -----------------------------------------------------------------------------------

    def silent(self, event: ev.NodeSilent) -> None:
        """A node does not answer, or answers again: it may rest all the same."""
        silent = self._ledger.health.heard(event.node, event.silent)
        self._ledger.tell(event._replace(silent=silent))

    def call_back(self) -> None:
        """Let nodes work again that have rested."""
        now = self._ledger.now
        self._ledger.tell(
            *(ev.NodeSilent(now, node, False) for node in self._ledger.health.rested(now))
        )

    def _named(self, node: str) -> str:
        """A node as a message names it."""
        known = self._ledger.kernel.state.nodes.get(node)
        at = f" at {known.spec.places[0]}" if known is not None and known.spec.places else ""
        return f"node {node}{at}"
