"""`queryard history`: what was asked, what was expected, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from queryard.core import readable
from queryard.core.errors import QueryardError, unknown_name

from . import history_place
from .server_option import open_remote, server_for

if TYPE_CHECKING:
    from queryard.history import CostRow, QueryRecord, SessionRecord

    from .history_tables import Listing

BY = ("tenant", "template")
# The most that a server tells at once.
MOST_FROM_SERVER = 10_000
NOTHING = "There is nothing of the kind in the history."
_WHICH = "Which queries"
_WHAT = "What to show"


def history(
    data: history_place.Data = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            "-n",
            min=1,
            help="How many of the newest. Default: 20, or all where they are summed up.",
            rich_help_panel=_WHICH,
            show_default=False,
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this tenant's, and of those below it.",
            rich_help_panel=_WHICH,
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only of this session; the beginning of its name will do.",
            rich_help_panel=_WHICH,
            show_default=False,
        ),
    ] = None,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Only those that gave no answer.", rich_help_panel=_WHICH),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(BY),
            help="Sum up: how many, how long, how well predicted, how much of the work.",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="List the sessions.", rich_help_panel=_WHAT)
    ] = False,
    costs: Annotated[
        bool,
        typer.Option(
            "--costs",
            help="What Queryard itself took: time to decide, processor, memory.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write everything as Parquet files, one per table.",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of a table.", rich_help_panel=_WHAT)
    ] = False,
) -> None:
    """Show the queries of a place: how long they waited and ran, and how that had been predicted.

    Work is in core-seconds. The forecast is the one made when the query came: with +20 % the query
    took longer, by a fifth of its time. docs/history.md tells what is kept, and for how long.

    Examples:

    - `queryard history --data data/`
    - `queryard history --data data/ --failed --last 5`
    - `queryard history --data data/ --by template`
    - `queryard history --data data/ --export history/`
    - `queryard sql "FROM 'history/asked.parquet'"` (then, on what was exported)
    """
    from . import history_tables as tables

    _check(by, sessions, costs, export)
    console = Console(highlight=False)
    outcomes = ("failed", "cancelled", "refused", "lost", "open") if failed else None
    limit = last if last is not None or by is not None else 20
    server = server_for(data)
    if server is not None:
        given = {"--sessions": sessions, "--costs": costs, "--export": export, "--session": session}
        for option in (name for name, value in given.items() if value):
            raise QueryardError(f"{option}: is told on the machine of the server; leave it out")
        with open_remote(server) as there:
            queries = there.history(limit or MOST_FROM_SERVER, tenant, outcomes)
        _show_queries(queries, by, as_json, console)
        return
    with history_place.open_history(data) as reader:
        if export is not None:
            rows = reader.export(export)
            console.print(
                f"{readable.several(sum(rows.values()), 'row')} of "
                f"{readable.several(len(rows), 'table')} in {export} now.",
                soft_wrap=True,
            )
            return
        if sessions:
            _show(reader.sessions(), as_json, tables.session_table, console)
            return
        name = None if session is None else reader.session(session).session
        if costs:
            chosen = reader.sessions() if name is None else [reader.session(name)]
            noted = [(record, reader.costs(record.session)) for record in chosen]
            _show_costs([(record, rows) for record, rows in noted if rows], as_json, console)
            return
        queries = reader.queries(name, tenant, limit=limit, outcomes=outcomes)
        _show_queries(queries, by, as_json, console)


def _show_queries(
    queries: list[QueryRecord], by: str | None, as_json: bool, console: Console
) -> None:
    from . import history_tables as tables
    from .history_sums import summed

    if by is not None:
        _show(summed(queries, by), as_json, lambda rows: tables.sum_table(rows, by), console)
    else:
        _show(queries, as_json, tables.query_table, console)


def _show(
    rows: list[Any], as_json: bool, table: Callable[[list[Any]], Listing], console: Console
) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
    elif rows:
        console.print(table(rows).fitted(console.width))
    else:
        console.print(NOTHING)


def _show_costs(
    noted: list[tuple[SessionRecord, list[CostRow]]], as_json: bool, console: Console
) -> None:
    from .history_tables import cost_table

    if as_json:
        plain = {record.session: [asdict(row) for row in rows] for record, rows in noted}
        typer.echo(json.dumps(plain, indent=1))
    elif noted:
        console.print(cost_table(noted).fitted(console.width))
    else:
        console.print(NOTHING)


def _check(by: str | None, sessions: bool, costs: bool, export: Path | None) -> None:
    if by is not None and by not in BY:
        raise QueryardError(f"--by: {unknown_name('grouping', by, BY)}")
    given = {"--by": by, "--sessions": sessions, "--costs": costs, "--export": export}
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise QueryardError(f"{' and '.join(chosen)} show different things; choose one of them")
