"""The answer to a query: rows that are read as they come, or all at once."""

from __future__ import annotations

import html
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from queryard.core.errors import QueryardError

from .batches import Batches
from .frames import to_pandas, with_own_names
from .ownership import Owner
from .streams import ResultStream
from .values import python_values

# Rows are made into Python values in pieces, so that the first one does not wait for many others.
PIECE_ROWS = 1024
PREVIEW_ROWS = 10
# How long `repr` waits for rows: a debugger that shows variables must not stand still.
PREVIEW_S = 0.5

Row = tuple[Any, ...]


class Answer:
    """Columns and rows of one query.

    `arrow`, `df`, `pl` and `fetchall` collect all rows and keep them, so they may be called again
    and one after another. Iteration, `fetchone`, `fetchmany`, `batches`, `reader` and Arrow's own
    protocol (`polars.DataFrame(answer)`, `pyarrow.table(answer)`) hand rows over as they come, in
    bounded memory and once; if the rows were collected before, they hand over what is kept. A query
    is paused while its rows are not read. An answer that is closed, or that is not held any more,
    cancels its query.
    """

    def __init__(
        self, stream: ResultStream, release: Callable[[], None], owner: object = None
    ) -> None:
        """`release` is called once the rows are wanted no more; it must not hold the answer."""
        self._stream = stream
        self._process = Owner()
        # A reference to the session: it stays open as long as the rows are in use.
        self._owner = owner
        # Read, but not handed over.
        self._ahead: deque[Any] = deque()
        self._rows: deque[Row] = deque()
        self._table: Any = None
        # The batch of which these rows are the last.
        self._piece: Any = None
        # What `fetchall` gave.
        self._rest: Any = None
        self._used = False
        # Whether rows were handed over.
        self._gave = False
        self._closed = False
        # Runs once: at the end of the rows, when closed, or when the answer is garbage.
        self._release = weakref.finalize(self, release)
        self._release.atexit = False

    # --- what it looks like ----------------------------------------------------------------------

    @property
    def schema(self) -> Any:
        """The Arrow schema; waits until it is known."""
        return self._source.schema() if self._table is None else self._table.schema

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def types(self) -> list[str]:
        """SQL types, as DESCRIBE writes them."""
        self.schema  # noqa: B018  # waits until they are known
        return list(self._stream.types)

    @property
    def changed(self) -> int | None:
        """How many rows a statement has written (INSERT, COPY …); None if its answer is rows."""
        self.schema  # noqa: B018  # waits until it is known
        if self._stream.returns == "rows":
            return None
        if self._stream.returns == "nothing":
            return 0
        table, _ = self.head(1)
        return int(table.column(0)[0].as_py()) if table.num_rows else 0

    @property
    def returns_rows(self) -> bool:
        """Whether the statement answers with rows, and does not just do something."""
        self.schema  # noqa: B018  # waits until it is known
        return self._stream.returns == "rows"

    def is_small(self, rows: int, size_bytes: int) -> bool:
        """Whether all rows are there already, and fewer than this."""
        return self._table is None and self._stream.is_small(rows, size_bytes)

    # --- all rows --------------------------------------------------------------------------------

    def arrow(self) -> Any:
        """All rows as a pyarrow.Table."""
        if self._table is None:
            self._check_unused()
            self._table = self._collected()
        return self._table

    def _check_unused(self) -> None:
        if self._used:
            raise QueryardError(
                "some rows were handed over already, and were not kept; ask for all rows first "
                "(arrow, df, pl, fetchall), or run the query again"
            )

    def _collected(self) -> Any:
        """All rows that are still to come."""
        try:
            table = pa.Table.from_batches(list(self._incoming()), self.schema)
        except BaseException:
            self.close()
            raise
        self._release()
        return table

    def df(self) -> Any:
        """All rows as a pandas frame, with the types DuckDB would give it."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise QueryardError("pandas is not installed; pip install pandas") from None
        return to_pandas(self.arrow())

    def pl(self) -> Any:
        """All rows as a Polars frame."""
        try:
            import polars
        except ImportError:
            raise QueryardError("Polars is not installed; pip install polars") from None
        return polars.from_arrow(with_own_names(self.arrow()))

    def fetchall(self) -> list[Row]:
        """All rows but those that were fetched one by one, as Python values.

        It keeps them and gives them again when it is called again. `fetchone`, `fetchmany` and
        iteration find no rows after it.
        """
        if self._rest is None:
            if self._used:
                self._ahead.extendleft(self._begun())
                self._rows.clear()
                self._rest = self._collected()
            else:
                self._rest = self.arrow()
                self._used = True
        return list(self._python_rows(self._rest))

    # --- rows as they come -----------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        if not self._rows:
            self._fill()
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Row]:
        """The next rows: as many as asked for, fewer only at the end."""
        if type(size) is not int or size < 0:  # a truth value is no number of rows
            raise QueryardError(f"size: must be a whole number of at least 0, got {size!r}")
        found: list[Row] = []
        while len(found) < size and (row := self.fetchone()) is not None:
            found.append(row)
        return found

    def __iter__(self) -> Iterator[Row]:
        """The rows that were not fetched yet, as tuples of Python values."""
        while (row := self.fetchone()) is not None:
            yield row

    def batches(self) -> Batches:
        """The rows as Arrow record batches; once only, unless they were collected before.

        In asyncio: `async for batch in answer.batches()`.
        """
        if self._table is not None:
            return Batches(iter(self._table.to_batches()))
        self._check_unused()
        self._used = True
        return Batches(self._handed_over(), self._when_more)

    def _when_more(self, call: Callable[[], None]) -> None:
        if self._ahead:
            call()
        else:
            self._stream.when_more(call)

    def _handed_over(self) -> Iterator[Any]:
        try:
            for batch in self._incoming():
                self._gave = self._gave or batch.num_rows > 0
                yield batch
        finally:
            self._release()

    def reader(self) -> Any:
        """The rows as a pyarrow.RecordBatchReader, in bounded memory; once only."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that knows Arrow's PyCapsule interface; as `reader`."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns, by the same interface."""
        return self.schema.__arrow_c_schema__()

    def head(self, rows: int, timeout_s: float | None = None) -> tuple[Any, bool]:
        """The first rows as a table, and whether there are more; they are not used up.

        Where rows were handed over already, and not kept, these are the next ones.
        After the timeout it raises `TimeoutError`; the rows that came meanwhile are not lost.
        """
        table = self._table if self._rest is None else self._rest
        if table is None:
            until = None if timeout_s is None else time.monotonic() + timeout_s
            schema = self._source.schema(timeout_s)
            begun = self._begun()
            seen = sum(batch.num_rows for batch in (*begun, *self._ahead))
            while seen <= rows and (batch := self._next(until)) is not None:
                self._ahead.append(batch)
                seen += batch.num_rows
            table = pa.Table.from_batches([*begun, *self._ahead], schema)
            if self._gave and not table.num_rows:
                raise QueryardError(
                    "all rows were handed over already, and were not kept; run the query again"
                )
        return table.slice(0, rows), table.num_rows > rows

    def _begun(self) -> list[Any]:
        """What is left of the batch of which rows were made into Python values."""
        left = len(self._rows)
        return [self._piece.slice(self._piece.num_rows - left)] if left else []

    def _incoming(self) -> Iterator[Any]:
        while self._ahead:
            yield self._ahead.popleft()
        while (batch := self._next()) is not None:
            yield batch

    def _next(self, until: float | None = None) -> Any:
        source = self._source
        if self._closed:
            raise QueryardError("the answer was closed; run the query again")
        return source.next(None if until is None else max(0.0, until - time.monotonic()))

    @property
    def _source(self) -> ResultStream:
        """Where rows come from; only the process that asked may wait for them."""
        self._process.check()
        return self._stream

    def _fill(self) -> None:
        """Make Python values of the next few rows."""
        if not self._used and self._stream.returns != "rows":
            self.arrow()  # a count of rows, for `changed`
        if self._table is not None and not self._used:
            self._ahead.extend(self._table.to_batches())
        self._used = True
        while not self._ahead:
            batch = None if self._table is not None else self._next()
            if batch is None:
                self._release()
                return
            if batch.num_rows:
                self._ahead.append(batch)
        batch = self._ahead.popleft()
        if batch.num_rows > PIECE_ROWS:
            self._ahead.appendleft(batch.slice(PIECE_ROWS))
            batch = batch.slice(0, PIECE_ROWS)
        self._piece, self._gave = batch, True
        self._rows.extend(self._python_rows(batch))

    def _python_rows(self, rows: Any) -> Iterator[Row]:
        """Rows of a batch or a table as tuples."""
        columns = [
            python_values(column, kind)
            for column, kind in zip(rows.columns, self._stream.types, strict=True)
        ]
        return zip(*columns, strict=True)

    def close(self) -> None:
        """Read no more; a query that still runs for it is cancelled."""
        if self._table is None:
            self._closed = True
            self._ahead.clear()
            self._rows.clear()
            if self._process.is_here:
                self._stream.close()
        self._release()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- for people ------------------------------------------------------------------------------

    def show(self, rows: int = 20) -> None:
        """Print the first rows as a table."""
        from .display import print_rows

        table, more = self.head(rows)
        print_rows(table, self.types, more)

    def __repr__(self) -> str:
        """The first rows, or a word about the query if there are none soon; it uses nothing up."""
        from .display import rows_as_text

        try:
            table, more = self.head(PREVIEW_ROWS, PREVIEW_S)
        except TimeoutError:
            return "<Answer: the query runs; show() waits for its rows>"
        except Exception as error:
            return f"<Answer: {error}>"
        return rows_as_text(table, self.types, more)

    def _repr_html_(self) -> str:
        """The first rows for a notebook, which must not fail where the query has."""
        from .display import rows_as_html

        try:
            table, more = self.head(PREVIEW_ROWS)
        except Exception as error:
            return f"<pre>{html.escape(str(error))}</pre>"
        return rows_as_html(table, self.types, more)
