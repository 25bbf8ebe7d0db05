"""What earlier statements of a session have left: settings, objects, an open transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..instances.settings import Setting, Settings
from .objects import SessionObjects


@dataclass(slots=True)
class Transaction:
    """The transaction on the session's connection."""

    is_open: bool = False
    # A statement of the open transaction has failed: DuckDB may refuse all that follow.
    is_aborted: bool = False
    # A BEGIN, COMMIT or ROLLBACK has not ended.
    turning: bool = False
    # Whether the open transaction has made or dropped something.
    has_made: bool = False
    # Databases that the open transaction has come to.
    touched: set[str] = field(default_factory=set)

    def end(self) -> None:
        """It was committed or rolled back."""
        self.is_open = self.is_aborted = self.turning = False
        self.touched.clear()


@dataclass(slots=True)
class SessionState:
    """All of it; the statements of a session change it one after another."""

    # The client's settings, applied on every instance that runs a query of the client.
    settings: Settings = ()
    objects: SessionObjects = field(default_factory=SessionObjects)
    transaction: Transaction = field(default_factory=Transaction)
    # Whether a statement may have left something behind.
    is_used: bool = False

    @property
    def late(self) -> list[Setting]:
        """The settings that name databases or schemas, which must be there before."""
        return [setting for setting in self.settings if setting.is_late]

    @property
    def searched(self) -> frozenset[str]:
        """What these settings name."""
        return frozenset(name for setting in self.late for name in setting.names)
