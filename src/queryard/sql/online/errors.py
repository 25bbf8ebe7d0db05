"""What the analysis says when a query must run exactly."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class NotOnline(QueryardError):
    """The answer cannot be estimated soundly from a part of a table; `reason` says why.

    >>> str(NotOnline("there is no aggregate"))
    'runs exactly: there is no aggregate'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"runs exactly: {reason}")
        self.reason = reason

    def __reduce__(self) -> tuple[type[NotOnline], tuple[str]]:
        return NotOnline, (self.reason,)
