"""Random workloads: any DAG, any mix of kinds, arrivals, failures, cancellations, memory."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from queryard.core import events as ev
from queryard.core.model import (
    Divisible,
    Job,
    Node,
    Phase,
    Query,
    Split,
    Table,
    TableInput,
)
from queryard.core.speedup import PERFECT, Speedup
from queryard.policies import resolve_profile
from queryard.sim import Conditions
from queryard.workload.model import Arrival, JobTruth, Workload
from queryard.workload.scan_costs import SCAN_COSTS, with_scan_costs

TABLES = (
    Table("orders", tuple(Split(1e6, (f"n{i % 3}",)) for i in range(5))),
    Table("lines", tuple(Split(2e6, (f"n{i % 2}", "n2")) for i in range(8))),
)
BY_NAME = {table.name: table for table in TABLES}

CURVES = (PERFECT, Speedup(0.05), Speedup(0.4), Speedup(0.1, 2))
seconds = st.floats(0.1, 5.0).map(lambda value: round(value, 2))


@st.composite
def jobs(draw: st.DrawFn, number: int, online: bool) -> tuple[Job, JobTruth]:
    upstream = ()
    if number and not online:
        upstream = tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=2))))
    names = tuple(f"j{up}" for up in upstream)
    operator = draw(st.sampled_from(("join", "groupby", "extract")))
    truth = JobTruth(
        map_s=draw(seconds),
        shuffle_s=draw(seconds),
        merge_s=0.1,
        reduce_s=draw(seconds),
        work_s=draw(st.floats(0.5, 20.0)),
        batch_overhead_s=draw(st.sampled_from((0.0, 0.5))),
        speedup=draw(st.sampled_from(CURVES)),
    )
    if draw(st.booleans()):
        truth = with_scan_costs(truth, draw(st.sampled_from(sorted(SCAN_COSTS))))
    name = f"j{number}"
    shape = "divisible" if online else draw(st.sampled_from(("maps", "maps", "scan", "divisible")))
    if shape == "divisible":
        width = draw(st.integers(1, 4))
        batches = draw(st.integers(2, 5)) if online else 1
        nested = online and draw(st.booleans())
        if nested:
            truth = replace(truth, growth_s=0.2)
        span = draw(st.sampled_from(("host", "host", "cluster")))
        scans = draw(st.sampled_from(((), ("orders",), ("lines",))))
        leased = Divisible(width, batches, nested, span)
        return Job(name, operator, names, scans=scans, divisible=leased), truth
    reduce = Phase(draw(st.integers(1, 4))) if draw(st.booleans()) else None
    if shape == "scan":
        table = BY_NAME[draw(st.sampled_from(sorted(BY_NAME)))]
        job = Job(
            name,
            operator,
            names,
            (TableInput(table.name, table.bytes),),
            Phase(len(table.splits), table.splits[0].bytes),
            reduce,
            (table.name,),
        )
        return job, truth
    return Job(name, operator, names, map=Phase(draw(st.integers(1, 7))), reduce=reduce), truth


@st.composite
def arrivals(draw: st.DrawFn, number: int) -> Arrival:
    online = draw(st.integers(0, 4)) == 0
    made = [draw(jobs(i, online)) for i in range(draw(st.integers(1, 1 if online else 4)))]
    submit_s = draw(st.floats(0.0, 20.0).map(lambda value: round(value, 1)))
    query = Query(
        f"q{number}",
        tuple(job for job, _ in made),
        tenant=draw(st.sampled_from(("ann", "bob", "eve"))),
        priority=draw(st.integers(0, 3)),
        submit_s=submit_s,
        deadline_s=draw(st.one_of(st.none(), st.just(submit_s + 10.0))),
        kind="online" if online else "exact",
        class_name=draw(st.sampled_from(("", "daily"))),
        memory_bytes=draw(st.sampled_from((0.0, 0.0, 40.0, 90.0))),
        target_error=draw(st.sampled_from((None, 1e-3))) if online else None,
    )
    cancel_s = draw(st.one_of(st.none(), st.none(), st.floats(0.0, 30.0)))
    return Arrival(query, {job.name: truth for job, truth in made}, cancel_s)


@st.composite
def workloads(draw: st.DrawFn, most: int = 6) -> Workload:
    count = draw(st.integers(1, most))
    return Workload("random", tuple(draw(arrivals(i)) for i in range(count)), TABLES)


@st.composite
def surprises(draw: st.DrawFn, workload: Workload, profiles: list[str]) -> list[ev.Event]:
    """What may happen besides: other widths, memory, splits of a table, another policy.

    In the end every divisible job can use a slot again, and there is memory for every query,
    whatever an earlier policy made of the cluster.
    """
    events: list[ev.Event] = []
    leased = [
        arrival.query.job_id(job.name)
        for arrival in workload.arrivals
        for job in arrival.query.jobs
        if job.divisible
    ]
    moments = st.floats(0.0, 40.0).map(lambda value: round(value, 1))
    for job in leased:
        times = draw(st.lists(moments, max_size=3))
        events += [ev.WidthChanged(at, job, draw(st.integers(0, 5))) for at in times]
        events += [ev.WidthChanged(45.0, job, 2)] if times else []
    for arrival in workload.arrivals:
        if draw(st.booleans()):
            amount = draw(st.sampled_from((0.0, 10.0, 40.0)))
            events.append(ev.MemoryChanged(draw(moments), arrival.query.id, amount))
    if draw(st.booleans()):
        table = Table("orders", tuple(Split(1e6, (f"n{(i + 1) % 3}",)) for i in range(5)))
        events.append(ev.TableChanged(draw(moments), table))
    if draw(st.booleans()):
        chosen = resolve_profile(draw(st.sampled_from(profiles)))
        events.append(ev.PolicyChosen(draw(moments), chosen))
    if draw(st.booleans()):
        events += [ev.Paused(draw(moments), "ann"), ev.Resumed(44.0)]
    return [*events, ev.NodeJoined(46.0, Node("large", 1, 100.0))]


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    """Nodes of different sizes and speeds; some may be of one host."""
    return [
        Node(
            f"n{i}",
            draw(st.integers(1, 4)),
            50.0,
            map_speed=draw(st.sampled_from((1.0, 0.5))),
            host=draw(st.sampled_from(("", "", "shared"))),
        )
        for i in range(draw(st.integers(2, 4)))
    ]


@st.composite
def conditions(draw: st.DrawFn) -> Conditions:
    return Conditions(
        noise=draw(st.sampled_from((0.0, 0.3))),
        task_failure=draw(st.sampled_from((0.0, 0.1))),
        node_mtbf_s=draw(st.sampled_from((0.0, 40.0))),
        node_repair_s=5.0,
        node_boot_s=2.0,
        revoke_delay_s=draw(st.sampled_from((0.0, 0.2))),
        contention=draw(st.sampled_from((0.0, 0.25))),
        remote_penalty=0.3,
        rider_cost=0.03,
        segment_cache_bytes=draw(st.sampled_from((0.0, 5e5, 1e9))),
    )
