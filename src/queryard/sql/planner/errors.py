"""What the planner says when a statement must be run whole."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class NotStageable(QueryardError):
    """The statement cannot be split soundly into jobs; `reason` says why, for `EXPLAIN`.

    >>> str(NotStageable("window functions see all rows of a partition at once"))
    'not staged: window functions see all rows of a partition at once'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"not staged: {reason}")
        self.reason = reason

    def __reduce__(self) -> tuple[type[NotStageable], tuple[str]]:
        return NotStageable, (self.reason,)
