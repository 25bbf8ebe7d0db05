"""`queryard load`: a mix of queries from many tenants, put to real data in real time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group

from queryard.core import readable
from queryard.core.errors import QueryardError

from . import options
from .data_options import Memory, Slots

if TYPE_CHECKING:
    from queryard.comparison import Scores
    from queryard.load import Ground, LoadSpec, Measured, Report, Request


_RUN = "How it runs"
_OUT = "Results"
PLAIN = "duckdb"
HISTORIES = ("fresh", "keep")
HISTORY_FILE = "load-history.sqlite"


def load(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="The load (.toml or .json; see docs/load.md).")
    ],
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Run the same requests under each of these policies, joined by commas; "
            f"`{PLAIN}` is plain DuckDB. Default: the profile of SPEC.",
            show_default=False,
        ),
    ] = None,
    profile: options.ProfileFile = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Instead of that of SPEC.", show_default=False),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="So many seeds, one after another; medians are shown.")
    ] = 1,
    data_dir: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where data is made and kept.", rich_help_panel=_RUN),
    ] = Path("data"),
    slots: Slots = None,
    memory: Memory = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="fresh|keep",
            help="Begin every run without a past, or with what earlier runs have left in DIR. "
            "Default: fresh in comparisons, else keep.",
            rich_help_panel=_RUN,
            show_default=False,
        ),
    ] = None,
    alone: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take the times of queries alone from here, and keep here what must be measured.",
            rich_help_panel=_RUN,
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the requests as a recording (.csv or .jsonl).",
            rich_help_panel=_OUT,
            show_default=False,
        ),
    ] = None,
    figure: options.Figure = None,
    as_json: options.Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show nothing before the report.")
    ] = False,
) -> None:
    """Put a load to real data, show it while it runs, and report what became of it.

    Below the policies stand two ideals on the same arrivals: processor sharing, which treats all
    alike, and clairvoyant shortest-remaining-first, which knows every duration.

    Examples:

    - `queryard load examples/load/demo.toml`
    - `queryard load examples/load/demo.toml --compare marshal,fifo,duckdb --figure out.png`
    - `queryard load examples/load/bursts.toml --compare marshal,duckdb --repeat 5 --json`
    - `queryard load mine.toml --slots 4 --memory 4GB --save requests.csv`
    """
    from .data_options import check_folder_of

    figures = figure or []
    options.check_outputs(figures)
    if alone is not None:
        check_folder_of(alone, "--alone")
    if history is not None and history not in HISTORIES:
        raise QueryardError(f"--history {history}: choose one of {', '.join(HISTORIES)}")
    names = options.split_names(compare)
    call = _Call(spec, names, profile, quiet)
    call.prepare(data_dir, slots, memory)
    seeds = [(call.spec.seed if seed is None else seed) + number for number in range(repeat)]
    call.measure(seeds, alone)
    keeps = history == "keep" or (history is None and not names)
    past = data_dir / HISTORY_FILE if keeps else None
    runs = call.play_all(seeds, past, save)
    if figures:
        call.draw(figures, runs[0])
    console = Console()
    if as_json:
        typer.echo(json.dumps(call.plain(runs), indent=1))
    else:
        call.show(console, runs)
        for file in figures:
            console.print(f"Figure: {file}", highlight=False, soft_wrap=True)
    if any(run.interrupted for run in runs):
        from .failures import INTERRUPTED

        raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class _SeedRun:
    """All policies on the requests of one seed, and the ideals.

    `requests` are those that count: after an interruption, those that had ended.
    """

    seed: int
    requests: tuple[Request, ...]
    reports: tuple[Report, ...]
    ideals: tuple[Report, ...]

    @property
    def interrupted(self) -> bool:
        return any(report.interrupted for report in self.reports)


class _Call:
    """One call of the command, step by step."""

    def __init__(
        self, file: Path, names: Sequence[str], profiles: Path | None, quiet: bool
    ) -> None:
        from queryard.comparison import choose_profiles, own_profiles
        from queryard.load import read_spec, recorded_requests

        self.spec: LoadSpec = read_spec(file)
        wanted = list(names) or [self.spec.profile]
        scheduled = [name for name in wanted if name != PLAIN]
        # If no profile of the file is named, all of them join, behind the others.
        chosen: dict[str, Mapping[str, Any] | None] = {}
        if scheduled or profiles is not None:
            chosen |= choose_profiles(scheduled, own_profiles(profiles), (PLAIN,))
        if PLAIN in wanted:
            chosen[PLAIN] = None
        places = {name: place for place, name in enumerate(wanted)}
        ordered = sorted(chosen, key=lambda name: places.get(name, len(places)))
        self.policies = {name: chosen[name] for name in ordered}
        self.recorded = recorded_requests(self.spec)
        self.quiet = quiet
        self.ground: Ground
        self.measured: Measured

    def prepare(self, data_dir: Path, slots: int | None, memory: str | None) -> None:
        from queryard.load import prepare

        from .query_progress import sharing

        with sharing("making tables") as bar:
            self.ground = prepare(self.spec, data_dir, slots=slots, memory=memory, progress=bar)

    def measure(self, seeds: Sequence[int], file: Path | None) -> None:
        """Times alone, of all that the seeds will ask."""
        from queryard.load import examples, load_alone, measure_alone, save_alone

        from .query_progress import sharing

        known = load_alone(file) if file is not None and file.exists() else None
        texts: dict[str, tuple[str, ...]] = {}
        for seed in seeds:
            texts = examples(self.spec, seed=seed, recorded=self.recorded) | texts
        with sharing("alone") as bar:
            self.measured = measure_alone(self.ground, texts, known=known, progress=bar)
        if file is not None:
            save_alone(self.measured, file)

    def play_all(
        self, seeds: Sequence[int], past: Path | None, save: Path | None
    ) -> list[_SeedRun]:
        """Every seed under every policy, until the user interrupts."""
        from queryard.load import draw, ideals, write_recorded

        found: list[_SeedRun] = []
        for seed in seeds:
            requests = draw(
                self.spec,
                seed=seed,
                work_s=self.measured.work_s,
                slots=self.ground.slots,
                recorded=self.recorded,
            )
            if save is not None and not found:
                write_recorded(requests, save)
            reports = self._play(requests, past)
            counted = requests
            if any(report.interrupted for report in reports):
                ended = set.intersection(*(set(report.run.queries) for report in reports))
                counted = tuple(request for request in requests if request.id in ended)
            best = ideals(counted, self.measured.alone, self.ground.slots)
            found.append(_SeedRun(seed, counted, reports, best))
            if found[-1].interrupted:
                break
        return found

    def _play(self, requests: Sequence[Request], past: Path | None) -> tuple[Report, ...]:
        from queryard.load import report, run

        from .load_live import showing

        reports: list[Report] = []
        for name, profile in self.policies.items():
            played = run(
                requests,
                name,
                self.ground,
                self.measured.alone,
                profile=profile,
                tenants=self.spec.tenants,
                history=past,
                show=showing(self.quiet),
            )
            reports.append(report(played, self.measured.alone))
            if played.interrupted:
                break
        return tuple(reports)

    # --- what comes out --------------------------------------------------------------------------

    def title(self, requests: Sequence[Request]) -> str:
        """The load in a line."""
        work_s = self.measured.work_s
        total_s = sum(work_s.get(request.template, 0.0) for request in requests)
        return (
            f"{self.spec.name}: {readable.several(len(requests), 'query')}, "
            f"{readable.seconds(total_s)} core-seconds of work on "
            f"{readable.several(self.ground.slots, 'slot')}"
        )

    def draw(self, files: Sequence[Path], run: _SeedRun) -> None:
        from queryard.figures import save_load_figure

        rows = {report.name: report.run for report in run.reports}
        references = {ideal.name: ideal.responses_s for ideal in run.ideals}
        for file in files:
            save_load_figure(str(file), rows, references, self.title(run.requests))

    def show(self, console: Console, runs: Sequence[_SeedRun]) -> None:
        from queryard.comparison import comparison_table, verdict

        from .load_tables import report_tables, tenant_table

        rows, references = self._scores(runs)
        title = self.title(runs[0].requests)
        if len(runs) > 1:
            title += f"; medians over {readable.several(len(runs), 'seed')}"
        tables: list[Any] = []
        if len(self.policies) == 1 and len(runs) == 1:
            tables += report_tables(runs[0].reports[0])
        tables.append(comparison_table(title, rows, references))
        if len(rows) > 1 and len(self.spec.askers) > 1 and len(runs) == 1:
            tables.append(tenant_table(runs[0].reports))
        console.print(Group(*tables))
        console.print(verdict(rows, references, PLAIN), highlight=False)
        for notice in self._notices(runs):
            console.print(notice, style="dim", highlight=False, markup=False)

    def _notices(self, runs: Sequence[_SeedRun]) -> list[str]:
        """What a reader should know before trusting the numbers."""
        found = [
            f"{name} fails even alone: {error.partition(chr(10))[0]}"
            for name, error in self.measured.failed.items()
        ]
        reports = [report for run in runs for report in run.reports]
        if any(report.interrupted for report in reports):
            found.append("Interrupted: only what had ended is counted.")
        for report in reports:
            if report.late:
                most_ms = report.most_late_s * 1e3
                found.append(
                    f"{report.name}: {readable.several(report.late, 'request')} submitted late, by "
                    f"up to {most_ms:.0f} ms; the machine is too busy to keep time."
                )
        return found

    def _scores(self, runs: Sequence[_SeedRun]) -> tuple[list[Scores], list[Scores]]:
        """A row per policy and a row per ideal; over several seeds, medians."""
        from queryard.comparison import medians

        from .load_tables import scores_of_report

        def rows(of: Sequence[Sequence[Report]]) -> list[Scores]:
            by_name: dict[str, list[Scores]] = {}
            for reports in of:
                for report in reports:
                    by_name.setdefault(report.name, []).append(scores_of_report(report))
            return [found[0] if len(found) == 1 else medians(found) for found in by_name.values()]

        return rows([run.reports for run in runs]), rows([run.ideals for run in runs])

    def plain(self, runs: Sequence[_SeedRun]) -> dict[str, Any]:
        from queryard.comparison import verdict

        rows, references = self._scores(runs)
        return {
            "load": {
                "name": self.spec.name,
                "slots": self.ground.slots,
                "memory_bytes": self.ground.memory_bytes,
                "tenants": [asker.name for asker in self.spec.askers],
            },
            "alone": {name: found._asdict() for name, found in self.measured.alone.items()},
            "failed_alone": self.measured.failed,
            "policies": [row.to_json() for row in rows],
            "references": [row.to_json() for row in references],
            "verdict": verdict(rows, references, PLAIN),
            "seeds": [
                {
                    "seed": run.seed,
                    "requests": len(run.requests),
                    "runs": [report.to_json() for report in run.reports],
                    "ideals": [report.to_json() for report in run.ideals],
                }
                for run in runs
            ],
        }
