"""`queryard compare`: policies side by side on one workload."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from queryard.core.errors import InvalidProfile
from queryard.workload import Workload

from . import options, run
from .comparison_table import comparison_table
from .portfolio_tables import portfolio_facts, portfolio_tables, scores_by_objective
from .progress import tracking
from .scores import Scores, scores_of_run
from .titles import describe, differences, setting
from .verdict import verdict

DEFAULT_POLICIES = "fifo,fair,capacity,edf,srtf,s3,tls,tls-circular"


def compare(
    workload: options.WorkloadFile = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Policies, joined by commas; `all` for every one; `portfolio` chooses among some, "
            "`portfolio:OBJECTIVE:NAME/NAME` for what and among which. "
            f"Default: {DEFAULT_POLICIES}, and those of --profile.",
            show_default=False,
        ),
    ] = None,
    profile: options.ProfileFile = None,
    trace: options.TraceUse = None,
    generate: options.Generate = None,
    demo: options.Demo = False,
    seed: options.Seed = 0,
    nodes: options.Nodes = None,
    estimates: options.Estimates = None,
    slow_start: options.SlowStart = 1.0,
    noise: options.Noise = None,
    contention: options.Contention = None,
    stragglers: options.Stragglers = None,
    failures: options.Failures = None,
    remote_penalty: options.RemotePenalty = None,
    condition: options.Condition = None,
    by_tenant: options.ByTenant = False,
    figure: options.Figure = None,
    as_json: options.Json = False,
) -> None:
    """Run policies on the same workload and show them side by side.

    Below the policies stand two ideals on the same arrivals: processor sharing, which treats
    all alike, and clairvoyant shortest-remaining-first, which knows every duration.

    Examples:

    - `queryard compare --demo`
    - `queryard compare examples/stall.toml --policy fifo,fair,capacity,tls`
    - `queryard compare --generate "queries=100,bins=bing,deadlines=0.3" --nodes 16x12`
    - `queryard compare mine.toml --policy tls,my-own --profile profiles.toml --figure out.html`
    - `queryard compare examples/tenants.toml --by-tenant --policy fifo,tls`
    - `queryard compare --demo --policy all --estimates oracle:0.3 --json > results.json`
    - `queryard compare spark-events/app-20260105.zstd`: a Spark event log, as it was and otherwise
    - `queryard compare FB-2009.tsv --trace load=0.95,deadlines=0.3 --policy fair,tls,edf`
    """
    figures = figure or []
    run.check_outputs(figures)
    names = _split(policy) if policy else DEFAULT_POLICIES.split(",")
    if not names:
        raise InvalidProfile("--policy: name at least one policy, such as fair,tls")
    profiles: Mapping[str, run.Profile] = run.choose_profiles(names, profile, (run.PORTFOLIO,))
    settings = run.make_settings(
        estimates=estimates or options.USUAL_ESTIMATES,
        seed=seed,
        slow_start=slow_start,
        by_tenant=by_tenant,
        noise=noise,
        contention=contention,
        straggler_share=stragglers,
        task_failure=failures,
        remote_penalty=remote_penalty,
        more=condition or (),
        demo=demo,
    )
    chosen = options.choose_workload(workload, generate, demo, nodes, seed, trace)
    load = chosen.workload
    if estimates is None:
        settings = replace(settings, estimates=chosen.usual_estimates)
    profiles = run.settle_tenants(profiles, load, settings)
    alone_s = run.times_alone(load, settings)
    results = []
    with tracking(len(load.arrivals), len(profiles)) as tracker:
        for name, parts in profiles.items():
            tracker.begin(name)
            results.append(run.run_policy(load, name, parts, settings, alone_s, tracker))
    rows = _rows(results, len(load.nodes))
    references = run.ideals(load, alone_s)
    if chosen.trace is not None:
        references = [*run.as_recorded(chosen.trace, alone_s), *references]
    notes = [*chosen.notes, *_nodes_note(rows, len(load.nodes))]
    run.save_figures(figures, describe(load), results, references)
    ideals = [reference.scores for reference in references]
    if as_json:
        plain = {**_plain(load, settings, results, rows, ideals), "notes": notes}
        typer.echo(json.dumps(plain, indent=1))
        return
    console = Console()
    console.print(comparison_table(describe(load), rows, ideals, scores_by_objective(results)))
    if circumstances := differences(settings, chosen.trace):
        console.print(f"With {circumstances}.", style="dim", highlight=False)
    console.print(verdict(rows, ideals), highlight=False)
    for table in portfolio_tables(results):
        console.print(table, highlight=False)
    for note in notes:
        console.print(f"Note: {escape(note)}.", style="dim", highlight=False)
    for file in figures:
        console.print(f"Figure: {file}", highlight=False, soft_wrap=True)


def _split(given: Sequence[str]) -> list[str]:
    return [name.strip() for part in given for name in part.split(",") if name.strip()]


def _rows(results: Sequence[run.Result], nodes: int) -> list[Scores]:
    """A row a policy, with its nodes where any policy had others than there were at first."""
    rows = [scores_of_run(result.name, result.summary) for result in results]
    if all(result.nodes.least == result.nodes.most == nodes for result in results):
        return rows
    return [
        replace(
            row,
            mean_nodes=result.nodes.mean,
            most_nodes=int(result.nodes.most),
            node_hours=result.summary.cost.node_hours,
        )
        for row, result in zip(rows, results, strict=True)
    ]


def _nodes_note(rows: Sequence[Scores], nodes: int) -> list[str]:
    counted = [(row.most_nodes, row.name) for row in rows if row.most_nodes is not None]
    if not counted:
        return []
    most, name = max(counted, key=lambda pair: pair[0])
    return [
        f"nodes came and went, and there were up to {most:,} (under {name}); slowdowns and ideals "
        f"are for the {nodes:,} at the start"
    ]


def _plain(
    load: Workload,
    settings: run.Settings,
    results: Sequence[run.Result],
    rows: Sequence[Scores],
    ideals: Sequence[Scores],
) -> dict[str, Any]:
    return {
        **setting(load, settings),
        "policies": [
            {"policy": row.name, "scores": row.to_json(), "summary": result.summary.to_json()}
            for row, result in zip(rows, results, strict=True)
        ],
        "references": [row.to_json() for row in ideals],
        "verdict": verdict(rows, ideals),
        "portfolios": portfolio_facts(results),
    }
