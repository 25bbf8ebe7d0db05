"""What a place turned out to hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from .model import AttachedDatabase, CatalogError, Table


@dataclass(slots=True)
class Contents:
    """What a place turned out to hold."""

    tables: list[Table] = field(default_factory=list)
    databases: list[AttachedDatabase] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """What lies there and is no table, with the reason."""
    settings: dict[str, object] = field(default_factory=dict)
    """What a catalog file says of the session that uses it."""
    broken: dict[str, str] = field(default_factory=dict)
    """Names that were given to data that cannot be used, with the reason."""

    def add(self, other: Contents) -> None:
        self.tables += other.tables
        self.databases += other.databases
        self.skipped += other.skipped
        if other.broken:
            self.broken |= other.broken


def broken(name: str, error: CatalogError) -> Contents:
    """An entry that cannot be used; the others of its catalog can."""
    return Contents(broken={name: str(error)})
