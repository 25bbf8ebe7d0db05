"""`python -m research`: the papers' tables and figures, run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from queryard.cli.failures import exit_codes
from queryard.core.errors import InvalidRecord, unknown_name

from .terminal import table_of

if TYPE_CHECKING:
    from .outcome import Experiment

ALL = "all"


app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; exit codes and messages are those of `queryard`."""
    with exit_codes():
        app(list(args) if args is not None else None, prog_name="python -m research")


@app.command()
def experiments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Which ones, or `all`; left out, they are listed with how long they take.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs with other arrivals and luck; usually 5, and 1 of recorded days.",
            show_default=False,
        ),
    ] = None,
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
            metavar="DIR",
            help="Write a page with all tables and figures, anew after each that has ended.",
            show_default=False,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Put the results into the Markdown pages of DIR, one per paper: docs/experiments. "
            "A section is replaced, the others stay. At the usual seeds and size only.",
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of tables and pictures.")
    ] = False,
) -> None:
    """Run published experiments again and show what came out beside what was printed.

    Charts are drawn as text here, and as figures on the page of `--report`. Most experiments take
    seconds to minutes at full size, a recorded day hours. If one of several fails, the others are
    run nevertheless.

    Examples:

    - `python -m research`: what there is
    - `python -m research predictors --seeds 3`
    - `python -m research all --report out/`
    - `python -m research tls-lodfa --pages docs/experiments`: renew a stored result
    """
    from .session import USUAL_SIZE, CommandOptions, run_all

    console = Console()
    if report is not None:
        check_folder(report)
    if not names:
        for option, given in (("--report", report), ("--pages", pages), ("--seeds", seeds)):
            if given is not None:
                raise InvalidRecord(f"{option}: name an experiment as well, or `all`")
        _list(console)
        return
    if traces is not None and not traces.is_dir():
        raise InvalidRecord(f"--traces {traces}: there is no such folder")
    if pages is not None and (seeds is not None or size != USUAL_SIZE):
        raise InvalidRecord("--pages: the pages hold the usual seeds and size; leave both out")
    chosen = choose(names, traces)
    run_all(
        chosen,
        CommandOptions(seeds, size, traces, report, pages, ALL not in names),
        console,
        markdown,
    )


def choose(names: Sequence[str], traces: Path | None) -> list[Experiment]:
    """The experiments of these names, each once; among all, those that lack traces say so."""
    from research import EXPERIMENTS

    for name in names:
        if name != ALL and name not in EXPERIMENTS:
            known = unknown_name("experiment", name, [*EXPERIMENTS, ALL])
            raise InvalidRecord(f"{known}; `python -m research` says what they are")
    if ALL in names:
        return list(EXPERIMENTS.values())
    for name in names:
        if traces is None and EXPERIMENTS[name].needs_traces:
            raise InvalidRecord(
                f"{name} replays recorded workloads: name their folder with --traces"
            )
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def check_folder(report: Path) -> None:
    """Make the folder of a report, and see whether figures can be drawn, before hours are spent on
    what goes into it.
    """
    from queryard.figures import check_figure_path

    try:
        report.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidRecord(f"--report {report}: is a file; name a folder") from None
    except OSError as error:
        raise InvalidRecord(
            f"--report {report}: cannot be made: {error.strerror}; name a folder elsewhere"
        ) from error
    check_figure_path(str(report / "figure.png"))


def _list(console: Console) -> None:
    from research import EXPERIMENTS

    from .durations import TAKES

    rows = tuple(
        (
            item.name,
            item.title,
            item.source,
            TAKES.get(item.name, "") + ("; needs --traces" if item.needs_traces else ""),
        )
        for item in EXPERIMENTS.values()
    )
    columns = ("name", "what", "source", "takes about")
    console.print(table_of("Experiments", columns, rows, numbers=False))
