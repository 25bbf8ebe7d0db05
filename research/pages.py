"""The stored results: Markdown pages, one per paper, with a section per experiment."""

from __future__ import annotations

import re
from pathlib import Path

from queryard.core.errors import InvalidRecord

from .report import markdown
from .sections import Section


class Pages:
    """The pages of a folder; a section takes the place of the former one, the rest stays."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InvalidRecord(f"--pages {folder}: there is no such folder; docs/experiments is")
        self._folder = folder

    def put(self, name: str, section: Section) -> Path:
        """Write a section into the page of this name."""
        page = self._folder / f"{name}.md"
        before = page.read_text("utf-8") if page.exists() else f"# {name}\n"
        page.write_text(with_section(before, section), "utf-8")
        return page


def with_section(page: str, section: Section) -> str:
    """A page with this section in the place of the one of the same title, or at its end."""
    parts = [part.rstrip() for part in re.split(r"^(?=## )", page, flags=re.MULTILINE)]
    own = markdown(section).rstrip()
    title = own.splitlines()[0]
    places = [place for place, part in enumerate(parts) if part.splitlines()[:1] == [title]]
    if places:
        parts[places[0]] = own
    else:
        parts.append(own)
    return "\n\n".join(parts) + "\n"
