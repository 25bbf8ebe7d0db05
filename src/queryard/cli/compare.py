"""`queryard compare`: policies side by side on one workload."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from queryard import comparison
from queryard.comparison import DEFAULT_POLICIES
from queryard.core.errors import InvalidProfile, InvalidRecord

from . import options, past_window
from .progress import tracking


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
    history: past_window.History = None,
    since: past_window.Since = None,
    until: past_window.Until = None,
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
    - `queryard compare --history data/ --since '2 h' --policy fair,srtf`: what was asked there
    - `queryard compare FB-2009.tsv --trace load=0.95,deadlines=0.3 --policy fair,tls,edf`
    """
    figures = figure or []
    options.check_outputs(figures)
    names = options.split_names(policy) if policy else DEFAULT_POLICIES
    if not names:
        raise InvalidProfile("--policy: name at least one policy, such as fair,tls")
    conditions = options.read_conditions(
        condition or (),
        noise=noise,
        contention=contention,
        straggler_share=stragglers,
        task_failure=failures,
        remote_penalty=remote_penalty,
    )
    past = None
    if history is None:
        options.check_source(workload, generate, demo, trace)
    elif workload is not None or generate is not None or demo or trace is not None:
        raise InvalidRecord("which workload? --history is one by itself; leave out the others")
    else:
        past = past_window.past_window(history, since, until)
        estimates = estimates or past.estimates
    if history is None and (since or until):
        raise InvalidRecord("--since and --until are of a history; name it with --history")
    with tracking() as show:
        found = comparison.compare(
            workload if past is None else past.trace,
            generate=options.read_mix(generate),
            demo=demo,
            trace=options.read_use(trace),
            policies=names,
            profiles=profile,
            nodes=nodes,
            seeds=seed,
            estimates=estimates,
            slow_start=slow_start,
            by_tenant=by_tenant,
            conditions=conditions,
            on_progress=show,
        )
    for file in figures:
        found.figure(file)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1))
        return
    console = Console()
    console.print(found)
    for file in figures:
        console.print(f"Figure: {file}", highlight=False, soft_wrap=True)
