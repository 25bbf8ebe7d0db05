"""`queryard why`: what a query waits for, and when it will end."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queryard.core.errors import QueryardError
from queryard.core.readable import printable

from . import history_place
from .open_sessions import Data, ask_all, open_sessions
from .past_queries import told_of_past
from .policy_told import ASKED, show_policies
from .server_option import open_remote, server_for


def why(
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="One query. Without it, all that are on their way are listed.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        bool,
        typer.Option(
            "--policy",
            help="Say which policy is in force and why: the candidates of a portfolio that were "
            "tried, their scores, and what became of its forecasts.",
        ),
    ] = False,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say what a query waits for, which rule holds it, and when it will start and end.

    It asks the sessions that other programs have open on the data. A query that has ended is looked
    up in the history: how long it took, and how good the forecast was.

    Examples:

    - `queryard why --data data/` lists the queries that run and that wait
    - `queryard why 5f0c2a91b7de-14 --data data/`
    - `queryard why --policy --data data/` says why this policy is in force
    - `queryard --server http://host:8080 why`
    """
    # It brings the engine with it, which the help must not wait for.
    from .asking import NoAnswer

    server = server_for(data)
    if policy:
        if query is not None:
            raise QueryardError(f"--policy is about all queries: leave {query} out")
        _show_policy(server, data, as_json)
        return
    if server is not None:
        from .remote_queries import list_on_server, why_on_server

        with open_remote(server) as there:
            if query is None:
                show_queries(list_on_server(there), as_json)
            else:
                typer.echo(printable(why_on_server(there, query, as_json)))
        return
    if query is None:
        _list(data, as_json)
        return
    session, _, number = query.rpartition("-")
    for remote in open_sessions(data):
        if not (session and remote.session.startswith(session)):
            continue
        try:
            found = remote.ask("why", query=f"{remote.session}-{number}")
        except NoAnswer:
            raise
        except (QueryardError, OSError):
            break  # it has ended meanwhile
        typer.echo(json.dumps(found, indent=1) if as_json else printable(found["text"]))
        return
    _ended(query, data, as_json)


def _show_policy(server: str | None, data: str | None, as_json: bool) -> None:
    if server is None:
        asked = ask_all(data, "policy", limit=ASKED)
        show_policies([(str(remote), told) for remote, told in asked], as_json)
        return
    with open_remote(server) as there:
        show_policies([(there.url, there.scheduler(ASKED))], as_json)


def _list(data: str | None, as_json: bool) -> None:
    told = ask_all(data, "queries")
    rows: list[dict[str, Any]] = []
    late = []
    for remote, queries in told:
        ends_s: dict[str, Any] = {}
        try:
            if queries:
                found = remote.ask("forecasts")
                ends_s = {query: forecast["end_s"] for query, forecast in found.items()}
        except (QueryardError, OSError):
            late.append(remote)
        # Sessions of earlier versions tell the forecast with the queries.
        rows += [{"forecast_end_s": ends_s.get(row["id"]), **row} for row in queries]
    for remote in late:
        typer.echo(f"{remote} has no forecast yet; ask again", err=True)
    show_queries(rows, as_json)


def show_queries(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Queries on their way, as a table for people."""
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    console = Console(highlight=False)
    if not rows:
        console.print("No query is on its way.")
        return
    table = Table(box=None, header_style="bold")
    for name in ("query", "tenant", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("slots", "done", "for", "ends in"):
        table.add_column(name, justify="right", no_wrap=True)
    # The only column that is cropped: half the name of a query is of no use to `queryard why`.
    table.add_column("SQL")
    for row in rows:
        end_s = row["forecast_end_s"]
        table.add_row(
            Text(printable(row["id"])),
            Text(printable(row["tenant"])),
            row["status"],
            str(row["slots"]),
            f"{row['progress']:.0%}",
            f"{row['now_s'] - row['submitted_s']:.1f} s",
            "" if end_s is None else f"{max(0.0, end_s - row['now_s']):.1f} s",
            Text(printable(" ".join(row["sql"].split())), no_wrap=True, overflow="ellipsis"),
        )
    console.print(table)


def _ended(query: str, data: str | None, as_json: bool) -> None:
    session, _, number = query.rpartition("-")
    with history_place.open_history(data) as reader:
        # The beginning of a session's name will do, as `queryard history` prints it.
        sessions = [row.session for row in reader.sessions() if row.session.startswith(session)]
        asked = [row for name in sessions for row in reader.queries(session=name)]
    matching = [row for row in asked if row.query.rpartition("-")[2] == number]
    if len(matching) > 1:
        names = ", ".join(row.query for row in matching)
        raise QueryardError(f"{query}: there are several; write more of its name: {names}")
    found = next(iter(matching), None)
    if found is None:
        raise QueryardError(
            f"{query}: no query of this name is on its way or in the history; "
            "`queryard why` lists those on their way, `queryard history` the others"
        )
    typer.echo(json.dumps(asdict(found), indent=1) if as_json else printable(told_of_past(found)))
