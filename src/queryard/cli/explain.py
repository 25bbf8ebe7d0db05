"""`queryard explain`: how a query is run, and how well that was foreseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from . import data_options
from .failures import advising, running

if TYPE_CHECKING:
    from queryard.results.explanation import Explanation
    from queryard.results.job_tree import ExplainedJob


def explain(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="One statement; - reads it from stdin.", show_default=False
        ),
    ] = None,
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Read it from a file.", show_default=False
        ),
    ] = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it, and show what really happened, too.")
    ] = False,
    plan: data_options.PlanOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a tree.")] = False,
    figure: Annotated[
        list[Path] | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw the plan, too (.html, .png, .svg or .pdf). May be given again.",
            show_default=False,
        ),
    ] = None,
    write: data_options.Write = False,
    slots: data_options.Slots = None,
    memory: data_options.Memory = None,
) -> None:
    """Show how a query is run: operators or jobs, with what is expected of each.

    Rows, size, core-seconds and memory stand with the interval in which 90 of 100 are. With
    --analyze the real figures stand beside them; ▲3.00× marks three times as much as expected.

    A native plan is DuckDB's; its operators run together, as one job on the slots that are free. A
    staged plan is a DAG of jobs with tasks. If a query cannot be staged, the reason is given.

    Examples:

    - `queryard explain "select count(*) from orders" --data data/`
    - `queryard explain -f data/queries/q05.sql -d data/ --analyze`
    - `queryard explain -f data/queries/q21.sql -d data/ --plan staged --figure q21.html`
    """
    from .sql import asked_text

    figures = figure or []
    for path in figures:
        from queryard.figures import check_figure_path

        check_figure_path(str(path))
        data_options.check_folder_of(path, "--figure")
    asked = asked_text(text, file)
    with (
        data_options.open_session(
            data, table, write=write, slots=slots, memory=memory, plan=plan
        ) as session,
        running(),
        advising(session.catalog),
    ):
        found = session.explain(asked, analyze=analyze)
    for path in figures:
        _draw(found, path)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1, default=str))
        return
    show_explanation(found, Console(highlight=False))
    for path in figures:
        Console(highlight=False).print(f"Figure: {path}", soft_wrap=True, markup=False)


def show_explanation(found: Explanation, console: Console) -> None:
    """The tree for people; on a terminal in colours."""
    from queryard.results.job_tree import fitted

    if not console.is_terminal:
        typer.echo(found.text())
        return
    console.print(found.summary(), style="bold", markup=False)
    for reason in found.reasons:
        console.print(f"not staged: {reason}", style="yellow", markup=False)
    for line in found.lines():
        console.print(line, style="dim", markup=False)
    console.print(fitted(console, found.jobs, found.plan))


def _draw(found: Explanation, path: Path) -> None:
    from queryard.figures.dag import DagNode, save_dag

    nodes = [
        DagNode(job.name, job.operator, job.inputs, _lines(job), _all(job)) for job in found.jobs
    ]
    save_dag(str(path), nodes, found.summary())


def _lines(job: ExplainedJob) -> tuple[str, ...]:
    from queryard.core import readable

    lines = [job.what]
    if job.map_tasks is not None:
        tasks = readable.several(job.map_tasks, "map task")
        if job.reduce_tasks:
            tasks = f"{job.map_tasks} map + {readable.several(job.reduce_tasks, 'reduce task')}"
        lines = [f"{job.name}: {tasks}", job.what]
    if job.rows_expected is not None and job.bytes_expected is not None:
        rows = readable.several(job.rows_expected.value, "row")
        took = job.seconds_expected
        seconds = "" if took is None else f", {took.value:.2f} s"
        lines.append(f"~{rows}, {readable.size(job.bytes_expected.value)}{seconds}")
    if job.rows is not None:
        rows = readable.several(job.rows, "row")
        lines.append(f"{rows}, {readable.size(job.bytes)}, {job.seconds or 0:.2f} s")
    return tuple(lines)


def _all(job: ExplainedJob) -> str:
    return "\n".join((*_lines(job), f"class: {job.operator}"))
