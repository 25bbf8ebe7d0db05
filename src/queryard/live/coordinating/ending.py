"""How queries end: finished, failed, cancelled, out of time; and which of them run again."""

from __future__ import annotations

from queryard.backends.protocol import NO_USAGE
from queryard.core import events as ev
from queryard.engine.errors import QueryCancelled, QueryFailed, QueryTimedOut

from .. import effects as out
from .. import inputs
from .entry import Entry
from .ledger import Ledger


class Ending:
    """Every query that was let in ends here, once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # --- they are stopped ------------------------------------------------------------------------

    def cancel(self, given: inputs.Cancel) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is not None:
            self._stop(entry, given.error)

    def release(self, given: inputs.Release) -> None:
        """A query that only reads is of no use without its rows."""
        self._ledger.do(out.CloseOutput(given.output))
        entry = self._ledger.entries.get(given.query)
        if given.complete or entry is None or entry.request.has_side_effects:
            return
        self._stop(entry, QueryCancelled("cancelled"))

    def time_limit_reached(self, given: inputs.TimeLimitReached) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None:
            return
        where = "" if entry.started_s is not None else ", still waiting"
        limit = entry.request.time_limit
        self._stop(entry, QueryTimedOut(f"the query ran into its time limit of {limit}{where}"))

    def within_reached(self, given: inputs.WithinReached) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is not None:
            self.end_if_late(entry)

    def end_if_late(self, entry: Entry) -> bool:
        """End an online query that runs exactly once its time is over: it has no answer by then.

        One that estimates ends itself, with the answer that is there or with its first.
        """
        online = entry.request.online
        if online is None or online.wish.within_s is None or online.log.newest is not None:
            return False
        reason = next(iter(entry.reasons), online.log.reason)
        if not reason or self._ledger.now < entry.submitted_s + online.wish.within_s:
            return False
        self._stop(entry, online.wish.no_answer(reason))
        return True

    def _stop(self, entry: Entry, error: BaseException) -> None:
        if entry.done or entry.error is not None:
            return
        if entry.work is None:
            if entry.joining is not None:
                entry.joining.left()
                self._ledger.do(out.StopWork(entry.id, error))
            self.drop(entry, error)
            return
        entry.error = error
        entry.again_bytes = None
        self._ledger.do(out.FailOutput(entry.id, error))
        self._ledger.do(out.StopWork(entry.id, error))
        self._ledger.move_memory(entry.work.left())
        self._ledger.tell(ev.QueryCancelled(self._ledger.now, entry.id, str(error)))
        self._ledger.publish(entry)

    def close(self, given: inputs.Close) -> None:
        self._ledger.closed = given.error
        for entry in list(self._ledger.entries.values()):
            self._stop(entry, given.error)

    # --- the kernel is done with them ------------------------------------------------------------

    def finished(self, query: str) -> None:
        self._ledger.tasks.forget(query)
        entry = self._ledger.entries.get(query)
        if entry is None or entry.work is None:
            return
        if entry.error is None and entry.work.hands_over:
            self._ledger.do(out.HandOver(query, entry.work))
        else:
            self._settle(entry)

    def handed_over(self, given: inputs.HandedOver) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is not None:
            entry.error = entry.error or given.error
            self._settle(entry)

    def failed(self, query: str, cause: str) -> None:
        self._ledger.tasks.forget(query)
        entry = self._ledger.entries.get(query)
        if entry is None:
            return
        if entry.again_bytes is not None:
            self._begin_again(entry, entry.again_bytes)
            return
        if entry.error is None:
            entry.error = _as_it_was(entry.failure, cause)
        self._settle(entry)

    def _begin_again(self, entry: Entry, memory_bytes: int) -> None:
        """Run a query again with the usual memory: its reservation was a guess, and too small."""
        self._ledger.do(out.Forget(entry.id))
        self._ledger.free(entry)
        if entry.work is not None and entry.work.hands_over:
            self._ledger.do(out.CloseWork(entry.work))
        entry.again_bytes = None
        entry.work = None
        entry.shares_with = ""
        entry.usage = NO_USAGE
        entry.request = entry.request.with_memory(memory_bytes)
        self._ledger.again.append(entry)

    def _settle(self, entry: Entry) -> None:
        """Nothing of a query is left in the kernel and the engine."""
        run = entry.run
        if run is not None and run.holder == entry.id:
            stopped = isinstance(entry.error, QueryCancelled | QueryTimedOut) and run.work_s > 0
            known: out.Known = (
                "exactly" if entry.error is None else "at least" if stopped else "nothing"
            )
            learned = out.Learn(entry.request, run.usual_s, entry.peak_memory_bytes, known)
            self._ledger.do(learned)
            self._ledger.widths.learn(entry.request.template, run.idling)
        self.drop(entry, entry.error)

    def drop(self, entry: Entry, error: BaseException | None) -> None:
        del self._ledger.entries[entry.id]
        self._ledger.health.forget(entry.id)
        entry.error = error
        entry.ended_s = self._ledger.now
        work = entry.work
        self._ledger.free(entry)
        self._ledger.gate.left(entry)
        self._ledger.keys.ended(entry)
        if error is not None:
            self._ledger.do(out.FailOutput(entry.id, error))
        # While its transaction is open, it may still be undone.
        lasts = not (entry.request.idempotency_key and entry.client.in_transaction)
        self._ledger.do(out.Ended(entry.facts(), work, lasts))
        self._ledger.left.append(entry)


def _as_it_was(last: BaseException | None, cause: str) -> QueryFailed:
    """The kernel's cause, with the class of the last attempt's error if that is the cause."""
    if isinstance(last, QueryFailed) and str(last) in cause:
        found = type(last)(cause)
        found.__cause__ = last.__cause__
        return found
    return QueryFailed(cause)
