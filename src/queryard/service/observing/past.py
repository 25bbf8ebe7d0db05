"""The history of the server, for documents of it; there may be none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from queryard.history import Overviews


@contextmanager
def past(file: Path | None) -> Iterator[Overviews | None]:
    """A reader, for one thread; None if nothing has been recorded yet."""
    if file is None or not file.is_file():
        yield None
        return
    with Overviews(file) as reader:
        yield reader
