"""What can go wrong with a history."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class HistoryError(QueryardError):
    """A history that cannot be read or written."""


class HistoryWarning(UserWarning):
    """A session is no longer recorded; it goes on without."""
