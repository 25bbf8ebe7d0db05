"""`queryard top`: what runs and what waits now, drawn again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from queryard.core.errors import QueryardError
from queryard.core.readable import printable

from .open_sessions import Data, ask_all
from .server_option import server_for
from .top_screen import Present, of_server, of_session, screen

# How many waiting queries are asked for: more than a terminal has lines.
ASKED = 200


def top(
    data: Data = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print it once, and end; so without a terminal.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, help="How often it is drawn.")
    ] = 1.0,
) -> None:
    """Show what runs and what waits, as the first page of a server does; Ctrl-C ends it.

    It asks a server, or the sessions that other programs have open on the data.

    Examples:

    - `queryard --server http://host:8080 top`
    - `queryard top --data data/ --once`
    """
    console = Console(highlight=False)
    with _source(data) as look:
        if once or not console.is_terminal:
            console.print(_drawn(look(), console.width, None))
            return
        with contextlib.suppress(KeyboardInterrupt), Live(console=console, screen=True) as live:
            while True:
                live.update(_drawn(_patient(look), *console.size))
                time.sleep(every)


def _drawn(found: list[Present] | str, width: int, height: int | None) -> Group:
    if isinstance(found, str):
        return Group(Text(printable(found)))
    room = None if height is None else max(8, height // len(found))
    return Group(*(screen(present, width, room) for present in found))


def _patient(look: Callable[[], list[Present]]) -> list[Present] | str:
    """What there is, or why nothing is known; a server that is gone may come back."""
    try:
        return look()
    except QueryardError as error:
        return f"{error}\nIt is asked again."


@contextlib.contextmanager
def _source(data: str | None) -> Iterator[Callable[[], list[Present]]]:
    """How to look at the server that is meant, or at the sessions that are open on data."""
    server = server_for(data)
    if server is None:
        yield lambda: _sessions(data)
        return
    from queryard.remote.credentials import credentials
    from queryard.remote.transport import Transport

    found = credentials(server)
    transport = Transport(found.server, found.token, ca=found.ca, patience_s=0.0)
    try:
        yield lambda: [
            of_server(found.server, transport.json("GET", "/v1/now", params={"limit": ASKED}))
        ]
    finally:
        transport.close()


def _sessions(data: str | None) -> list[Present]:
    """All sessions that are open."""
    return [of_session(str(remote), told) for remote, told in ask_all(data, "overview")]
