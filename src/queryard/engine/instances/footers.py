"""Whether DuckDB may remember the footers of Parquet files.

Reading the footer of a large file takes longer than a small query, and DuckDB reads it twice: when
a statement is prepared, and when it runs. DuckDB can cache footers, but it takes a file for
unchanged while its size and the second of its last change are the same. A small file that is
rewritten twice within a second would then give rows that are not there. So footers are cached only
of files that are as the catalog knows them and have not changed for a while.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from queryard.sql.catalog import DataFile
from queryard.sql.catalog.listing import local_file_of

from ..syntax.classify import Classified
from ..syntax.volatile import may_differ
from .instance import Connection

# A file that has not changed for this long was not rewritten within the second of its last change.
SETTLED_S = 10.0


class FooterCache:
    """What one connection remembers."""

    def __init__(self) -> None:
        self._remembers = False
        # By path: the files with footers that may be cached, and the second of their last change.
        self._known: dict[str, tuple[DataFile, int]] = {}

    def choose(
        self, connection: Connection, statement: Classified, files: Iterable[DataFile]
    ) -> None:
        """Switch the footer cache on or off for a statement that reads these files."""
        wanted = not may_differ(statement) and all(map(self._is_sure, files))
        if wanted != self._remembers:
            connection.set({"parquet_metadata_cache": "true" if wanted else "false"})
            self._remembers = wanted

    def _is_sure(self, file: DataFile) -> bool:
        """Whether DuckDB cannot confuse a file with an earlier one at the same path."""
        try:
            status = os.stat(file.uri)
        except OSError:
            return False
        second = int(status.st_mtime)
        if local_file_of(file.uri, status) != file or time.time() - second < SETTLED_S:
            return False
        known, since = self._known.get(file.uri, (file, second))
        if known != file and (known.bytes, since) == (file.bytes, second):
            return False
        self._known[file.uri] = (file, second)
        return True
