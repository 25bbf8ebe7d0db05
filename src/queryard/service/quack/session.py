"""One connection of a client: what it runs, what it reads, what it inserts.

Calls block; each request has a thread. A connection has one result at a time.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.engine.describing import gives_rows
from queryard.engine.instances.settings import Setting
from queryard.engine.syntax.classify import Classified, classify
from queryard.live.handle import Handle
from queryard.results.answer import Answer
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.quoting import identifier

from ..connection import Connection
from ..limits import TooMany
from ..query_settings import query_options
from ..served import ServedClient
from . import envelope
from .attaching import Attachable, Scan, is_question, is_scan, written
from .errors import QuackError
from .requests import Append, Fetch, Prepare
from .rows import FIRST_CHUNKS, MOST_BYTES, Rows
from .settings import Settings
from .versions import Codec

# Arrow has no times with a zone, unless DuckDB is told to give all that it has.
_LOSSLESS = Setting("arrow_lossless_conversion", "SET arrow_lossless_conversion = true")
_LOSES = "TIME WITH TIME ZONE"
# Rows on their way into a table.
_APPENDED = "queryard appended"
_TENANT = "queryard.tenant"
# Rows that are made into a reply in a moment.
_FEW_ROWS, _FEW_BYTES = 2048, 64 << 10
# The longest wait for a token that sends more statements than it may.
_MOST_WAIT_S = 1.0


class Session:
    """A client with its connection id."""

    def __init__(self, name: str, client: ServedClient, codec: Codec) -> None:
        self.name = name
        self.client = client
        self.codec = codec
        self.used_s = time.monotonic()
        # The TCP connection of its last request; of the event loop.
        self.came_over: Connection | None = None
        # One statement at a time; rows are fetched beside it.
        self._working = threading.Lock()
        self._requests = 0
        self._rows: Rows | None = None
        self._running: Handle | None = None
        self._gone = False
        # What the client was told when it attached the server, and what it would be told now.
        self._told: Attachable | None = None
        self._current: Attachable | None = None
        self._is_lossless = False
        # The first reply has so many rows: until they are there, nothing is to be done.
        self._first_count = FIRST_CHUNKS * codec.chunk_rows + 1
        self._settings = Settings()
        self._counting = threading.Lock()

    # --- for the listener ------------------------------------------------------------------------

    def handle(
        self, request: Prepare | Fetch | Append, tell: Callable[[Waiting], None]
    ) -> list[Any] | None:
        """The reply to a request, in pieces; it blocks until there is one.

        A statement that only reads is not waited for: there is no reply yet, and once its first
        rows have come, some thread calls `tell` with what makes one.
        """
        with self._counting:
            self._requests += 1
        reply: list[Any] | None = []
        try:
            match request:
                case Prepare(sql):
                    reply = self._prepare(sql, tell)
                case Fetch(result):
                    reply = self._fetch(result)
                case Append():
                    reply = self._append(request)
        finally:
            if reply is not None:
                self._handled()
        return reply

    def _handled(self) -> None:
        with self._counting:
            self._requests -= 1
        self.used_s = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._requests > 0

    @property
    def in_transaction(self) -> bool:
        """Whether others may wait for what it has written."""
        return self.client.client.in_transaction

    @property
    def has_rows(self) -> bool:
        """Whether a result has rows that were not fetched."""
        rows = self._rows
        return rows is not None and not rows.ended

    @property
    def holds_something(self) -> bool:
        """Whether closing it takes longer than a moment."""
        client = self.client
        return self.busy or self.has_rows or bool(client.active) or client.client.instance.is_open

    def drop_rows(self) -> None:
        """Free the rows of a result that is not read."""
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def abandon(self) -> None:
        """The client has left in the middle of a request: stop what runs for it; in a moment."""
        self._gone = True
        running = self._running
        if running is not None:
            running.cancel()

    def close(self, reason: str) -> None:
        """Stop what runs, and free everything."""
        self._gone = True
        self.drop_rows()
        self.client.close(reason)

    # --- statements ------------------------------------------------------------------------------

    def _prepare(self, sql: str, tell: Callable[[Waiting], None]) -> list[Any] | None:
        self._working.acquire()
        reply: list[Any] | None = []
        try:
            reply = self._begun(sql, tell)
        finally:
            if reply is not None:
                self._working.release()
        return reply

    def _begun(self, sql: str, tell: Callable[[Waiting], None]) -> list[Any] | None:
        self.drop_rows()
        if is_question(sql):
            self.client.count(sql)
            self._told = attachable = self._attachable(self.client.catalog_now())
            return self._whole(attachable.answer(sql))
        sql, shown, changed = self._set(sql)
        if not sql and (shown or changed):
            return self._settled(shown)
        scan = self._scan(sql)
        sql = sql if scan is None else scan.sql
        statements = classify(sql) if sql.strip() else []
        if len(statements) == 1 and statements[0].reads:
            waiting = Waiting(self, self._enter(statements[0].sql), scan)
            waiting.handle.when_gathered(self._first_count, MOST_BYTES, lambda: tell(waiting))
            return None
        return self.first_rows(self._answer(statements), scan)

    def first_rows(self, answer: Answer, scan: Scan | None) -> list[Any]:
        """The reply to a statement."""
        if scan is not None:
            self._check_unchanged(scan, answer)
        rows = Rows(self.codec, answer, uuid.uuid4().int)
        reply = rows.first()
        self._rows = rows
        if self._gone:  # meanwhile
            self.drop_rows()
        return reply

    def done(self) -> None:
        """A statement that was waited for has its reply, or needs none."""
        self._running = None
        self._working.release()
        self._handled()

    def _set(self, sql: str) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Change the settings that a text begins with; all of them or none."""
        before = dict(self._settings.values)
        try:
            found = self._settings.take(sql)
            if _TENANT in found[2]:
                own = self.client.principal.tenant
                self.client.narrow(self._settings.values.get(_TENANT, own))
        except QueryardError:
            self._settings.values = before
            raise
        return found

    def _settled(self, shown: list[tuple[str, str]]) -> list[Any]:
        """The reply to settings alone: the first value that is asked for, or that it is done."""
        if shown:
            name, value = shown[0]
            return self._whole(pa.table({name: pa.array([value], pa.string())}))
        schema = pa.schema([("Success", pa.bool_())])
        columns = self.codec.columns(schema.names, ["BOOLEAN"], schema)
        return columns.prepared([], uuid.uuid4().int, more=False)

    def _attachable(self, catalog: Catalog) -> Attachable:
        """What can be attached of a catalog."""
        found = self._current
        if found is None or found.version != catalog.version:
            access = self.client.client.reach.access
            self._current = found = Attachable(catalog, access, self.codec)
        return found

    def _scan(self, sql: str) -> Scan | None:
        """A read of an attached table as it is run; None if it is none."""
        if self._told is None or not is_scan(sql):
            return None
        found = self._attachable(self.client.catalog).scan(sql)
        if found is None and self.client.client.reach.access.writes:
            # The client may have made it a moment ago.
            found = self._attachable(self.client.catalog_now()).scan(sql)
        return found

    def _check_unchanged(self, scan: Scan, answer: Answer) -> None:
        """The client takes columns for what it was told: another type would be misread."""
        told = None if self._told is None else self._told.scan(scan.asked)
        if told is not None and told.types not in (None, tuple(answer.types)):
            answer.close()
            raise QuackError(
                f"table {scan.table} has other columns than when it was attached; DETACH and "
                "ATTACH the server again"
            )

    def _whole(self, table: Any) -> list[Any]:
        """A reply with all rows of a table of texts."""
        types = ["VARCHAR"] * table.num_columns
        columns = self.codec.columns(table.column_names, types, table.schema)
        chunks = [chunk for batch in table.to_batches() for chunk in columns.chunks(batch)]
        return columns.prepared(chunks, uuid.uuid4().int, more=False)

    def _answer(self, statements: list[Classified]) -> Answer:
        """Run all statements of a text: the first with rows answers, else the last."""
        if not statements:
            raise QuackError("Query did not return any columns")
        found: Answer | None = None
        for place, statement in enumerate(statements, start=1):
            answer = self._run(statement)
            if found is None and (answer.returns_rows or place == len(statements)):
                found = answer
            else:
                for _ in answer.batches():
                    pass
        assert found is not None
        return found

    def _run(self, statement: Classified) -> Answer:
        repeats = statement.reads or statement.only_looks
        if not repeats and gives_rows(statement):
            self._lose_nothing()
        answer = self._submit(statement.sql)
        return self.again(answer, statement.sql) if self.loses(answer) else answer

    def loses(self, answer: Answer) -> bool:
        """Whether an answer lacks something of what DuckDB has."""
        return not self._is_lossless and any(_LOSES in kind for kind in answer.types)

    def again(self, answer: Answer, sql: str) -> Answer:
        """The whole answer to a statement whose answer lacks something."""
        answer.close()
        self._lose_nothing()
        return self._submit(sql)

    def _lose_nothing(self) -> None:
        if not self._is_lossless:
            self.client.client.with_instance(lambda instance: instance.adopt(_LOSSLESS))
            self._is_lossless = True

    def _enter(self, sql: str) -> Handle:
        self._running = handle = self.client.submit(sql, **query_options(self._settings.values))
        if self._gone:  # meanwhile
            handle.cancel()
        return handle

    def _submit(self, sql: str) -> Answer:
        try:
            handle = self._enter(sql)
            handle.gather(self._first_count, MOST_BYTES)
            return handle.result()
        finally:
            self._running = None

    # --- rows ------------------------------------------------------------------------------------

    def _fetch(self, result: int) -> list[Any]:
        rows = self._rows
        if rows is None or rows.result != result:
            raise QuackError("Result has been closed")
        return rows.next()

    def _append(self, request: Append) -> list[Any]:
        with self._working:
            self.drop_rows()
            client = self.client.client
            client.with_instance(lambda instance: instance.take_rows(_APPENDED, request.rows))
            try:
                target = written(request.schema, request.table)
                answer = self._patiently(
                    f"INSERT INTO {target} SELECT * FROM temp.{identifier(_APPENDED)}"
                )
                for _ in answer.batches():
                    pass
            finally:
                client.with_instance(lambda instance: instance.drop_rows(_APPENDED))
        return [envelope.SUCCESS]

    def _patiently(self, sql: str) -> Answer:
        """Run a statement, however many there are: a client inserts rows by thousands of them."""
        while True:
            try:
                return self._submit(sql)
            except TooMany as error:
                if error.retry_after_s is None or self._gone:
                    raise
                time.sleep(min(error.retry_after_s, _MOST_WAIT_S))


class Waiting:
    """A statement whose first rows have come; `quick` or `reply`, or `drop`, end it."""

    def __init__(self, session: Session, handle: Handle, scan: Scan | None) -> None:
        self._session = session
        self._scan = scan
        self.handle = handle

    def quick(self) -> list[Any] | None:
        """The reply, if that takes a moment."""
        try:
            answer = self.handle.result()
            if self._session.loses(answer) or not answer.is_small(_FEW_ROWS, _FEW_BYTES):
                return None
        except BaseException:
            self.drop()
            raise
        return self.reply()

    def reply(self) -> list[Any]:
        """The reply; it blocks."""
        session = self._session
        try:
            answer = self.handle.result()
            if session.loses(answer):
                answer = session.again(answer, self.handle.sql)
            return session.first_rows(answer, self._scan)
        finally:
            self.drop()

    def drop(self) -> None:
        """Free the session for its next statement."""
        self._session.done()
