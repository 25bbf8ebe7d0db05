"""What a session itself costs while a thousand queries wait; the bounds are very generous."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from waiting import wait_until

import queryard

MEASURED_S = 1.0
LONG = "SELECT sum(hash(words, r)::HUGEINT), {} FROM facts, range(9999) t(r)"


@pytest.mark.parametrize("waiting", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_waiting_queries_cost_next_to_nothing(waiting: int, data: Path, tmp_path: Path) -> None:
    with queryard.connect(
        data, slots=2, memory="2 GB", history=tmp_path / "history.sqlite", profile="marshal"
    ) as session:
        handles = [
            session.submit(LONG.format(number), tenant="abc"[number % 3])
            for number in range(waiting + 2)
        ]
        # Each has been looked at once.
        wait_until(lambda: not session.host.estimator.behind)
        before = session.report()
        time.sleep(MEASURED_S)
        wait_until(lambda: session.report().decisions > before.decisions)
        after = session.report()
        assert after.waiting + after.running == waiting + 2
        assert after.running < 50
        elapsed_s = after.now_s - before.now_s
        driver = (after.driver_cpu_s - before.driver_cpu_s) / elapsed_s
        history = (after.history_cpu_s - before.history_cpu_s) / elapsed_s
        watch = (after.watch_cpu_s - before.watch_cpu_s) / elapsed_s
        print(f"driver {driver:.2%}, history {history:.2%}, watch {watch:.2%} of a core")
        assert driver + history < 0.25
        assert watch < 0.25
        assert after.decide_s <= after.driver_cpu_s
        # Tenants take turns for hours, and the forecast does not simulate each of them.
        began_s = time.thread_time()
        forecasts = session.forecasts()
        print(f"a forecast of all takes {time.thread_time() - began_s:.2f} s")
        assert time.thread_time() - began_s < 10.0
        assert forecasts.keys() == {handle.id for handle in handles}
        assert all(forecast.end_s is not None for forecast in forecasts.values())
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < 20.0
    assert all(handle.ended for handle in handles)


def test_an_idle_session_costs_nothing(data: Path, tmp_path: Path) -> None:
    with queryard.connect(
        data, slots=2, memory="2 GB", history=tmp_path / "history.sqlite"
    ) as session:
        session.sql("SELECT count(*) FROM dims").fetchall()
        time.sleep(1.0)
        before = session.report()
        time.sleep(1.0)
        after = session.report()
    assert after.decisions == before.decisions
    assert after.watch_cpu_s == before.watch_cpu_s
    assert after.driver_cpu_s - before.driver_cpu_s < 0.05
    assert after.history_cpu_s - before.history_cpu_s < 0.05
