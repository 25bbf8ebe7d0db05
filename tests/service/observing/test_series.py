"""Figures over time: what is downsampled keeps its sums, and memory stays bounded."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_until

from queryard.history import CostRow, History, SessionRow
from queryard.history.presence import DAY_S
from queryard.service.http import models_observing as models
from queryard.service.observing.ring import Cell, Ring, gathered
from queryard.service.observing.series import Stretch
from service.http.serving import a_server

AMOUNTS = st.floats(0, 1e6, allow_nan=False)
# (seconds since the one before, sum of a figure)
LOOKS = st.lists(st.tuples(st.floats(0.01, 40), AMOUNTS), min_size=1, max_size=200)


def looks_at(looks):
    at = 1_000_000.0
    for seconds, amount in looks:
        at += seconds
        yield at, seconds, amount


@given(LOOKS, st.floats(0.5, 60), st.integers(1, 50))
def test_a_ring_and_its_steps_have_the_sums_of_what_was_added(looks, cell_s, points):
    ring = Ring(cells=10_000, cell_s=cell_s, figures=1)
    for at, seconds, amount in looks_at(looks):
        ring.add(at, seconds, [amount])
    cells = list(ring.since(0.0))
    total_s = math.fsum(seconds for seconds, _ in looks)
    total = math.fsum(amount for _, amount in looks)
    assert math.fsum(cell.seconds for cell in cells) == pytest.approx(total_s)
    assert math.fsum(cell.sums[0] for cell in cells) == pytest.approx(total)
    begin = cells[0].at
    stretch = Stretch(begin, cells[-1].at + cell_s, points, cell_s)
    steps = [cell for cell in gathered(cells, begin, stretch.step_s, stretch.steps) if cell]
    assert math.fsum(cell.sums[0] for cell in steps) == pytest.approx(total)
    # The mean of all is the mean of the steps, weighed by their seconds.
    means = [(cell.sums[0] / cell.seconds, cell.seconds) for cell in steps]
    weighed = math.fsum(mean * seconds for mean, seconds in means) / total_s
    assert weighed == pytest.approx(total / total_s)


@given(LOOKS, st.integers(1, 20))
def test_a_ring_keeps_the_last_cells_in_order(looks, cells):
    small, large = Ring(cells, 1.0, 1), Ring(10_000, 1.0, 1)
    for at, seconds, amount in looks_at(looks):
        small.add(at, seconds, [amount])
        large.add(at, seconds, [amount])
    every = list(large.since(0.0))
    assert list(small.since(0.0)) == every[-cells:]
    assert small.has_forgotten == (len(every) > cells)
    assert [cell.at for cell in every] == sorted({cell.at for cell in every})
    middle = every[len(every) // 2].at
    assert list(large.since(middle)) == [cell for cell in every if cell.at >= middle]


def test_a_clock_that_is_set_back_opens_no_cell():
    ring = Ring(10, 1.0, 1)
    ring.add(100.0, 1.0, [1.0])
    ring.add(50.0, 1.0, [2.0])
    assert list(ring.since(0.0)) == [Cell(100.0, 2.0, (3.0,))]


def test_the_server_tells_its_slots_and_processors_over_time(server, root, ann):
    def seen():
        return [value for value in ann.get("/v1/series").json()["slots_total"] if value]

    wait_until(seen, 20)
    assert seen()[-1] == 2
    found = root.get("/v1/series", params={"points": 10, "since": time.time() - 120}).json()
    models.Series.model_validate(found)
    lists = [value for value in found.values() if isinstance(value, list)]
    assert {len(each) for each in [*lists, *found["own_cpu"].values()]} == {10}
    assert found["at"] == sorted(found["at"])
    assert {"driver", "watch", "history", "listeners"} <= set(found["own_cpu"])
    assert any(value for value in found["process_cpu"])
    # Parts of the server itself are an admin's to see.
    assert ann.get("/v1/series").json()["own_cpu"] == {}


def test_what_was_before_comes_from_the_history(tmp_path):
    file = tmp_path / "history.sqlite"
    began_at = time.time() - 3 * DAY_S
    history = History.open(file)
    history.begin(SessionRow("before", began_at, "1", 1, 8, 1000, {}, {"name": "fair"}))
    for number in range(361):  # an hour: 2 of 8 cores busy, one query per second waits for 6 s
        time_s = number * 10.0
        history.cost(
            CostRow(
                time_s=time_s,
                decisions=number * 4,
                decide_s=number * 0.002,
                driver_cpu_s=time_s * 0.01,
                watch_cpu_s=0.0,
                history_cpu_s=0.0,
                process_cpu_s=time_s * 2,
                rss_bytes=5000,
                waiting=6,
                running=3,
                bursts=0,
                burst_s=0.0,
            )
        )
    history.close()
    with a_server(tmp_path, session={"history": file}) as server, server.client("root") as root:
        given = {"since": began_at, "until": began_at + 3600, "points": 6}
        found = root.get("/v1/series", params=given).json()
    models.Series.model_validate(found)
    assert found["step_s"] == 600
    assert found["waiting"] == [6.0] * 6
    assert found["running"] == [3.0] * 6
    assert found["slots_total"] == [8.0] * 6
    assert found["process_cpu"] == pytest.approx([2.0] * 6)
    assert found["own_cpu"]["driver"] == pytest.approx([0.01] * 6)
    assert found["decide_ms"] == pytest.approx([0.5] * 6)
    # The history does not know them.
    assert found["slots_busy"] == found["own_cpu"]["listeners"] == [None] * 6


def test_steps_without_any_look_are_null(root):
    since = time.time() - 3 * 86_400
    found = root.get("/v1/series", params={"since": since, "points": 100}).json()
    assert found["step_s"] == pytest.approx(3 * 864)
    assert found["slots_total"][0] is None


def test_a_stretch_must_end_after_it_begins(ann):
    refused = ann.get("/v1/series", params={"since": 10, "until": 5})
    assert refused.status_code == 422
    assert "since" in refused.json()["detail"]
