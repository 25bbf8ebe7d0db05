"""What a client may reach: tables, databases to write, a folder for output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Access:
    """What a client may reach. It is hashable: instances are pooled by access and settings.

    `tables` are granted keys, exact or patterns such as "sales.*"; None grants all. A `sealed`
    client reads no files but those of its tables, and loads and attaches nothing. It may write the
    databases whose aliases are `writes`, and into the folder `output`.
    """

    tables: frozenset[str] | None = None
    sealed: bool = False
    writes: frozenset[str] = frozenset()
    output: Path | None = None
