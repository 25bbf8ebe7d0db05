"""What a sealed client is told, without the places of files on the server."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from queryard.core.errors import QueryardError
from queryard.results.streams import Output, Returns

from ..errors import NotAllowed

# A path from the root with two folders or more, up to its last name.
_FOLDERS = re.compile(r"(?<![\w.:/])(?:/[^\s\"'/,;]+){2,}/")
_REFUSED = re.compile(
    r"Permission Error: |disabled through configuration|Cannot access (file|directory) "
)


def without_folders(text: str, folders: Iterable[str] = ()) -> str:
    """A text that names files by their last names only.

    >>> without_folders('Cannot read "/srv/data/a b/x.csv" and /srv/y/z.csv', ["/srv/data/a b"])
    'Cannot read "x.csv" and z.csv'
    """
    if "/" not in text and os.sep not in text:
        return text
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(os.path.join(folder, ""), "")
    return _FOLDERS.sub("", text)


def hidden(error: BaseException, folders: Iterable[str]) -> BaseException:
    """The same error for a sealed client."""
    if not isinstance(error, QueryardError):
        return error
    text = str(error)
    if _REFUSED.search(text):
        return because(
            NotAllowed(
                "DuckDB was not allowed to open a file or an extension: a client of a server reads "
                "the tables it was granted, by their names"
            ),
            error,
        )
    told = without_folders(text, folders)
    if told == text:
        return error
    try:
        return because(type(error)(told), error)
    except TypeError:  # one that is made of more than a text
        return because(QueryardError(told), error)


def because(told: QueryardError, error: BaseException) -> QueryardError:
    """An error that is told in place of another one, which the operator of the server may see."""
    told.__cause__ = error
    return told


def whole_reason(error: BaseException) -> str:
    """What was not told to a client; empty if all was.

    >>> whole_reason(because(QueryardError("x.csv: broken"), QueryardError("/srv/x.csv: broken")))
    '/srv/x.csv: broken'
    """
    cause = error.__cause__
    while cause is not None and isinstance(cause.__cause__, QueryardError):
        cause = cause.__cause__
    return str(cause) if isinstance(cause, QueryardError) and str(cause) != str(error) else ""


class HidingOutput:
    """Rows of texts, as those of EXPLAIN ANALYZE, on their way without the places of files."""

    def __init__(self, output: Output, hide: Callable[[str], str]) -> None:
        self._output = output
        self._hide = hide
        self.on_room = output.on_room

    @property
    def full(self) -> bool:
        return self._output.full

    def start(self, schema: Any, types: tuple[str, ...], returns: Returns = "rows") -> None:
        self._output.start(schema, types, returns)

    def put(self, batch: Any) -> None:
        import pyarrow as pa

        columns = [
            pa.array([None if text is None else self._hide(text) for text in column.to_pylist()])
            if pa.types.is_string(column.type)
            else column
            for column in batch.columns
        ]
        self._output.put(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    def finish(self) -> None:
        self._output.finish()

    def fail(self, error: BaseException) -> None:
        self._output.fail(error)
