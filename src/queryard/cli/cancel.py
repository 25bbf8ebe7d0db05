"""`queryard cancel`: stop a query."""

from __future__ import annotations

from typing import Annotated

import typer

from queryard.core.errors import QueryardError
from queryard.core.readable import printable

from .open_sessions import Data, open_sessions
from .server_option import open_remote, server_for


def cancel(
    query: Annotated[
        str, typer.Argument(metavar="ID", help="The query, as `queryard why` lists it.")
    ],
    data: Data = None,
) -> None:
    """Stop a query that runs or waits, in a session on this machine or on a server.

    Examples:

    - `queryard cancel 5f0c2a91b7de-14 --data data/`
    - `queryard --server http://host:8080 cancel 5f0c2a91b7de-14`
    """
    server = server_for(data)
    if server is not None:
        with open_remote(server) as session:
            handle = session.query(query)
            if not handle.ended:
                handle.cancel()
            typer.echo(printable(f"{query} {handle.status}"))
        return
    name, _, number = query.rpartition("-")
    for remote in open_sessions(data):
        if name and remote.session.startswith(name):
            told = remote.ask("cancel", query=f"{remote.session}-{number}")
            typer.echo(printable(f"{told['query']} is being cancelled"))
            return
    raise QueryardError(
        f"{query}: no session that is open has such a query; `queryard why` lists those on their "
        "way"
    )
