"""Experiments one after another: what has ended is told and on the page before the next begins."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from queryard.cli.failures import RunFailed
from queryard.core.errors import InvalidRecord, QueryardError
from research import JOINTS, PAGES, Experiment, RunOptions

from .outcome import of_seeds
from .pages import Pages
from .report import LEGEND, Report, markdown
from .sections import (
    Section,
    failed_section,
    joint_sections,
    reason,
    section_of,
)
from .terminal import show

USUAL_SIZE = 1.0
FIGURES = "With --report DIR, all tables and figures are written to a page."


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """What was asked for on the command line; without `seeds`, as many as are usual of each.

    Where all were asked for (not `by_name`), those that lack traces are not missed.
    """

    seeds: int | None
    size: float
    traces: Path | None
    report: Path | None
    pages: Path | None
    by_name: bool

    def options(self, experiment: Experiment, aside: Console) -> RunOptions:
        def tell(line: str) -> None:
            aside.print(Text(f"{experiment.name}: {line}", style="dim"))

        return RunOptions(self.seeds_of(experiment), self.size, self.traces, tell)

    def seeds_of(self, experiment: Experiment) -> int:
        return experiment.usual_seeds if self.seeds is None else self.seeds


def run_all(
    chosen: Sequence[Experiment], asked: CommandOptions, console: Console, as_markdown: bool
) -> None:
    """Run them; a failure is noted and the others go on, but the command has failed then."""
    aside = Console(stderr=True)
    told = ran(chosen, asked)
    report = Report(asked.report) if asked.report is not None else None
    pages = Pages(asked.pages) if asked.pages is not None else None
    sections: list[Section] = []
    failures: dict[str, Exception] = {}

    def add(section: Section, ended: int) -> None:
        sections.append(section)
        if as_markdown:
            typer.echo(markdown(section))
        else:
            show(console, section)
        if report is not None:
            so_far = "" if ended == len(chosen) else f" {ended} of {len(chosen)} have ended."
            report.write(sections, told + so_far)
        if pages is not None and not section.failure and section.name in PAGES:
            page = pages.put(PAGES[section.name], section)
            aside.print(f"Page: {page}", highlight=False, soft_wrap=True)

    for ended, experiment in enumerate(chosen, 1):
        add(_run(experiment, asked, aside, failures), ended)
        for joint in joint_sections(JOINTS, sections):
            add(joint, ended)
    if not as_markdown and len(failures) < len(chosen):
        judged = any(section.outcome.findings for section in sections)
        console.print(Text(f"{LEGEND} {told}" if judged else told, style="dim"))
        if report is None and any(section.outcome.charts for section in sections):
            console.print(Text(FIGURES, style="dim"))
    if report is not None:
        aside.print(f"Report: {report.page}", highlight=False, soft_wrap=True)
    _complain(chosen, failures)


def _run(
    experiment: Experiment, asked: CommandOptions, aside: Console, failures: dict[str, Exception]
) -> Section:
    began = time.perf_counter()
    try:
        outcome = experiment.run(asked.options(experiment, aside))
        if asked.by_name and not (outcome.findings or outcome.tables):
            raise InvalidRecord("; ".join(outcome.notes))
    except Exception as error:  # whatever it is: others may have taken hours, or will
        failures[experiment.name] = error
        return failed_section(experiment, error, time.perf_counter() - began)
    seeds, wall_s = asked.seeds_of(experiment), time.perf_counter() - began
    return section_of(experiment, outcome, seeds, wall_s)


def _complain(chosen: Sequence[Experiment], failures: Mapping[str, Exception]) -> None:
    if not failures:
        return
    if len(chosen) == 1:
        raise next(iter(failures.values()))
    for error in failures.values():
        if not isinstance(error, QueryardError):
            # A fault of ours: where it happened helps to mend it.
            traceback.print_exception(error)
    lines = "".join(f"\n  {name}: {reason(error)}" for name, error in failures.items())
    raise RunFailed(f"{len(failures)} of {len(chosen)} experiments failed:{lines}")


def ran(chosen: Sequence[Experiment], asked: CommandOptions) -> str:
    """With what experiments ran."""
    seeds = {experiment.name: asked.seeds_of(experiment) for experiment in chosen}
    most = max(seeds.values())
    other = ", ".join(f"{name}: {count}" for name, count in seeds.items() if count != most)
    told = f"Ran with {of_seeds(most)}{f' ({other})' if other else ''} and size {asked.size:g}"
    told += "." if asked.size == USUAL_SIZE else ", where the queries are not fixed."
    usual = max(experiment.usual_seeds for experiment in chosen)
    is_usual = all(seeds[experiment.name] == experiment.usual_seeds for experiment in chosen)
    if not is_usual or asked.size != USUAL_SIZE:
        told += f" The notes were written for {of_seeds(usual)} and size {USUAL_SIZE:g}."
    return told
