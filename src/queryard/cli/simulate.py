"""`queryard simulate`: one policy on one workload, looked at closely."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from queryard.core import readable
from queryard.core.errors import InvalidProfile

from . import options, run
from .progress import tracking
from .run_tables import run_tables
from .scores import scores_of_run
from .titles import describe, differences, setting


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
    run.check_outputs(figures, journal)
    if "," in policy or policy == run.ALL:
        raise InvalidProfile(f"--policy {policy}: give one name here; `compare` takes several")
    chosen = {policy: run.choose_profiles([policy], profile)[policy]}
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
    source = options.choose_workload(workload, generate, demo, nodes, seed, trace)
    load = source.workload
    if estimates is None:
        settings = replace(settings, estimates=source.usual_estimates)
    settled = run.settle_tenants(chosen, load, settings)[policy]
    alone_s = run.times_alone(load, settings)
    with tracking(len(load.arrivals), 1) as tracker:
        tracker.begin(policy)
        result = run.run_policy(load, policy, settled, settings, alone_s, tracker)
    if figures:
        title = f"{policy}: {describe(load)}"
        run.save_figures(figures, title, [result], run.ideals(load, alone_s))
    if journal is not None:
        run.save_journal(journal, result.journal)
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
    console.print(_effort(len(load.arrivals), result), style="dim", highlight=False)
    for note in source.notes:
        console.print(f"Note: {escape(note)}.", style="dim", highlight=False)
    for what, file in (*(("Figure", file) for file in figures), ("Journal", journal)):
        if file is not None:
            console.print(f"{what}: {file}", highlight=False, soft_wrap=True)


def _effort(queries: int, result: run.Result) -> str:
    """What the simulation took. Work under leases is no tasks, so queries count where all is."""
    wall = f"{readable.seconds(result.wall_s)} s"
    if not result.tasks:
        return f"Simulated {readable.several(queries, 'query')}, all under leases, in {wall}."
    rate = f" ({result.tasks / result.wall_s:,.0f} a second)" if result.wall_s else ""
    return f"Simulated {readable.several(result.tasks, 'task')} in {wall}{rate}."
