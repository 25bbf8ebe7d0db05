"""Files as text, whatever they are compressed with, and JSON objects that stand in a row."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from queryard.core.amounts import several
from queryard.core.errors import InvalidRecord

_HEAD = 64 * 1024
# How files begin that are compressed, and who reads them.
_STANDARD: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_ARROW = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_ENDINGS = re.compile(r"(\.(json|jhist|tsv|txt|log))?(\.(gz|bz2|xz|zst|lz4))?$")
_SPARK_ONLY = {b"LZ4Block": "lz4", b"\x82SNAPPY\x00": "snappy", b"ZV": "lzf"}


def fail(file: Path, problem: str, line: int | None = None) -> NoReturn:
    """Say what is wrong with a file, and where."""
    where = f"{file}" if line is None else f"{file}, line {line}"
    raise InvalidRecord(f"{where}: {problem}")


def left_out(number: float, what: str) -> str:
    """That so many of something are not replayed.

    >>> left_out(1, "job without a task that succeeded")
    '1 job without a task that succeeded is left out'
    """
    noun, space, rest = what.partition(" ")
    return f"{several(number, noun)}{space}{rest} {'is' if number == 1 else 'are'} left out"


def name_of(file: Path) -> str:
    """A trace's name: its file's without what says how it is written.

    >>> name_of(Path("logs/job_0.23.9-FAILED.jhist")), name_of(Path("19-jobs.trace.json.gz"))
    ('job_0.23.9-FAILED', '19-jobs.trace')
    """
    return _ENDINGS.sub("", file.name) or file.name


class Cut(Exception):
    """A compressed file ends in the middle."""


_DECOMPRESSING = (OSError, EOFError, zlib.error, lzma.LZMAError)


def _is_cut(error: Exception) -> bool:
    """Whether there was too little to decompress, and nothing wrong with what there was."""
    return isinstance(error, EOFError) or "Truncated compressed stream" in str(error)


def open_text(file: Path) -> io.TextIOBase:
    """A file as text in UTF-8, without a byte order mark; bytes that are none are replaced."""
    return io.TextIOWrapper(_open_bytes(file), encoding="utf-8-sig", errors="replace")


def _open_bytes(file: Path) -> Any:
    try:
        with open(file, "rb") as raw:
            magic = raw.read(16)
    except OSError as error:
        fail(file, f"cannot be read ({error.strerror or error})")
    for begin, opener in _STANDARD.items():
        if magic.startswith(begin):
            return opener(file, "rb")
    for begin, name in _ARROW.items():
        if magic.startswith(begin):
            import pyarrow as pa

            return io.BufferedReader(_Arrow(pa.CompressedInputStream(pa.OSFile(str(file)), name)))
    for begin, name in _SPARK_ONLY.items():
        if magic.startswith(begin):
            fail(
                file,
                f"is compressed in Spark's own variety of {name}, which only Spark reads; "
                "let Spark write it with spark.eventLog.compression.codec=zstd, or uncompressed",
            )
    return open(file, "rb")


class _Arrow(io.RawIOBase):
    """A stream of Arrow's as one of Python's."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def head(file: Path) -> str:
    """The beginning of a file, to see what it is; what there is of one that is cut off."""
    found = ""
    try:
        with open_text(file) as text:
            while len(found) < _HEAD and (line := text.readline(_HEAD)):
                found += line
    except _DECOMPRESSING as error:
        if not found:
            fail(file, f"cannot be decompressed ({error})")
    return found[:_HEAD]


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """All lines with their numbers; `Cut` where a compressed file ends too soon."""
    with open_text(file) as text:
        number = 0
        while True:
            try:
                line = text.readline()
            except _DECOMPRESSING as error:
                if _is_cut(error):
                    raise Cut(f"on line {number + 1}: {error}") from error
                fail(file, f"is corrupt from here on ({error}); copy it again", number + 1)
            if not line:
                return
            number += 1
            yield number, line


def whole(file: Path) -> str:
    """All of a file."""
    try:
        return "".join(line for _, line in lines(file))
    except Cut as error:
        fail(file, f"ends in the middle ({error})")


def json_objects(file: Path) -> Iterator[tuple[int, Any]]:
    """JSON objects one after another, with the lines on which they begin."""
    text = whole(file)
    decoder = json.JSONDecoder()
    at, line = 0, 1
    while True:
        start = at
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        line += text.count("\n", start, at)
        if at == len(text):
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            cut = "; is it cut off?" if error.pos >= len(text.rstrip()) - 1 else ""
            fail(file, f"not valid JSON: {error.msg}{cut}", error.lineno)
        except ValueError as error:  # a number of thousands of digits
            fail(file, f"cannot be read: {error}", line)
        except RecursionError:
            fail(file, "is nested too deeply", line)
        yield line, value
        line += text.count("\n", at, end)
        at = end
