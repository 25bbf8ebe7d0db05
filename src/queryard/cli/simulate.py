"""`queryard simulate`: one policy on one workload, looked at closely."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from queryard.comparison import (
    ALL,
    USUAL_ESTIMATES,
    PolicyResult,
    Progress,
    Settings,
    choose_profiles,
    describe,
    differences,
    ideals,
    make_conditions,
    own_profiles,
    run_policy,
    save_figures,
    scores_of_run,
    setting,
    settle_tenants,
    times_alone,
)
from queryard.core import readable
from queryard.core.errors import InvalidProfile
from queryard.core.journal import Journal

from . import options
from .progress import tracking
from .run_tables import run_tables


def simulate(
    workload: options.WorkloadFile = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="The policy; see `queryard policies`.")
    ] = "tls",
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
    journal: options.JournalFile = None,
    as_json: options.Json = False,
) -> None:
    """Run one policy and show what it did to queries, tenants and slots.

    Examples:

    - `queryard simulate examples/first.toml --policy tls`
    - `queryard simulate --demo --policy edf --figure edf.html`
    - `queryard simulate --generate "queries=200,load=0.9" --nodes 16x12 --policy srtf --seed 3`
    - `queryard simulate mine.toml --policy tumm --slow-start 0.05 --contention 0.25`
    - `queryard simulate --demo --policy s3 --journal run.jsonl --json`
    - `queryard simulate eventlog.zstd --policy tls --figure replayed.html`
    """
    figures = figure or []
    options.check_outputs(figures, journal)
    if "," in policy or policy == ALL:
        raise InvalidProfile(f"--policy {policy}: give one name here; `compare` takes several")
    parts = choose_profiles([policy], own_profiles(profile))[policy]
    conditions = options.read_conditions(
        condition or (),
        noise=noise,
        contention=contention,
        straggler_share=stragglers,
        task_failure=failures,
        remote_penalty=remote_penalty,
    )
    settings = Settings(
        estimates or USUAL_ESTIMATES, seed, slow_start, by_tenant, make_conditions(conditions, demo)
    )
    source = options.choose_source(workload, generate, demo, nodes, seed, trace)
    load = source.workload
    if estimates is None:
        settings = replace(settings, estimates=source.usual_estimates)
    if by_tenant:
        parts = settle_tenants({policy: parts}, load.tenants)[policy]
    alone_s = times_alone(load, settings)
    queries = len(load.arrivals)
    with tracking() as show:
        result = run_policy(
            load,
            policy,
            parts,
            settings,
            alone_s,
            lambda ended: show(Progress(policy, ended, queries)),
        )
    if figures:
        save_figures(figures, f"{policy}: {describe(load)}", [result], ideals(load, alone_s))
    if journal is not None:
        _save_journal(journal, result.journal)
    if as_json:
        scores = scores_of_run(policy, result.summary).to_json()
        plain = {"policy": policy, "scores": scores, "summary": result.summary.to_json()}
        told = {**setting(load, settings), **plain, "notes": source.notes}
        typer.echo(json.dumps(told, indent=1))
        return
    console = Console()
    console.print(f"[bold]{escape(policy)}[/bold] on {escape(describe(load))}", highlight=False)
    if circumstances := differences(settings, source.trace):
        console.print(f"With {circumstances}.", style="dim", highlight=False)
    for table in run_tables(result.summary):
        console.print(table)
    console.print(_effort(queries, result), style="dim", highlight=False)
    for note in source.notes:
        console.print(f"Note: {escape(note)}.", style="dim", highlight=False)
    for what, file in (*(("Figure", file) for file in figures), ("Journal", journal)):
        if file is not None:
            console.print(f"{what}: {file}", highlight=False, soft_wrap=True)


def _effort(queries: int, result: PolicyResult) -> str:
    """What the simulation took. Work under leases is no tasks, so queries count where all is."""
    wall = f"{readable.seconds(result.wall_s)} s"
    if not result.tasks:
        return f"Simulated {readable.several(queries, 'query')}, all under leases, in {wall}."
    rate = f" ({result.tasks / result.wall_s:,.0f} per second)" if result.wall_s else ""
    return f"Simulated {readable.several(result.tasks, 'task')} in {wall}{rate}."


def _save_journal(file: Path, journal: Journal) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in journal.to_lines())
