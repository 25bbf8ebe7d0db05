"""`queryard accuracy`: how good predictions were."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from queryard.core import readable
from queryard.core.errors import QueryardError

from . import data_options, history_place

if TYPE_CHECKING:
    from queryard.history import QueryRecord


def accuracy(
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            "--history",
            metavar="PLACE",
            envvar="QUERYARD_DATA",
            help="The data that the history is of, or a history file. Default: the current folder.",
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only of this session; the beginning of its name will do.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", min=1, help="Only the newest so many.", show_default=False),
    ] = None,
    least: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="Leave out what took less work than this."),
    ] = 0.01,
    worst: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many of the worst templates to show.")
    ] = 10,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw predicted against actual work, and the error over time "
            "(.png, .svg or .pdf).",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show how far predictions of work were off: by source, operator class, template and time.

    "Off by" is the factor between predicted and actual core-seconds, 1 at best. "Within" is the
    share that was in its interval of 90 %. A query is predicted at first when it is submitted, and
    may be again once it is planned. The history has no single operators of native queries, so their
    class is what the plan mostly does (read, compute, join, group, order); of staged queries it has
    every job.

    Examples:

    - `queryard accuracy --data data/`
    - `queryard accuracy --data data/ --figure accuracy.png`
    - `queryard accuracy --history old/history.sqlite --least 0.1 --json`
    """
    from . import accuracy_sums as sums

    if figure is not None:
        from queryard.figures import check_figure_path

        check_figure_path(str(figure))
        data_options.check_folder_of(figure, "--figure")
    with history_place.open_history(data) as reader:
        name = None if session is None else reader.session(session).session
        asked = reader.queries(name, limit=last)
        queries = sums.countable(asked, least)
        chosen = dict.fromkeys(query.session for query in asked if query.plan == "staged")
        staged = sums.by_operator(reader, chosen, least)
    if not queries and not staged:
        raise QueryardError(
            f"none of {readable.several(len(asked), 'query')} there can be judged: a query counts "
            f"that ran to its end on its own and took at least {least:g} core-seconds (--least)"
        )
    found: dict[str, Any] = {
        "queries": len(asked),
        "judged": len(queries),
        "overall": sums.overall(queries) if queries else [],
        "classes": [*sums.by_part(queries), *staged],
        "templates": sums.by_template(queries),
        "periods": sums.over_time(queries),
    }
    if figure is not None:
        _draw(figure, queries)
    if as_json:
        typer.echo(json.dumps(found, indent=1, default=_plain))
        return
    _show(found, worst)
    if figure is not None:
        Console(highlight=False).print(f"Figure: {figure}", soft_wrap=True, markup=False)


def _show(found: dict[str, Any], worst: int) -> None:
    from .accuracy_tables import accuracy_table, period_table

    console = Console(highlight=False)
    console.print(
        f"{readable.count(found['judged'])} of {readable.several(found['queries'], 'query')} "
        f"{'is' if found['judged'] == 1 else 'are'} judged: native ones that ran to their end on "
        "their own.",
        soft_wrap=True,
    )
    tables = {
        "": accuracy_table(found["overall"], "prediction"),
        "By class": accuracy_table(found["classes"], "class", "number"),
        "Templates, the worst first": accuracy_table(found["templates"][:worst], "template"),
        "Over time": period_table(found["periods"]),
    }
    for title, table in tables.items():
        if table.is_empty:
            continue
        console.print(f"\n{title}" if title else "", style="bold")
        console.print(table.fitted(console.width))


def _draw(path: Path, queries: list[QueryRecord]) -> None:
    from queryard.figures import PredictedQuery, save_accuracy_figure

    from .accuracy_sums import by_of, last_case

    ordered = sorted(queries, key=lambda query: query.asked_at + (query.response_s or 0.0))
    cases = [(last_case(query), by_of(query)) for query in ordered]
    points = [PredictedQuery(case.predicted_s, case.actual_s, by) for case, by in cases]
    save_accuracy_figure(
        str(path), points, f"Predictions of {readable.several(len(points), 'query')}"
    )


def _plain(value: Any) -> Any:
    return asdict(value)
