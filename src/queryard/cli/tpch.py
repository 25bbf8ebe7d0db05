"""`queryard tpch`: data and questions to try things out with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from queryard.core import readable


def tpch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put it.")],
    scale: Annotated[
        float,
        typer.Option(metavar="FACTOR", help="How much: 1 is 362 MB, 0.01 a first try."),
    ] = 1.0,
) -> None:
    """Make the data of TPC-H (eight tables of a trading company) and its 22 queries.

    What is already there is kept. The queries go to DIR/queries.

    Examples:

    - `queryard tpch data/ --scale 0.1`
    - `queryard sql -f data/queries/q05.sql --data data/`
    """
    from queryard.workload import tpch as benchmark

    from .query_progress import sharing

    with sharing("making tables") as bar:
        files = benchmark.generate(folder, scale, bar)
    texts = folder / "queries"
    texts.mkdir(exist_ok=True)
    for number, text in benchmark.queries().items():
        (texts / f"q{number:02d}.sql").write_text(text.rstrip() + ";\n", encoding="utf-8")
    size = readable.size(sum(file.stat().st_size for file in files))
    tables = readable.several(len(files), "table")
    queries = readable.several(benchmark_count(texts), "query")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{folder}: {tables}, {size}, and {queries}.")
    console.print("Try:", style="bold")
    for command in (
        f"queryard tables --data {folder}",
        f'queryard sql "select count(*) from lineitem" --data {folder}',
        f"queryard sql -f {texts}/q05.sql --data {folder}",
        f"queryard explain -f {texts}/q05.sql --data {folder} --analyze",
        f"queryard shell --data {folder}",
    ):
        console.print(f"  {command}", markup=False)


def benchmark_count(texts: Path) -> int:
    """How many queries lie there."""
    return len(list(texts.glob("q*.sql")))
