"""What is to be run online."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queryard.results.online import AnswerLog

from ..instances.settings import Settings
from ..sealing.access import Reach
from .wish import OnlineWish

if TYPE_CHECKING:
    # Most sessions never need the planner, which takes half a second to import.
    from queryard.sql.online import OnlinePlan

    from ..sampling import Sample


@dataclass(frozen=True, slots=True)
class OnlineStatement:
    """One query, the sample it goes through, and where its answers go."""

    plan: OnlinePlan
    sample: Sample
    wish: OnlineWish
    log: AnswerLog
    memory_bytes: int
    reach: Reach
    settings: Settings = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its sample is read from."""
        return tuple(map(str, self.sample.files))
