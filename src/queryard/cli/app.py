"""The application: its commands, and what becomes of errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from queryard import __version__
from queryard.core.errors import QueryardError

from .compare import compare
from .parts import parts
from .policies import policies
from .simulate import simulate

USER_ERROR = 2

app = typer.Typer(
    name="queryard",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(compare)
app.command()(simulate)
app.command()(policies)
app.command()(parts)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"queryard {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A yard where analytic queries are marshalled: try schedulers before you trust them.

    Begin with `queryard compare --demo`.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on stderr and the exit code 2."""
    try:
        app(list(args) if args is not None else None)
    except QueryardError as error:
        _complain(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _complain(f"{error.filename}: {error.strerror}")


def _complain(problem: str) -> None:
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(" ".join(problem.split()), err=True)
    sys.exit(USER_ERROR)
