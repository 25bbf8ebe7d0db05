"""Statements that would open, by its path, a database file that this process writes.

Closing it again would drop the lock of the session that writes it (`catalog.open_files`).
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from queryard.sql.catalog.open_files import FileInUse, is_written, resolved, written
from queryard.sql.catalog.quoting import has_magic

from .classify import Classified

# Functions that open the files they are given.
_OPENS = re.compile(r"read_|parquet_|sniff_|.*_scan$")
# After these words a text is a file.
_BEFORE_FILES = ("from", "join", "to")


def refuse_written(
    statement: Classified, parameters: Sequence[Any] | Mapping[str, Any] = ()
) -> None:
    """An error if a statement would open a database file that this process writes."""
    if not written() or statement.kind in ("ATTACH", "DETACH"):
        return
    for path in _paths(statement, parameters):
        if _means_written(path):
            raise FileInUse(
                f"{path}: a session of this process writes this database file, so that nothing "
                "else here may open it; use the tables of that session"
            )


def _paths(statement: Classified, parameters: Sequence[Any] | Mapping[str, Any]) -> Iterator[str]:
    """What may be the path of a file, or a pattern."""
    words = statement.words
    if any(map(_OPENS.match, words)):
        values: Iterable[Any] = (
            parameters.values() if isinstance(parameters, Mapping) else parameters
        )
        yield from statement.texts
        for value in values:
            yield from (item for item in _flat(value) if isinstance(item, str))
        return
    texts = iter(statement.texts)
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        named = before in _BEFORE_FILES or (before == "," and "from" in words[:place])
        if word.startswith("'"):
            text = next(texts)
            if named:
                yield text
        elif named and word.startswith('"'):
            yield word.strip('"')


def _flat(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _means_written(path: str) -> bool:
    if is_written(path):
        return True
    # A star matches more here than in DuckDB, which errs on the safe side.
    return has_magic(path) and any(
        fnmatch.fnmatch(str(file), pattern)
        for file in written()
        for pattern in (os.path.abspath(path), str(resolved(path)))
    )
