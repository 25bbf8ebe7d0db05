"""`queryard trace info`: what is inside a recorded workload."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from queryard.comparison import open_trace
from queryard.core.model import MAP, REDUCE, Kind
from queryard.figures import RecordedTimes, save_trace_figure
from queryard.workload import parse_nodes
from queryard.workload.traces import Trace
from queryard.workload.traces.use import USUAL_LOAD

from . import options
from .trace_tables import facts_of, trace_tables

trace = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look into recorded workloads: Spark event logs, Hadoop, Rumen, SLS, SWIM, Decima.",
)


# As elsewhere, but for the default.
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="GROUPS",
        help="Nodes as COUNTxSLOTS[@SPEED][:MEMORY], such as 16x12 or 4x4,2x8@0.5. Default: those "
        f"of the trace, else a cluster made up for an offered load of {USUAL_LOAD:.0%}.",
        rich_help_panel="The cluster and its ways",
        show_default=False,
    ),
]


@trace.callback()
def group() -> None:
    """Look into recorded workloads: Spark event logs, Hadoop, Rumen, SLS, SWIM, Decima.

    `queryard compare FILE` replays one under other policies.
    """


@trace.command()
def info(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A trace, or a folder of Spark's event logs.")
    ],
    how: options.TraceUse = None,
    nodes: Nodes = None,
    seed: options.Seed = 0,
    figure: options.Figure = None,
    as_json: options.Json = False,
) -> None:
    """Show what a trace holds: span, jobs, tasks, bytes, how long things took, and a picture.

    The offered load is the work of all tasks over what the slots could have done from the first
    submission to the last end of a query or a task that is recorded, or to the last submission.

    Examples:

    - `queryard trace info eventlog.zstd`
    - `queryard trace info FB-2009_samples_24_times_1hr_0.tsv --trace block=64MiB,load=0.95`
    - `queryard trace info 19-jobs.trace.json.gz --figure trace.png`
    """
    figures = figure or []
    options.check_outputs(figures)
    cluster = parse_nodes(nodes) if nodes is not None else ()
    found = open_trace(file, options.read_use(how), cluster, seed)
    _save_figures(figures, found)
    if as_json:
        typer.echo(json.dumps(facts_of(found), indent=1))
        return
    console = Console()
    console.print(f"[bold]{escape(found.name)}[/bold]: {found.format}", highlight=False)
    for table in trace_tables(found):
        console.print(table)
    for note in found.notes:
        console.print(f"Note: {escape(note)}.", style="dim", highlight=False)
    replayed = quote(str(file)) + (f" --trace {quote(how)}" if how else "")
    console.print(
        f"Replay it under other policies: [bold]queryard compare {escape(replayed)}[/bold]",
        highlight=False,
        soft_wrap=True,
    )
    for saved in figures:
        console.print(f"Figure: {saved}", highlight=False, soft_wrap=True)


def _save_figures(files: Sequence[Path], trace: Trace) -> None:
    submits_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    first_s = min(submits_s)
    kinds: tuple[Kind, ...] = (MAP, REDUCE)
    busy = {
        kind: [
            (task.start_s - first_s, task.start_s - first_s + task.seconds)
            for task in trace.tasks
            if task.kind == kind and task.start_s is not None
        ]
        for kind in kinds
    }
    spreads = {
        "responses": list(trace.responses_s.values()),
        **{f"{kind}s": [t.seconds for t in trace.tasks if t.kind == kind] for kind in kinds},
        "work of queries": [arrival.work_s for arrival in trace.workload.arrivals],
    }
    times = RecordedTimes(
        [submit_s - first_s for submit_s in submits_s],
        {kind: spans for kind, spans in busy.items() if spans},
        {name: values for name, values in spreads.items() if values},
    )
    for file in files:
        save_trace_figure(str(file), f"{trace.name} ({trace.format})", times)
