"""Options that `simulate` and `compare` share, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from queryard.comparison import TRACE_ESTIMATES, USUAL_ESTIMATES, Source, find_source
from queryard.core.errors import InvalidRecord, unknown_name
from queryard.figures import check_figure_path
from queryard.sim import Conditions
from queryard.workload import Mix, parse_mix
from queryard.workload.generate import DEFAULT_NODES
from queryard.workload.traces import Use, parse_use

_WHAT = "What arrives"
_WHERE = "The cluster and its ways"
_OUT = "Results"

WorkloadFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="WORKLOAD",
        help="A workload file (.toml or .json; see docs/workloads.md), or a trace: a Spark event "
        "log, a Hadoop history, Rumen, SLS, SWIM, Decima (docs/traces.md).",
        show_default=False,
    ),
]
TraceUse = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="SPEC",
        help="How a trace is to be used: key=value pairs such as load=0.7,deadlines=0.3 or "
        "block=256MiB (keys: docs/traces.md).",
        rich_help_panel=_WHAT,
        show_default=False,
    ),
]
Generate = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Draw a workload instead: key=value pairs such as "
        "queries=100,bins=facebook,deadlines=0.3 (keys: docs/workloads.md).",
        rich_help_panel=_WHAT,
        show_default=False,
    ),
]
Demo = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Use the built-in workload: dashboards, analysts and nightly jobs on 64 slots.",
        rich_help_panel=_WHAT,
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="The same seed is the same run.", rich_help_panel=_WHAT)
]
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="GROUPS",
        help="Nodes as COUNTxSLOTS[@SPEED][:MEMORY], such as 16x12 or 4x4,2x8@0.5. Default: those "
        f"of the workload, else {DEFAULT_NODES}; for a trace that names none, so many that the "
        "work is 70% of what they could do in that time.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
Estimates = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="What policies believe of task times: oracle, oracle:0.3 (wrong by about 30 %), "
        "oracle:no-curves (no speed-up curves), "
        "observed (means of what has ended), or a predictor that learns from the run: basic, "
        "standard, detailed, regression (variants of POSUM's: standard-printed, standard-split, "
        f"detailed-unplaced). Default: {USUAL_ESTIMATES}; for traces "
        f"{TRACE_ESTIMATES}, since a live system knows no better.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
SlowStart = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of a job's maps that must be done before its reduces may start.",
        rich_help_panel=_WHERE,
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(min=0, help="Spread of task times.", rich_help_panel=_WHERE, show_default=False),
]
Contention = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="How much each further task on a node slows the others.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
Stragglers = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Share of tasks that take far longer.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
Failures = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Share of task attempts that fail.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
RemotePenalty = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="How much longer a map takes away from its split.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
Condition = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Any other condition, such as rider_cost=0.03 or revoke_delay_s=0.1; may be given "
        "again.",
        rich_help_panel=_WHERE,
        show_default=False,
    ),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        metavar="FILE",
        help="A TOML file with profiles of your own, to be named like the others.",
        show_default=False,
    ),
]
ByTenant = Annotated[
    bool,
    typer.Option(
        "--by-tenant",
        help="Share the slots between tenants first, by the shares the workload declares, else "
        "evenly; the policy decides inside each tenant.",
        rich_help_panel=_WHERE,
    ),
]
Figure = Annotated[
    list[Path] | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        help="Save a figure (.html, .png, .svg or .pdf); may be given again.",
        rich_help_panel=_OUT,
        show_default=False,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=_OUT),
]
JournalFile = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Save every event and command of the run, as JSON lines.",
        rich_help_panel=_OUT,
        show_default=False,
    ),
]


def choose_source(
    file: Path | None,
    spec: str | None,
    demo: bool,
    nodes: str | None,
    seed: int,
    use: str | None = None,
) -> Source:
    """The workload of the options."""
    check_source(file, spec, demo, use)
    return find_source(file, read_mix(spec), demo, nodes, seed, read_use(use))


def check_source(file: Path | None, spec: str | None, demo: bool, use: str | None) -> None:
    """Exactly one source must be named."""
    given = [name for name, used in (("--generate", spec is not None), ("--demo", demo)) if used]
    if file is not None:
        given.insert(0, f"the file {file}")
    if len(given) != 1:
        problem = f"{' and '.join(given)} are too many" if given else "there is none"
        raise InvalidRecord(f"which workload? {problem}; give a file, --generate SPEC or --demo")
    if use is not None and file is None:
        raise InvalidRecord("--trace says how a trace is used; give the file of one")


def read_mix(spec: str | None) -> Mix | None:
    with _about("--generate"):
        return parse_mix(spec) if spec is not None else None


def read_use(use: str | None) -> Use | None:
    with _about("--trace"):
        return parse_use(use) if use is not None else None


@contextmanager
def _about(option: str) -> Iterator[None]:
    """Errors name the option."""
    try:
        yield
    except InvalidRecord as error:
        raise InvalidRecord(f"{option}: {error}") from error


def read_conditions(more: Sequence[str], **named: float | None) -> dict[str, float]:
    """The conditions that were given: options of their own, and `more` as NAME=VALUE."""
    given = {name: value for name, value in named.items() if value is not None}
    known = [field.name for field in fields(Conditions)]
    for pair in more:
        name, _, value = (part.strip() for part in pair.partition("="))
        if name not in known:
            raise InvalidRecord(f"--condition: {unknown_name('condition', name, known)}")
        try:
            given[name] = float(value)
        except ValueError as error:
            problem = f"--condition {pair}: expected a number, as in {name}=0.1"
            raise InvalidRecord(problem) from error
    return given


def check_outputs(figures: Sequence[Path], journal: Path | None = None) -> None:
    """Complain about files that cannot be written before anything is simulated."""
    for file in figures:
        check_figure_path(str(file))
    for file in (*figures, *([journal] if journal else [])):
        if not file.absolute().parent.is_dir():
            raise InvalidRecord(f"{file}: there is no folder {str(file.parent)!r}; make it first")


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names joined by commas, in an option that may be given again."""
    return [name.strip() for part in given or () for name in part.split(",") if name.strip()]
