"""The application: its commands, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from queryard.version import __version__

from .accuracy import accuracy
from .analyze import analyze
from .cancel import cancel
from .cluster import cluster
from .compare import compare
from .control import control
from .experiment import experiment
from .explain import explain
from .failures import exit_codes
from .history import history
from .load import load
from .parts import parts
from .policies import policies
from .profile import profile
from .replay import replay
from .serve import serve
from .server_option import ServerOption, name_server
from .shell import shell
from .shuffle import shuffle
from .simulate import simulate
from .sql import sql
from .tables import tables
from .token import token
from .top import top
from .tpch import tpch
from .trace import trace
from .why import why

app = typer.Typer(
    name="queryard",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_QUERIES = "Queries on data"
_SERVER = "A server for a team"
_LOADS = "Many queries at once"
_SCHEDULERS = "Schedulers in simulation"
app.command(rich_help_panel=_QUERIES)(sql)
app.command(rich_help_panel=_QUERIES)(shell)
app.command(rich_help_panel=_QUERIES)(tables)
app.command(rich_help_panel=_QUERIES)(explain)
app.command(rich_help_panel=_QUERIES)(analyze)
app.command(rich_help_panel=_QUERIES)(shuffle)
app.command(rich_help_panel=_QUERIES)(why)
app.command(rich_help_panel=_QUERIES)(top)
app.command(rich_help_panel=_QUERIES)(cancel)
app.command(rich_help_panel=_QUERIES)(profile)
app.command(rich_help_panel=_QUERIES)(cluster)
app.command(rich_help_panel=_QUERIES)(tpch)
app.command(rich_help_panel=_SERVER)(serve)
app.add_typer(token, name="token", rich_help_panel=_SERVER)
app.add_typer(control, name="control", rich_help_panel=_SERVER)
app.command(rich_help_panel=_LOADS)(load)
app.command(rich_help_panel=_LOADS)(history)
app.command(rich_help_panel=_LOADS)(accuracy)
app.command(rich_help_panel=_LOADS)(replay)
app.command(rich_help_panel=_SCHEDULERS)(compare)
app.command(rich_help_panel=_SCHEDULERS)(simulate)
app.add_typer(trace, name="trace", rich_help_panel=_SCHEDULERS)
app.command(
    hidden=True,
    rich_help_panel=_SCHEDULERS,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(experiment)
app.command(rich_help_panel=_SCHEDULERS)(policies)
app.command(rich_help_panel=_SCHEDULERS)(parts)


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
    server: ServerOption = None,
) -> None:
    """A yard where analytic queries are marshalled: SQL on files, and schedulers to try and trust.

    Begin with `queryard sql "select 42"`, with `queryard tpch data/ --scale 0.1` for data to play
    with, or with `queryard compare --demo`.
    """
    name_server(server)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; `exit_codes` says what becomes of errors."""
    with exit_codes():
        app(list(args) if args is not None else None)
