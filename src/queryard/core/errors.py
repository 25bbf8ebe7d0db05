"""Errors a user can act on: each names the thing, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class QueryardError(Exception):
    """Base of every error Queryard raises for a mistake in its input."""


class InvalidModel(QueryardError):
    """A node, table, job or query that cannot exist (a cycle, a negative size …)."""


class InvalidProfile(QueryardError):
    """A profile that names an unknown part or gives a part a wrong setting."""


class InvalidEvent(QueryardError):
    """An event that cannot have happened in the state it was fed to."""


class InvalidRecord(QueryardError):
    """A log or a workload file that cannot be read."""


def unknown_name(what: str, name: object, valid: Iterable[str]) -> str:
    """The message for a wrong name: what was given, the closest match, and all valid names."""
    names = sorted(valid)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {name!r}{hint} (valid: {', '.join(names) or 'none'})"
