"""Files that a sealed instance may read under names in a folder of its own.

An instance takes no further paths once it is sealed, but may open what lies in a folder that it was
sealed with. Files that come later are linked there, under names that nothing else knows.

DuckDB follows symbolic links before it looks whether it may open a file. So links are hard, but for
files in memory, which have no other name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from queryard.core.errors import QueryardError
from queryard.sql.catalog.quoting import path_literal, pattern_path

from ..syntax.classify import unquoted
from ..syntax.tokens import tokens


class CannotLink(QueryardError):
    """A file that cannot be shown to an instance."""


class Links:
    """A folder for links; it is made with the first of them."""

    def __init__(self, temp: Path, copies: bool = False) -> None:
        """With `copies` a file that cannot be linked, as one of another disk, is copied."""
        self.folder = temp / f"links-{uuid.uuid4().hex}"
        self._copies = copies

    @contextlib.contextmanager
    def over(self, relation: str) -> Iterator[str]:
        """A relation of ours with links in place of its files, for as long as the context lasts."""
        linked, links = self._linked(relation)
        try:
            yield linked
        finally:
            for link in links:
                with contextlib.suppress(OSError):
                    link.unlink()

    def relation(self, relation: str) -> str:
        """The same, for as long as the folder is there."""
        return self._linked(relation)[0]

    def _linked(self, relation: str) -> tuple[str, list[Path]]:
        found = tokens(relation)
        raw = relation.encode()
        links: list[Path] = []
        parts, end = [], 0
        for place, text in enumerate(found.texts):
            if not text.startswith("'"):
                continue
            path = pattern_path(unquoted(text))
            if os.path.isabs(path) and os.path.exists(path):
                links.append(self._link(path))
                at = found.offsets[place]
                parts += [raw[end:at].decode(), path_literal(str(links[-1]))]
                end = at + len(text.encode())
        return "".join([*parts, raw[end:].decode()]), links

    def _link(self, path: str) -> Path:
        given = Path(path)
        # Readers go by endings, and take values of columns from folders (year=2024).
        values = [part for part in given.parent.parts if "=" in part]
        folder = self.folder.joinpath(uuid.uuid4().hex, *values)
        folder.mkdir(parents=True, mode=0o700)
        link = folder / given.name
        real = os.path.realpath(path)
        if not os.path.exists(real):  # in memory
            link.symlink_to(path)
            return link
        try:
            os.link(real, link)
        except OSError as error:
            if not self._copies:
                raise CannotLink(f"{given.name}: {error.strerror or error}") from None
            shutil.copyfile(real, link)
        return link

    def place(self) -> Path:
        """A new folder for a file, which nothing else knows of; the caller removes it."""
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
