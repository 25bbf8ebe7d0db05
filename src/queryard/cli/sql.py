"""`queryard sql`: ask a question, get rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from queryard.core.errors import QueryardError

from . import data_options
from .failures import running

_OUT = "Results"
_ONLINE = "Online answers"


def sql(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL",
            help="One or more statements, separated by semicolons; - reads them from stdin.",
            show_default=False,
        ),
    ] = None,
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Read the statements from a file.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="table|csv|tsv|json|jsonl|parquet|arrow",
            help="Default: what the ending of -o says, a table on a terminal, else csv. NaN and "
            "infinity are null in JSON.",
            rich_help_panel=_OUT,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the rows there as they come; the file appears when it is whole. Text is "
            "compressed if the name ends in .gz or .zst.",
            rich_help_panel=_OUT,
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            min=0,
            help="At most so many rows, 0 for all. Default: 40 for tables, else all.",
            rich_help_panel=_OUT,
            show_default=False,
        ),
    ] = None,
    write: data_options.Write = False,
    plan: data_options.PlanOption = "auto",
    slots: data_options.Slots = None,
    memory: data_options.Memory = None,
    time_limit: data_options.TimeLimit = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Answer early and refine: estimates with intervals from a part of the largest "
            "table (`queryard shuffle` makes the best sample), until they are exact.",
            rich_help_panel=_ONLINE,
        ),
    ] = False,
    stop_at: Annotated[
        float | None,
        typer.Option(
            "--stop-at",
            metavar="ERROR",
            help="Stop once every estimate is within this relative error, as 0.01.",
            rich_help_panel=_ONLINE,
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="TIME",
            help="Stop after this time, as '2 s'.",
            rich_help_panel=_ONLINE,
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            metavar="SHARE",
            help="How sure the intervals are.",
            rich_help_panel=_ONLINE,
        ),
    ] = 0.95,
) -> None:
    """Run SQL on files and show, save or pipe the rows.

    Every file is a table, named like the file: `orders.parquet` is `orders`. The SQL is DuckDB's.
    Of several statements, tables show all answers; other formats hold the rows of the last one.

    Examples:

    - `queryard sql "select 6 * 7 as answer"`
    - `queryard sql "select * from orders limit 5" --data data/`
    - `queryard sql "from trips" --table trips='logs/*.csv' -o trips.parquet`
    - `queryard sql -f report.sql -d data/ --format json | jq .`
    - `echo "select count(*) from orders" | queryard sql - -d data/`
    - `queryard sql "select avg(price) from orders" -d data/ --online --stop-at 0.01`
    - `queryard sql "copy (from a join b using (id)) to 'ab.csv'" -d data/ --write`
    """
    from .rows_out import choose_format
    from .script import Showing, run_script

    check_online(online, stop_at, within, output, form)
    showing = Showing(choose_format(form, output), output, rows)
    if output is not None:
        data_options.check_folder_of(output, "-o")
    asked = asked_text(text, file)
    data_options.check_time(time_limit)
    with (
        data_options.open_session(
            data, table, write=write, slots=slots, memory=memory, plan=plan
        ) as session,
        running(),
    ):
        if online:
            from .online import run_online

            run_online(
                session,
                asked,
                stop_at=stop_at,
                confidence=confidence,
                within=within,
                rows=rows,
                time_limit=time_limit,
            )
        else:
            run_script(session, asked, showing, time_limit)


def check_online(
    online: bool,
    stop_at: float | None,
    within: str | None,
    output: Path | None,
    form: str | None,
) -> None:
    """Options that mean nothing without --online, or with it."""
    if not online and (stop_at is not None or within is not None):
        named = "--stop-at" if stop_at is not None else "--within"
        raise QueryardError(f"{named}: is for answers that refine; add --online")
    if online and (output is not None or form not in (None, "table")):
        named = "-o" if output is not None else "--format"
        raise QueryardError(
            f"--online: shows answers that refine; leave out {named}, or leave out --online to "
            "save rows"
        )


def asked_text(text: str | None, file: Path | None) -> str:
    """The SQL of a command: an argument, a file or the standard input."""
    if (text is None) == (file is None):
        problem = "both were given" if text is not None else "there is none"
        raise QueryardError(
            f"the statements to run: {problem}; write them as an argument, name a file with -f, or "
            "give - and pipe them in"
        )
    if file is not None:
        return read_text(file)
    assert text is not None
    return sys.stdin.read() if text == "-" else text


def read_text(file: Path) -> str:
    """SQL from a file."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise QueryardError(f"{file}: is not a text in UTF-8") from None
