"""The text of a gzip file, in order or from a place in the middle.

A gzip file can be decompressed from its start only. But a decompressor can be copied: when the
file is gone through for the first time, copies are kept at some places (about 100 KB each), and a
later reader goes on from the copy before the place it wants. The copies live in memory only; where
there is none, the file is decompressed from its start.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_GZIP = 31  # the largest window, with the header of gzip
_READ = 1 << 16  # a copy of a decompressor may hold as much
BLOCK = 1 << 20
"""Text is handed out in blocks of at most this size."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A place in a text, and what is needed to go on from there."""

    text_offset: int
    file_offset: int
    decompressor: Any = field(compare=False, repr=False)


class GzipText:
    """Goes through the text of a file; `restart` says from where, and can be kept at any time."""

    def __init__(self, path: str, start: Restart | None = None) -> None:
        self._path = path
        self._text_offset = start.text_offset if start else 0
        self._file_offset = start.file_offset if start else 0
        self._inflate = start.decompressor.copy() if start else zlib.decompressobj(_GZIP)
        self._waiting = b""

    def blocks(self) -> Iterator[bytes]:
        """The text from here on. Raises `zlib.error` or `EOFError` where the file is damaged."""
        with open(self._path, "rb") as file:
            file.seek(self._file_offset)
            while True:
                if not self._waiting:
                    self._waiting = file.read(_READ)
                    self._file_offset += len(self._waiting)
                    if not self._waiting:
                        break
                if self._inflate.eof:
                    # Several gzip files one after the other are one.
                    self._inflate = zlib.decompressobj(_GZIP)
                block = self._inflate.decompress(self._waiting, BLOCK)
                self._waiting = self._inflate.unconsumed_tail or self._inflate.unused_data
                if block:
                    self._text_offset += len(block)
                    yield block
        if not self._inflate.eof:
            raise EOFError(f"{self._path}: the gzip file ends too early")

    @property
    def restart(self) -> Restart:
        """Where the text is now."""
        offset = self._file_offset - len(self._waiting)
        return Restart(self._text_offset, offset, self._inflate.copy())


def text_between(path: str, start: int, stop: int, restart: Restart | None) -> Iterator[bytes]:
    """The text from one place to another, from the nearest place to go on from."""
    text = GzipText(path, restart)
    offset = restart.text_offset if restart else 0
    for block in text.blocks():
        wanted = block[max(0, start - offset) : stop - offset]
        if wanted:
            yield wanted
        offset += len(block)
        if offset >= stop:
            return


def noted(text: GzipText, keep: Callable[[Restart], None], every_bytes: float) -> Iterator[bytes]:
    """The blocks of a text; at about every so many bytes a place to go on from is kept."""
    offset = kept = 0
    for block in text.blocks():
        # Asked for before the next block is made: a copy of the decompressor as it is now.
        offset += len(block)
        if offset - kept >= every_bytes:
            keep(text.restart)
            kept = offset
        yield block
