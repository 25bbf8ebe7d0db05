"""The sessions that are open on some data, in this process or another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryard.core.errors import QueryardError

from .data_options import data_option, existing_place

if TYPE_CHECKING:
    from .asking import Remote

Data = Annotated[
    str | None,
    data_option("The data the sessions are open on: a folder, a file, a database or a catalog."),
]
OwnProfiles = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Profiles of your own (TOML); NAME may be one of them.",
        show_default=False,
    ),
]


def open_sessions(data: str | None) -> list[Remote]:
    """All that are open; where no data is named, those without a place of their own as well."""
    from queryard.history.places import beside
    from queryard.sql.statistics.store import cache_folder

    from .asking import remotes

    found = list(remotes(beside(existing_place(data))))
    return found if data is not None else [*found, *remotes(cache_folder())]


def ask_all(data: str | None, what: str, **details: Any) -> list[tuple[Remote, Any]]:
    """What each open session answers; says so if there is none.

    All are asked before one of them that says no is heard. One that says nothing in time is an
    error only if no other one has answered.
    """
    from .asking import NoAnswer

    answers = []
    problems = []
    silent = []
    for remote in open_sessions(data):
        try:
            answers.append((remote, remote.ask(what, **details)))
        except OSError:
            pass  # it was closed meanwhile
        except NoAnswer as error:
            silent.append(str(error))
        except QueryardError as error:
            problems.append(f"{remote}: {error}")
    if problems or (silent and not answers):
        raise QueryardError("\n".join([*problems, *silent]))
    if not answers:
        raise none_open(data)
    for problem in silent:
        typer.echo(problem, err=True)
    return answers


def none_open(data: str | None) -> QueryardError:
    """The error where no session answers."""
    other = (
        "Leave --data out to find `queryard load` and sessions that keep no history beside the data"
        if data is not None
        else "Name the data of others with --data"
    )
    return QueryardError(
        f"no session is open on {data or 'the current folder'}; one is while a program holds "
        f"queryard.connect(…) or `queryard shell` runs there. {other}"
    )
