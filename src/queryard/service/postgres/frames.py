"""From a stream of bytes to messages: a letter, a length, a body. Nothing here does I/O.

Bytes are fed as they come, and whole messages are taken out. A length is judged as soon as it is
there, so that a client cannot make the server hold more than the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import BadFrame

# PostgreSQL's own limit on the packet before which nothing is known of a client.
MOST_STARTUP_BYTES = 10_000
# Nor does a client that logs in say much: what comes from strangers is held in memory.
MOST_LOGIN_BYTES = 10_000
# Messages that carry no statement and no value are short; PostgreSQL has the same limit.
MOST_SHORT_BYTES = 30_000
_BULKY = frozenset(b"QPBdp")
_SHORT = frozenset(b"CDEFHSXcf")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: its letter (0 for a start-up packet, which has none) and its body."""

    kind: int
    body: bytes

    @property
    def letter(self) -> str:
        return chr(self.kind) if self.kind else "start-up"


class FrameReader:
    """Takes bytes as they come and gives messages.

    >>> reader = FrameReader(most_bytes=100)
    >>> reader.started()
    >>> reader.feed(b"S\\x00\\x00\\x00")
    >>> reader.next(), reader.partial
    (None, True)
    >>> reader.feed(b"\\x04")
    >>> reader.next(), reader.partial
    (Frame(kind=83, body=b''), False)
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        """The longest message with a statement or values."""
        self._bytes = bytearray()
        self._at = 0
        self._starting = True

    def started(self) -> None:
        """From here on messages have letters."""
        self._starting = False

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._bytes += data

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were fed and not taken out."""
        return len(self._bytes) - self._at

    @property
    def partial(self) -> bool:
        """Whether bytes are left that are no whole message, once `next` has given None."""
        return self.waiting_bytes > 0

    def next(self) -> Frame | None:
        """The next message; None until all of it is there.

        Raises BadFrame if what comes cannot be a message.
        """
        head = 0 if self._starting else 1
        at = self._at
        if not self._starting and self.waiting_bytes:
            self._check_kind(self._bytes[at])
        if self.waiting_bytes < head + 4:
            return None
        kind = self._bytes[at] if head else 0
        length = int.from_bytes(self._bytes[at + head : at + head + 4], "big", signed=True)
        self._check_length(kind, length)
        end = at + head + length
        if len(self._bytes) < end:
            return None
        body = bytes(memoryview(self._bytes)[at + head + 4 : end])
        self._at = end
        # What was taken is dropped once it is much, or all: dropping costs what is left.
        if end == len(self._bytes):
            self._bytes.clear()
            self._at = 0
        elif end > 1 << 16:
            del self._bytes[:end]
            self._at = 0
        return Frame(kind, body)

    def _check_kind(self, kind: int) -> None:
        if kind not in _BULKY and kind not in _SHORT:
            raise BadFrame(f"invalid frontend message type {kind}")

    def _check_length(self, kind: int, length: int) -> None:
        if self._starting:
            if not 8 <= length <= MOST_STARTUP_BYTES:
                raise BadFrame("invalid length of startup packet")
            return
        most = self.most_bytes if kind in _BULKY else MOST_SHORT_BYTES
        if length < 4:
            raise BadFrame(f"invalid message length {length} of message {chr(kind)!r}")
        if length > max(most, 4):
            raise BadFrame(
                f"message {chr(kind)!r} of {length} bytes is longer than the limit of {most} bytes"
            )
