"""Rows of a query on a server: read on a thread of their own, and from where they were cut off."""

from __future__ import annotations

import io
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.results.streams import ResultStream

from .errors import error_of
from .transport import ARROW, Transport

# How long the server waits for the first rows before it answers that there are none yet.
WAIT_S = 60.0
# In the metadata of an Arrow schema, as the server writes them.
TYPES_KEY = b"queryard:types"
RETURNS_KEY = b"queryard:returns"
# How a stream of Arrow ends.
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class RowReader:
    """Puts the rows of a query into a stream, which is as full as a reader lets it be."""

    def __init__(
        self,
        transport: Transport,
        query: str,
        stream: ResultStream,
        response: httpx.Response | None = None,
    ) -> None:
        """`response` is an answer with the rows from the first on, if there is one already."""
        self._transport = transport
        self._query = query
        self._stream = stream
        self._response = response
        self._position = 0
        self._schema: Any = None
        self._chunks: Iterator[bytes] | None = None
        self._room = threading.Event()
        self._room.set()
        stream.on_full = self._room.clear
        stream.on_room = self._room.set
        if response is not None and self._is_here(response):
            self._run()
        else:
            threading.Thread(target=self._run, name="queryard-rows", daemon=True).start()

    def _is_here(self, response: httpx.Response) -> bool:
        """Whether an answer has come as a whole: few rows are not worth a thread."""
        chunks = response.iter_raw()
        try:
            first = next(chunks, b"")
            is_whole = first.endswith(END)
            rest = list(chunks) if is_whole else []
        except httpx.TransportError:
            response.close()
            self._response = None  # it is asked for again
            return False
        self._chunks = itertools.chain([first], rest, chunks)
        return is_whole

    def _run(self) -> None:
        try:
            self._read_all()
        except BaseException as error:
            self._stream.fail(error)
        else:
            self._stream.finish()  # which means nothing to a stream that was closed

    def _read_all(self) -> None:
        """Read on after every cut, as long as the server comes back within some time."""
        pauses = self._transport.pauses()
        while not self._stream.closed:
            before = self._position
            try:
                if self._read_some():
                    return
            except (httpx.TransportError, httpx.StreamError, pa.ArrowException) as error:
                if self._transport.closed:
                    raise QueryardError("the session was closed; the rows cannot be read") from None
                if self._position > before:
                    pauses = self._transport.pauses()
                self._check_state()
                if not next(pauses):
                    raise self._transport.unreachable(error) from error

    def _check_state(self) -> None:
        """An answer is cut off where the query fails: raise its error."""
        state = self._transport.json("GET", f"/v1/queries/{self._query}")
        if state["error"] is not None:
            raise error_of(state["error"])

    def _read_some(self) -> bool:
        """Read one answer of the server; whether it had the last row."""
        response, self._response = self._response, None
        if response is None:
            response = self._transport.begin(
                "GET",
                f"/v1/queries/{self._query}/rows",
                params={"start": self._position, "format": "arrow", "wait": WAIT_S},
                accept=ARROW,
                wait_s=WAIT_S,
            )
        try:
            if response.status_code == 202:
                return False  # none yet
            self._take(response)
            return True
        finally:
            response.close()

    def _take(self, response: httpx.Response) -> None:
        chunks, self._chunks = self._chunks or response.iter_raw(), None
        source = pa.PythonFile(io.BufferedReader(_Body(chunks), 1 << 20), "r")
        with pa.ipc.open_stream(source) as batches:
            self._begin(batches.schema)
            while not self._stream.closed:
                try:
                    batch = batches.read_next_batch()
                except StopIteration:
                    return
                self._stream.put(batch.replace_schema_metadata(self._schema.metadata))
                self._position += batch.num_rows
                # A stream that is closed does not say that it has room.
                while not (self._room.wait(0.5) or self._stream.closed):
                    pass

    def _begin(self, schema: Any) -> None:
        if self._schema is not None:
            return
        told = dict(schema.metadata or {})
        types = tuple(json.loads(told.pop(TYPES_KEY)))
        returns = told.pop(RETURNS_KEY).decode()
        self._schema = schema.with_metadata(told or None)
        self._stream.start(self._schema, types, returns)


class _Body(io.RawIOBase):
    """The content of an answer as a file; a connection that drops raises httpx's error."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = memoryview(next(self._chunks))
            except StopIteration:
                return 0
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
