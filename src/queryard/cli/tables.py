"""`queryard tables`: what can be asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from queryard.core.errors import QueryardError

from . import data_options


def tables(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show one table: its columns, their types and what is known of their values.",
            show_default=False,
        ),
    ] = None,
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the tables of a place, or the columns of one.

    Sizes come from the files themselves, without reading data. Numbers with a ~ are estimates;
    `queryard analyze` makes them right.

    Examples:

    - `queryard tables --data data/`
    - `queryard tables lineitem --data data/`
    - `queryard tables --table logs='logs/*.csv' --json`
    """
    from .table_lists import column_table, describe_columns, describe_tables, table_table

    catalog = data_options.open_place(data, table)
    console = Console(highlight=False)
    if name is not None:
        if name not in catalog and Path(name).exists():
            raise QueryardError(
                f"{name} is a place, not a table; list its tables with "
                f"`queryard tables --data {name}`"
            )
        found = describe_columns(catalog, name)
        if as_json:
            typer.echo(json.dumps(found, indent=1, default=str))
        else:
            column_table(found, console)
        return
    listed = describe_tables(catalog)
    if as_json:
        skipped = [{"place": place, "reason": reason} for place, reason in catalog.skipped]
        typer.echo(json.dumps({"tables": listed, "skipped": skipped}, indent=1, default=str))
        return
    table_table(listed, catalog.skipped, console)
