"""Figures of loads: which queries waited, ran and were late."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from queryard.core.model import Divisible, Job, Query
from queryard.figures import save_load_figure
from queryard.figures.load import build_load_sheet
from queryard.figures.palette import LATE, POLICIES, faded
from queryard.metrics import QueryRow, RunRows


def row(name: str, tenant: str, submit: float, start: float, end: float, due: float | None = None):
    query = Query(name, (Job("w", divisible=Divisible(2)),), tenant, deadline_s=due)
    return QueryRow(query, submit, start, end, "finished")


@pytest.fixture
def run() -> RunRows:
    rows = [
        row("a", "web", 0.0, 0.0, 4.0),
        row("b", "batch", 1.0, 3.0, 8.0, due=5.0),
        row("c", "batch", 2.0, 9.0, 10.0, due=6.0),
    ]
    return RunRows(queries={row.query.id: row for row in rows})


def test_a_query_waits_runs_and_is_late(run: RunRows):
    sheet = build_load_sheet({"marshal": run}, {})
    chart, under_way = sheet.rows[0]
    web, batch = (key.colour for key in sorted(sheet.keys, key=lambda key: key.name != "web")[:2])
    bars = [(bar.start, bar.end, int(bar.bottom), bar.colour) for bar in chart.bars]
    assert bars == [
        (1.0, 3.0, 0, faded(batch)),
        (3.0, 5.0, 0, batch),
        (5.0, 8.0, 0, LATE),
        (2.0, 6.0, 1, faded(batch)),
        (6.0, 9.0, 1, faded(LATE)),
        (9.0, 10.0, 1, LATE),
        (0.0, 4.0, 3, web),
    ]
    assert chart.y.ticks == ((1.0, "batch"), (3.5, "web"))
    assert "2 of 2 deadlines missed" in chart.title
    assert {area.name: max(area.y) for area in under_way.areas} == {"batch": 2, "web": 1}


def test_queries_of_a_tenant_that_do_not_overlap_share_a_lane_and_runs_share_their_bands():
    rows = [row("a", "web", 0.0, 0.0, 4.0), row("b", "web", 4.0, 4.0, 6.0)]
    apart = RunRows(queries={row.query.id: row for row in rows})
    rows = [row("a", "web", 0.0, 0.0, 5.0), row("b", "web", 4.0, 5.0, 6.0)]
    at_once = RunRows(queries={row.query.id: row for row in rows})
    (first, _), (second, _) = build_load_sheet({"one": apart, "two": at_once}, {}).rows
    assert [int(bar.bottom) for bar in first.bars] == [0, 0]
    assert [int(bar.bottom) for bar in second.bars] == [0, 1, 1]
    assert first.y == second.y


def test_policies_and_tenants_share_no_colour_and_only_late_is_red(run: RunRows):
    sheet = build_load_sheet({"marshal": run, "duckdb": run}, {})
    policies = {line.colour for line in sheet.top.lines}
    keys = {key.name: key.colour for key in sheet.keys}
    assert keys.pop("late (past the deadline)") == LATE
    assert policies <= set(POLICIES)
    assert not (policies | {LATE}) & set(keys.values())


@pytest.mark.parametrize("ending", [".png", ".html", ".svg"])
def test_figures_are_written(run: RunRows, tmp_path: Path, ending: str):
    file = tmp_path / f"out{ending}"
    save_load_figure(str(file), {"marshal": run, "duckdb": run}, {"ideal PS": {"a": 1.0}}, "A load")
    assert file.stat().st_size > 1000


def test_a_run_of_nothing_is_drawn_and_no_run_is_an_error(tmp_path: Path):
    save_load_figure(str(tmp_path / "empty.png"), {"marshal": RunRows()})
    with pytest.raises(QueryardError, match="there is no run to draw"):
        save_load_figure(str(tmp_path / "none.png"), {})
    with pytest.raises(QueryardError, match="unknown ending"):
        save_load_figure(str(tmp_path / "x.gif"), {"marshal": RunRows()})
