"""Which server a command speaks to, if any: `--server`, the environment, or the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from queryard.core.errors import QueryardError

if TYPE_CHECKING:
    from queryard.live.request import Plan
    from queryard.remote.session import RemoteSession

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Let sql, shell, why, top, cancel, history and control speak to a server, as "
        "http://host:8080. Its address and the token may also be in QUERYARD_SERVER and "
        "QUERYARD_TOKEN, or in ~/.config/queryard/server.toml (mode 0600).",
        show_default=False,
    ),
]


class _Named:
    """What was written before the command; a process runs one."""

    server: str | None = None


def name_server(server: str | None) -> None:
    """For the root of all commands: what `--server` says."""
    _Named.server = server


def server_for(data: str | None, tables: Sequence[str] | None = None) -> str | None:
    """The server that a command means; None if it means data. Data that is named counts first."""
    from queryard.remote.credentials import server_named

    if data is None and not tables:
        return server_named(_Named.server)
    if _Named.server is not None:
        named = "--data" if data is not None else "--table"
        raise QueryardError(f"--server and {named}: name a server or data, not both")
    return None


def open_remote(server: str, plan: Plan | None = None) -> RemoteSession:
    """A session on a server."""
    from queryard.connecting import connect_to_server

    return connect_to_server(server, label="command line", plan=plan)
