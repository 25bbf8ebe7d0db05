"""While queries run: what they cost, how far they are, how many slots they can use."""

from __future__ import annotations

from queryard.backends import protocol as told
from queryard.core import events as ev
from queryard.core.model import JobId
from queryard.engine.errors import QueryCancelled
from queryard.estimate.tasks.estimating import Report

from .. import effects as out
from .. import inputs
from ..estimates.refinement import WORTH_PLANNING_S, WORTH_TELLING, revised_work
from .attempts import Attempts
from .entry import Entry
from .ledger import Ledger


class RunningQueries:
    """Handles what the backend, the estimator and readers report of queries in the kernel."""

    def __init__(self, ledger: Ledger, attempts: Attempts) -> None:
        self._ledger = ledger
        self._attempts = attempts

    def began(self, query: str, node: str = "") -> None:
        """A slot was granted to a query; all queries that share its execution begin with it.

        One that runs under leases runs on the node from now on.
        """
        entry = self._ledger.entries.get(query)
        if entry is not None:
            entry.elsewhere = ""
        if entry is not None and entry.run is not None and node and self._ledger.spreads:
            entry.run.speed = self._ledger.kernel.state.nodes[node].spec.map_speed
        if entry is not None and entry.work is not None:
            self._ledger.note_moved(entry.work.granted())

    def used(self, given: told.QueryUsed) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is not None:
            entry.usage = given.usage
            if entry.run is not None:
                entry.run.usage[entry.id] = given.usage
            elif (
                known := self._ledger.kernel.state.queries.get(entry.id)
            ) is not None and known.total_s:
                entry.progress = 1.0 - known.left_s / known.total_s
            self._ledger.publish(entry)

    def reported(self, given: told.RunReport) -> None:
        """Tell the kernel the progress of an execution, and its work if more than expected."""
        run = self._ledger.runs.get(given.run)
        if run is None:
            self._reported_online(given)
            return
        run.usage.update(given.usage)
        for query in run.queries:
            entry = self._ledger.entries.get(query)
            if entry is None or entry.work is None or entry.run is not run:
                continue
            entry.usage = given.usage.get(query, entry.usage)
            entry.progress = given.progress
            if given.memory_bytes is not None and entry.prediction.memory_bytes is None:
                entry.peak_memory_bytes = max(entry.peak_memory_bytes or 0, given.memory_bytes)
            self._revise(entry, run.usual_s, given.progress)
            self._ledger.publish(entry)
        first = self._ledger.entries.get(run.queries[0]) if run.queries else None
        if first is not None:
            self._ledger.do(out.Learn(first.request, run.usual_s, None, "running"))

    def _reported_online(self, given: told.RunReport) -> None:
        """An online query runs alone, under its own id, and tells the kernel of its batches."""
        entry = self._ledger.entries.get(given.run)
        if entry is not None and entry.work is not None:
            entry.usage = given.usage.get(entry.id, entry.usage)
            entry.progress = given.progress
            self._ledger.publish(entry)

    def _revise(self, entry: Entry, done_s: float, progress: float) -> None:
        assert entry.work is not None
        before_s = entry.expected_s
        total_s = revised_work(entry.prediction, before_s, done_s, progress)
        if total_s != before_s:
            entry.expected_s = total_s
            if before_s < WORTH_PLANNING_S <= total_s and entry.prediction.by in ("bytes", "guess"):
                # It was not planned before, because it was expected to be very short.
                self._ledger.do(out.Refine(entry.id))
            self._ledger.tell_estimates(entry)
        elif self._is_bent(entry):
            self._ledger.tell_estimates(entry)
        done = min(1.0, done_s / total_s) if total_s > 0 else 0.0
        for job in entry.work.jobs():
            name = str(JobId(entry.id, job.name))
            self._ledger.tell(ev.Progressed(self._ledger.now, name, done))

    def _is_bent(self, entry: Entry) -> bool:
        """Whether its slots idle more, or less, than the kernel was told."""
        if entry.run is None:
            return False
        return abs(self._ledger.curve(entry).serial - entry.speedup.serial) > WORTH_TELLING

    def predicted(self, given: inputs.Predicted) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None or entry.work is None or entry.error is not None:
            return
        entry.prediction = given.prediction
        entry.expected_s = given.prediction.work_s
        self._ledger.tell_estimates(entry)
        self._ledger.publish(entry)

    def run_ended(self, given: told.RunEnded) -> None:
        run = self._ledger.runs.get(given.run)
        if run is None:
            self._online_ended(given)
            return
        again = given.error is not None and run.needs_more(given.error, given.rows_out)
        if given.node:
            given = given._replace(error=self._attempts.run_ended(given, again))
            if (first := self._ledger.entries.get(run.name)) is not None and first.elsewhere:
                return
        self._ledger.runs.over(run)
        for query in list(run.queries):
            entry = self._ledger.entries.get(query)
            if entry is None or entry.run is not run or entry.error is not None:
                continue
            if given.error is None:
                entry.done = True
            elif again:
                entry.again_bytes = self._ledger.most_bytes(entry)
            else:
                entry.error = given.error
                self._ledger.do(out.FailOutput(query, given.error))
            self._ledger.publish(entry)

    def _online_ended(self, given: told.RunEnded) -> None:
        entry = self._ledger.entries.get(given.run)
        if entry is None or entry.work is None or entry.error is not None:
            return
        if given.error is None:
            entry.done = True
        else:
            entry.error = given.error
            self._ledger.do(out.FailOutput(entry.id, given.error))
        self._ledger.publish(entry)

    def task_finished(self, event: ev.TaskFinished) -> None:
        """A task of a staged query has ended: others like it may be expected to take as long."""
        launch = self._ledger.kernel.state.running.get(event.launch)
        self._ledger.tell(event)
        if launch is not None:
            self._attempts.task_succeeded(launch)
            node = self._ledger.kernel.state.nodes.get(launch.node)
            speed = 1.0 if node is None else node.spec.map_speed
            report = Report(event.output_bytes, speed=speed, rider_bytes=event.rider_bytes)
            self._ledger.tell(*self._ledger.tasks.ended(self._ledger.now, launch, report))

    def launch_failed(self, given: told.LaunchFailed) -> None:
        entry = self._ledger.entries.get(given.query)
        retry: ev.Retry = "count"
        is_beaten = given.launch in self._ledger.kernel.state.beaten
        if entry is not None and entry.work is not None and not is_beaten:
            retry = entry.work.on_failure(given.error)
            if retry == "elsewhere":
                given, retry = self._attempts.task_failed(given)
            if not isinstance(given.error, QueryCancelled):
                # Tasks that are killed because another failed are not what the query failed of.
                entry.failure = given.error
            most_bytes = self._ledger.most_bytes(entry)
            if entry.work.needs_more(given.error, most_bytes) and entry.error is None:
                # Its memory was a guess, and too little: DuckDB runs it, with the usual memory.
                entry.again_bytes = most_bytes
                retry = "never"
            elif retry == "never" and entry.error is None:
                entry.error = given.error
                self._ledger.do(out.FailOutput(entry.id, given.error))
        cause = str(given.error) or type(given.error).__name__
        now = self._ledger.now
        self._ledger.tell(ev.TaskFailed(now, given.launch, cause, retry, given.job))

    # --- slots that a query can use --------------------------------------------------------------

    def width_changed(self, event: ev.WidthChanged) -> None:
        entry = self._ledger.entries.get(JobId.of(event.job).query)
        if entry is not None:
            entry.width = event.width
            if not entry.behind:
                self._ledger.tell(event)

    def reader_state(self, given: inputs.ReaderState) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None or entry.behind == given.behind:
            return
        if given.behind and self._ledger.readers.fell_behind(entry.id):
            self._ledger.do(out.Spill(entry.id))
            return
        if not given.behind:
            self._ledger.readers.caught_up(entry.id)
        entry.behind = given.behind
        if entry.work is not None:
            self.tell_width(entry)

    def tell_width(self, entry: Entry) -> None:
        assert entry.work is not None
        for job in entry.work.jobs():
            if job.divisible is not None:
                usable = job.divisible.width if entry.width is None else entry.width
                width = 0 if entry.behind else usable
                self._ledger.tell(
                    ev.WidthChanged(self._ledger.now, str(JobId(entry.id, job.name)), width)
                )
