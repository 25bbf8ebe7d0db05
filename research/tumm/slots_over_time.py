"""Which slots TuMM gives to maps and to reduces as time goes by (Fig. 8)."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.figures.palette import SLOT_COLOURS
from queryard.figures.panels import Axis, Line, Panel
from queryard.metrics import RunRows, read_run
from queryard.metrics.utilisation import slots_in_use
from queryard.sim import simulate
from research.judging import whether
from research.outcome import Chart, Finding

from .clusters import HOMOGENEOUS, setting
from .jobs import Benchmark, batch
from .shared import TUMM

SLOTS = sum(node.slots for node in HOMOGENEOUS)


def run_under_tumm(kinds: Sequence[Benchmark]) -> RunRows:
    """A batch on the homogeneous cluster, every launch of it."""
    case = setting(batch(kinds))
    run = simulate(
        case.workload,
        case.nodes,
        TUMM["TuMM"],
        conditions=case.conditions,
        estimates=case.estimates,
        slow_start=case.slow_start,
    )
    return read_run(run.journal)


def halves_finding(run: RunRows) -> Finding:
    """Johnson puts jobs with much reduce work first: maps should have fewer slots then."""
    maps = slots_in_use(run)["map"]
    middle_s = run.closed_s / 2
    first, last = maps.mean(0.0, middle_s), maps.mean(middle_s, run.closed_s)
    return Finding(
        f"Johnson's order, TuMM: slots of {SLOTS} with maps, first and second half",
        "fewer, then more (Fig. 8)",
        f"{first:.1f}, {last:.1f}",
        whether(first < last),
    )


def turns_finding(run: RunRows) -> Finding:
    """The first job's maps, then a stretch of reduces, then one of maps."""
    used = slots_in_use(run)
    excess = [
        (time_s, used["reduce"].at(time_s) - used["map"].at(time_s))
        for time_s in sorted({*used["map"].times_s, *used["reduce"].times_s})
    ]
    reduces_s = next((time_s for time_s, more in excess if more > 0), run.closed_s)
    maps_s = next((at_s for at_s, more in excess if at_s > reduces_s and more < 0), run.closed_s)
    ours = ", ".join(f"{value_s:,.0f} s" for value_s in (reduces_s, maps_s, run.closed_s))
    return Finding(
        "Johnson's order, TuMM: reduces have most slots from, maps again from, end",
        "100 s, 1,200 s, 2,400 s (Fig. 8)",
        ours,
        whether(0 < reduces_s < maps_s < run.closed_s),
        "the paper's ten jobs are not known; ours are an even mix",
    )


def slots_chart(run: RunRows, title: str) -> Chart:
    used = slots_in_use(run)
    lines = tuple(
        Line(f"{kind}s", used[kind].times_s, used[kind].values, SLOT_COLOURS[kind])
        for kind in ("map", "reduce")
    )
    x_axis = Axis("time (s)", 0.0, run.closed_s)
    panel = Panel(title, x_axis, Axis("slots in use", 0.0, SLOTS + 1.0), lines=lines)
    return Chart("tumm-mixed-slots", "Slots under TuMM", (panel,))
