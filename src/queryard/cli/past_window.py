"""A window of a history as the workload of a command: `--history`, `--since`, `--until`."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from queryard.core.amounts import InvalidAmount, parse_seconds
from queryard.core.errors import QueryardError

from .history_place import open_history

if TYPE_CHECKING:
    from queryard.replay import Window

_PAST = "Queries of the past"
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="DATA",
        help="Queries that were asked of this data, from its history: a folder, a file, a database "
        "or a catalog; or a history file itself.",
        rich_help_panel=_PAST,
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="The first of them: a time such as 2026-11-18T08:00, or how long ago, as '2 h'. "
        "Default: an hour before --until.",
        rich_help_panel=_PAST,
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="The end of the window, in the same way. Default: now.",
        rich_help_panel=_PAST,
        show_default=False,
    ),
]


def past_window(data: str, since: str | None, until: str | None) -> Window:
    """The window that was named, in the history of some data."""
    from queryard.replay import window

    end = _moment(until, "--until", time.time())
    with open_history(data) as reader:
        return window(reader, _moment(since, "--since", end - 3600.0), end)


def _moment(given: str | None, option: str, usual: float) -> float:
    """Seconds since 1970; times without a zone are of this machine's."""
    if given is None:
        return usual
    try:
        return datetime.fromisoformat(given).timestamp()
    except ValueError:
        pass
    try:
        return time.time() - parse_seconds(given)
    except InvalidAmount:
        raise QueryardError(
            f"{option} {given}: must be a time such as 2026-11-18T08:00, or how long ago, as '2 h'"
        ) from None
