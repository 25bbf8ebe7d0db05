"""What a family of workloads is: data made once into a folder, and named queries over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from queryard.core.errors import QueryardError

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a line to show."""
Purpose = Literal["development", "reporting"]


class FamilyError(QueryardError):
    """A family that does not exist, or data that cannot be made or are not those asked for."""


class Query(NamedTuple):
    """One query; queries of the same `template` differ in literals only."""

    name: str
    sql: str
    template: str


@dataclass(frozen=True)
class Family:
    """A family of workloads.

    Coefficients may be fitted to one for development. One for reporting is run after they are
    frozen, and its first run counts.
    """

    name: str
    purpose: Purpose
    tables: Sequence[str]
    make: Callable[[Path, float, Progress], None]
    queries: Callable[[Path], Sequence[Query]]
    """Of the data in a folder: literals may depend on its size."""

    def check_frozen(self, commit: str | None) -> None:
        """A family for reporting runs only after the coefficients were frozen at a commit."""
        if self.purpose == "reporting" and not commit:
            raise FamilyError(
                f"{self.name}: is for reporting; freeze the coefficients, then name the commit "
                "with --frozen"
            )

    def places(self, folder: Path) -> dict[str, str]:
        """The tables, as a catalog takes them; an error if one is not there."""
        files = self.files(folder)
        for file in files.values():
            if not file.exists():
                raise FamilyError(
                    f"{file}: is not there; make it with: "
                    f"python -m bench.families {self.name} --data {folder}"
                )
        return {table: str(file.absolute()) for table, file in files.items()}

    def files(self, folder: Path) -> dict[str, Path]:
        """The Parquet file of each table."""
        return {table: folder / f"{table}.parquet" for table in self.tables}
