"""What becomes of things that go wrong while something runs: a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from queryard.core.errors import QueryardError
from queryard.core.readable import printable

if TYPE_CHECKING:
    from .any_session import AnyCatalog

USER_ERROR = 2  # a wrong option, a missing file
FAILED = 1  # the statement could not be run
INTERRUPTED = 130  # by Ctrl-C


class RunFailed(QueryardError):
    """A statement that was understood as a command and failed; the message may have lines."""


@contextmanager
def running() -> Iterator[None]:
    """What fails inside is the statement's fault, not that of the options."""
    try:
        yield
    except QueryardError as error:
        raise RunFailed(str(error)) from error
    except KeyboardInterrupt:
        complain("cancelled", "")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def exit_codes() -> Iterator[None]:
    """What goes wrong inside is told on stderr, without a traceback, and ends the process.

    The exit code is 2 for a wrong command and 1 for a statement that failed.
    """
    try:
        yield
    except RunFailed as error:
        complain(str(error))
        sys.exit(FAILED)
    except QueryardError as error:
        complain(" ".join(str(error).split()))
        sys.exit(USER_ERROR)
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"{error.filename}: {error.strerror}")
        sys.exit(USER_ERROR)


@contextmanager
def advising(catalog: AnyCatalog) -> Iterator[None]:
    """What DuckDB says of the tables of a catalog, with the advice that applies to them."""
    from queryard.engine.errors import QueryFailed
    from queryard.sql.catalog.advice import with_passed_over, with_way_out

    try:
        yield
    except QueryFailed as error:
        told = with_passed_over(with_way_out(str(error)), catalog.skipped)
        if told == str(error):
            raise
        raise type(error)(told) from error


def complain(problem: str, heading: str = "error: ") -> None:
    """Say it on stderr; names and statements in it may be those of others."""
    if heading:
        typer.secho(heading, fg="red", bold=True, err=True, nl=False)
    typer.echo(printable(problem), err=True)
