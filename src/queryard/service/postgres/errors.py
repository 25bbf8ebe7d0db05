"""Errors as PostgreSQL's clients see them: a SQLSTATE, a text, what may help."""

from __future__ import annotations

from queryard.core.errors import QueryardError


class PostgresError(QueryardError):
    """An error with its SQLSTATE; a fatal one ends the connection."""

    fatal = False

    def __init__(
        self, sqlstate: str, text: str, *, detail: str = "", hint: str = "", where: str = ""
    ) -> None:
        super().__init__(text)
        self.where = where
        self.sqlstate = sqlstate
        self.detail = detail
        self.hint = hint


class FatalError(PostgresError):
    """An error after which the connection is closed."""

    fatal = True


class BadMessage(PostgresError):
    """A message whose end is known but whose contents are not those of its kind."""

    def __init__(self, text: str) -> None:
        super().__init__("08P01", text)


class BadFrame(FatalError):
    """Bytes in which the next message cannot be found any more."""

    def __init__(self, text: str) -> None:
        super().__init__("08P01", text)


def not_supported(text: str, hint: str = "") -> PostgresError:
    """The error for what PostgreSQL has and this server has not."""
    return PostgresError("0A000", text, hint=hint)


def changed_plan(how: str) -> PostgresError:
    """The error for rows of other types than those that a client was told of before."""
    return not_supported(
        f"cached plan must not change result type: {how}",
        hint="prepare the statement again; if a parameter decides the type, cast it",
    )
