"""`queryard.connect`: a session on data, embedded, or on a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from queryard.core.errors import QueryardError
from queryard.live.options import SessionOptions, check_options

if TYPE_CHECKING:
    from queryard.live.session import Session
    from queryard.remote.session import RemoteSession

_OF_SERVERS = ("token", "tenant", "label", "ca", "patience", "plan")


@overload
def connect(where: str, *, token: str, **options: Any) -> RemoteSession: ...
@overload
def connect(where: str | Path | None = None, **options: Unpack[SessionOptions]) -> Session: ...
def connect(where: str | Path | None = None, **options: Any) -> Session | RemoteSession:
    """Open a session on data, or on a server.

    `where` is a folder of data files, a catalog file (TOML), one data file or a DuckDB database; or
    the address of a server, as "http://host:8080". The options on data are those of
    `queryard.live.connect`, on a server those of `queryard.remote.connect`, such as `token`.
    """
    if is_server(where):
        return _remote(str(where), options)
    known = SessionOptions.__annotations__
    misplaced = [name for name in options if name in _OF_SERVERS and name not in known]
    if misplaced:
        raise QueryardError(
            f"{misplaced[0]}: is for sessions on a server, and {where!r} is no address of one; "
            "give one as http://host:8080"
        )
    from queryard.live.connecting import connect as connect_here

    check_options(options, SessionOptions.__annotations__)
    return connect_here(where, **options)


def is_server(where: object) -> bool:
    """Whether a place is the address of a server.

    >>> is_server("http://127.0.0.1:8080"), is_server("data/")
    (True, False)
    """
    return isinstance(where, str) and where.startswith(("http://", "https://"))


def _remote(where: str, options: dict[str, Any]) -> RemoteSession:
    """A session on a server, with the options of a caller."""
    for name in options:
        if name in SessionOptions.__annotations__ and name not in _OF_SERVERS:
            raise QueryardError(
                f"{name}: is for sessions on data; a server has settings of its own "
                "(docs/service.md)"
            )
    check_options(options, _OF_SERVERS)
    return connect_to_server(where, **options)


def connect_to_server(where: str, **options: Any) -> RemoteSession:
    """A session on a server; says how what it needs is installed."""
    try:
        from queryard.remote.connecting import connect as connect_there
    except ImportError as error:
        if error.name != "httpx":
            raise
        raise QueryardError(
            "a session on a server needs the package httpx, which is not installed; run "
            "pip install 'queryard[client]'"
        ) from error
    return connect_there(where, **options)
