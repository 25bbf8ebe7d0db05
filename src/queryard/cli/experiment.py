"""`queryard experiment`: the papers' tables and figures, run again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from queryard.core.errors import InvalidRecord, unknown_name

ALL = "all"
# For which number of seeds and size the notes of experiments were written.
USUAL = (5, 1.0)


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Which one, or `all`; left out, they are listed.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs with other arrivals and luck.")] = 5,
    size: Annotated[
        float, typer.Option(min=0.01, help="How many queries, of as many as were published.")
    ] = 1.0,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder of public traces, for experiments on recorded tasks.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write a page with all tables and figures.", show_default=False
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of tables.")
    ] = False,
) -> None:
    """Run a published experiment again and show what came out beside what was printed.

    Examples:

    - `queryard experiment`: what there is
    - `queryard experiment predictors --seeds 3`
    - `queryard experiment all --report out/`
    """
    # It needs all of the simulator, and most commands need none of it.
    from queryard.experiments import EXPERIMENTS, Wish
    from queryard.experiments.report import findings_table, write_report
    from queryard.experiments.report import markdown as as_markdown

    console = Console()
    if report is not None:
        check_folder(report)
    if name is None:
        if report is not None:
            raise InvalidRecord("--report: name an experiment as well, or `all`")
        _list(console)
        return
    if name != ALL and name not in EXPERIMENTS:
        raise InvalidRecord(unknown_name("experiment", name, [*EXPERIMENTS, ALL]))
    if traces is not None and not traces.is_dir():
        raise InvalidRecord(f"--traces {traces}: there is no such folder")
    if name != ALL and traces is None and EXPERIMENTS[name].needs_traces:
        raise InvalidRecord(f"{name} replays recorded workloads: name their folder with --traces")
    results = {}
    aside = Console(stderr=True)
    for chosen in EXPERIMENTS.values() if name == ALL else [EXPERIMENTS[name]]:

        def tell(line: str, of: str = chosen.name) -> None:
            aside.print(f"{of}: {line}", style="dim", highlight=False)

        began = time.perf_counter()
        outcome = chosen.run(Wish(seeds, size, traces, tell))
        if name != ALL and not (outcome.findings or outcome.tables):
            raise InvalidRecord(f"{name}: {'; '.join(outcome.notes)}")
        results[chosen.name] = (chosen, outcome, time.perf_counter() - began)
        if markdown:
            typer.echo(as_markdown(chosen, outcome))
            continue
        console.print(f"\n[bold]{escape(chosen.title)}[/bold] ({chosen.source})", highlight=False)
        tables = [findings_table(outcome.findings)] if outcome.findings else []
        for table in (*tables, *outcome.tables):
            console.print(_table(table.title, table.columns, table.rows))
        for note in outcome.notes:
            console.print(f"Note: {note}.", style="dim", highlight=False)
    if not markdown:
        console.print(ran(seeds, size), style="dim", highlight=False)
    if report is not None:
        page = write_report(report, results, ran(seeds, size))
        aside.print(f"Report: {page}", highlight=False, soft_wrap=True)


def ran(seeds: int, size: float) -> str:
    """With what experiments ran."""
    told = f"Ran with {seeds} seed{'s' if seeds > 1 else ''} and size {size:g}."
    usual_seeds, usual_size = USUAL
    if (seeds, size) != USUAL:
        told += f" The notes were written for {usual_seeds} seeds and size {usual_size:g}."
    return told


def check_folder(report: Path) -> None:
    """Make the folder of a report before hours are spent on what goes into it."""
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRecord(f"--report {report}: {error.strerror}") from error


def _list(console: Console) -> None:
    from queryard.experiments import EXPERIMENTS

    rows = tuple((item.name, item.title, item.source) for item in EXPERIMENTS.values())
    console.print(_table("Experiments", ("name", "what", "source"), rows, numbers=False))


def _table(
    title: str,
    columns: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    numbers: bool = True,
) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if numbers and place else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
