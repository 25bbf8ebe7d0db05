"""About when queries start and end, reckoned by hand."""

from __future__ import annotations

import time

import pytest

from queryard.estimate.work import Prediction
from queryard.live.choosing.state import PolicyState
from queryard.live.estimates.forecasts import Forecasts
from queryard.live.expected import NOT_KNOWN, Expected, expected, in_order
from queryard.live.facts import QueryFacts
from queryard.live.overview import Overview, Standing
from queryard.live.request import QueryRequest
from queryard.sim.forecast import Forecast

NOW_S = 100.0
NONE = Forecasts({}, float("-inf"))


def a_query(name: str, work_s: float, progress: float | None = None, **more) -> QueryFacts:
    """One that waits, or that has begun and has come so far."""
    return QueryFacts(
        id=name,
        request=QueryRequest("SELECT 1", (), (), "native", "web"),
        submitted_s=90.0,
        prediction=Prediction(work_s, 0, "guess", 2.0),
        expected_s=work_s,
        started_s=None if progress is None else 95.0,
        progress=progress or 0.0,
        **more,
    )


def overview_of(
    *facts: QueryFacts, slots: int = 1, held: dict[str, int] | None = None, paused_by=None
) -> Overview:
    """The queries that wait start in the order in which they are given."""
    waiting = [each.id for each in facts if each.started_s is None]
    return Overview(
        now_s=NOW_S,
        facts=facts,
        turns={name: (place, float(place)) for place, name in enumerate(waiting)},
        standings={name: Standing(number, "", 0.0) for name, number in (held or {}).items()},
        slots=slots,
        busy_slots=slots,
        memory_bytes=1e9,
        reserved_bytes=0.0,
        policy=PolicyState("fair", 0.0, "", "", None),
        paused_by=paused_by,
    )


def told(overview: Overview, forecasts: Forecasts = NONE) -> dict[str, Expected]:
    return expected(overview, forecasts, *in_order(overview))


def test_a_query_starts_when_the_work_before_it_is_done():
    found = told(overview_of(a_query("a", 4.0, 0.5), a_query("b", 3.0), a_query("c", 1.0)))
    assert found == {"a": Expected(None, 2.0), "b": Expected(2.0, 5.0), "c": Expected(5.0, 6.0)}


def test_a_query_that_runs_ends_sooner_the_more_slots_it_holds():
    both = a_query("wide", 6.0, 0.0), a_query("narrow", 6.0, 0.0)
    found = told(overview_of(*both, slots=3, held={"wide": 2, "narrow": 1}))
    assert found == {"wide": Expected(None, 3.0), "narrow": Expected(None, 6.0)}


def test_the_last_queries_share_all_slots_and_many_have_one_each():
    found = told(overview_of(a_query("alone", 8.0), slots=4))
    assert found == {"alone": Expected(0.0, 2.0)}
    found = told(overview_of(*(a_query(f"q{number}", 8.0) for number in range(4)), slots=4))
    assert [each.end_s for each in found.values()] == [8.0] * 4


def test_a_forecast_counts_until_it_has_passed_or_half_of_its_way_has():
    overview = overview_of(a_query("a", 4.0, 0.5), a_query("b", 3.0))
    reckoned = {"a": Expected(None, 2.0), "b": Expected(2.0, 5.0)}
    fresh = {"a": Forecast("a", 95.0, 101.5), "b": Forecast("b", 101.5, 104.0)}
    assert told(overview, Forecasts(fresh, 99.5)) == {
        "a": Expected(None, 1.5),
        "b": Expected(1.5, 4.0),
    }
    passed = {"a": Forecast("a", 95.0, 99.0), "b": Forecast("b", 99.0, 104.0)}
    assert told(overview, Forecasts(passed, 99.5)) == reckoned
    assert told(overview, Forecasts(fresh, 90.0)) == reckoned
    unreached = {"a": Forecast("a", 95.0, None), "b": Forecast("b", None, None)}
    assert told(overview, Forecasts(unreached, 99.5)) == reckoned


def test_in_a_pause_the_start_of_no_waiting_query_is_known():
    overview = overview_of(a_query("a", 2.0, 0.0), a_query("b", 3.0), paused_by="root")
    ahead = Forecasts({"b": Forecast("b", 102.0, 105.0)}, 99.9)
    assert told(overview, ahead) == {"a": Expected(None, 2.0), "b": NOT_KNOWN}


def test_a_query_that_shares_an_execution_ends_with_it_and_adds_no_work():
    shares = a_query("same", 2.0, shares_with="a")
    found = told(overview_of(a_query("a", 2.0, 0.0), shares, a_query("b", 1.0)))
    assert found["same"] == Expected(0.0, 2.0)
    assert found["b"] == Expected(2.0, 3.0)


@pytest.mark.parametrize("forecasts", [NONE, Forecasts({}, NOW_S)])
def test_all_of_a_thousand_queries_have_a_start_and_an_end_within_a_moment(forecasts):
    overview = overview_of(
        a_query("first", 5.0, 0.2), *(a_query(f"q{number}", 1.0) for number in range(1000)), slots=4
    )
    began_s = time.process_time()
    found = told(overview, forecasts)
    assert time.process_time() - began_s < 0.1
    assert len(found) == 1001
    starts = [found[f"q{number}"].start_s for number in range(1000)]
    assert starts == sorted(starts)
    assert max(each.end_s for each in found.values()) == pytest.approx(1004 / 4, abs=2)
