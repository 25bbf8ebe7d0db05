"""`queryard analyze`: look at the data once, so that plans and estimates are right."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from queryard.core import readable
from queryard.core.errors import QueryardError

from . import data_options
from .failures import FAILED, complain, running

if TYPE_CHECKING:
    from queryard.sql.statistics import TableStatistics


def analyze(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...", help="Which tables. Default: all.", show_default=False
        ),
    ] = None,
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Read only a share of the rows, such as 0.1 or 10%.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Collect statistics: distinct values, ranges, nulls, histograms.

    They are kept beside the data (in `.queryard/`) and used until a file changes. A table is not
    read again while its statistics hold. A table that cannot be read does not stop the others.

    Examples:

    - `queryard analyze --data data/`
    - `queryard analyze lineitem orders --data data/ --sample 10%`
    """
    from queryard.sql.statistics import NotAllAnalysed
    from queryard.sql.statistics import analyze as analyze_tables

    from .query_progress import sharing
    from .table_lists import describe_tables, table_table

    share = _share(sample)
    catalog = data_options.open_place(data, table)
    wanted = [catalog[name].key for name in names or catalog.tables]
    began = time.perf_counter()
    failures: Mapping[str, QueryardError] = {}
    with running(), sharing("analyzing") as bar:
        try:
            found: Mapping[str, TableStatistics] = analyze_tables(catalog, wanted, share, bar)
        except NotAllAnalysed as error:
            found, failures = error.found, error.failures
    seconds = time.perf_counter() - began
    console = Console(highlight=False)
    if found or not failures:
        table_table([t for t in describe_tables(catalog) if t["name"] in found], (), console)
    columns = sum(len(statistics.columns) for statistics in found.values())
    console.print(
        f"Known now: {readable.several(columns, 'column')} of "
        f"{readable.several(len(found), 'table')}; took {readable.seconds(seconds)} s.",
        style="dim",
    )
    for failure in failures.values():
        complain(str(failure))
    if failures:
        raise typer.Exit(FAILED)


def _share(text: str | None) -> float | None:
    """
    >>> _share("10%"), _share("0.25"), _share(None)
    (0.1, 0.25, None)
    """
    if text is None:
        return None
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise QueryardError(f"--sample {text}: write a share above 0, as in 0.1 or 10%")
    return share
