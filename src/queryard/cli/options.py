"""Options that `simulate` and `compare` share, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from queryard.core.errors import InvalidRecord
from queryard.workload import (
    Workload,
    demo_workload,
    generate,
    load_workload,
    parse_mix,
    parse_nodes,
)
from queryard.workload.generate import DEFAULT_NODES
from queryard.workload.traces import Trace, Use, is_trace, parse_use, use_trace

# What policies believe where nobody says: of made-up workloads the truth, of recorded ones only
# what could have been learnt until then.
USUAL_ESTIMATES, TRACE_ESTIMATES = "oracle", "regression"
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


@dataclass(frozen=True, slots=True)
class Chosen:
    """The workload asked for; and the trace it comes from, if it does."""

    workload: Workload
    trace: Trace | None = None

    @property
    def usual_estimates(self) -> str:
        return USUAL_ESTIMATES if self.trace is None else TRACE_ESTIMATES

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the trace on the way."""
        return () if self.trace is None else self.trace.notes


def choose_workload(
    file: Path | None,
    spec: str | None,
    demo: bool,
    nodes: str | None,
    seed: int,
    use: str | None = None,
) -> Chosen:
    """The workload asked for, on the nodes asked for; exactly one source must be named."""
    given = [name for name, used in (("--generate", spec is not None), ("--demo", demo)) if used]
    if file is not None:
        given.insert(0, f"the file {file}")
    if len(given) != 1:
        problem = f"{' and '.join(given)} are too many" if given else "there is none"
        raise InvalidRecord(f"which workload? {problem}; give a file, --generate SPEC or --demo")
    if file is not None and (use is not None or not _is_workload_file(file)):
        trace = open_trace(file, use, nodes, seed)
        return Chosen(trace.workload, trace)
    if use is not None:
        raise InvalidRecord("--trace says how a trace is used; give the file of one")
    cluster = parse_nodes(nodes) if nodes is not None else ()
    if spec is not None:
        try:
            return Chosen(generate(parse_mix(spec), seed, cluster))
        except InvalidRecord as error:
            raise InvalidRecord(f"--generate: {error}") from error
    if file is None:
        return Chosen(demo_workload(seed, cluster))
    workload = load_workload(file, cluster)
    if not workload.nodes:
        workload = load_workload(file, parse_nodes(DEFAULT_NODES))
    return Chosen(workload)


def _is_workload_file(file: Path) -> bool:
    """Whether it is to be read as a workload; what is wrong with it is for its reader to say."""
    return file.suffix in (".toml", ".json") and not (file.is_file() and is_trace(file))


def open_trace(file: Path, use: str | None, nodes: str | None, seed: int) -> Trace:
    """A trace as the options want it."""
    try:
        wanted = parse_use(use) if use else Use()
    except InvalidRecord as error:
        raise InvalidRecord(f"--trace: {error}") from error
    return use_trace(file, wanted, parse_nodes(nodes) if nodes is not None else (), seed)
