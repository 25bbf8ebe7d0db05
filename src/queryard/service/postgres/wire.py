"""One connection as asyncio sees it: bytes in and out, and what a client may not hold up."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..connection import keep_alive
from .errors import FatalError
from .frames import MOST_LOGIN_BYTES, Frame, FrameReader

# Messages that wait to be handled may take so many bytes; then no more is read.
MOST_WAITING_BYTES = 1 << 20
# So many bytes of replies may wait for the client before a query is held up, and go on below so
# many: rows are made in pieces of about a megabyte.
HIGH_BYTES, LOW_BYTES = 4 << 20, 1 << 20


class Gone(Exception):
    """The client has left, or was made to leave."""


class Wire(asyncio.Protocol):
    """The socket of a connection; `receive` gives its messages, `send` and `drain` the replies."""

    def __init__(self, most_bytes: int, stall_s: float, connected: Callable[[Wire], None]) -> None:
        self._stall_s = stall_s
        self._connected = connected
        self._most_bytes = most_bytes
        self._reader = FrameReader(min(most_bytes, MOST_LOGIN_BYTES))
        self._transport: Any = None
        self._frames: deque[Frame] = deque()
        self._frame_bytes = 0
        self._most_waiting_bytes = MOST_LOGIN_BYTES
        self._error: FatalError | None = None
        self._starting = True
        self._paused_reading = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over = asyncio.Event()
        self._heard_s = time.monotonic()
        # How much was not taken by the client when that was last seen to change.
        self._unsent: tuple[int, float] = (0, self._heard_s)
        self.on_lost: Callable[[], None] = lambda: None
        self.encrypted = False

    # --- for asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(HIGH_BYTES, LOW_BYTES)
        keep_alive(transport, self._stall_s)
        self._connected(self)

    def data_received(self, data: bytes) -> None:
        self._heard_s = time.monotonic()
        if self._error is None:
            self._reader.feed(data)
            self._read()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._over.set()
        self._news.set()
        self._room.set()
        self.on_lost()

    def pause_writing(self) -> None:
        self._room.clear()
        self._unsent = (self._transport.get_write_buffer_size(), time.monotonic())

    def resume_writing(self) -> None:
        self._room.set()

    def _read(self) -> None:
        """Take messages out of the bytes. What comes after a start-up packet waits for its
        answer: it may be in another form.
        """
        try:
            while not (self._starting and self._frames):
                frame = self._reader.next()
                if frame is None:
                    break
                self._frames.append(frame)
                self._frame_bytes += len(frame.body)
        except FatalError as error:
            self._error = error
        if self._frame_bytes > self._most_waiting_bytes and not self._paused_reading:
            self._paused_reading = True
            self._transport.pause_reading()
        self._news.set()

    # --- messages --------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self._over.is_set()

    async def receive(self) -> Frame:
        """The next message; raises Gone once there will be none."""
        await self.coming()
        frame = self._frames.popleft()
        self._frame_bytes -= len(frame.body)
        if self._paused_reading and self._frame_bytes <= self._most_waiting_bytes // 2:
            self._paused_reading = False
            if not self.over:
                self._transport.resume_reading()
        return frame

    def upcoming(self) -> int | None:
        return self._frames[0].kind if self._frames else None

    async def coming(self) -> int:
        """The letter of the next message, once it has come; it stays the next."""
        while not self._frames:
            if self._error is not None:
                raise self._error
            if self.over:
                raise Gone
            self._news.clear()
            await self._news.wait()
        return self._frames[0].kind

    def next_packet(self) -> None:
        """A further start-up packet may come."""
        self._read()

    def started(self) -> None:
        """From now on messages have letters."""
        self._starting = False
        self._reader.started()
        self._read()

    def logged_in(self) -> None:
        """From now on messages may be as long as requests."""
        self._reader.most_bytes = self._most_bytes
        self._most_waiting_bytes = MOST_WAITING_BYTES

    # --- replies ---------------------------------------------------------------------------------

    def send(self, data: Any) -> None:
        if not self.over:
            self._transport.write(data)

    async def drain(self) -> None:
        if not self._room.is_set():
            await self._room.wait()
        if self.over:
            raise Gone

    async def encrypt(self, context: ssl.SSLContext, answer: bytes) -> None:
        """Answer, and speak TLS from here on."""
        if self._reader.waiting_bytes or self._frames:
            # Bytes that came in the open must not be taken for encrypted ones.
            raise FatalError("08P01", "received unencrypted data after SSL request")
        self._transport.write(answer)
        loop = asyncio.get_running_loop()
        try:
            self._transport = await loop.start_tls(self._transport, self, context, server_side=True)
        except (OSError, ssl.SSLError):
            raise Gone from None
        if self._transport is None:
            raise Gone
        self._transport.set_write_buffer_limits(HIGH_BYTES, LOW_BYTES)
        self.encrypted = True

    # --- the end ---------------------------------------------------------------------------------

    def stalls(self, limit_s: float) -> bool:
        """Whether the client has stopped within a message, or takes nothing of what is sent."""
        now = time.monotonic()
        half = self._reader.partial and not self._frames and not self._paused_reading
        if half and now - self._heard_s > limit_s:
            return True
        if self._room.is_set() or self._transport is None:
            return False
        left, since = self._unsent
        size = self._transport.get_write_buffer_size()
        if size != left:
            self._unsent = (size, now)
            return False
        return now - since > limit_s

    def close(self) -> None:
        """Close the connection once what was sent is taken."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
