"""What a client of Quack is told: one text, without a class."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class QuackError(QueryardError):
    """An error whose text is the client's to read."""


class Malformed(QuackError):
    """Bytes that are no message of the protocol."""


class CannotSend(QuackError):
    """A value or a type that the version of the protocol has no form for."""
