"""Whether DuckDB may remember the footers of Parquet files.

To read the footer of a large file takes longer than a small query does, and DuckDB reads it twice:
as a statement is prepared, and as it is run. It can remember footers, but takes a file for the same
as long as its size and the second of its last change are; whoever rewrites a small file twice in a
second would get rows that are not there. So it remembers those of tables whose files are as the
catalog knows them and have been so for a while, and of nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from queryard.sql.catalog import DataFile
from queryard.sql.catalog.listing import local_file_of

from .classify import Classified
from .instance import Connection
from .volatile import may_differ

# Nobody writes a file twice in one second that has been left alone for so long.
SETTLED_S = 10.0


class Footers:
    """What one connection remembers."""

    def __init__(self) -> None:
        self._remembers = False
        # Whose footers may be remembered, by their files, and from when they are.
        self._known: dict[str, tuple[DataFile, int]] = {}

    def choose(
        self, connection: Connection, statement: Classified, files: Iterable[DataFile]
    ) -> None:
        """Remember or not, for a statement that reads these files."""
        wanted = not may_differ(statement) and all(map(self._is_sure, files))
        if wanted != self._remembers:
            connection.set({"parquet_metadata_cache": "true" if wanted else "false"})
            self._remembers = wanted

    def _is_sure(self, file: DataFile) -> bool:
        """Whether DuckDB cannot take a file for an earlier one in its place."""
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
