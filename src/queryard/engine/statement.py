"""One statement, served by slots that come and go.

A slot is a thread that calls `serve` and stays until its lease is withdrawn or the statement
has ended. What it does there depends on how far the statement is:

    new ──▶ planning ──▶ running ──▶ ready ──▶ ended
            one slot     all slots   one slot fetches the rows, the others go on working

While it runs, the threads are inside DuckDB and know nothing of one another; `poll`, called from
outside every few milliseconds, sees when the result is ready. Everything else happens under one
lock, which is never held while DuckDB works.

A statement that will be over in a moment may *sprint*: its first slot hands it to DuckDB in one
call, as plain DuckDB runs it, and the others help. That saves a second binding and the polling, a
fifth of its time; but the first slot cannot be revoked. A sprint that takes too long is stopped,
and the statement begins again without sprinting.
"""

from __future__ import annotations

import ctypes as c
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from queryard.results.streams import Output, Returns

from .analyzed import EXPLAIN, as_plain
from .arrow import ArrowReader
from .capi import ERROR, OK, READY, Handle, Result, library
from .errors import OutOfMemory, QueryCancelled, failure, missing_table
from .instances.instance import Connection
from .parameters import bind
from .threads import ThreadState, all_asleep, of_this_thread

Stage = Literal["new", "planning", "running", "ready", "ended"]
# How long a statement may sprint, and how long if its slot is revoked meanwhile. While no other
# query wants the slot, stopping it would only lose what it has done; but it gives no row before its
# end, and what it does longer is lost if the slot is wanted then.
SPRINT_S, CALLED_SPRINT_S = 1.0, 0.05
# How long DuckDB must say that rows are ready: with all slots asleep, and where that is not known.
SURE_ASLEEP_S, SURE_S = 0.0002, 0.02
# Chunks of 2,048 rows are gathered into batches of this many rows, or bytes if rows are wide.
# The first batch is smaller and each later one twice as large: readers begin early.
FIRST_BATCH_ROWS, BATCH_ROWS = 8 * 2048, 64 * 2048
BATCH_BYTES = 4 << 20
# duckdb_result_type
_RETURNS: dict[int, Returns] = {1: "changes", 2: "nothing"}


class Lease:
    """One slot's stay at a statement."""

    def __init__(self) -> None:
        self.withdrawn = False
        # DuckDB's handle to stop the thread while it works there.
        self.task_state: int | None = None
        self.recalled = False
        self.thread = 0
        self.state: ThreadState | None = None


class Statement:
    """A statement, from planning to the last row; no other uses its connection meanwhile.

    Rows go to `output`. The owner of the statement closes `output`, with `error` if there is one.
    """

    def __init__(
        self,
        connection: Connection,
        sql: str,
        output: Output,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        supply: Callable[[Connection, str | None], bool] | None = None,
        sprints: bool = False,
        shares_instance: Callable[[], bool] | None = None,
    ) -> None:
        """`supply` makes the tables a statement names, then any other by its name (or says no).

        Only a statement that can be begun again, and has no parameters, may sprint.
        `shares_instance` says whether other statements run in the instance now: slots work on the
        tasks of any.
        """
        self.connection = connection
        self.sql = sql
        self.output = output
        self.error: BaseException | None = None
        self.stage: Stage = "new"
        # Nothing of the statement is left in DuckDB, and its connection is free again.
        self.gone = False
        self._cleaning = False
        self._parameters = parameters
        self._supply = supply or _no_supply
        self._sprints = sprints and library().leases
        self._shares_instance = shares_instance or _alone
        # The start and the lease of the current sprint, and whether the sprint was stopped.
        self._sprinting_since: float | None = None
        self._sprinter: Lease | None = None
        self._stopped = False
        # For how long it sprinted before that was stopped (0: it was not); None if it did not.
        self.lost_sprint_s: float | None = None
        self._changed = threading.Condition()
        self._leases: list[Lease] = []
        self._fetcher: Lease | None = None
        self._prepared = Handle()
        self._pending = Handle()
        self._result: Result | None = None
        self._reader: ArrowReader | None = None
        self._explains = False
        self._progress = 0.0
        self._ready_since: float | None = None
        self.began_s = time.monotonic()

    # --- from a slot's thread ----------------------------------------------------------------

    def serve(self, lease: Lease) -> None:
        """Work on the statement until the lease is withdrawn or there is nothing more to do."""
        lease.thread, lease.state = threading.get_native_id(), of_this_thread()
        with self._changed:
            self._leases.append(lease)
        try:
            while self._serve_once(lease):
                pass
        except BaseException as error:
            self._end(error)
        finally:
            with self._changed:
                self._leases.remove(lease)
                # An idle thread may hold its last lease for long, which must hold no file.
                lease.state = None
                if self._fetcher is lease:
                    self._fetcher = None
                # This slot may have been chosen to fetch: choose another.
                self._call_fetcher()
            self._clean()

    def _serve_once(self, lease: Lease) -> bool:
        with self._changed:
            if lease.withdrawn or self.stage == "ended":
                return False
            if self.stage == "new":
                self.stage = "planning"
                step = self._sprint if self._sprints else self._plan
            elif self.stage == "planning":
                self._changed.wait_for(lambda: lease.withdrawn or self.stage != "planning")
                return True
            elif self.stage == "ready" and self._fetcher is None:
                self._fetcher = lease
                step = self._fetch
            else:
                lease.task_state = library().create_task_state(self.connection.instance.database)
                step = self._work
        step(lease)
        return True

    def _sprint(self, lease: Lease) -> None:
        duck = library()
        self._supply(self.connection, None)
        with self._changed:
            if self.stage != "planning":
                return
            self.stage = "running"
            self._sprinting_since = began_s = time.monotonic()
            self._sprinter = lease
            self.lost_sprint_s = 0.0
            self._changed.notify_all()
        result = Result()
        failed = duck.query(self.connection.handle, self.sql.encode(), c.byref(result))
        error = failure(_text(duck.result_error(c.byref(result)))) if failed else None
        with self._changed:
            self._sprinting_since = self._sprinter = None
            if self.stage == "running":
                self.stage = "ready" if error is None else "planning"
                self.lost_sprint_s = 0.0 if error is None else time.monotonic() - began_s
            if self.stage == "ready":
                self._result = result
                self._fetcher = lease
        if self._result is None:
            duck.destroy_result(c.byref(result))
        else:
            self._fetch(lease)
        if error is not None:
            self._begin_again(error)

    def _begin_again(self, error: BaseException) -> None:
        """Run again without sprinting after a failed sprint, unless that would fail, too."""
        stopped = self._stopped and isinstance(error, QueryCancelled)
        helps = stopped or isinstance(error, OutOfMemory) or self._supply_missing(str(error))
        if not helps:
            raise error
        with self._changed:
            if self.stage == "planning":
                self._sprints = False
                self.stage = "new"
                # If this slot was revoked, another one must plan.
                for lease in self._leases:
                    self._recall(lease)
                self._changed.notify_all()

    def _plan(self, lease: Lease) -> None:
        duck = library()
        self._supply(self.connection, None)
        raw = self.sql.encode()
        while duck.prepare(self.connection.handle, raw, c.byref(self._prepared)):
            text = _text(duck.prepare_error(self._prepared))
            if not self._supply_missing(text):
                raise failure(text)
            duck.destroy_prepare(c.byref(self._prepared))
        self._explains = duck.prepared_statement_type(self._prepared) == EXPLAIN
        bind(self._prepared, self._parameters)
        if duck.pending_prepared_streaming(self._prepared, c.byref(self._pending)):
            raise failure(_text(duck.pending_error(self._pending)))
        with self._changed:
            if self.stage == "planning":
                # Where threads cannot be lent, fetching runs the whole statement.
                self.stage = "running" if duck.leases else "ready"
            self._changed.notify_all()

    def _supply_missing(self, text: str) -> bool:
        """Make the table that was missed: a view, a macro or an expression alone may name it."""
        name = missing_table(text)
        return name is not None and self._supply(self.connection, name)

    def _work(self, lease: Lease) -> None:
        duck = library()
        state = lease.task_state
        with self.connection.instance.lent():
            duck.execute_tasks_state(state)
        with self._changed:
            lease.task_state = None
            lease.recalled = False
        duck.destroy_task_state(state)

    def _fetch(self, lease: Lease) -> None:
        duck = library()
        if self._result is None:
            self._result = Result()
            if duck.execute_pending(self._pending, c.byref(self._result)) != OK:
                text = _text(duck.result_error(c.byref(self._result)))
                raise failure(text or _text(duck.pending_error(self._pending)))
        if self._reader is None:
            self._reader = ArrowReader(self._result)
            returns = _RETURNS.get(duck.result_return_type(self._result), "rows")
            self.output.start(self._reader.schema, self._reader.types, returns)
        gathered: list[Any] = []
        rows = size_bytes = 0
        enough_rows = FIRST_BATCH_ROWS
        while not (lease.withdrawn or self.stage == "ended"):
            if self.output.full:
                with self._changed:
                    self._changed.wait_for(
                        lambda: lease.withdrawn or self.stage == "ended" or not self.output.full
                    )
                continue
            batch = self._reader.next()
            if batch is not None:
                batch = as_plain(batch) if self._explains else batch
                gathered.append(batch)
                rows += batch.num_rows
                size_bytes += batch.nbytes
            if gathered and (batch is None or rows >= enough_rows or size_bytes >= BATCH_BYTES):
                self._put(gathered)
                gathered, rows, size_bytes = [], 0, 0
                enough_rows = min(2 * enough_rows, BATCH_ROWS)
            if batch is None:
                self._end(None)
                return
        if gathered:
            self._put(gathered)
        with self._changed:
            self._fetcher = None
            self._call_fetcher()

    def _put(self, batches: list[Any]) -> None:
        self.output.put(batches[0] if len(batches) == 1 else pa.concat_batches(batches))

    # --- from outside ------------------------------------------------------------------------

    def poll(self) -> None:
        """See whether the result is ready, and signal revoked slots again.

        Returns at once, except for a query that failed while its slots call a Python function.
        """
        with self._changed:
            for lease in self._leases:
                if lease.recalled:
                    self._recall(lease)
            if self._sprinting_since is not None:
                self._stop_sprint(self._sprinting_since)
                return
            if self.stage != "running":
                self._call_fetcher()
                return
            state = library().pending_execute_check_state(self._pending)
            if state == ERROR or (state == READY and self._is_ready()):
                # Fetching meets an error, too.
                self.stage = "ready"
                self._call_fetcher()
            elif state != READY:
                self._ready_since = None

    def _stop_sprint(self, since_s: float) -> None:
        """Stop a sprint that takes too long or was cancelled.

        `poll` repeats this: DuckDB ignores an interrupt that arrives just as the statement starts.
        """
        called = self._sprinter is not None and self._sprinter.withdrawn
        too_long = time.monotonic() - since_s > (CALLED_SPRINT_S if called else SPRINT_S)
        if too_long or self.stage == "ended":
            self._stopped = too_long
            self.connection.interrupt()

    def _is_ready(self) -> bool:
        """Whether DuckDB is to be believed that there are rows to fetch.

        DuckDB sometimes says so for some milliseconds while it still computes. A slot that fetches
        too early then computes as well and cannot be revoked. Threads that compute are not asleep,
        so all threads asleep means that rows are ready, unless several statements run in the
        instance: their threads may work on each other's tasks.
        """
        working = [
            lease.state
            for lease in self._leases
            if lease.task_state is not None and lease.state is not None
        ]
        if not working:
            return False
        now = time.monotonic()
        asleep = None if self._shares_instance() else all_asleep(working)
        if asleep is False:
            self._ready_since = None
            return False
        if self._ready_since is None:
            self._ready_since = now
            return False
        return now - self._ready_since >= (SURE_ASLEEP_S if asleep else SURE_S)

    @property
    def seems_ready(self) -> bool:
        """Whether DuckDB has said that rows are ready; the next poll may confirm it."""
        return self.stage == "running" and self._ready_since is not None

    @property
    def sprinting(self) -> bool:
        """Whether it will tell by itself when it is ready."""
        return self._sprinting_since is not None

    def progress(self) -> float:
        """Share done, 0 to 1, as DuckDB sees it; it is not linear in time."""
        with self._changed:
            if self.stage == "running":
                self._progress = max(self._progress, self.connection.progress())
            return 1.0 if self.stage == "ended" and self.error is None else self._progress

    def withdraw(self, lease: Lease) -> None:
        """Revoke a slot; its thread leaves at its next step."""
        with self._changed:
            lease.withdrawn = True
            self._recall(lease)
            self._changed.notify_all()

    def wake(self) -> None:
        """The output has room again."""
        with self._changed:
            self._changed.notify_all()

    def cancel(self, error: BaseException | None = None) -> None:
        """End it now; slots inside leave at their next step, memory goes with the last of them."""
        # A slot that plans or fetches cannot be revoked, only interrupted.
        with self._changed:
            if self.stage != "ended":
                self.connection.interrupt()
        self._end(error or QueryCancelled("cancelled"))

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            if self.stage == "ended":
                return
            self.stage = "ended"
            self.error = error
            for lease in self._leases:
                self._recall(lease)
            self._changed.notify_all()
        self._clean()

    # --- inside ------------------------------------------------------------------------------

    def _recall(self, lease: Lease) -> None:
        if lease.task_state is not None:
            lease.recalled = True
            # DuckDB then wakes one idle thread, not always this one: send one signal per thread.
            # One thread may still take two signals; `poll` repeats them until this one has left.
            for _ in range(max(len(self._leases), self.connection.instance.working)):
                library().finish_execution(lease.task_state)

    def _call_fetcher(self) -> None:
        """Make one of the working slots fetch the rows."""
        if self.stage == "ready" and self._fetcher is None:
            free = [lease for lease in self._leases if not lease.withdrawn]
            if free and not any(lease.recalled for lease in free):
                self._recall(free[0])

    def _clean(self) -> None:
        """Free all that DuckDB holds for the statement, once no slot works on it."""
        with self._changed:
            if self.stage != "ended" or self._leases or self._cleaning:
                return
            self._cleaning = True
        duck = library()
        if self._reader is not None:
            self._reader.close()
        if self._result is not None:
            duck.destroy_result(c.byref(self._result))
        if self._pending.value is not None:
            duck.destroy_pending(c.byref(self._pending))
        if self._prepared.value is not None:
            duck.destroy_prepare(c.byref(self._prepared))
        self._reader = self._result = None
        self.gone = True


def _no_supply(connection: Connection, name: str | None) -> bool:
    return False


def _alone() -> bool:
    return False


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
