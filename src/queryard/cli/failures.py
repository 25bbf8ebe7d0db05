"""What becomes of things that go wrong while something runs: a message and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from queryard.core.errors import QueryardError

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


def complain(problem: str, heading: str = "error: ") -> None:
    """Say it on stderr."""
    if heading:
        typer.secho(heading, fg="red", bold=True, err=True, nl=False)
    typer.echo(problem, err=True)
