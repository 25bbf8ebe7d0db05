"""Requests played in real time, against sessions, plain DuckDB and something made up."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import wait_until

from queryard.core.errors import QueryardError
from queryard.load import (
    PLAIN,
    Alone,
    Board,
    Cost,
    Glance,
    Ground,
    LoadSpec,
    Measured,
    Outcome,
    Request,
    draw,
    ideals,
    play,
    prepare,
    recorded_requests,
    report,
    run,
)

ENDLESS = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"


@pytest.mark.parametrize("policy", ["marshal", "fifo", PLAIN])
def test_a_load_runs_to_its_end(policy: str, spec: LoadSpec, ground: Ground, measured: Measured):
    requests = draw(spec)
    played = run(requests, policy, ground, measured.alone, tenants=spec.tenants)
    assert (played.name, played.slots, played.interrupted) == (policy, 2, False)
    assert [outcome.request for outcome in played.outcomes] == list(requests)
    for outcome in played.outcomes:
        assert (outcome.state, outcome.error) == ("finished", "")
        assert outcome.rows == (3 if outcome.request.template == "sums" else 1)
        assert outcome.sent_s >= outcome.request.time_s
        assert outcome.ended_s >= outcome.sent_s
        assert outcome.response_s == outcome.ended_s - outcome.request.time_s
        assert (outcome.due_s is None) == (outcome.request.tenant == "web")
    assert played.cpu_s > 0
    found = report(played, measured.alone)
    assert found.summary.counts.finished == 12
    assert [row.tenant for row in found.summary.tenants] == ["batch", "web"]
    assert found.summary.deadlines.queries == 4
    assert len(found.responses_s) == 12
    assert found.to_json()["summary"]["counts"]["finished"] == 12
    if policy == PLAIN:
        assert (found.cost, found.foresight) == (None, None)
    else:
        assert found.cost is not None
        assert found.cost.decisions > 0
        assert all(outcome.work_s is not None for outcome in played.outcomes)
        assert sum(found.foresight.by.values()) == 12


@pytest.mark.parametrize("policy", ["marshal", PLAIN])
def test_errors_are_counted_and_not_fatal(policy: str, ground: Ground):
    requests = [
        Request("r1", 0.0, "a", "bad", "SELECT nothing FROM trips"),
        Request("r2", 0.0, "a", "worse", "SELEC 1"),
        Request("r3", 0.0, "a", "good", "SELECT 1"),
    ]
    played = run(requests, policy, ground, {"good": Alone(0.01, 0.01)})
    assert [outcome.state for outcome in played.outcomes] == ["failed", "failed", "finished"]
    assert "nothing" in played.outcomes[0].error
    found = report(played, {"good": Alone(0.01, 0.01)})
    assert found.summary.counts.failed == 2
    assert sum(found.errors.values()) == 2


@pytest.mark.parametrize("policy", ["marshal", PLAIN])
def test_ctrl_c_cancels_all_and_still_tells_what_ended(policy: str, ground: Ground):
    requests = [
        Request("r1", 0.0, "a", "short", "SELECT 1"),
        Request("r2", 0.1, "a", "endless", ENDLESS),
        Request("r3", 60.0, "a", "later", "SELECT 2"),
    ]

    @contextmanager
    def interrupting(board: Board):
        def interrupt() -> None:
            wait_until(lambda: board.outcomes[1].state == "under way" and board.now_s() >= 0.4)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        yield
        thread.join()

    began = time.monotonic()
    played = run(requests, policy, ground, {}, show=interrupting)
    assert time.monotonic() - began < 30
    assert played.interrupted
    assert [outcome.state for outcome in played.outcomes] == ["finished", "cancelled", "to come"]
    found = report(played, {})
    # Only ended queries count: the outcome of the others is not known.
    assert found.summary.counts.submitted == 1
    assert found.requests == 3


def test_a_history_can_be_kept_and_played_again(
    spec: LoadSpec, ground: Ground, measured: Measured, tmp_path: Path
):
    file = tmp_path / "history.sqlite"
    requests = draw(spec)
    run(requests, "marshal", ground, measured.alone, tenants=spec.tenants, history=file)
    recorded = replace(spec, arrivals=replace(spec.arrivals, kind="recorded", file=file))
    again = recorded_requests(recorded)
    assert [ask.sql for ask in again] == [ask.sql for ask in requests]
    assert [ask.tenant for ask in again] == [ask.tenant for ask in requests]
    assert len({ask.template for ask in again}) == 3
    assert {ask.deadline_s is None for ask in again if ask.tenant == "web"} == {True}


class Made:
    """A target that answers after the time its text says."""

    name, slots = "made", 2

    def __init__(self) -> None:
        self.withins: list[float | None] = []
        self.waiting: dict[str, threading.Event] = {}

    def begin(self, clock) -> None:
        self.clock = clock

    def send(self, request: Request, within_s: float | None):
        self.withins.append(within_s)
        if request.sql == "no":
            raise QueryardError("it may not")
        return MadeSent(self, request)

    def glance(self) -> Mapping[str, Glance]:
        return {query: Glance(True, 1, 0.5) for query in list(self.waiting)}

    def cost(self) -> Cost:
        return Cost(1, 0.001, 0.002, 0.003, 0.004, 0, 0.0)

    def close(self) -> None:
        pass


class MadeSent:
    def __init__(self, made: Made, request: Request) -> None:
        self.made, self.request = made, request
        self.made.waiting[request.id] = threading.Event()

    def read(self) -> int:
        self.made.waiting[self.request.id].wait(float(self.request.sql))
        del self.made.waiting[self.request.id]
        return 7

    def tell(self, outcome: Outcome) -> None:
        outcome.started_s = outcome.sent_s
        outcome.work_s, outcome.predicted_work_s, outcome.predicted_by = 1.0, 4.0, "template"
        outcome.forecast_end_s = 9.0

    def cancel(self) -> None:
        self.made.waiting[self.request.id].set()


def test_deadlines_forecasts_and_predictions_are_judged():
    requests = [
        Request("r1", 0.0, "a", "t", "0.6", deadline_factor=1.5),
        Request("r2", 0.1, "b", "t", "0.6", deadline_s=30.0),
        Request("r3", 0.2, "b", "t", "no", deadline_s=30.0),
    ]
    alone = {"t": Alone(0.2, 0.2)}
    made = Made()
    played = play(requests, made, alone)
    assert made.withins[0] == pytest.approx(0.3, abs=0.2)
    assert [outcome.has_missed for outcome in played.outcomes] == [True, False, True]
    assert [outcome.rows for outcome in played.outcomes] == [7, 7, 0]
    found = report(played, alone)
    assert (found.summary.deadlines.met, found.summary.deadlines.missed) == (1, 2)
    assert found.foresight.forecast_s.count == 2
    assert found.foresight.forecast_s.mean > 7
    assert found.foresight.prediction.median == 4.0
    assert found.foresight.by == {"template": 2}
    assert found.own_share == pytest.approx(0.009 / played.span_s)
    assert found.errors == {"it may not": 1}


def test_ideals_on_the_same_arrivals():
    requests = [
        Request("r1", 0.0, "a", "long", ""),
        Request("r2", 0.0, "a", "short", "", deadline_factor=1.5),
        Request("r3", 0.0, "a", "unknown", ""),
    ]
    alone = {"long": Alone(10.0, 20.0), "short": Alone(1.0, 2.0)}
    sharing, shortest = ideals(requests, alone, slots=2)
    assert (sharing.name, shortest.name) == ("ideal PS", "clairvoyant SRPT")
    assert sharing.responses_s == {"r1": 11.0, "r2": 2.0}
    assert shortest.responses_s == {"r1": 11.0, "r2": 1.0}
    assert (sharing.summary.deadlines.missed, shortest.summary.deadlines.missed) == (1, 0)
    assert shortest.summary.slowdown.max == pytest.approx(1.1)
    assert sharing.utilisation == pytest.approx(1.0)


def test_data_is_made_once_for_all_specs(tmp_path: Path):
    text = "queries = 2\n[data]\ntpch = { tiny = 0.01, same = 0.01 }\n"
    (tmp_path / "spec.toml").write_text(text)
    from queryard.load import read_spec

    spec = read_spec(tmp_path / "spec.toml")
    ground = prepare(spec, tmp_path / "data", slots=1, memory="300 MB")
    assert (ground.slots, ground.memory_bytes) == (1, 300_000_000)
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["tpch-0.01"]
    assert set(ground.catalog().tables) >= {"tiny.lineitem", "same.orders"}
    played = run(draw(spec), "marshal", ground, {})
    assert [outcome.error for outcome in played.outcomes] == ["", ""]


def test_a_display_of_a_run_is_told_the_active_queries():
    boards: list[Board] = []
    seen: list[Mapping[str, Glance]] = []

    @contextmanager
    def show(board: Board):
        boards.append(board)
        yield
        seen.append(board.glances)

    requests = [Request("r1", 0.0, "a", "t", "0.6"), Request("r2", 0.0, "a", "t", "0.1")]
    played = play(requests, Made(), {}, show=show)
    assert boards[0].name == "made"
    assert list(boards[0].outcomes) == list(played.outcomes)
    assert seen == [{"r1": Glance(True, 1, 0.5)}]
