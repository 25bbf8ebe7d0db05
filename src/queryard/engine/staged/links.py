"""Files that a sealed instance may read for a while, under names in a folder of its own.

An instance takes no further paths once it is sealed, but may open what lies in a folder it was
sealed with. Segments of text come and go while a query runs, so each is linked there for the task
that reads it, under a name that nothing else knows.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from queryard.engine.classify import unquoted
from queryard.engine.tokens import tokens
from queryard.sql.catalog.quoting import literal


class Links:
    """A folder for links; it is made with the first of them."""

    def __init__(self, temp: Path) -> None:
        self.folder = temp / f"links-{uuid.uuid4().hex}"

    @contextlib.contextmanager
    def over(self, relation: str) -> Iterator[str]:
        """A relation of ours with links in place of the files that it names."""
        found = tokens(relation)
        raw = relation.encode()
        made: list[Path] = []
        parts, end = [], 0
        try:
            for place, text in enumerate(found.texts):
                path = unquoted(text)
                if not text.startswith("'") or not os.path.isabs(path) or not os.path.exists(path):
                    continue
                link = self._link(path)
                made.append(link)
                at = found.offsets[place]
                parts += [raw[end:at].decode(), literal(str(link))]
                end = at + len(text.encode())
            yield "".join([*parts, raw[end:].decode()])
        finally:
            for link in made:
                with contextlib.suppress(OSError):
                    link.unlink()

    def _link(self, path: str) -> Path:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # A reader of Parquet or of compressed text goes by the ending.
        link = self.folder / f"{uuid.uuid4().hex}{''.join(Path(path).suffixes[-2:])}"
        link.symlink_to(path)
        return link

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
