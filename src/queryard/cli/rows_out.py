"""Where the rows of an answer go: a file in a format of its own, or the standard output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from queryard.core.errors import QueryardError, unknown_name
from queryard.results.files import BINARY, FORMATS, Format

ENDINGS: dict[str, Format] = {
    ".txt": "table",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Endings behind those of texts."""


def choose_format(wanted: str | None, output: Path | None) -> Format:
    """What was asked for, else what the ending of the file says, else what the reader can use."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise QueryardError(f"--format: {unknown_name('format', wanted, FORMATS)}")
        return wanted
    if output is not None:
        packed = output.suffix.lower() in COMPRESSIONS
        ending = (output.with_suffix("") if packed else output).suffix.lower()
        if ending not in ENDINGS or (packed and ENDINGS[ending] in BINARY):
            raise QueryardError(
                f"-o {output}: the ending does not tell the format; add --format "
                f"({', '.join(FORMATS)}), or use {', '.join(ENDINGS)}, for text also with "
                f"{' or '.join(COMPRESSIONS)} behind it"
            )
        return ENDINGS[ending]
    return "table" if sys.stdout.isatty() else "csv"


@contextmanager
def opened(output: Path | None, form: Format) -> Iterator[IO[bytes]]:
    """The file, which appears when it is whole, or the standard output; text may be compressed."""
    ending = "" if output is None else output.suffix.lower()
    compression = COMPRESSIONS.get(ending)
    if compression is not None and form in BINARY:
        raise QueryardError(
            f"-o {output}: {form} files are not compressed as a whole; leave out {ending}"
        )
    with _opened(output, form) as file:
        if compression is None:
            yield file
        else:
            with pa.CompressedOutputStream(file, compression) as packed:
                yield packed


@contextmanager
def _opened(output: Path | None, form: Format) -> Iterator[IO[bytes]]:
    if output is None:
        if form in BINARY and sys.stdout.isatty():
            raise QueryardError(
                f"{form} is not for eyes: name a file (-o rows.{form}) or redirect the output"
            )
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    folder = output.absolute().parent
    if not folder.is_dir():
        raise QueryardError(f"-o {output}: there is no folder {str(folder)!r}; make it first")
    if output.is_dir():
        raise QueryardError(f"-o {output}: is a folder; name a file in it")
    if output.exists() and not output.is_file():  # a pipe, a device
        with output.open("wb") as file:
            yield file
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{output.name}-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, _mode_of(output))
        os.replace(temporary, output)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode_of(output: Path) -> int:
    """The rights that the file has, or would have if any program had made it."""
    if output.exists():
        return output.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
