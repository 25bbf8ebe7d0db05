"""Task times on Heter1 (Table 4), and how many maps H_TuMM runs on its nodes (Fig. 11)."""

from __future__ import annotations

from queryard.core.model import MAP, JobId
from queryard.figures.palette import policy_colour
from queryard.figures.panels import Axis, Line, Panel
from queryard.metrics import RunRows, read_run
from queryard.metrics.series import StepSeries
from queryard.sim import simulate
from queryard.workload import Workload
from research.judging import judge
from research.outcome import Chart, Finding, Table, interval

from .clusters import HETER1, World, group_nodes
from .jobs import CLASSIFICATION, PRINTED
from .shared import H_TUMM
from .static_by_node import simulate_fixed

Times = dict[str, dict[str, list[float]]]


def _task_times(workload: Workload) -> Times:
    """Benchmark -> kind -> seconds of tasks under fixed slots.

    Reduces that were launched early, and waited, are left out.
    """
    run = read_run(simulate_fixed(World().setting(workload, HETER1), HETER1, "fifo", 0).journal)
    maps_done_s: dict[str, float] = {}
    for launch in run.launches:
        if launch.kind == MAP and launch.end_s is not None:
            job = launch.tasks[0].job
            maps_done_s[job] = max(maps_done_s.get(job, 0.0), launch.end_s)
    found: Times = {}
    for launch in run.launches:
        job = launch.tasks[0].job
        if launch.end_s is None or (launch.kind != MAP and launch.start_s < maps_done_s[job]):
            continue
        name = run.queries[JobId.of(job).query].query.class_name
        of_kind = found.setdefault(name, {}).setdefault(launch.kind, [])
        of_kind.append(launch.end_s - launch.start_s)
    return found


def times_table(workload: Workload) -> Table:
    rows = []
    for name, of in _task_times(workload).items():
        printed = PRINTED[name]
        rows.append(
            (
                name,
                "{:.1f} to {:.1f}".format(*printed.map_s),
                f"{min(of['map']):.1f} to {max(of['map']):.1f}",
                "{:.1f} to {:.1f}".format(*printed.reduce_s),
                f"{min(of['reduce']):.1f} to {max(of['reduce']):.1f}",
            )
        )
    columns = ("benchmark", "maps, printed", "maps, ours", "reduces, printed", "reduces, ours")
    title = "Fastest and slowest task on Heter1 (s), fixed slots (1 seed)"
    return Table(title, columns, tuple(rows))


def times_finding(workload: Workload) -> Finding:
    maps = _task_times(workload)[CLASSIFICATION.name]["map"]
    ratio = max(maps) / min(maps)
    return Finding(
        "Slowest map of Classification over the fastest, Heter1",
        "3.7",
        f"{ratio:.1f}",
        judge(3.7, interval([ratio]), neutral=1.0),
        "the middle of the printed range went in, its width did not",
    )


def maps_chart(workload: Workload) -> Chart:
    """Maps on a node of each group over time under H_TuMM."""
    case = World().setting(workload, HETER1)
    run = simulate(
        case.workload,
        case.nodes,
        H_TUMM["H_TuMM"],
        conditions=case.conditions,
        estimates=case.estimates,
        slow_start=case.slow_start,
    )
    rows = read_run(run.journal)
    lines = tuple(
        _maps_line(rows, group.instance, group.nodes, policy_colour(place))
        for place, group in enumerate(HETER1)
    )
    most = max(group.maps + group.reduces for group in HETER1)
    panel = Panel(
        "One of each benchmark, H_TuMM on Heter1",
        Axis("time (s)", 0.0, rows.closed_s),
        Axis("maps on a node, mean of three", 0.0, most + 0.5),
        lines=lines,
    )
    return Chart("htumm-maps-by-group", "Maps on the nodes of each group", (panel,))


def _maps_line(run: RunRows, instance: str, nodes: int, colour: str) -> Line:
    members = {name for name, group in group_nodes(HETER1).items() if group.instance == instance}
    changes = []
    for launch in run.launches:
        if launch.kind == MAP and launch.node in members and launch.end_s is not None:
            changes += [(launch.start_s, 1), (launch.end_s, -1)]
    series = StepSeries.of_changes(changes)
    return Line(instance, series.times_s, tuple(v / nodes for v in series.values), colour)
