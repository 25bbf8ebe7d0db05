"""What figures show, before a renderer draws it."""

from __future__ import annotations

import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.commands import Fail, Finish, Grant, Launch
from queryard.core.errors import QueryardError
from queryard.core.events import (
    LeaseEnded,
    NodeJoined,
    QueryCancelled,
    QuerySubmitted,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Node, Phase, Query, TaskId
from queryard.figures import Choice, FigureRun, RecordedTimes, timescale
from queryard.figures.html import figure_of
from queryard.figures.lanes import lay_out
from queryard.figures.palette import POLICIES, PORTFOLIOS, WASTED, tenant_colours
from queryard.figures.sheet import build_sheet
from queryard.figures.trace import build_trace_sheet
from queryard.metrics import read_run


def task(query: str, index: int) -> TaskId:
    return TaskId(f"{query}/m", "map", index)


def maps(query: str, tasks: int) -> Query:
    return Query(query, jobs=(Job("m", map=Phase(tasks)),))


def small_journal() -> Journal:
    """One node of two slots: a and b ride together, b fails alone, c leases both slots."""
    c = Query("c", jobs=(Job("w", divisible=Divisible(2)),))
    steps = [
        Step(
            5.0,
            (
                NodeJoined(5.0, Node("n", 2)),
                QuerySubmitted(5.0, maps("a", 1)),
                QuerySubmitted(5.0, maps("b", 2)),
                QuerySubmitted(5.0, c),
            ),
            (Launch(0, "n", (task("a", 0), task("b", 0))), Launch(1, "n", (task("b", 1),))),
        ),
        Step(
            9.0,
            (TaskFinished(9.0, 0), TaskFailed(9.0, 1, "disk")),
            (Finish("a"), Fail("b", "disk"), Grant("c/w", "n", 2)),
        ),
        Step(15.0, (LeaseEnded(15.0, "c/w", "n", 2, "finished"),), (Finish("c"),)),
    ]
    return Journal(steps=steps)


def long_journal(tasks: int, slots: int) -> Journal:
    """Two queries that take turns of a second on all slots."""
    query = {0: "even", 1: "odd"}
    submitted = tuple(QuerySubmitted(0.0, maps(name, tasks)) for name in query.values())
    steps = [Step(0.0, (NodeJoined(0.0, Node("n", slots)), *submitted), ())]
    number = 0
    for second in range(2 * tasks // slots):
        ended = tuple(TaskFinished(float(second), n) for n in range(number - slots, number))
        launches = tuple(
            Launch(number + slot, "n", (task(query[second % 2], (second // 2) * slots + slot),))
            for slot in range(slots)
        )
        steps.append(Step(float(second), ended if second else (), launches))
        number += slots
    end = float(2 * tasks // slots)
    ended = tuple(TaskFinished(end, n) for n in range(number - slots, number))
    steps.append(Step(end, ended, (Finish("even"), Finish("odd"))))
    return Journal(steps=steps)


def test_the_gantt_chart_has_a_bar_for_every_stay_and_divides_shared_ones() -> None:
    sheet = build_sheet([FigureRun("fifo", small_journal())], {})
    (gantt, _), colours = sheet.rows[0], tenant_colours(["a", "b", "c"])
    bars = sorted((bar.start, bar.end, round(bar.bottom, 2), bar.colour) for bar in gantt.bars)
    assert bars == [
        (0, 4, 0.06, colours["a"]),
        (0, 4, 0.5, colours["b"]),
        (0, 4, 1.06, WASTED),
        (4, 10, 0.06, colours["c"]),
        (4, 10, 1.06, colours["c"]),
    ]
    assert gantt.y.ticks == ((1.0, "n"),)
    assert (gantt.x.low, gantt.x.high) == (0, 10)
    assert [key.name for key in sheet.keys] == ["a", "b", "c", "failed, killed or lost"]


def test_slots_are_stacked_by_kind_under_those_present() -> None:
    slots = build_sheet([FigureRun("fifo", small_journal())], {}).rows[0][1]
    assert slots.title == "fifo: slots in use, 100% on average"
    assert [(area.name, area.x, area.y) for area in slots.areas] == [
        ("map tasks", (0, 4, 10), (2, 0, 0)),
        ("leased slots", (0, 4, 10), (0, 2, 0)),
    ]
    assert slots.lines[0].y == (2, 2)


def test_the_response_curve_is_a_share_of_all_submitted_queries() -> None:
    ideal = {"a": 1.0, "b": 2.0, "c": 3.0}
    top = build_sheet([FigureRun("fifo", small_journal())], {"ideal": ideal}).top
    fifo, reference = top.lines
    assert fifo.name == "fifo (mean 7 s)"
    assert (fifo.x, fifo.y) == ((4, 4, 10), (0, pytest.approx(100 / 3), pytest.approx(200 / 3)))
    assert (reference.y[-1], reference.dash) == (100, "dash")
    assert top.x.scale == "linear"


def test_responses_far_apart_are_drawn_on_a_logarithmic_axis() -> None:
    far = {"a": 0.0, "b": 0.5, "c": 900.0}
    top = build_sheet([FigureRun("fifo", small_journal())], {"far": far}).top
    assert (top.x.scale, top.x.label) == ("log", "response time (s, logarithmic)")
    assert min(top.lines[1].x) == 0.5


def test_many_bars_are_drawn_as_their_main_query_and_the_title_says_so() -> None:
    sheet = build_sheet([FigureRun("fair", long_journal(tasks=2000, slots=40))], {})
    gantt = sheet.rows[0][0]
    assert gantt.title == "fair: the query on each slot (the main one of 2 slots in 0.21 s)"
    assert len(gantt.bars) <= 3000
    drawn = sum((bar.end - bar.start) * (bar.top - bar.bottom) for bar in gantt.bars)
    rows = gantt.y.low
    assert drawn == pytest.approx(0.88 * rows * gantt.x.high, rel=0.01)  # nothing was idle
    colours = tenant_colours(["even", "odd"])
    odd = sum(bar.end - bar.start for bar in gantt.bars if bar.colour == colours["odd"])
    assert odd == pytest.approx(rows * gantt.x.high / 2, rel=0.05)


def test_idle_cells_stay_blank() -> None:
    busy = long_journal(tasks=1600, slots=40)
    late = Query("late", jobs=(Job("m", map=Phase(1)),))
    steps = [*busy.steps, Step(160.0, (QuerySubmitted(160.0, late),), (Finish("late"),))]
    gantt = build_sheet([FigureRun("fair", Journal(steps=steps))], {}).rows[0][0]
    assert max(bar.end for bar in gantt.bars) == pytest.approx(80, abs=0.5)


def test_long_series_of_slots_are_averaged() -> None:
    steps = list(small_journal().steps)
    for second in range(2000):
        t = 20.0 + second
        number = 10 + second
        steps.append(Step(t, (QuerySubmitted(t, maps(f"q{second}", 1)),), ()))
        steps.append(Step(t, (), (Launch(number, "n", (task(f"q{second}", 0),)),)))
        steps.append(Step(t + 0.5, (TaskFinished(t + 0.5, number),), (Finish(f"q{second}"),)))
    slots = build_sheet([FigureRun("fifo", Journal(steps=steps))], {}).rows[0][1]
    assert "(means of 2 s)" in slots.title
    assert len(slots.areas[0].x) <= 1001
    assert slots.areas[0].y[500] == pytest.approx(0.5, abs=0.01)
    assert slots.x.label == "time since the first submission (min)"


def test_runs_share_their_axes() -> None:
    runs = [FigureRun("one", small_journal()), FigureRun("two", long_journal(200, 20))]
    rows = build_sheet(runs, {}).rows
    assert len({gantt.x for gantt, _ in rows} | {slots.x for _, slots in rows}) == 1
    assert len({slots.y for _, slots in rows}) == 1


def test_slots_are_present_until_the_end_of_their_own_run() -> None:
    runs = [FigureRun("short", small_journal()), FigureRun("long", long_journal(200, 20))]
    (_, short), (_, long) = build_sheet(runs, {}).rows
    assert (short.lines[0].x[-1], long.lines[0].x[-1]) == (10, 20)


def test_a_portfolio_stands_out_from_as_many_policies_as_there_are_colours() -> None:
    names = [f"p{n}" for n in range(len(POLICIES))]
    runs = [FigureRun(name, small_journal()) for name in (*names, "portfolio")]
    top = build_sheet(runs, {}, choices={"portfolio": ()}).top
    assert len({line.colour for line in top.lines}) == len(runs)
    assert (top.lines[-1].colour, top.lines[-1].weight > 1) == (PORTFOLIOS[0], True)
    assert {line.weight for line in top.lines[:-1]} == {1}


def test_what_a_portfolio_did_has_the_colours_of_the_runs_and_its_own_time_axis() -> None:
    # One that takes 4000 s, so that the axes of the runs are in minutes.
    slow = FigureRun("slow", long_journal(tasks=2000, slots=1))
    runs = [slow, FigureRun("quick", small_journal()), FigureRun("both", small_journal())]
    made = [
        Choice(5.0, "slow", {}),
        Choice(6.0, "quick", {"slow": 4.0, "quick": 2.0}),
        Choice(8.0, "quick", {"quick": 2.0}),
    ]
    sheet = build_sheet(runs, {}, choices={"both": made})
    force, scores = sheet.rows[0]
    assert force.x == scores.x
    assert ("(s)" in force.x.label, force.x.high) == (True, 10.0)  # its own end
    assert "(min)" in sheet.rows[1][0].x.label
    colours = {line.name.partition(" ")[0]: line.colour for line in sheet.top.lines}
    assert [bar.colour for bar in force.bars] == [colours[choice.policy] for choice in made]
    assert force.bars[-1].end == pytest.approx(10)
    (line,) = (line for line in scores.lines if line.name == "slow")
    assert line.colour == colours["slow"]
    assert [str(value) for value in line.y] == ["nan", "nan", "2.0", "2.0", "nan", "nan"]


def test_the_legend_of_responses_on_a_page_is_beside_them() -> None:
    page = figure_of(build_sheet([FigureRun("fifo", small_journal())], {"ideal": {"a": 1.0}}))
    assert page.layout.legend.x > page.layout.xaxis.domain[1]
    shown = [trace.name for trace in page.data if trace.legend == "legend3"]
    assert shown == ["map tasks", "leased slots", "slots present"]


def test_a_trace_has_a_legend_for_maps_and_reduces() -> None:
    times = RecordedTimes([0.0], {"map": [(0.0, 2.0)], "reduce": [(2.0, 3.0)]}, {"maps": [2.0]})
    sheet = build_trace_sheet("a trace", times)
    areas = sheet.rows[0][0].areas
    assert [key.name for key in sheet.keys] == ["maps", "reduces"]
    assert [key.colour for key in sheet.keys] == [area.colour for area in areas]


def test_a_run_in_which_nothing_happened_says_so() -> None:
    cancelled = [
        Step(0.0, (QuerySubmitted(0.0, maps("a", 1)),), ()),
        Step(0.0, (QueryCancelled(0.0, "a"),), (Fail("a", "cancelled"),)),
    ]
    for journal in (Journal(), Journal(steps=cancelled)):
        sheet = build_sheet([FigureRun("fifo", journal)], {})
        assert sheet.top.note == "no query has finished"
        assert [panel.note for panel in sheet.rows[0]] == ["nothing ran", "nothing ran"]


def test_runs_need_names_of_their_own() -> None:
    with pytest.raises(QueryardError, match="'fifo'"):
        build_sheet([FigureRun("fifo", Journal()), FigureRun("fifo", Journal())], {})
    with pytest.raises(QueryardError, match="no run"):
        build_sheet([], {})


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=30
    )
)
def test_no_two_pieces_of_work_are_in_one_lane_at_once(stays: list[tuple[int, int, int]]) -> None:
    work = Query("q", jobs=(Job("w", divisible=Divisible(9)),))
    steps = [Step(0.0, (QuerySubmitted(0.0, work),), ())]
    moments = [(float(start), 1, node, 1) for start, _, node in stays]
    moments += [(float(start + length), 0, node, 1) for start, length, node in stays]
    for time_s, grants, node, slots in sorted(moments):
        if grants:
            steps.append(Step(time_s, (), (Grant("q/w", f"n{node}", slots),)))
        else:
            ended = LeaseEnded(time_s, "q/w", f"n{node}", slots, "revoked")
            steps.append(Step(time_s, (ended,), ()))
    lanes = lay_out(read_run(Journal(steps=steps)))
    assert len(lanes.pieces) == len(stays)
    by_lane: dict[int, list[tuple[float, float]]] = {}
    for piece in lanes.pieces:
        by_lane.setdefault(piece.lane, []).append((piece.start_s, piece.end_s))
    for spans in by_lane.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_the_examples_in_the_documentation_hold() -> None:
    assert doctest.testmod(timescale).failed == 0
